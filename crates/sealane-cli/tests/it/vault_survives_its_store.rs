//! A store that is full, slow, answers 500 or loses an object: the error has a name, the next run
//! completes, and nothing that was reported as kept is lost.

#[path = "../../../sealane-vault/tests/it/s3.rs"]
mod s3;

#[path = "../../../sealane-vault/tests/it/hostile_s3.rs"]
mod hostile_s3;

use std::path::Path;

use crate::durable::disk;
use crate::vault::Vault;
use hostile_s3::{HostileS3, Way};
use s3::{Answer, Proxy, Server};

/// Files of bytes that do not compress.
fn fill(folder: &Path, name: &str, megabytes: usize) {
    std::fs::create_dir_all(folder).unwrap();
    let mut noise = vec![0; megabytes * 1_000_000];
    blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut noise);
    std::fs::write(folder.join(name), noise).unwrap();
}

/// A vault in a bucket behind a proxy, with one snapshot.
fn in_bucket(folder: &Path, proxy: &Proxy) -> Vault {
    let environment = Server::environment(proxy.port, folder);
    let vault = Vault::init_at(folder, "s3://bucket/backups/one", environment);
    fill(&folder.join("source"), "first", 3);
    vault.succeeds(&["put", "source"]);
    vault
}

#[test]
#[ignore = "lab: needs Python packages"]
fn a_bucket_that_fails_within_a_put_loses_nothing() {
    let server = Server::start();
    let (proxy, folder) = (Proxy::start(server.port), tempfile::tempdir().unwrap());
    let vault = in_bucket(folder.path(), &proxy);
    fill(&folder.path().join("source"), "second", 40);
    proxy.rule(|what| match what.starts_with("PUT") && what.contains("partNumber=3") {
        true => Answer::Status(500),
        false => Answer::Pass,
    });
    vault.fails(&["put", "source", "--retry", "0s"], "SL-VAULT-01");
    proxy.rule(|_| Answer::Pass);
    vault.succeeds(&["verify", "--read-data"]);
    vault.succeeds(&["put", "source"]);
    let parts = proxy.seen().into_iter().filter(|what| what.contains("partNumber=")).count();
    assert!(parts <= 4, "{parts} parts were sent where two or three were missing");
    vault.succeeds(&["verify", "--read-data"]);
    vault.succeeds(&["get", "--to", "restored"]);
    let restored = folder.path().join("restored/source");
    crate::vault::assert_same(&folder.path().join("source"), &restored);
}

#[test]
fn a_bucket_that_writes_over_objects_is_refused() {
    let (server, folder) = (HostileS3::start(), tempfile::tempdir().unwrap());
    fill(&folder.path().join("source"), "first", 1);
    let environment = Server::environment(server.port, folder.path());
    let vault = Vault::init_at(folder.path(), "s3://bucket/one", environment.clone());
    vault.succeeds(&["put", "source"]);
    server.rule(|_| Way::Overwrites);
    let other = Vault::at(folder.path(), "s3://bucket/another", environment);
    for (vault, verb) in [(&other, &["init"][..]), (&vault, &["put", "source"])] {
        let said = vault.fails(verb, "SL-VAULT-43");
        assert!(said.contains("s3://bucket/") && said.contains("hint:"), "{said}");
        assert_eq!(vault.run(verb).status.code(), Some(5));
    }
    assert_eq!(server.keys("another/"), [""; 0]);
    assert_eq!(server.keys("snapshots/").len(), 1);
    server.rule(|key| if key.contains("/snapshots/") { Way::Forgets } else { Way::Honest });
    vault.fails(&["put", "source"], "SL-VAULT-44");
    server.rule(|_| Way::Honest);
    vault.succeeds(&["put", "source"]);
    vault.succeeds(&["verify", "--read-data"]);
    assert_eq!(server.keys("snapshots/").len(), 2);
}

#[test]
#[ignore = "lab: needs Python packages"]
fn a_slow_bucket_is_waited_for() {
    let server = Server::start();
    let (proxy, folder) = (Proxy::start(server.port), tempfile::tempdir().unwrap());
    let vault = in_bucket(folder.path(), &proxy);
    fill(&folder.path().join("source"), "second", 1);
    proxy.rule(|_| Answer::Late(150));
    vault.succeeds(&["put", "source"]);
    proxy.rule(|_| Answer::Pass);
    vault.succeeds(&["verify", "--read-data"]);
}

#[test]
#[ignore = "lab: needs Python packages"]
fn an_object_that_a_bucket_lost_is_named() {
    let server = Server::start();
    let (proxy, folder) = (Proxy::start(server.port), tempfile::tempdir().unwrap());
    let vault = in_bucket(folder.path(), &proxy);
    proxy.rule(|_| Answer::Pass);
    fill(&folder.path().join("source"), "second", 2);
    vault.succeeds(&["put", "source"]);
    let put =
        proxy.seen().into_iter().find(|what| what.starts_with("PUT") && what.contains("/packs/"));
    let pack = put.unwrap().split_once(' ').unwrap().1.to_owned();
    let gone = s3::request(server.port, &format!("DELETE {pack}"));
    assert!(gone.starts_with("HTTP/1.1 204"), "{gone}");
    // The lost pack held the second file and the page that names it.
    let said = vault.fails(&["verify"], "SL-VAULT-03");
    assert!(said.contains("snapshot 2") && !said.contains("snapshot 1"), "{said}");
    vault.fails(&["get", "latest", "--to", "lost"], "SL-VAULT-03");
    vault.succeeds(&["get", "1", "--to", "restored"]);
    std::fs::remove_file(folder.path().join("source/second")).unwrap();
    crate::vault::assert_same(
        &folder.path().join("source"),
        &folder.path().join("restored/source"),
    );
}

#[test]
#[ignore = "lab: needs root (mounted file systems)"]
fn a_full_disk_is_named_and_what_was_kept_stays() {
    disk::require();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    disk::make(&image, 48 << 20);
    let mounted = disk::Mounted::new(&image, folder.path().join("mounted"));
    let vault = Vault::init_at(folder.path(), "mounted/vault", vec![]);
    let source = folder.path().join("source");
    fill(&source, "first", 10);
    vault.succeeds(&["put", "source"]);
    fill(&source, "second", 60);
    vault.fails(&["put", "source"], "SL-VAULT-02");
    vault.succeeds(&["verify", "--read-data"]);
    std::fs::remove_file(source.join("second")).unwrap();
    fill(&source, "third", 5);
    vault.succeeds(&["put", "source"]);
    vault.succeeds(&["verify", "--read-data"]);
    vault.succeeds(&["get", "--to", "restored"]);
    crate::vault::assert_same(&source, &folder.path().join("restored/source"));
    // Not a byte is left, and a prune makes room all the same.
    fill_up(&folder.path().join("mounted/filler"));
    std::fs::remove_file(source.join("third")).unwrap();
    vault.fails(&["put", "source"], "SL-VAULT-02");
    vault.succeeds(&["prune", "--keep-last", "1", "--now"]);
    vault.succeeds(&["put", "source"]);
    vault.succeeds(&["verify", "--read-data"]);
    drop(mounted);
}

/// Writes a file until the disk has no byte left.
fn fill_up(path: &std::path::Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    for size in [1 << 20, 4096, 1] {
        while file.write_all(&vec![7; size]).is_ok() {}
    }
}
