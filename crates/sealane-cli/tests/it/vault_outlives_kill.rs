//! `kill -9` at random moments of `vault put`: the next run completes, all that any snapshot refers
//! to is there, and at most one pack goes to the store again.
//!
//! `SEALANE_KILLS` says how often, `SEALANE_SEED` repeats the moments of a run as far as the
//! scheduler allows.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::durable::random::{self, Random};
use crate::vault::Vault;
use sealane_vault::limits::{MAX_CHUNK_BYTES, PACK_TARGET_BYTES};

/// New content of each round: two packs or three, so that a round that is sent again is more than
/// one pack.
const ROUND_BYTES: std::ops::Range<u64> = 42_000_000..80_000_000;
/// A new vault now and then keeps the disk from filling.
const ROUNDS_PER_VAULT: u64 = 20;
/// What is sent again, at most: a pack, which the chunk that reaches its length closes.
const MAX_AGAIN: u64 = PACK_TARGET_BYTES + MAX_CHUNK_BYTES as u64;

#[test]
fn what_was_kept_outlives_kill() {
    let _turn = crate::TURN.blocking_lock();
    let kills = std::env::var("SEALANE_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let mut random = Random::new(random::seed());
    let (mut left, mut seen) = (kills, Seen::default());
    while left > 0 {
        let rounds = left.min(ROUNDS_PER_VAULT);
        one_vault(rounds, &mut random, &mut seen);
        left -= rounds;
    }
    println!(
        "{kills} kills: {} before anything was in the store, {} with packs and no snapshot, {} \
         after the snapshot; at most {} bytes sent again",
        seen.nothing, seen.packs, seen.whole, seen.most_again
    );
}

/// Where the kills struck.
#[derive(Default)]
struct Seen {
    nothing: u64,
    packs: u64,
    whole: u64,
    most_again: u64,
}

fn one_vault(rounds: u64, random: &mut Random, seen: &mut Seen) {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::init(folder.path());
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    // The moments lie behind the derivation of the key, in what a whole put takes here.
    let unlock_ms = ms(|| drop(vault.succeeds(&["put", "source"])));
    let bytes = fill(&source, 0, random);
    let whole_ms = ms(|| drop(vault.succeeds(&["put", "source"]))).max(unlock_ms + 10);
    let bytes_per_ms = bytes / (whole_ms - unlock_ms).max(1);
    for round in 1..=rounds {
        let bytes = fill(&source, round, random);
        let whole_ms = unlock_ms + bytes / bytes_per_ms.max(1);
        let before = (vault.bytes("packs"), vault.count("snapshots"));
        // Every other kill strikes while packs are in the store and no snapshot names them.
        let (begun, moments) = match round % 2 {
            0 => (None, unlock_ms / 2..whole_ms + 50),
            _ => (Some(before.0), 0..(whole_ms - unlock_ms) / 2 + 1),
        };
        let begun = || begun.is_none_or(|bytes| vault.bytes("packs") > bytes);
        let moment = Duration::from_millis(random.within(moments));
        vault.killed_after(&["put", "source"], begun, moment);
        let after = (vault.bytes("packs"), vault.count("snapshots"));
        match () {
            () if after.1 > before.1 => seen.whole += 1,
            () if after.0 > before.0 => seen.packs += 1,
            () => seen.nothing += 1,
        }
        vault.succeeds(&["verify"]);
        vault.succeeds(&["put", "source"]);
        vault.succeeds(&["verify"]);
        // Noise does not compress, so what is in the packs beyond it was sent twice.
        let grown = vault.bytes("packs") - before.0;
        let again = grown.saturating_sub(bytes + bytes / 50);
        assert!(again <= MAX_AGAIN, "round {round}: {again} bytes were sent again");
        seen.most_again = seen.most_again.max(again);
    }
    vault.succeeds(&["verify", "--read-data"]);
    vault.succeeds(&["get", "--to", "restored"]);
    crate::vault::assert_same(&source, &folder.path().join("restored/source"));
}

fn ms(run: impl FnOnce()) -> u64 {
    let start = Instant::now();
    run();
    start.elapsed().as_millis() as u64
}

/// A few new files of noise; gives their bytes.
fn fill(source: &Path, round: u64, random: &mut Random) -> u64 {
    let total = random.within(ROUND_BYTES);
    let files = random.within(3..40);
    for file in 0..files {
        let size = (total / files) as usize;
        let mut noise = Vec::with_capacity(size + 8);
        while noise.len() < size {
            noise.extend_from_slice(&random.next().to_le_bytes());
        }
        std::fs::write(source.join(format!("{round:03}-{file:02}")), noise).unwrap();
    }
    total
}
