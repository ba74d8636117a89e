use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::limits::{MAX_TOKEN_NAME_BYTES, MAX_TOKEN_PATTERNS, MAX_TOKENS};
use sealane_message::{InputError, Pattern};
use sealane_stream::{OwnShares, ShareRules};
use toml::{Table, Value};

use super::shares::{self, ShareFault};
use super::token::{AccessToken, TokenRight, TokenRights, TokenSecret};

const NAME: &str = "tokens.toml";
/// Beside it: says that the node has had tokens, for as long as it is there.
const MARK: &str = "guarded";
const MARKED: &str = "This node has had tokens, and serves nobody without one.
To open it to this machine again, stop it, and remove this file and tokens.toml.
";
const VERSION: i64 = 1;

/// Why the file of tokens was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refused.
    #[error("{}: {cause}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Others than its owner can read it.
    #[error("{}: others than its owner can read it", file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
    },
    /// It is not what spec/access.md says.
    #[error("{}: {cause}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The fault, and its place.
        cause: String,
    },
    /// A token of this name exists.
    #[error("there is a token `{name}` already")]
    Taken {
        /// The name.
        name: String,
    },
    /// No token of this name exists.
    #[error("there is no token `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
}

/// The tokens of a node.
#[derive(Debug, Clone, Default)]
pub struct TokenFile {
    tokens: Vec<Arc<AccessToken>>,
    by_hash: HashMap<[u8; 32], Arc<AccessToken>>,
    /// Whether there are or ever were tokens: where none is left, nothing opens.
    guards: bool,
}

