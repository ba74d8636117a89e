//! Settings: flags, then environment, then context, then file, then defaults.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs, io};

use sealane::{Client, Codec, Level};
use sealane_message::InputError;
use zeroize::Zeroizing;

use crate::args::{ConfigArgs, ConfigVerb};
use crate::context::{ChosenContext, HubContext};
use crate::passphrase::first_line;
use crate::{CliFailure, Terminal, times};

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKey {
    /// The hub that client verbs speak to.
    Server,
    /// The node's data folder.
    Data,
    /// Where the node listens.
    Listen,
    /// When a message counts as stored.
    Level,
    /// How long the node keeps the messages of streams without bounds; empty: for ever.
    MaxAge,
    /// The codec of client verbs.
    Codec,
    /// The policy file of client verbs; empty: what is built in.
    Policy,
    /// The token that client verbs bring; empty: none.
    Token,
    /// The file of certificates that client verbs trust; empty: those of the system.
    Ca,
    /// The file of the node's certificate; empty: no TLS.
    TlsCert,
    /// The file of its private key.
    TlsKey,
}

impl SettingKey {
    /// All settings.
    pub const ALL: [SettingKey; 11] = [
        SettingKey::Server,
        SettingKey::Data,
        SettingKey::Listen,
        SettingKey::Level,
        SettingKey::MaxAge,
        SettingKey::Codec,
        SettingKey::Policy,
        SettingKey::Token,
        SettingKey::Ca,
        SettingKey::TlsCert,
        SettingKey::TlsKey,
    ];

    /// Its name in the configuration file.
    pub fn name(self) -> &'static str {
        match self {
            SettingKey::Server => "server",
            SettingKey::Data => "data",
            SettingKey::Listen => "listen",
            SettingKey::Level => "level",
            SettingKey::MaxAge => "max-age",
            SettingKey::Codec => "codec",
            SettingKey::Policy => "policy",
            SettingKey::Token => "token",
            SettingKey::Ca => "ca",
            SettingKey::TlsCert => "tls-cert",
            SettingKey::TlsKey => "tls-key",
        }
    }

    /// Its environment variable.
    pub fn variable(self) -> &'static str {
        match self {
            SettingKey::Server => "SEALANE_SERVER",
            SettingKey::Data => "SEALANE_DATA",
            SettingKey::Listen => "SEALANE_LISTEN",
            SettingKey::Level => "SEALANE_LEVEL",
            SettingKey::MaxAge => "SEALANE_MAX_AGE",
            SettingKey::Codec => "SEALANE_CODEC",
            SettingKey::Policy => "SEALANE_POLICY",
            SettingKey::Token => "SEALANE_TOKEN",
            SettingKey::Ca => "SEALANE_CA",
            SettingKey::TlsCert => "SEALANE_TLS_CERT",
            SettingKey::TlsKey => "SEALANE_TLS_KEY",
        }
    }

    fn default(self, environment: &EnvironmentLookup) -> String {
        match self {
            SettingKey::Server | SettingKey::Listen => "127.0.0.1:9087".into(),
            SettingKey::Data => {
                folder(environment, "XDG_DATA_HOME", ".local/share").display().to_string()
            }
            SettingKey::Level => Level::Disk.to_string(),
            SettingKey::Codec => Codec::Json.name().into(),
            SettingKey::MaxAge
            | SettingKey::Policy
            | SettingKey::Token
            | SettingKey::Ca
            | SettingKey::TlsCert
            | SettingKey::TlsKey => String::new(),
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    /// A flag of this command line.
    Flag,
    /// An environment variable.
    Environment(&'static str),
    /// The context of this name.
    Context(String),
    /// The configuration file.
    File(PathBuf),
    /// Nobody said anything else.
    Default,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Flag => f.write_str("flag"),
            SettingOrigin::Environment(variable) => write!(f, "environment {variable}"),
            SettingOrigin::Context(name) => write!(f, "context {name}"),
            SettingOrigin::File(path) => write!(f, "file {}", path.display()),
            SettingOrigin::Default => f.write_str("default"),
        }
    }
}

