//! Where passphrases come from: a file, the environment, or the terminal; never the command line.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use crate::Failure;
use crate::config::environment;

pub(crate) struct Passphrase(Zeroizing<String>);

impl Passphrase {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The passphrase of keys that have one; none if nobody can be asked.
    pub(crate) fn ask(file: Option<&Path>) -> Result<Option<Passphrase>, Failure> {
        if let Some(given) = Passphrase::given(file)? {
            return Ok(Some(given));
        }
        match Prompt::open() {
            Some(mut prompt) => prompt.read("passphrase: ").map(Some),
            None => Ok(None),
        }
    }

    /// A new passphrase; on a terminal asked for twice.
    pub(crate) fn choose(file: Option<&Path>) -> Result<Passphrase, Failure> {
        match Passphrase::given(file)? {
            Some(given) => given.checked(),
            None => Passphrase::type_new(),
        }
    }

    /// A further passphrase, where the environment holds the first.
    pub(crate) fn choose_other(file: Option<&Path>) -> Result<Passphrase, Failure> {
        match file {
            Some(file) => Passphrase(first_line(file)?).checked(),
            None => Passphrase::type_new(),
        }
    }

    fn type_new() -> Result<Passphrase, Failure> {
        let mut prompt = Prompt::open().ok_or(sealane_group::Error::PassphraseMissing)?;
        let first = prompt.read("new passphrase: ")?;
        if prompt.read("again: ")?.0 != first.0 {
            return Err(Failure::Usage("the two passphrases differ"));
        }
        first.checked()
    }

    fn checked(self) -> Result<Passphrase, Failure> {
        if self.0.is_empty() {
            return Err(Failure::Usage("a passphrase has at least one character"));
        }
        Ok(self)
    }

    fn given(file: Option<&Path>) -> Result<Option<Passphrase>, Failure> {
        if let Some(path) = file {
            return first_line(path).map(Passphrase).map(Some);
        }
        let given = environment("SEALANE_PASSPHRASE");
        Ok(given.map(|given| Passphrase(Zeroizing::new(given))))
    }
}

/// The first line of a file that holds a secret.
pub(crate) fn first_line(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let mut line = Zeroizing::new(String::with_capacity(256));
    let read = File::open(path).and_then(|file| BufReader::new(file).read_line(&mut line));
    read.map_err(|cause| Failure::file(path, cause))?;
    Ok(without_end(&line))
}

fn without_end(line: &str) -> Zeroizing<String> {
    Zeroizing::new(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// The terminal, which shows nothing of what is typed.
struct Prompt {
    terminal: File,
    before: Termios,
}

impl Prompt {
    fn open() -> Option<Prompt> {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO;
        tcsetattr(&terminal, OptionalActions::Flush, &silent).ok()?;
        Some(Prompt { terminal, before })
    }

    fn read(&mut self, prompt: &str) -> Result<Passphrase, Failure> {
        self.terminal.write_all(prompt.as_bytes()).map_err(Failure::Input)?;
        let mut line = Zeroizing::new(String::with_capacity(256));
        BufReader::new(&self.terminal).read_line(&mut line).map_err(Failure::Input)?;
        self.terminal.write_all(b"\n").map_err(Failure::Input)?;
        Ok(Passphrase(without_end(&line)))
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
