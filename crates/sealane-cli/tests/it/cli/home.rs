//! Key folders in a temporary folder, without a hub.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use sealane::Value;
use sealane_testing::copy_folder;

use crate::cli::{feed, json, sealane};

pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a verb with the key folder of somebody.
    pub(crate) fn output(&self, who: &str, args: &[&str]) -> Output {
        let mut command = sealane(self.folder.path());
        command.args(args).env("SEALANE_KEYS", self.path(who)).output().unwrap()
    }

    /// Runs a verb over this input.
    pub(crate) fn feed(&self, who: &str, args: &[&str], input: &str) -> Output {
        let mut command = sealane(self.folder.path());
        feed(command.args(args).env("SEALANE_KEYS", self.path(who)), input)
    }

    /// The output of a verb that succeeded.
    pub(crate) fn run(&self, who: &str, args: &[&str]) -> Vec<u8> {
        let output = self.output(who, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        output.stdout
    }

    /// The same, as text.
    pub(crate) fn says(&self, who: &str, args: &[&str]) -> String {
        String::from_utf8(self.run(who, args)).unwrap()
    }

    pub(crate) fn show(&self, who: &str, args: &[&str]) -> Value {
        json(&String::from_utf8(self.run(who, &[args, &["--json"]].concat())).unwrap())
    }

    /// The exit code and the error code of a verb that failed, which wrote no data.
    pub(crate) fn fails(&self, who: &str, args: &[&str]) -> (i32, String) {
        let output = self.output(who, args);
        assert!(output.stdout.is_empty(), "data although it failed");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("\n  hint: "), "{said}");
        let code = said.split(['[', ']']).nth(1).unwrap_or_default();
        (output.status.code().unwrap(), code.to_owned())
    }

    /// An identity for each name, of whom the first is the authority of `fleet`; the others join.
    pub(crate) fn fleet(options: &[&str], names: &[&str]) -> Home {
        let home = Home::new();
        for (index, who) in names.iter().enumerate() {
            home.run(who, &["key", "new", who]);
            match index {
                0 => drop(home.run(who, &[&["group", "new", "fleet"], options].concat())),
                _ => home.join(names[0], who),
            }
        }
        home
    }

    /// Has somebody join `fleet` by a card and an invitation.
    pub(crate) fn join(&self, authority: &str, who: &str) {
        let card = self.file("card", who, &["key", "card"]);
        let invite = ["group", "invite", "fleet", &card];
        let invitation = self.file("invitation", authority, &invite);
        self.run(who, &["group", "join", &invitation]);
    }

    /// Has the folder of somebody copied, as a thief would.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        copy_folder(&self.path(from), &self.path(to));
    }

    /// Writes what a verb gives into a file, and gives its path.
    pub(crate) fn file(&self, name: &str, who: &str, args: &[&str]) -> String {
        let path = self.path(name);
        fs::write(&path, self.run(who, args)).unwrap();
        path.display().to_string()
    }
}

pub(crate) fn number(value: &Value, name: &str) -> u64 {
    value.field(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name}"))
}

pub(crate) fn members(value: &Value) -> usize {
    let Some(Value::Array(members)) = value.field("members") else { panic!("no members") };
    members.iter().filter(|one| one.field("removed") == Some(&Value::Null)).count()
}
