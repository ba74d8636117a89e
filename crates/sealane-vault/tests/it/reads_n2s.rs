//! The blobs of n2s: written byte for byte, read in every form, never trusted.

use std::collections::BTreeMap;
use std::path::Path;

use crate::shared::Place;
use sealane_vault::n2s::{self, Error, N2sBlob, N2sCipher, N2sContent, N2sEntry};
use sealane_vault::{GetOptions, PutOptions};

const PASSPHRASE: &[u8] = b"123456";
const PATH: &str = "relative/path/to/file.txt";
const HELLO: &[u8] = b"hello n2s\n";
const NAME: &str = "05a63a51c3441a43997d5a6ed9b29eac1ca046d6946a080c150a4b7477c53358";

/// Blobs that other programs wrote: Python with its lz4, cryptography and blake3 packages.
fn store() -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/n2s");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files
        .map(|path| {
            assert!(n2s::is_blob_name(&path));
            (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())
        })
        .collect()
}

fn hello(cipher: N2sCipher) -> N2sBlob {
    n2s::seal(PATH, HELLO, 1_749_388_804.325_600_9, PASSPHRASE, cipher).unwrap()
}

fn text() -> Vec<u8> {
    b"The path of a message: write, encode, seal, frame, carry, relay, keep, read.\n".repeat(40)
}

#[test]
fn the_published_vector_is_written_byte_for_byte() {
    let sealed = [
        (
            N2sCipher::ChaCha20Poly1305,
            "KI68frELJhW/88RPEm7dQJ1WIUDGyAvqdJDEE2OZKgwtZkjyR/SDiAlRUWxL628bzg==",
        ),
        (
            N2sCipher::Aes256Gcm,
            "deElA4cJAQ6mhHA10fw45sD52HZ2oVIYc+LF8QxAbO3w1kFkhUw5X7nPn9RjODB5RQ==",
        ),
    ];
    for (cipher, content) in sealed {
        let blob = hello(cipher);
        let hash = n2s::file_hash(HELLO);
        let expected = format!(
            "{{\n  \"encrypted_content\": \"{content}\",\n  \"metadata\": {{\n    \
             \"path\": \"{PATH}\",\n    \"size\": 10,\n    \"timestamp\": 1749388804.3256009,\n    \
             \"file_hash\": \"{hash}\"\n  }}\n}}"
        );
        assert_eq!(blob.name, NAME);
        assert_eq!(String::from_utf8(blob.bytes).unwrap(), expected);
    }
    assert_eq!(hello(N2sCipher::ChaCha20Poly1305).bytes.len(), 296);
}

#[test]
fn a_symbolic_link_is_written_as_others_wrote_it() {
    let (target, path) = ("../target/file.txt", "a link");
    let blob = n2s::symlink(path, target, 1_749_388_804.5).unwrap();
    assert_eq!(store()[&blob.name], blob.bytes);
    let entry = n2s::open(&blob.name, &blob.bytes, None).unwrap();
    assert_eq!(entry.content, N2sContent::Symlink(target.to_owned()));
}

#[test]
fn every_form_is_read_as_others_wrote_it() {
    let file = |form, path: Option<&str>, content: Vec<u8>, modified_s, repaired| N2sEntry {
        form,
        path: path.map(str::to_owned),
        content: N2sContent::File(content),
        modified_s,
        repaired,
    };
    let pieces = [text(), b"in pieces\n".to_vec()].concat();
    let modified_s = 1_749_388_804.325_600_9;
    let mut expected = vec![
        file(2, Some("logs/way.txt"), text(), modified_s, false),
        file(2, Some("logs/old way.txt"), text(), modified_s, false),
        file(3, None, text(), 1_755_900_000.25, false),
        file(3, None, b"one frame, one text\n".to_vec(), 1_755_900_002.0, false),
        file(3, None, pieces, 1_755_900_003.0, false),
        file(3, None, vec![], 1_755_900_004.0, false),
        file(
            4,
            Some("data/ünïcode name.txt"),
            b"with a path\n".to_vec(),
            1_757_000_000.123_456,
            false,
        ),
    ];
    for (name, bytes) in store() {
        let entry = n2s::open(&name, &bytes, Some(PASSPHRASE)).unwrap();
        if entry.repaired {
            // A description that quotes the name of the packed file, which nothing escaped.
            assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_err());
            assert_eq!((entry.form, entry.modified_s), (3, 1_755_900_001.5));
            assert!(
                matches!(&entry.content, N2sContent::File(gzip) if gzip.starts_with(&[0x1f, 0x8b]))
            );
            continue;
        }
        if matches!(entry.content, N2sContent::Symlink(_)) {
            continue;
        }
        let at = expected.iter().position(|one| *one == entry);
        expected.remove(at.unwrap_or_else(|| panic!("{entry:?}")));
    }
    assert_eq!(expected, []);
}