/// A setting's effective value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// Which.
    pub key: SettingKey,
    /// The value, as it was written.
    pub value: String,
    /// Where it comes from.
    pub origin: SettingOrigin,
}

impl EffectiveSetting {
    /// The value as what it stands for.
    ///
    /// # Errors
    /// [`CliFailure::Setting`].
    pub fn parse<T>(&self, read: impl Fn(&str) -> Result<T, InputError>) -> Result<T, CliFailure> {
        read(&self.value).map_err(|cause| CliFailure::Setting {
            key: self.key.name(),
            origin: self.origin.to_string(),
            value: self.value.clone(),
            cause: cause.to_string(),
        })
    }

    /// The value as an address to listen on.
    ///
    /// # Errors
    /// [`CliFailure::Setting`].
    pub fn address(&self) -> Result<SocketAddr, CliFailure> {
        self.parse(|text| text.parse().map_err(|_| "an address is like 127.0.0.1:9087".into()))
    }

    /// The value as a level.
    ///
    /// # Errors
    /// [`CliFailure::Setting`].
    pub fn level(&self) -> Result<Level, CliFailure> {
        self.parse(|text| {
            text.parse().map_err(|e: sealane_protocol::UnknownLevel| e.to_string().into())
        })
    }

    /// The value as a duration; empty: none.
    ///
    /// # Errors
    /// [`CliFailure::Setting`].
    pub fn duration(&self) -> Result<Option<Duration>, CliFailure> {
        if self.value.is_empty() {
            return Ok(None);
        }
        self.parse(|text| times::duration(text).map(Some))
    }

    /// The value as a codec.
    ///
    /// # Errors
    /// [`CliFailure::Setting`].
    pub fn codec(&self) -> Result<Codec, CliFailure> {
        let usable = |codec: &Codec| *codec != Codec::MsgPackRecords;
        let read = |text: &str| Codec::from_name(text).filter(usable);
        self.parse(|text| read(text).ok_or_else(|| "a codec is json, msgpack or cbor".into()))
    }
}

/// How environment variables are looked up.
pub type EnvironmentLookup = dyn Fn(&str) -> Option<String>;

/// The environment of this process; an empty variable counts as none.
pub fn environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// The settings of the configuration file and of a command's context, which may be none.
#[derive(Debug, Clone, Default)]
pub struct SettingsFile {
    path: PathBuf,
    values: Vec<(SettingKey, String)>,
    chosen: Option<ChosenContext>,
}

impl SettingsFile {
    /// The file and the context that were named, or the user's where there are any.
    ///
    /// # Errors
    /// [`CliFailure::File`], [`CliFailure::UnknownKey`], [`CliFailure::UnknownContext`].
    pub fn find(named: Option<&Path>, context: Option<&str>) -> Result<SettingsFile, CliFailure> {
        let file = SettingsFile::open(named, &environment)?;
        Ok(SettingsFile { chosen: ChosenContext::find(context, &environment)?, ..file })
    }

    /// No file, and this context as if a flag had named it.
    pub(crate) fn of_context(context: HubContext) -> SettingsFile {
        SettingsFile {
            chosen: Some(ChosenContext { context, by_flag: true }),
            ..SettingsFile::default()
        }
    }

