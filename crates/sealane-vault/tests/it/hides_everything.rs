//! A store without its key reveals no path, name, note or hash of a content, and confirms no guess.

use std::fs;

use crate::shared::{PASSPHRASE, Place};
use sealane_vault::{OpenOptions, PutOptions, SlotSecret, Vault, VaultMetadata, leaks};

const NAME: &str = "very-secret-name-of-a-file";
const CONTENT: &[u8] = b"a known file whose presence somebody would like to confirm";

fn fill(place: &Place, metadata: VaultMetadata) -> Vault {
    let source = place.source(|folder| {
        fs::create_dir(folder.join("confidential-folder")).unwrap();
        fs::write(folder.join("confidential-folder").join(NAME), CONTENT).unwrap();
        std::os::unix::fs::symlink("hidden-target", folder.join("a-link")).unwrap();
    });
    let vault = place.init_with(metadata);
    let note = "a note to nobody".to_owned();
    // Two letters, which are some machine's name, stand by chance between sealed bytes.
    let host = Some("a-machine-in-the-field".to_owned());
    vault.put_paths(&[source], &PutOptions { note, host, ..PutOptions::default() }).unwrap();
    vault
}

fn has(place: &Place, needle: &[u8]) -> Option<String> {
    let objects = place.objects().into_iter();
    let inside = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    objects
        .map(|(key, bytes)| (inside(key.as_bytes()) || inside(&bytes), key))
        .find(|o| o.0)
        .map(|o| o.1)
}

/// Hashes of a content that need no key, as bytes and as text.
fn hashes(content: &[u8]) -> Vec<Vec<u8>> {
    let digest = |algorithm| aws_lc_rs::digest::digest(algorithm, content).as_ref().to_vec();
    let mut raw = vec![
        blake3::hash(content).as_bytes().to_vec(),
        digest(&aws_lc_rs::digest::SHA256),
        digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY),
    ];
    let text = |bytes: &Vec<u8>| -> Vec<u8> {
        bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
    };
    raw.extend(raw.iter().map(text).collect::<Vec<_>>());
    // Eight bytes of a hash would already confirm a file.
    raw.iter().map(|hash| hash[..8].to_vec()).collect()
}

#[test]
fn nothing_readable_is_in_the_store() {
    let place = Place::new();
    let vault = fill(&place, VaultMetadata::Sealed);
    let host = vault.snapshot(None).unwrap().source;
    let names = [NAME, "confidential", "a-link", "hidden-target", "source", "a note", &host];
    for needle in names.iter().map(|name| name.as_bytes()).chain([&CONTENT[..16]]) {
        assert_eq!(has(&place, needle), None, "{}", String::from_utf8_lossy(needle));
    }
    for hash in hashes(CONTENT) {
        assert_eq!(has(&place, &hash), None);
    }
    // The search finds what is there: a name of an object, and bytes of one.
    assert!(has(&place, b"config").is_some());
    assert!(has(&place, b"SLVT").is_some());
}

#[test]
fn the_same_file_in_two_vaults_has_nothing_in_common() {
    let (a, b) = (Place::new(), Place::new());
    fill(&a, VaultMetadata::Sealed);
    fill(&b, VaultMetadata::Sealed);
    let keys = |place: &Place| {
        let keys = place.objects().into_keys();
        keys.filter(|key| key.starts_with("packs/")).collect::<Vec<_>>()
    };
    assert_ne!(keys(&a), keys(&b));
    let body = |place: &Place| place.objects().remove(&keys(place)[0]).unwrap();
    let (a, b) = (body(&a), body(&b));
    let windows: std::collections::HashSet<&[u8]> = a[24..a.len() - 8].windows(8).collect();
    assert!(b[24..b.len() - 8].windows(8).all(|window| !windows.contains(window)));
}

#[test]
fn readable_names_are_authenticated_and_come_without_hashes() {
    let place = Place::new();
    fill(&place, VaultMetadata::Plain);
    assert!(has(&place, NAME.as_bytes()).unwrap().starts_with("listings/"));
    assert_eq!(has(&place, &CONTENT[..16]), None);
    for hash in hashes(CONTENT) {
        assert_eq!(has(&place, &hash), None);
    }
    let seen = leaks(&place.store()).unwrap();
    assert!(
        seen.metadata == VaultMetadata::Plain && seen.names.iter().any(|name| name.contains(NAME))
    );
    let vault = place.open();
    assert!(vault.verify(true).unwrap().problems.is_empty());
    let listing = place.store().list("listings/").unwrap().remove(0).key;
    crate::shared::flip(&place.path("vault").join(listing), 10);
    assert_eq!(vault.verify(false).unwrap().problems.len(), 1);
}

#[test]
fn a_wrong_passphrase_opens_nothing() {
    let place = Place::new();
    fill(&place, VaultMetadata::Sealed);
    let options = OpenOptions { state: Some(place.path("other")), ..OpenOptions::default() };
    for wrong in [&b""[..], b"correct horse battery stapl", b"Correct horse battery staple"] {
        let opened = Vault::open(place.store(), &SlotSecret::Passphrase(wrong), &options);
        assert_eq!(opened.unwrap_err().info().name, "WrongKey");
    }
    assert!(Vault::open(place.store(), &SlotSecret::Passphrase(PASSPHRASE), &options).is_ok());
}