impl TokenFile {
    /// The file of a data folder.
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(NAME)
    }

    /// Reads a file; where there is none there are no tokens, and the mark beside it says whether
    /// there ever were any.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let io = |cause| FileError::Io { file: file.to_owned(), cause };
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            // A missing file is not an open node. The mark beside it remembers that there were
            // tokens.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A mark that cannot be looked for counts as one that is there.
                let guards = file.with_file_name(MARK).try_exists().unwrap_or(true);
                return Ok(Self { guards, ..Self::default() });
            }
            Err(error) => return Err(io(error)),
        };
        // Hashes give no token away, but names and rights tell which to go for. Such a file is
        // refused.
        if fs::metadata(file).map_err(io)?.permissions().mode() & 0o077 != 0 {
            return Err(FileError::Exposed { file: file.to_owned() });
        }
        let content = |cause| FileError::Content { file: file.to_owned(), cause };
        let table: Table = text.parse().map_err(|e| content(no_toml(&text, &e)))?;
        Self::from_table(table, &text).map_err(|cause| content(cause.to_string()))
    }

    fn from_table(mut table: Table, text: &str) -> Result<Self, InputError> {
        match table.remove("version") {
            Some(Value::Integer(VERSION)) => {}
            version => {
                return Err(format!("its version is {version:?}, this program reads 1").into());
            }
        }
        let all = match table.remove("token") {
            None => Vec::new(),
            Some(Value::Array(all)) => all,
            Some(_) => return Err("`token` is no list".into()),
        };
        // An unknown key is refused: a misspelt `expires` would otherwise make a token that never
        // ends.
        if let Some(key) = table.keys().next() {
            return Err(format!("`{key}` is no key of it").into());
        }
        if all.len() > MAX_TOKENS {
            return Err(format!("it has more than {MAX_TOKENS} tokens").into());
        }
        let mut names = HashSet::new();
        let mut tokens = Vec::with_capacity(all.len());
        for (place, value) in all.into_iter().enumerate() {
            let Value::Table(mut table) = value else { return Err("a token is no table".into()) };
            let shares = shares::take(&mut table);
            let name = table.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let shares = shares.map_err(|ShareFault { key, cause }| {
                let line = shares::line(text, place, Some(&key)).unwrap_or_default();
                InputError::from(format!("line {line}: token `{name}`: {cause}"))
            })?;
            let token = read_token(table).map_err(|cause| {
                let line = shares::line(text, place, None).unwrap_or_default();
                InputError::from(format!("line {line}: {cause}"))
            })?;
            let token = AccessToken { shares, ..token };
            if !names.insert(token.name.clone()) {
                return Err(format!("it has two tokens `{}`", token.name).into());
            }
            tokens.push(Arc::new(token));
        }
        let by_hash = tokens.iter().map(|token| (token.hash, token.clone())).collect();
        Ok(Self { tokens, by_hash, guards: true })
    }

    /// Whether a token is needed: there is one, or there was.
    pub fn guards(&self) -> bool {
        self.guards
    }

    /// The same tokens, of a node that is known to have had some.
    pub(super) fn guarding(self) -> Self {
        Self { guards: true, ..self }
    }

    /// Leaves the mark in a data folder, durably, where it is not there yet.
    pub(super) fn mark(folder: &Path) -> io::Result<()> {
        let path = folder.join(MARK);
        if path.try_exists()? {
            return Ok(());
        }
        // The mark is synced before any token is written, so that no crash leaves tokens without
        // it.
        let mut mark = private(&path, true)?;
        mark.write_all(MARKED.as_bytes())?;
        mark.sync_all()?;
        File::open(folder)?.sync_all()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// All, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &AccessToken> {
        self.tokens.iter().map(Arc::as_ref)
    }

    /// How much each token may hold.
    pub fn share_rules(&self) -> ShareRules {
        let chosen = self.iter().filter(|token| token.shares.iter().next().is_some());
        let own = chosen.map(|token| (token.name().to_owned(), token.shares.clone())).collect();
        ShareRules::new(self.tokens.len(), own)
    }

    /// The token with this hash.
    pub fn find(&self, hash: &[u8; 32]) -> Option<Arc<AccessToken>> {
        self.by_hash.get(hash).cloned()
    }

    /// Whether one that held at `last` holds no more.
    pub(super) fn expired_between(&self, last: SystemTime, now: SystemTime) -> bool {
        self.iter().any(|token| token.is_valid(last) && !token.is_valid(now))
    }

    /// Adds a token to the file of a data folder. The text of it is nowhere else.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn add(
        folder: &Path,
        name: &str,
        secret: &TokenSecret,
        rights: TokenRights,
        expires: Option<SystemTime>,
    ) -> Result<(), FileError> {
        Self::add_with(folder, name, secret, (rights, OwnShares::default()), expires)
    }

    /// The same of a token for which shares are chosen.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn add_with(
        folder: &Path,
        name: &str,
        secret: &TokenSecret,
        (rights, shares): (TokenRights, OwnShares),
        expires: Option<SystemTime>,
    ) -> Result<(), FileError> {
        let (_lock, mut tokens) = Self::locked(folder)?;
        if tokens.iter().any(|token| token.name() == name) {
            return Err(FileError::Taken { name: name.to_owned() });
        }
        let (name, hash, created) = (name.into(), secret.hash(), SystemTime::now());
        let token = AccessToken { name, hash, rights, shares, created, expires };
        tokens.tokens.push(Arc::new(token));
        tokens.write(&Self::path(folder))
    }

    /// Removes a token from the file of a data folder.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn revoke(folder: &Path, name: &str) -> Result<(), FileError> {
        let (_lock, mut tokens) = Self::locked(folder)?;
        let before = tokens.tokens.len();
        tokens.tokens.retain(|token| token.name() != name);
        if tokens.tokens.len() == before {
            return Err(FileError::Unknown { name: name.to_owned() });
        }
        tokens.write(&Self::path(folder))
    }

    /// The tokens, and a lock that keeps others from changing them meanwhile.
    fn locked(folder: &Path) -> Result<(File, Self), FileError> {
        let path = folder.join(".tokens.lock");
        let io = |cause| FileError::Io { file: path.clone(), cause };
        // The streams will be kept in it: nobody but its owner reads them past the node.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
        let lock = private(&path, false).map_err(io)?;
        // Two tools that change tokens at once would each write what they read, and one change
        // would be lost.
        lock.lock().map_err(io)?;
        Ok((lock, Self::read(&Self::path(folder))?))
    }

    /// Replaces the file: whoever reads it sees the old one or the new one.
    fn write(&self, file: &Path) -> Result<(), FileError> {
        let text = self.to_text();
        let content = |cause| FileError::Content { file: file.to_owned(), cause };
        // A text that could not be read back is not written.
        let table = text.parse().map_err(|e| content(no_toml(&text, &e)))?;
        Self::from_table(table, &text).map_err(|cause| content(cause.to_string()))?;
        let io = |cause| FileError::Io { file: file.to_owned(), cause };
        let folder = file.parent().unwrap_or(Path::new("."));
        Self::mark(folder).map_err(io)?;
        let new = file.with_extension("new");
        let mut out = private(&new, true).map_err(io)?;
        // The bytes are synced before the rename. Otherwise a crash could leave an empty file of
        // that name.
        out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(io)?;
        fs::rename(&new, file).map_err(io)?;
        // The rename is an entry of the folder. Until that is synced, a revoked token could come
        // back.
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)
    }

    fn to_text(&self) -> String {
        let mut text = format!("version = {VERSION}\n");
        for token in self.iter() {
            let hash: String = token.hash.iter().map(|byte| format!("{byte:02x}")).collect();
            let name = Value::String(token.name().to_owned());
            // Writing to a String cannot fail.
            let _ = write!(text, "\n[[token]]\nname = {name}\nhash = \"{hash}\"\n");
            // A right that is not granted is left out, so that nodes that do not know it yet read
            // the file as well.
            for right in
                TokenRight::ALL.into_iter().filter(|right| !token.rights.of(*right).is_empty())
            {
                let patterns = token.rights.of(right).iter();
                let patterns = patterns.map(|pattern| Value::String(pattern.to_string()));
                let _ = writeln!(text, "{} = {}", right.name(), Value::Array(patterns.collect()));
            }
            let _ = writeln!(text, "observe = {}", token.rights.observe);
            shares::write(&token.shares, &mut text);
            let times = [("created", Some(token.created)), ("expires", token.expires)];
            for (key, time) in times {
                if let Some(time) = time {
                    let time = humantime::format_rfc3339_seconds(time);
                    let _ = writeln!(text, "{key} = \"{time}\"");
                }
            }
        }
        text
    }
}

