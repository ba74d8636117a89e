//! The same tree, key and codec give the same objects, whatever the number of threads.

use std::collections::BTreeMap;
use std::fs;

use crate::shared::{PASSPHRASE, Place, mixed_files, odd_files};
use sealane_vault::{ChunkCompression, PutOptions, SlotSecret, Vault, VaultStore};

/// Packs and indexes: what does not name a time.
fn packs(place: &Place) -> BTreeMap<String, Vec<u8>> {
    let kept = |key: &String| key.starts_with("packs/") || key.starts_with("index/");
    place.objects().into_iter().filter(|(key, _)| kept(key)).collect()
}

#[test]
fn one_two_and_four_threads_write_the_same_objects() {
    let place = Place::new();
    let source = place.source(|folder| {
        mixed_files(folder);
        odd_files(folder);
        // Many equal files, which threads race for, and one that is cut into many chunks.
        for number in 0..200 {
            fs::write(folder.join(format!("same{number}")), vec![7; 70_000]).unwrap();
        }
        fs::write(folder.join("long"), crate::shared::Seed(1).random(12 << 20)).unwrap();
    });
    drop(place.init());
    let empty = place.objects();
    let mut first = None;
    for compression in [ChunkCompression::Zstd(3), ChunkCompression::Lz4] {
        for threads in [1, 1, 2, 4] {
            let other = Place::new();
            for (key, bytes) in &empty {
                other.store().put(key, bytes).unwrap();
            }
            let store = VaultStore::open(other.path("vault").to_str().unwrap()).unwrap();
            let vault =
                Vault::open(store, &SlotSecret::Passphrase(PASSPHRASE), &other.options()).unwrap();
            let options = PutOptions { compression, threads, ..PutOptions::default() };
            vault.put_paths(std::slice::from_ref(&source), &options).unwrap();
            let packs = packs(&other);
            assert!(packs.len() >= 2);
            let (expected, of) = first.get_or_insert_with(|| (packs.clone(), compression));
            if *of != compression {
                (*expected, *of) = (packs.clone(), compression);
            }
            assert!(*expected == packs, "{compression:?} with {threads} threads");
        }
    }
}

#[test]
fn a_renamed_tree_and_a_byte_in_front_add_almost_nothing() {
    let place = Place::new();
    let content = crate::shared::Seed(2).random(24 << 20);
    let source = place.source(|folder| {
        mixed_files(folder);
        fs::write(folder.join("long"), &content).unwrap();
    });
    let vault = place.init();
    let options = PutOptions::default();
    vault.put_paths(std::slice::from_ref(&source), &options).unwrap();
    let renamed = place.path("renamed");
    fs::rename(&source, &renamed).unwrap();
    let put = vault.put_paths(std::slice::from_ref(&renamed), &options).unwrap();
    assert_eq!((put.counts.new_chunks, put.counts.new_bytes), (0, 0));
    fs::write(renamed.join("long"), [b"x", content.as_slice()].concat()).unwrap();
    let put = vault.put_paths(&[renamed], &options).unwrap();
    assert!(put.counts.new_bytes <= 8 << 20, "{}", put.counts.new_bytes);
}
