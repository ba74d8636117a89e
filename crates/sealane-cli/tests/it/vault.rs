//! The real program with a vault, its state and its files in one folder.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A vault and how to call `sealane vault` on it.
pub(crate) struct Vault {
    folder: PathBuf,
    place: String,
    environment: Vec<(String, String)>,
}

impl Vault {
    /// Makes a vault in the folder `vault` of `folder`.
    pub(crate) fn init(folder: &Path) -> Vault {
        Vault::init_at(folder, "vault", vec![])
    }

    /// Makes one at `place`, with further variables.
    pub(crate) fn init_at(folder: &Path, place: &str, environment: Vec<(String, String)>) -> Vault {
        let vault = Vault::at(folder, place, environment);
        vault.succeeds(&["init", "--no-recovery"]);
        vault
    }

    /// The place of one that is not made yet.
    pub(crate) fn at(folder: &Path, place: &str, environment: Vec<(String, String)>) -> Vault {
        Vault { folder: folder.to_owned(), place: place.to_owned(), environment }
    }

    /// The same vault as another machine, or another way, sees it.
    pub(crate) fn with(&self, environment: Vec<(String, String)>) -> Vault {
        Vault { folder: self.folder.clone(), place: self.place.clone(), environment }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sealane"));
        command.current_dir(&self.folder).arg("vault").args(arguments);
        command.env("SEALANE_VAULT", &self.place).env("SEALANE_VAULT_STATE", "state");
        command.env("SEALANE_PASSPHRASE", "correct horse battery staple");
        command.envs(self.environment.iter().cloned()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Its standard output, if all is well.
    pub(crate) fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}: {said}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Its standard error, which names the code.
    pub(crate) fn fails(&self, arguments: &[&str], code: &str) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        assert!(!output.status.success(), "{arguments:?} succeeded: {said}");
        assert!(said.contains(code), "{arguments:?}: not {code}: {said}");
        said
    }

    /// Starts it and kills it after a while, whether it has ended or not; gives whether it had not.
    /// The while begins when `begun` is seen, or when it has ended without.
    pub(crate) fn killed_after(
        &self,
        arguments: &[&str],
        begun: impl Fn() -> bool,
        moment: Duration,
    ) -> bool {
        let mut command = self.command(arguments);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !begun() && process.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(moment);
        process.kill().unwrap();
        process.wait().unwrap().signal().is_some()
    }

    /// Bytes of the objects below a prefix of a vault that is a folder.
    pub(crate) fn bytes(&self, prefix: &str) -> u64 {
        objects(&self.folder.join(&self.place).join(prefix)).iter().map(|object| object.1).sum()
    }

    /// How many they are.
    pub(crate) fn count(&self, prefix: &str) -> usize {
        objects(&self.folder.join(&self.place).join(prefix)).len()
    }
}

/// Files below a folder, with their sizes.
pub(crate) fn objects(folder: &Path) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.metadata().unwrap() {
            meta if meta.is_dir() => objects(&entry.path()),
            meta => vec![(entry.path(), meta.len())],
        })
        .collect()
}

/// Both folders have the same files with the same bytes.
pub(crate) fn assert_same(one: &Path, two: &Path) {
    let names = |folder: &Path| -> Vec<PathBuf> {
        let files = objects(folder).into_iter();
        let mut names: Vec<_> =
            files.map(|(path, _)| path.strip_prefix(folder).unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(one), names(two));
    for name in names(one) {
        let (a, b) = (std::fs::read(one.join(&name)), std::fs::read(two.join(&name)));
        assert!(a.unwrap() == b.unwrap(), "{} differs", name.display());
    }
}