/// Opens a file that only its owner can read.
fn private(path: &Path, truncate: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(truncate).mode(0o600).open(path)
}

fn read_token(mut table: Table) -> Result<AccessToken, InputError> {
    let name = text(&mut table, "name")?.unwrap_or_default();
    // The name stands in logs, where a control character could forge a line.
    if !(1..=MAX_TOKEN_NAME_BYTES).contains(&name.len()) || name.chars().any(char::is_control) {
        return Err(format!("a token's name has 1 to {MAX_TOKEN_NAME_BYTES} bytes").into());
    }
    let wrong = |what: &str| InputError::from(format!("token `{name}`: {what}"));
    let hash = text(&mut table, "hash")?.unwrap_or_default();
    let hash = read_hash(&hash).ok_or_else(|| wrong("its hash is not 64 hexadecimal digits"))?;
    let mut of =
        |right: TokenRight| patterns(&mut table, right.name()).map_err(|e| wrong(&e.to_string()));
    let (read, publish, manage) =
        (of(TokenRight::Read)?, of(TokenRight::Publish)?, of(TokenRight::Manage)?);
    let orders = of(TokenRight::Orders)?;
    // Each key is taken out as it is read, so that one which is left is an unknown one.
    let observe = match table.remove("observe") {
        None => false,
        Some(Value::Boolean(observe)) => observe,
        Some(_) => return Err(wrong("`observe` is true or false")),
    };
    let rights = TokenRights { read, publish, manage, orders, observe };
    let created = time(&mut table, "created")?.unwrap_or(SystemTime::UNIX_EPOCH);
    let expires = time(&mut table, "expires")?;
    match table.keys().next() {
        Some(key) => Err(wrong(&format!("`{key}` is no key of it"))),
        None => {
            let (name, shares) = (name.into(), OwnShares::default());
            Ok(AccessToken { name, hash, rights, shares, created, expires })
        }
    }
}