    fn open(
        named: Option<&Path>,
        environment: &EnvironmentLookup,
    ) -> Result<SettingsFile, CliFailure> {
        let named =
            named.map(Path::to_owned).or_else(|| environment("SEALANE_CONFIG").map(PathBuf::from));
        let path = named.clone().unwrap_or_else(|| {
            folder(environment, "XDG_CONFIG_HOME", ".config").join("config.toml")
        });
        match fs::read_to_string(&path) {
            // Editors of Windows put a byte order mark before the first key.
            Ok(text) => SettingsFile::read(path, text.strip_prefix('\u{feff}').unwrap_or(&text)),
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
                Ok(SettingsFile::default())
            }
            Err(error) => Err(CliFailure::File { file: path, cause: error.to_string() }),
        }
    }

    fn read(path: PathBuf, text: &str) -> Result<SettingsFile, CliFailure> {
        let file = |cause| CliFailure::File { file: path.clone(), cause };
        let table: toml::Table = text.parse().map_err(|error| file(no_toml(text, &error)))?;
        let mut values = Vec::new();
        for (name, value) in table {
            let Some(key) = SettingKey::ALL.into_iter().find(|key| key.name() == name) else {
                let known = SettingKey::ALL.map(SettingKey::name).join(", ");
                return Err(CliFailure::UnknownKey { file: path, key: name, known });
            };
            let toml::Value::String(value) = value else {
                return Err(file(format!("`{name}` is not text in quotes")));
            };
            values.push((key, value));
        }
        Ok(SettingsFile { path, values, chosen: None })
    }

    /// The effective value of a setting, of which a flag may have said something.
    pub fn setting(&self, key: SettingKey, flag: Option<&String>) -> EffectiveSetting {
        self.resolve(key, flag, &environment)
    }

    fn resolve(
        &self,
        key: SettingKey,
        flag: Option<&String>,
        environment: &EnvironmentLookup,
    ) -> EffectiveSetting {
        let in_file = || self.values.iter().find(|(other, _)| *other == key);
        let of_context = |by_flag| {
            let chosen = self.chosen.as_ref().filter(|chosen| chosen.by_flag == by_flag)?;
            Some((chosen.context.value(key)?, SettingOrigin::Context(chosen.context.name.clone())))
        };
        let (value, origin) = if let Some(value) = flag {
            (value.clone(), SettingOrigin::Flag)
        } else if let Some(named) = of_context(true) {
            named
        } else if let Some(value) = environment(key.variable()) {
            (value, SettingOrigin::Environment(key.variable()))
        } else if let Some(used) = of_context(false) {
            used
        } else if let Some((_, value)) = in_file() {
            (value.clone(), SettingOrigin::File(self.path.clone()))
        } else {
            (key.default(environment), SettingOrigin::Default)
        };
        EffectiveSetting { key, value, origin }
    }

    /// The file that a setting names, if it names one. In a configuration file it is meant from
    /// that file's folder.
    pub fn path(&self, key: SettingKey) -> Option<PathBuf> {
        self.path_or(key, None)
    }

    /// The same, of which a flag may have said something.
    pub fn path_or(&self, key: SettingKey, flag: Option<&String>) -> Option<PathBuf> {
        let setting = self.setting(key, flag);
        let path = PathBuf::from(Some(setting.value).filter(|value| !value.is_empty())?);
        match setting.origin {
            SettingOrigin::File(file) => Some(file.parent().unwrap_or(Path::new("")).join(path)),
            _ => Some(path),
        }
    }

    /// The settings for this hub. The token and the CA of a context go to the hub of that context
    /// alone. The token and the CA of the configuration file go to no hub of a context.
    fn beside(&self, server: &EffectiveSetting) -> SettingsFile {
        let mut file = self.clone();
        match server.origin {
            SettingOrigin::Context(_) => {
                file.values.retain(|(key, _)| ![SettingKey::Token, SettingKey::Ca].contains(key));
            }
            _ => file.chosen = None,
        }
        file
    }

    /// The token that is brought to this hub; empty: none.
    fn token(&self) -> Result<Zeroizing<String>, CliFailure> {
        let setting = self.setting(SettingKey::Token, None);
        match setting.origin {
            SettingOrigin::Context(_) => first_line(Path::new(&setting.value)),
            _ => Ok(Zeroizing::new(setting.value)),
        }
    }

    /// A client of the hub that the settings name, speaking the codec that they name.
    ///
    /// # Errors
    /// [`CliFailure::Setting`].
    pub fn client(
        &self,
        server: Option<&String>,
        codec: Option<&String>,
    ) -> Result<Client, CliFailure> {
        let codec = self.setting(SettingKey::Codec, codec).codec()?;
        let server = self.setting(SettingKey::Server, server);
        let beside = self.beside(&server);
        let token = beside.token()?;
        let client = server.parse(|text| {
            Client::connect(text).and_then(|c| c.with_codec(codec)).map_err(|e| match e {
                sealane::Error::Address { cause, .. } => format!("it {cause}").into(),
                other => other.to_string().into(),
            })
        })?;
        let client = if token.is_empty() { client } else { client.with_token(&token)? };
        let Some(file) = beside.path(SettingKey::Ca) else { return Ok(client) };
        let failed = |cause: String| CliFailure::File { file: file.clone(), cause };
        let pem = fs::read(&file).map_err(|error| failed(error.to_string()))?;
        client.with_ca(&pem).map_err(|error| failed(error.to_string()))
    }
}

