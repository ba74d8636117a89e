//! Everything that is put comes back: bytes, modes, times to the nanosecond, links and holes.

use std::fs;

use crate::shared::{Place, assert_same, mixed_files, odd_files};
use sealane_vault::{ChunkCompression, GetOptions, PutOptions};

#[test]
fn mixed_and_odd_files_come_back_as_they_were() {
    let place = Place::new();
    let source = place.source(|folder| {
        mixed_files(folder);
        odd_files(folder);
    });
    let vault = place.init();
    for (round, compression) in
        [ChunkCompression::Zstd(3), ChunkCompression::Lz4, ChunkCompression::None]
            .into_iter()
            .enumerate()
    {
        let options = PutOptions { compression, ..PutOptions::default() };
        let put = vault.put_paths(std::slice::from_ref(&source), &options).unwrap();
        assert_eq!(put.skipped, []);
        assert_eq!(put.snapshot, round as u64 + 1);
        let snapshot = vault.snapshot(None).unwrap();
        let target = place.path(&format!("target{round}"));
        let got = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
        assert_eq!(got.failed, []);
        assert_eq!((got.files, got.bytes), (put.counts.files, put.counts.bytes));
        assert_same(&source, &target.join("source"));
        // A file that is there already is not written again.
        let again = vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
        assert_eq!((again.files, again.failed), (0, vec![]));
        if round == 0 {
            assert_eq!(put.counts.files, 263 + 13);
            let ratio = put.counts.stored_bytes as f64 / put.counts.bytes as f64;
            assert!(ratio < 0.80, "{ratio}");
        } else {
            assert_eq!(put.counts.new_chunks, 0);
        }
    }
}

#[test]
fn an_empty_tree_and_a_single_file_come_back() {
    let place = Place::new();
    let source = place.source(|_| {});
    let file = place.path("single file");
    fs::write(&file, b"alone").unwrap();
    let vault = place.init();
    vault.put_paths(&[source.clone(), file.clone()], &PutOptions::default()).unwrap();
    let vault = place.open();
    let target = place.path("target");
    let snapshot = vault.snapshot(Some(1)).unwrap();
    vault.get_to(&snapshot, &target, &GetOptions::default()).unwrap();
    assert_same(&source, &target.join("source"));
    assert_eq!(fs::read(target.join("single file")).unwrap(), b"alone");
}

#[test]
fn a_small_file_costs_little_more_than_its_bytes() {
    let place = Place::new();
    let mut seed = crate::shared::Seed(12);
    let source = place.source(|folder| {
        for number in 0..3000 {
            let path = folder.join(format!("{:02}/measurement-{number:05}.bin", number / 100));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let size = 10 + seed.next() as usize % 400;
            fs::write(&path, seed.random(size)).unwrap();
            crate::shared::age(&path, &mut seed);
        }
    });
    let vault = place.init();
    let before: u64 = place.store().list("").unwrap().iter().map(|object| object.size).sum();
    let put = vault.put_paths(&[source], &PutOptions::default()).unwrap();
    let after: u64 = place.store().list("").unwrap().iter().map(|object| object.size).sum();
    let overhead = (after - before) as f64 - put.counts.bytes as f64 * 1.01;
    let each = overhead / put.counts.files as f64;
    assert!(each <= 120.0, "{each} bytes per file");
}
