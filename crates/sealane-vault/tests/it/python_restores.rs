//! A reader that shares no code with this crate restores its vaults from the objects and a key
//! alone: no index, no manifest, and without any snapshot too.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::shared::{PASSPHRASE, Place, assert_same, flip, mixed_files, odd_files};
use sealane_vault::{ChunkCompression, PutOptions, SlotSecret, Vault};

/// `python -m sealane`.
fn python(place: &Place, secret: (&str, &str), arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join("target/venv/bin/python");
    assert!(program.is_file(), "{} is missing; run: cargo xtask needs", program.display());
    let mut command = Command::new(program);
    command.env("PYTHONPATH", root.join("sdk/python")).env("PYTHONUTF8", "1");
    command.env_remove("SEALANE_RECOVERY_CODE").env(secret.0, secret.1);
    command.args(["-m", "sealane"]).current_dir(place.folder.path()).args(arguments);
    command.output().unwrap()
}

fn succeeded(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(" 0 refused"), "{said}");
}

/// A vault of three snapshots in every compression, and a recovery code of it.
fn filled(place: &Place) -> String {
    let source = place.source(|folder| {
        odd_files(folder);
        mixed_files(folder);
    });
    let vault = place.init();
    let code = vault.add_recovery("paper").unwrap();
    for compression in [ChunkCompression::Zstd(3), ChunkCompression::Lz4, ChunkCompression::None] {
        // Other content each time, so that every compression has chunks of its own.
        let text = format!("{compression:?} ").repeat(200_000);
        fs::write(source.join("changes"), text).unwrap();
        let options = PutOptions { compression, ..PutOptions::default() };
        assert_eq!(vault.put_paths(std::slice::from_ref(&source), &options).unwrap().skipped, []);
    }
    for shortcut in ["vault/index", "state"] {
        fs::remove_dir_all(place.path(shortcut)).unwrap();
    }
    code.expose().to_string()
}

#[test]
#[ignore = "lab: needs Python packages"]
fn everything_comes_back_with_the_passphrase_or_the_recovery_code() {
    let place = Place::new();
    let code = filled(&place);
    let passphrase = std::str::from_utf8(PASSPHRASE).unwrap();
    let secrets = [("SEALANE_PASSPHRASE", passphrase), ("SEALANE_RECOVERY_CODE", &*code)];
    for (target, secret) in ["by passphrase", "by code"].into_iter().zip(secrets) {
        let output = python(&place, secret, &["vault", "restore", target]);
        succeeded(&output);
        assert_same(&place.path("source"), &place.path(target).join("source"));
    }
}

#[test]
#[ignore = "lab: needs Python packages"]
fn everything_comes_back_from_the_packs_alone() {
    let place = Place::new();
    filled(&place);
    fs::remove_dir_all(place.path("vault/snapshots")).unwrap();
    let secret = ("SEALANE_PASSPHRASE", std::str::from_utf8(PASSPHRASE).unwrap());
    let arguments = ["--from-packs", "vault", "restore", "target"];
    let output = python(&place, secret, &arguments);
    succeeded(&output);
    assert_same(&place.path("source"), &place.path("target/source"));
}

#[test]
#[ignore = "lab: needs Python packages"]
fn what_a_writer_added_comes_back_to_the_owner() {
    let place = Place::new();
    let source = place.source(odd_files);
    let key = place.init().add_writer("a host").unwrap();
    let options = place.options();
    let writer = Vault::open(place.store(), &SlotSecret::Writer(&key), &options).unwrap();
    writer.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    let secret = ("SEALANE_PASSPHRASE", std::str::from_utf8(PASSPHRASE).unwrap());
    let output = python(&place, secret, &["vault", "restore", "target"]);
    succeeded(&output);
    assert_same(&source, &place.path("target/source"));
}

#[test]
#[ignore = "lab: needs Python packages"]
fn what_was_damaged_is_refused_by_name_and_the_rest_comes_back() {
    let place = Place::new();
    filled(&place);
    let mut packs: Vec<_> = place.store().list("packs/").unwrap();
    packs.sort_by_key(|pack| std::cmp::Reverse(pack.size));
    // A byte of a chunk in the middle of the largest pack.
    flip(&place.path("vault").join(&packs[0].key), packs[0].size / 2);
    let secret = ("SEALANE_PASSPHRASE", std::str::from_utf8(PASSPHRASE).unwrap());
    let output = python(&place, secret, &["vault", "restore", "target"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("SL-VAULT-08") && said.contains(" 1 refused"), "{said}");
}