/// `sealane config show`.
///
/// # Errors
/// [`CliFailure::Output`].
pub fn show(
    args: &ConfigArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let ConfigVerb::Show { origin, server } = &args.verb;
    let server = file.setting(SettingKey::Server, server.as_ref());
    let beside = file.beside(&server);
    for key in SettingKey::ALL {
        let mut setting = match key {
            SettingKey::Server => server.clone(),
            SettingKey::Token | SettingKey::Ca => beside.setting(key, None),
            _ => file.setting(key, None),
        };
        if key == SettingKey::Token && !setting.value.is_empty() {
            setting.value = "(set)".to_owned();
        }
        if terminal.json() {
            terminal.record(vec![
                ("key", key.name().into()),
                ("value", setting.value.into()),
                ("origin", setting.origin.to_string().into()),
            ])?;
        } else if *origin {
            terminal.line(format_args!(
                "{} = \"{}\"  # {}",
                key.name(),
                setting.value,
                setting.origin
            ))?;
        } else {
            terminal.line(format_args!("{} = \"{}\"", key.name(), setting.value))?;
        }
    }
    Ok(())
}

/// The fault of a text, and its line. The library's own words would show the line, which may hold a
/// token.
pub(crate) fn no_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}

/// `sealane` in the folder that `variable` names, or in `below` the home.
pub(crate) fn folder(environment: &EnvironmentLookup, variable: &str, below: &str) -> PathBuf {
    let home = || environment("HOME").map(|home| Path::new(&home).join(below));
    let base = environment(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    base.or_else(home).unwrap_or_default().join("sealane")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_source_wins() {
        let file = SettingsFile::read("c.toml".into(), "server = 'file:1'\nlevel = 'os'").unwrap();
        let from_environment =
            |variable: &str| (variable == "SEALANE_SERVER").then(|| "environment:1".to_owned());
        let flag = "flag:1".to_owned();
        let server = |flag, env: &EnvironmentLookup| file.resolve(SettingKey::Server, flag, env);
        assert_eq!(server(Some(&flag), &from_environment).origin, SettingOrigin::Flag);
        assert_eq!(server(None, &from_environment).value, "environment:1");
        assert_eq!(server(None, &|_| None).value, "file:1");
        assert_eq!(file.resolve(SettingKey::Codec, None, &|_| None).origin, SettingOrigin::Default);
        assert_eq!(file.setting(SettingKey::Level, None).level().unwrap(), Level::Os);
    }

    #[test]
    fn a_wrong_file_is_named_with_its_key() {
        let error = SettingsFile::read("c.toml".into(), "sever = 'x'").unwrap_err().to_string();
        assert!(error.contains("`sever`") && error.contains("server, data"), "{error}");
        assert!(matches!(
            SettingsFile::read("c".into(), "server = 3"),
            Err(CliFailure::File { .. })
        ));
        assert!(matches!(SettingsFile::read("c".into(), "server"), Err(CliFailure::File { .. })));
    }
}
