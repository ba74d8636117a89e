//! Where passphrases come from: a file, the environment, or the terminal; never the command line.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use crate::CliFailure;
use crate::config::environment;

pub(crate) struct Passphrase(Zeroizing<String>);

impl Passphrase {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The passphrase of keys that have one; none if nobody can be asked.
    pub(crate) fn ask(file: Option<&Path>) -> Result<Option<Passphrase>, CliFailure> {
        if let Some(given) = Passphrase::given(file)? {
            return Ok(Some(given));
        }
        match PassphrasePrompt::open() {
            Some(mut prompt) => prompt.read("passphrase: ").map(Some),
            None => Ok(None),
        }
    }

    /// A new passphrase; on a terminal asked for twice.
    pub(crate) fn choose(file: Option<&Path>) -> Result<Passphrase, CliFailure> {
        match Passphrase::given(file)? {
            Some(given) => given.checked(),
            None => Passphrase::type_new(),
        }
    }

    /// A further passphrase, where the environment holds the first.
    pub(crate) fn choose_other(file: Option<&Path>) -> Result<Passphrase, CliFailure> {
        match file {
            Some(file) => Passphrase(first_line(file)?).checked(),
            None => Passphrase::type_new(),
        }
    }

    fn type_new() -> Result<Passphrase, CliFailure> {
        let mut prompt = PassphrasePrompt::open().ok_or(sealane_group::Error::PassphraseMissing)?;
        let first = prompt.read("new passphrase: ")?;
        if prompt.read("again: ")?.0 != first.0 {
            return Err(CliFailure::Usage("the two passphrases differ"));
        }
        first.checked()
    }

    fn checked(self) -> Result<Passphrase, CliFailure> {
        if self.0.is_empty() {
            return Err(CliFailure::Usage("a passphrase has at least one character"));
        }
        Ok(self)
    }

    fn given(file: Option<&Path>) -> Result<Option<Passphrase>, CliFailure> {
        if let Some(path) = file {
            return first_line(path).map(Passphrase).map(Some);
        }
        let given = environment("SEALANE_PASSPHRASE");
        Ok(given.map(|given| Passphrase(Zeroizing::new(given))))
    }
}

/// The first line of a file that holds a secret.
pub(crate) fn first_line(path: &Path) -> Result<Zeroizing<String>, CliFailure> {
    let mut line = Zeroizing::new(String::with_capacity(256));
    let read = File::open(path).and_then(|file| BufReader::new(file).read_line(&mut line));
    read.map_err(|cause| CliFailure::file(path, cause))?;
    Ok(without_end(&line))
}

fn without_end(line: &str) -> Zeroizing<String> {
    Zeroizing::new(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// The terminal, which shows nothing of what is typed.
struct PassphrasePrompt {
    terminal: File,
    before: Termios,
}

impl PassphrasePrompt {
    fn open() -> Option<PassphrasePrompt> {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO;
        tcsetattr(&terminal, OptionalActions::Flush, &silent).ok()?;
        Some(PassphrasePrompt { terminal, before })
    }

    fn read(&mut self, prompt: &str) -> Result<Passphrase, CliFailure> {
        self.terminal.write_all(prompt.as_bytes()).map_err(CliFailure::Input)?;
        let mut line = Zeroizing::new(String::with_capacity(256));
        BufReader::new(&self.terminal).read_line(&mut line).map_err(CliFailure::Input)?;
        self.terminal.write_all(b"\n").map_err(CliFailure::Input)?;
        Ok(Passphrase(without_end(&line)))
    }
}

impl Drop for PassphrasePrompt {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