fn text(table: &mut Table, key: &str) -> Result<Option<String>, InputError> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` is not text in quotes").into()),
    }
}

fn time(table: &mut Table, key: &str) -> Result<Option<SystemTime>, InputError> {
    let Some(text) = text(table, key)? else { return Ok(None) };
    let time = humantime::parse_rfc3339(&text);
    time.map(Some).map_err(|_| format!("`{key}` is no time like 2027-01-01T00:00:00Z").into())
}

fn patterns(table: &mut Table, key: &str) -> Result<Vec<Pattern>, InputError> {
    let list = match table.remove(key) {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MAX_TOKEN_PATTERNS => list,
        Some(_) => return Err(format!("`{key}` is no list of at most {MAX_TOKEN_PATTERNS}").into()),
    };
    let read = |value: Value| {
        let text = value.as_str().ok_or_else(|| format!("`{key}` holds what is no pattern"))?;
        text.parse().map_err(|error| InputError::from(format!("`{key}`: {text}: {error}")))
    };
    list.into_iter().map(read).collect()
}

fn read_hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
}

/// The fault of a text, and its line. The library's own words would show the line, which has the
/// hash of a token.
fn no_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sealane_stream::ShareKind;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_revoked_once() {
        let home = tempfile::tempdir().unwrap();
        let folder = &home.path().join("data");
        let secret = TokenSecret::new([1; 32]);
        let rights = TokenRights {
            read: vec!["a/**".parse().unwrap(), "b".parse().unwrap()],
            orders: vec!["groups/*".parse().unwrap()],
            observe: true,
            ..TokenRights::default()
        };
        let expires = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000));
        let shares = OwnShares::default().with(ShareKind::InFlight, 9);
        let both = (rights.clone(), shares.clone());
        TokenFile::add_with(folder, "a \"b\"", &secret, both, expires).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder), mode(&TokenFile::path(folder))), (0o700, 0o600));
        let tokens = TokenFile::read(&TokenFile::path(folder)).unwrap();
        let token = tokens.find(&secret.hash()).unwrap();
        assert_eq!((token.name(), token.rights()), ("a \"b\"", &rights));
        assert_eq!((token.expires(), token.shares()), (expires, &shares));
        let again = TokenFile::add(folder, "a \"b\"", &secret, rights, None);
        assert!(matches!(again, Err(FileError::Taken { .. })));
        TokenFile::revoke(folder, "a \"b\"").unwrap();
        let none = TokenFile::read(&TokenFile::path(folder)).unwrap();
        assert!(none.is_empty() && none.guards());
        let again = TokenFile::revoke(folder, "a \"b\"");
        assert!(matches!(again, Err(FileError::Unknown { .. })));
    }

    #[test]
    fn a_wrong_file_is_refused_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::path(folder.path());
        let hash = "ab".repeat(32);
        let good = format!("version = 1\n[[token]]\nname = 'a'\nhash = '{hash}'\n");
        let cases = [
            good.replace("version = 1", "version = 2"),
            good.replace("version = 1", ""),
            good.replace("'a'", "''"),
            good.replace(&hash, "ab"),
            format!("{good}read = ['a/**/b']\n"),
            format!("{good}read = 'a'\n"),
            format!("{good}write = ['a']\n"),
            format!("{good}observe = 1\n"),
            format!("{good}orders = 'groups/**'\n"),
            format!("{good}orders = ['groups/**/x']\n"),
            format!("{good}order = ['groups/**']\n"),
            format!("{good}expires = 'soon'\n"),
            format!("{good}[[token]]\nname = 'a'\nhash = '{hash}'\n"),
        ];
        let read = |text: &str| {
            let _ = fs::remove_file(&file);
            private(&file, true).unwrap().write_all(text.as_bytes()).unwrap();
            TokenFile::read(&file)
        };
        let rights = |text: &str| read(text).unwrap().iter().next().unwrap().rights().clone();
        assert_eq!(rights(&good), TokenRights::default());
        let orders = vec!["groups/**".parse().unwrap()];
        let expected = TokenRights { orders, ..TokenRights::default() };
        assert_eq!(rights(&format!("{good}orders = ['groups/**']\n")), expected);
        for case in cases {
            assert!(matches!(read(&case), Err(FileError::Content { .. })), "{case}");
        }
        let shares = format!("{good}share = {{ streams = 7, keys = 0 }}\n[[token]]\n");
        let shares = format!("{shares}name = 'b'\nhash = '{}'\n", "cd".repeat(32));
        let token = |text: &str, place| read(text).unwrap().iter().nth(place).unwrap().clone();
        let chosen = OwnShares::default().with(ShareKind::Keys, 0).with(ShareKind::Streams, 7);
        assert_eq!(token(&shares, 0).shares(), &chosen);
        let rules = read(&shares).unwrap().share_rules();
        assert_eq!(rules.limit("a", ShareKind::Streams), 7);
        assert_eq!(rules.limit("b", ShareKind::Streams), ShareKind::Streams.limit() / 4);
        read(&good).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(TokenFile::read(&file), Err(FileError::Exposed { .. })));
    }

    #[test]
    fn a_wrong_share_is_named_with_its_line() {
        let hash = "ab".repeat(32);
        let good = format!("version = 1\n\n[[token]]\nname = 'a'\nhash = '{hash}'\n");
        let second = format!("\n[[token]]\nname = 'b'\nhash = '{}'\n", "cd".repeat(32));
        for (share, line, said) in [
            ("share = 7", 10, "no table"),
            ("share = { stream = 7 }", 10, "`share.stream` is no share; there are streams, "),
            ("[token.share]\nstreams = 7\nkeys = -1", 12, "`share.keys` is -1, and no integer"),
            ("[token.share]\nstreams = 100001", 11, "no integer from 0 to 100000"),
            ("share = { keys = 'many' }", 10, "no integer from 0 to 1000000"),
            ("share = { keys = 99999999999999999999 }", 10, ""),
            ("share = { keys = 1.5 }", 10, "no integer"),
            ("read = 7", 7, "`read` is no list"),
        ] {
            let text = format!("{good}{second}{share}\n");
            let said_is = match text.parse::<Table>() {
                Err(error) => no_toml(&text, &error),
                Ok(table) => TokenFile::from_table(table, &text).unwrap_err().to_string(),
            };
            let place = format!("line {line}: ");
            assert!(said_is.starts_with(&place) && said_is.contains(said), "{share}: {said_is}");
        }
        // A share of a token that there is not is a key that the file does not have.
        let text = format!("{good}[share.nobody]\nstreams = 7\n");
        let said = TokenFile::from_table(text.parse().unwrap(), &text).unwrap_err().to_string();
        assert!(said.contains("`share` is no key of it"), "{said}");
    }
}
