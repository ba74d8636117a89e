//! A writer's claim to have kept a chunk counts for nothing until the chunk was opened. A hostile
//! writer cannot keep anybody's files from being kept.

use std::fs;

use crate::shared::{Host, Place, assert_same};
use sealane_vault::hostile::{self, HostileChunk};
use sealane_vault::{PruneOptions, PutOptions, RetentionRules};

/// Garbage under the id of a content that others have.
fn poison(place: &Place, host: &Host, content: &[u8]) {
    let writer = host.open(place);
    let id = Some(hostile::id(&writer, 0, content));
    hostile::plant_pack(&writer, &[HostileChunk { kind: 0, id, plain: b"garbage".to_vec() }])
        .unwrap();
}

#[test]
fn garbage_under_the_id_of_a_file_does_not_keep_that_file_from_being_kept() {
    let place = Place::new();
    let content = crate::shared::Seed(1).random(10_000);
    let source = place.source(|folder| fs::write(folder.join("public"), &content).unwrap());
    let host = Host::of(&place, &place.init(), "bad");
    poison(&place, &host, &content);
    let owner = place.open();
    let put = owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(put.counts.new_bytes, 10_000);
    for state in ["state", "fresh"] {
        let (target, failed) = place.restores(&place.open_afresh(state), None);
        assert_eq!(failed, []);
        assert_same(&source, &target);
    }
    // Reading the data names the pack; a prune does not choose it as the chunk's home.
    let problems = owner.verify(true).unwrap().problems;
    assert!(problems.len() == 1 && problems[0].path.starts_with("packs/"), "{problems:?}");
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    place.open().prune(&PruneOptions { keep, now: true, ..PruneOptions::default() }).unwrap();
    let (target, failed) = place.restores(&place.open_afresh("pruned"), None);
    assert_eq!(failed, []);
    assert_same(&source, &target);
}

#[test]
fn of_two_writers_that_claim_a_chunk_a_prune_keeps_the_one_that_has_it() {
    let place = Place::new();
    let content = crate::shared::Seed(2).random(10_000);
    let source = place.source(|folder| fs::write(folder.join("file"), &content).unwrap());
    let owner = place.init();
    let (good, bad) = (Host::of(&place, &owner, "good"), Host::of(&place, &owner, "bad"));
    // Whichever pack comes first by its name: several lies, of which some sort before the truth.
    for _ in 0..6 {
        poison(&place, &bad, &content);
    }
    let put = good.open(&place).put_paths(std::slice::from_ref(&source), &PutOptions::default());
    assert_eq!(put.unwrap().counts.new_bytes, 10_000);
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    place.open().prune(&PruneOptions { keep, now: true, ..PruneOptions::default() }).unwrap();
    let (target, failed) = place.restores(&place.open_afresh("fresh"), None);
    assert_eq!(failed, []);
    assert_same(&source, &target);
}

#[test]
fn an_index_of_a_writer_is_not_believed() {
    let place = Place::new();
    let content = crate::shared::Seed(3).random(10_000);
    let source = place.source(|folder| fs::write(folder.join("file"), &content).unwrap());
    let owner = place.init();
    let host = Host::of(&place, &owner, "bad");
    let put = owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(put.counts.new_chunks, 1);
    // It names the owner's own pack, with other chunks in it than there are.
    let writer = host.open(&place);
    let pack = place.store().list("packs/").unwrap().remove(0);
    let lies = [b"another".as_slice(), &content].map(|plain| hostile::id(&writer, 0, plain));
    hostile::plant_index(&writer, &pack.key, pack.size, &lies).unwrap();
    let fresh = place.open_afresh("fresh");
    let (target, failed) = place.restores(&fresh, None);
    assert_eq!(failed, []);
    assert_same(&source, &target);
    fs::write(source.join("file"), b"another").unwrap();
    let put = fresh.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(put.counts.new_chunks, 1);
}

/// Equal files of two hosts cost their bytes twice: each host keeps its own copy, until the owner
/// prunes.
#[test]
fn equal_files_of_two_hosts_cost_their_bytes_twice_until_a_prune() {
    let place = Place::new();
    let content = crate::shared::Seed(4).random(3 << 20);
    let source = place.source(|folder| fs::write(folder.join("file"), &content).unwrap());
    let owner = place.init();
    let hosts = ["one", "two"].map(|name| Host::of(&place, &owner, name));
    for host in &hosts {
        let put = host.open(&place).put_paths(std::slice::from_ref(&source), &Default::default());
        assert_eq!(put.unwrap().counts.new_bytes, 3 << 20);
        let put = host.open(&place).put_paths(std::slice::from_ref(&source), &Default::default());
        assert_eq!(put.unwrap().counts.new_bytes, 0);
    }
    let stored =
        || -> u64 { place.store().list("packs/").unwrap().iter().map(|pack| pack.size).sum() };
    let twice = stored();
    assert!(twice > 6 << 20 && twice < (6 << 20) + 20_000, "{twice}");
    let keep = RetentionRules { last: 4, ..RetentionRules::default() };
    place.open().prune(&PruneOptions { keep, now: true, ..PruneOptions::default() }).unwrap();
    let once = stored();
    assert!(once < (3 << 20) + 20_000, "{once}");
    // If a restore has opened a chunk, the owner need not keep it again.
    let owner = place.open();
    place.restores(&owner, None);
    let put = owner.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
    assert_eq!(put.counts.new_bytes, 0);
}
