//! `contexts.toml`: read as a whole, and written as a whole under another name first.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sealane::{Codec, Value};
use sealane_message::InputError;
use toml::Table;

use super::HubContext;
use crate::CliFailure;
use crate::config::no_toml;
use crate::limits::MAX_CONTEXT_NAME_BYTES;

/// All contexts, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HubContexts {
    pub(super) used: Option<String>,
    pub(super) all: Vec<HubContext>,
}

impl HubContexts {
    /// Reads the file; where there is none, there is no context.
    pub(super) fn read(path: &Path) -> Result<HubContexts, CliFailure> {
        match fs::read_to_string(path) {
            Ok(text) => HubContexts::parse(&text).map_err(|cause| wrong(path, cause.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(HubContexts::default()),
            Err(error) => Err(CliFailure::file(path, error)),
        }
    }

    fn parse(text: &str) -> Result<HubContexts, InputError> {
        let mut table: Table = text.parse().map_err(|error| no_toml(text, &error))?;
        let used = table.remove("use").map(|used| match used {
            toml::Value::String(used) => Ok(used),
            _ => Err(InputError::from("`use` is not text in quotes")),
        });
        let mut contexts = HubContexts { used: used.transpose()?, all: vec![] };
        match table.remove("context") {
            None => {}
            Some(toml::Value::Table(all)) => {
                for (name, context) in all {
                    contexts.add(parse_one(name, context)?).map_err(|error| error.to_string())?;
                }
            }
            Some(_) => return Err("`context` is no table".into()),
        }
        match table.keys().next() {
            Some(key) => Err(format!("`{key}` is neither `use` nor a context").into()),
            None => Ok(contexts),
        }
    }

    /// Changes the file while no other command does.
    pub(super) fn change<T>(
        path: &Path,
        change: impl FnOnce(&mut HubContexts) -> Result<T, CliFailure>,
    ) -> Result<T, CliFailure> {
        let failed = |cause: io::Error| CliFailure::file(path, cause);
        let folder = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(path.with_extension("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut contexts = HubContexts::read(path)?;
        let outcome = change(&mut contexts)?;
        contexts.write(path).map_err(failed)?;
        Ok(outcome)
    }

    /// The file is readable by its owner alone, as temporary files are.
    fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(self.to_text().as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        fs::File::open(folder)?.sync_all()
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some(used) = &self.used {
            text.push_str(&format!("use = {}\n", quoted(used)));
        }
        for context in &self.all {
            text.push_str(&format!("\n[context.{}]\n", quoted(&context.name)));
            let path = |path: &Option<PathBuf>| Some(path.as_ref()?.display().to_string());
            let lines = [
                ("server", Some(context.server.clone())),
                ("token-file", path(&context.token_file)),
                ("ca", path(&context.ca)),
                ("codec", context.codec.clone()),
            ];
            for (key, value) in lines {
                text.extend(value.map(|value| format!("{key} = {}\n", quoted(&value))));
            }
        }
        text
    }

    pub(super) fn get(&self, name: &str) -> Result<&HubContext, CliFailure> {
        self.all.iter().find(|context| context.name == name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> CliFailure {
        let known: Vec<&str> = self.all.iter().map(|context| context.name.as_str()).collect();
        let known = if known.is_empty() {
            String::new()
        } else {
            format!("; the contexts are {}", known.join(", "))
        };
        CliFailure::UnknownContext { name: name.to_owned(), known }
    }

    /// Adds a context, and says whether there was none of its name.
    pub(super) fn add(&mut self, context: HubContext) -> Result<bool, CliFailure> {
        if !is_name(&context.name) {
            let named = "the name of a context has 1 to 64 letters, digits, `-`, `_` and `.`";
            return Err(CliFailure::Usage(named));
        }
        let before = self.all.len();
        self.all.retain(|other| other.name != context.name);
        let is_new = self.all.len() == before;
        self.all.push(context);
        self.all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(is_new)
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), CliFailure> {
        self.get(name)?;
        self.all.retain(|context| context.name != name);
        self.used.take_if(|used| used == name);
        Ok(())
    }
}

fn parse_one(name: String, context: toml::Value) -> Result<HubContext, InputError> {
    let toml::Value::Table(table) = context else {
        return Err(format!("the context `{name}` is no table").into());
    };
    let mut read = HubContext { name, ..HubContext::default() };
    for (key, value) in table {
        let toml::Value::String(value) = value else {
            return Err(
                format!("`{key}` of the context `{}` is not text in quotes", read.name).into()
            );
        };
        match key.as_str() {
            "server" => read.server = value,
            "token-file" => read.token_file = Some(value.into()),
            "ca" => read.ca = Some(value.into()),
            "codec" => read.codec = Some(value),
            _ => return Err(format!("`{key}` of the context `{}` is unknown", read.name).into()),
        }
    }
    if read.server.is_empty() {
        return Err(format!("the context `{}` has no `server`", read.name).into());
    }
    Ok(read)
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=MAX_CONTEXT_NAME_BYTES).contains(&name.len()) && name.chars().all(is_part)
}

/// A text as TOML, whose escapes are those of JSON; DEL alone is to be escaped there, too.
fn quoted(text: &str) -> String {
    let mut json = Vec::new();
    sealane_codec::encode(Codec::Json, &Value::from(text), &mut json);
    String::from_utf8_lossy(&json).replace('\u{7f}', "\\u007f")
}

fn wrong(path: &Path, cause: String) -> CliFailure {
    CliFailure::File { file: path.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(name: &str) -> HubContext {
        HubContext {
            name: name.to_owned(),
            server: "https://h\"u\\b\u{7f}:1".to_owned(),
            token_file: Some("/tokens/a b".into()),
            ca: None,
            codec: Some("cbor".to_owned()),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut contexts = HubContexts::default();
        for name in ["b", "a.b-c_D", "a"] {
            assert!(contexts.add(context(name)).unwrap());
        }
        assert!(!contexts.add(context("a")).unwrap());
        contexts.used = Some("b".to_owned());
        assert_eq!(HubContexts::parse(&contexts.to_text()).unwrap(), contexts);
        contexts.remove("b").unwrap();
        assert_eq!(contexts.used, None);
        assert!(contexts.remove("b").is_err());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named() {
        for (text, named) in [
            ("use = 3", "`use`"),
            ("context = 3", "`context`"),
            ("server = 'a'", "`server`"),
            ("[context.a]\nserver = 'b'\ntoken = 'c'", "`token`"),
            ("[context.a]\nserver = 3", "`server`"),
            ("[context.a]\nca = '/b'", "`server`"),
            ("[context.'a b']\nserver = 'b'", "1 to 64 letters"),
            ("[context.a]\nserver = 'b", "line 2"),
        ] {
            let error = HubContexts::parse(text).unwrap_err();
            assert!(error.to_string().contains(named), "{text}: {error}");
        }
        assert_eq!(HubContexts::parse("").unwrap(), HubContexts::default());
    }
}
