//! Where passphrases come from: a file, the environment, or the terminal; never the command line.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use crate::Failure;
use crate::args::key::Keys;
use crate::config::environment;

pub(super) struct Passphrase(Zeroizing<String>);

impl Passphrase {
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The passphrase of keys that have one; none if nobody can be asked.
    pub(super) fn ask(keys: &Keys) -> Result<Option<Passphrase>, Failure> {
        if let Some(given) = Passphrase::given(keys)? {
            return Ok(Some(given));
        }
        match Prompt::open() {
            Some(mut prompt) => prompt.read("passphrase: ").map(Some),
            None => Ok(None),
        }
    }

    /// A new passphrase, asked for twice.
    pub(super) fn choose(keys: &Keys) -> Result<Passphrase, Failure> {
        let chosen = match Passphrase::given(keys)? {
            Some(given) => given,
            None => {
                let mut prompt = Prompt::open().ok_or(sealane_group::Error::PassphraseMissing)?;
                let first = prompt.read("new passphrase: ")?;
                if prompt.read("again: ")?.0 != first.0 {
                    return Err(Failure::Usage("the two passphrases differ"));
                }
                first
            }
        };
        if chosen.0.is_empty() {
            return Err(Failure::Usage("a passphrase has at least one character"));
        }
        Ok(chosen)
    }

    fn given(keys: &Keys) -> Result<Option<Passphrase>, Failure> {
        if let Some(path) = &keys.passphrase_file {
            return first_line(path).map(Some);
        }
        let given = environment("SEALANE_PASSPHRASE");
        Ok(given.map(|given| Passphrase(Zeroizing::new(given))))
    }
}

fn first_line(path: &Path) -> Result<Passphrase, Failure> {
    let mut line = Zeroizing::new(String::with_capacity(256));
    let read = File::open(path).and_then(|file| BufReader::new(file).read_line(&mut line));
    read.map_err(|cause| Failure::File { file: path.to_owned(), cause: cause.to_string() })?;
    Ok(Passphrase(without_end(&line)))
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