#[test]
fn times_keep_what_the_format_keeps_of_them() {
    let blob = hello(N2sCipher::ChaCha20Poly1305);
    let entry = n2s::open(&blob.name, &blob.bytes, Some(PASSPHRASE)).unwrap();
    assert_eq!(entry.modified_ns(), Ok(1_749_388_804_325_600_863));
    assert_eq!(N2sEntry { modified_s: 1e300, ..entry }.modified_ns(), Err(Error::Time));
}

#[test]
fn what_was_changed_gives_nothing() {
    let blob = hello(N2sCipher::ChaCha20Poly1305);
    let json = String::from_utf8(blob.bytes.clone()).unwrap();
    let read = |name: &str, json: &str| n2s::open(name, json.as_bytes(), Some(PASSPHRASE));
    assert_eq!(read(NAME, &json.replace("KI68", "KI69")), Err(Error::NotAuthentic));
    assert_eq!(read(NAME, &json.replace(PATH, "../etc/passwd")), Err(Error::WrongName));
    let moved = n2s::name("../etc/passwd", &n2s::file_hash(HELLO));
    assert_eq!(read(&moved, &json.replace(PATH, "../etc/passwd")), Err(Error::NotAuthentic));
    assert_eq!(read(NAME, &json.replace("\"size\": 10", "\"size\": 9")), Err(Error::WrongContent));
    assert_eq!(read(NAME, &json.replace("\"size\": 10", "\"size\": 11")), Err(Error::WrongContent));
    let huge = json.replace("\"size\": 10", "\"size\": 18446744073709551615");
    assert_eq!(read(NAME, &huge), Err(Error::TooLarge));
    assert_eq!(read(&moved, &json), Err(Error::WrongName));
    assert_eq!(n2s::open(NAME, &blob.bytes, Some(b"123457")), Err(Error::NotAuthentic));
    assert_eq!(n2s::open(NAME, &blob.bytes, None), Err(Error::NoPassphrase));
}

#[test]
fn every_truncation_and_every_flipped_byte_is_an_error_or_the_same_file() {
    for (name, bytes) in store() {
        let sealed = bytes.windows(9).any(|window| window == b"encrypted");
        let whole = n2s::open(&name, &bytes, Some(PASSPHRASE)).unwrap();
        for end in 0..bytes.len() {
            assert!(n2s::open(&name, &bytes[..end], Some(PASSPHRASE)).is_err(), "{name} {end}");
        }
        // A key takes its derivation, so of sealed content one byte in seven is tried.
        for at in (0..bytes.len()).step_by(if sealed { 7 } else { 1 }) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            if let Ok(read) = n2s::open(&name, &changed, Some(PASSPHRASE)) {
                assert_eq!(read.content, whole.content, "{name} {at}");
            }
        }
    }
}

#[test]
fn what_other_writers_left_in_a_store_is_named() {
    let cases: [(&[u8], Error); 10] = [
        (b"age-encryption.org/v1\n-> scrypt", Error::Age),
        (&[0x1f, 0x8b, 8, 0], Error::Gzip),
        (b"", Error::Malformed),
        (b"[]", Error::Malformed),
        (b"{\"metadata\": {\"size\": 1}}", Error::Malformed),
        (b"{\"content\": \"!\", \"metadata\": {\"size\": 1, \"mtime\": 1}}", Error::Malformed),
        (b"{\"content\": \"\", \"metadata\": {\"size\": 0, \"mtime\": NaN}}", Error::Malformed),
        (
            b"{\"content\": {\"encoding\": \"zip\", \"frames\": []}, \
              \"metadata\": {\"size\": 0, \"mtime\": 1}}",
            Error::Malformed,
        ),
        (b"{\"content\": \"AAAA\", \"metadata\": {\"size\": 3, \"mtime\": 1}}", Error::Compression),
        (
            b"{\"content\": \"\", \"metadata\": {\"size\": 0, \"mtime\": 1, \"encryption\": true}}",
            Error::Malformed,
        ),
    ];
    for (bytes, error) in cases {
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!(n2s::open(NAME, bytes, Some(PASSPHRASE)), Err(error), "{shown}");
    }
    let deep = "[".repeat(1 << 20);
    assert_eq!(n2s::open(NAME, deep.as_bytes(), None), Err(Error::Malformed));
}

