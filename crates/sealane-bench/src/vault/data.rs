//! Data that compress like the report's: half of it text, half of it noise.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::failure::{BenchFailure, Result};

/// How many files, and bytes, were made.
#[derive(Debug, Clone, Copy)]
pub(super) struct BenchFileSet {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// 263 files of 25.1 MB: log-normal sizes with a median of 12 KB, the largest of 3.9 MB.
pub(super) fn mixed(folder: &Path) -> Result<BenchFileSet> {
    files(folder, 263, 12_000.0, 2.06, 3_900_000, 25_100_000)
}

/// 20,000 files of 66 MB: 3.3 KB each on average.
pub(super) fn small(folder: &Path) -> Result<BenchFileSet> {
    files(folder, 20_000, 1_500.0, 1.26, 200_000, 66_000_000)
}

fn files(
    folder: &Path,
    count: u64,
    median: f64,
    spread: f64,
    largest: u64,
    total: u64,
) -> Result<BenchFileSet> {
    let mut source = BenchByteSource::new(b"files");
    let sizes = (0..count).map(|_| (median * (spread * source.normal()).exp()).min(largest as f64));
    let sizes: Vec<f64> = sizes.collect();
    // The total is the report's, so that rates compare.
    let scale = total as f64 / sizes.iter().sum::<f64>();
    let mut bytes = 0;
    for (index, size) in sizes.iter().enumerate() {
        let size = ((size * scale) as u64).clamp(1, largest);
        let inside = folder.join(format!("folder {:02}", index % 40));
        fs::create_dir_all(&inside).map_err(BenchFailure::io("making data"))?;
        let content = if index % 2 == 0 { source.text(size) } else { source.noise(size) };
        fs::write(inside.join(format!("file {index:05}.dat")), content)
            .map_err(BenchFailure::io("making data"))?;
        bytes += size;
    }
    Ok(BenchFileSet { files: count, bytes })
}

/// One file, text and noise in turns of 4 MiB, with `before` at its front.
pub(super) fn big(path: &Path, size: u64, before: &[u8]) -> Result<BenchFileSet> {
    const TURN: u64 = 4 << 20;
    let mut source = BenchByteSource::new(b"big");
    let written = File::create(path).map(BufWriter::new).and_then(|mut file| {
        file.write_all(before)?;
        for turn in 0..size.div_ceil(TURN) {
            let length = TURN.min(size - turn * TURN);
            let part = if turn % 2 == 0 { source.text(length) } else { source.noise(length) };
            file.write_all(&part)?;
        }
        file.into_inner()?.sync_all()
    });
    written.map_err(BenchFailure::io("making data"))?;
    Ok(BenchFileSet { files: 1, bytes: size + before.len() as u64 })
}

/// Numbers that are the same in every run.
struct BenchByteSource {
    reader: blake3::OutputReader,
    words: Vec<Vec<u8>>,
}

impl BenchByteSource {
    fn new(seed: &[u8]) -> BenchByteSource {
        let reader = blake3::Hasher::new().update(seed).finalize_xof();
        let mut source = BenchByteSource { reader, words: vec![] };
        source.words = (0..4000)
            .map(|_| {
                let length = 2 + (source.number() * 9.0) as usize;
                (0..length).map(|_| b'a' + (source.number() * 26.0) as u8).collect()
            })
            .collect();
        source
    }

    fn noise(&mut self, size: u64) -> Vec<u8> {
        let mut noise = vec![0; size as usize];
        self.reader.fill(&mut noise);
        noise
    }

    /// Words in proportion to the inverse of their rank, as in languages.
    fn text(&mut self, size: u64) -> Vec<u8> {
        let size = size as usize;
        let mut text = Vec::with_capacity(size + 16);
        let scale = (self.words.len() as f64).ln();
        while text.len() < size {
            let rank = (self.number() * scale).exp() as usize - 1;
            text.extend_from_slice(&self.words[rank.min(self.words.len() - 1)]);
            text.push(b' ');
        }
        text.truncate(size);
        text
    }

    /// Between 0 and 1.
    fn number(&mut self) -> f64 {
        let mut bytes = [0; 4];
        self.reader.fill(&mut bytes);
        f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
    }

    /// Of mean 0 and deviation 1 (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (a, b) = (self.number().max(1e-9), self.number());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_the_same_every_time_and_of_the_demanded_size() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&one, &two] {
            let set = mixed(folder.path()).unwrap();
            assert_eq!(set.files, 263);
            assert!(set.bytes.abs_diff(25_100_000) < 500_000, "{}", set.bytes);
        }
        let file = "folder 07/file 00047.dat";
        assert_eq!(
            fs::read(one.path().join(file)).unwrap(),
            fs::read(two.path().join(file)).unwrap()
        );
    }
}