#[test]
fn a_packed_name_cannot_pass_for_a_path() {
    // The name in a gzip file is chosen by whoever made it. It would like to be metadata.
    let content = base64_of_frame();
    let name = n2s::file_hash(HELLO);
    let description = "gzip, was \"x\", \"path\": \"evil\", \"encryption\": false}";
    let json = format!(
        "{{\"content\": \"{content}\", \"metadata\": {{\"path\": \"good\", \"size\": 10, \
         \"mtime\": 1, \"filetype\": \"{description}\", \"encryption\": false}}}}"
    );
    let entry = n2s::open(&name, json.as_bytes(), None).unwrap();
    assert!(entry.repaired);
    assert_eq!(entry.path.as_deref(), Some("good"));
}

/// The frame of the published vector.
fn base64_of_frame() -> &'static str {
    "BCJNGGhACgAAAAAAAABHCgAAgGhlbGxvIG4ycwoAAAAA"
}

#[test]
fn a_store_is_imported_and_what_fails_is_named() {
    let place = Place::new();
    let blobs = place.path("blobs");
    for (name, bytes) in store() {
        // As it lies on a server: two folders of two digits each.
        let folder = blobs.join(&name[..2]).join(&name[2..4]);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(&name), bytes).unwrap();
    }
    let older = n2s::seal("logs/way.txt", b"older", 5.5, PASSPHRASE, N2sCipher::Aes256Gcm).unwrap();
    let inside = n2s::symlink("logs/way.txt/inside", "x", 5.5).unwrap();
    let escape = n2s::symlink("../outside", "x", 5.5).unwrap();
    let mut broken = n2s::symlink("broken", "x", 5.5).unwrap();
    broken.bytes.truncate(20);
    for blob in [&older, &inside, &escape, &broken] {
        std::fs::write(blobs.join(&blob.name), &blob.bytes).unwrap();
    }
    std::fs::write(blobs.join("notes.txt"), b"no blob").unwrap();
    let vault = place.init();
    let report = vault.import_n2s(&blobs, Some(PASSPHRASE), &PutOptions::default()).unwrap();
    let reasons: Vec<_> = report.skipped.iter().map(|one| (&*one.path, &*one.reason)).collect();
    let named = |blob: &N2sBlob, code| {
        reasons.iter().any(|(path, why)| path.ends_with(&blob.name) && why.ends_with(code))
    };
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(named(&escape, "[SL-BLOB-10]") && named(&broken, "[SL-BLOB-01]"), "{reasons:?}");
    assert_eq!((report.counts.files, report.counts.links), (9, 2));
    let target = place.path("target");
    let snapshot = vault.snapshot(None).unwrap();
    let got = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
    assert_eq!(got.failed, []);
    let read = |path: &str| std::fs::read(target.join(path)).unwrap();
    assert_eq!(read("data/ünïcode name.txt"), b"with a path\n");
    assert_eq!(read(&n2s::file_hash(b"")), b"");
    let way = n2s::name("logs/way.txt", &n2s::file_hash(&text()));
    assert_eq!(read(&format!("logs/way.txt.n2s-{}", &way[..16])), text());
    assert_eq!(read(&format!("logs/way.txt.n2s-{}", &older.name[..16])), b"older");
    assert!(std::fs::read_link(target.join("logs/way.txt/inside")).is_ok());
    // Without the passphrase, what is sealed is named and the rest is kept.
    let report = vault.import_n2s(&blobs, None, &PutOptions::default()).unwrap();
    let sealed = report.skipped.iter().filter(|one| one.reason.ends_with("[SL-BLOB-05]"));
    assert_eq!(sealed.count(), 3);
}

/// A pipe or a socket may have the name of a blob: nobody waits for it.
#[test]
fn what_is_named_as_a_blob_and_is_no_file_is_named_and_not_waited_for() {
    let place = Place::new();
    let blobs = place.path("blobs");
    std::fs::create_dir_all(&blobs).unwrap();
    let link = n2s::symlink("kept", "x", 5.5).unwrap();
    std::fs::write(blobs.join(&link.name), &link.bytes).unwrap();
    let socket = n2s::symlink("socket", "x", 5.5).unwrap().name;
    let _listens = std::os::unix::net::UnixListener::bind(blobs.join(&socket)).unwrap();
    let pipe = n2s::symlink("pipe", "x", 5.5).unwrap().name;
    let made = std::process::Command::new("mkfifo").arg(blobs.join(&pipe)).status();
    assert!(made.unwrap().success());
    let vault = place.init();
    let report = vault.import_n2s(&blobs, None, &PutOptions::default()).unwrap();
    assert_eq!(report.counts.links, 1);
    for name in [&socket, &pipe] {
        let skipped = report.skipped.iter().find(|one| one.path.ends_with(name.as_str()));
        let reason = &skipped.unwrap().reason;
        assert!(reason.contains("cannot be read") && reason.ends_with("[SL-BLOB-13]"), "{reason}");
    }
}
