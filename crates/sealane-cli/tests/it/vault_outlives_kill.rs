//! `kill -9` at random moments of `vault put`, `prune`, `repair` and `key rotate`: the next run
//! completes, all that any snapshot refers to is there, and at most one pack goes to the store
//! again.
//!
//! `SEALANE_KILLS` says how often each of them is killed before it has ended, `SEALANE_SEED`
//! repeats the moments of a run as far as the scheduler allows.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::durable::random::{self, Random};
use crate::vault::Vault;
use sealane_vault::limits::{MAX_CHUNK_BYTES, MAX_ROTATIONS, PACK_TARGET_BYTES};

/// New content of each round: two packs or three, so that a round that is sent again is more than
/// one pack.
const ROUND_BYTES: std::ops::Range<u64> = 42_000_000..80_000_000;
/// A new vault now and then keeps the disk from filling.
const ROUNDS_PER_VAULT: u64 = 10;
/// The bytes that are sent again, at most: a pack, which the chunk that reaches its length closes.
const MAX_AGAIN: u64 = PACK_TARGET_BYTES + MAX_CHUNK_BYTES as u64;

#[test]
fn what_was_kept_outlives_kill() {
    let _turn = crate::TURN.blocking_lock();
    let kills = kills();
    let mut random = Random::new(random::seed());
    let (mut left, mut seen) = (kills, Seen::default());
    while left > 0 {
        left -= one_vault(left, &mut random, &mut seen);
        assert!(seen.rounds <= most_rounds(kills), "{left} of {kills} kills are left");
    }
    println!(
        "{kills} kills of a put in {} rounds: {} before anything was in the store, {} with packs \
         and no snapshot, {} after the snapshot; at most {} bytes sent again",
        seen.rounds, seen.nothing, seen.packs, seen.whole, seen.most_again
    );
}

/// Where the kills struck.
#[derive(Default)]
struct Seen {
    rounds: u64,
    nothing: u64,
    packs: u64,
    whole: u64,
    most_again: u64,
}

/// Kills a put up to so many times; gives how often.
fn one_vault(kills: u64, random: &mut Random, seen: &mut Seen) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::init(folder.path());
    let source = folder.path().join("source");
    std::fs::create_dir(&source).unwrap();
    // The moments lie behind the derivation of the key, in what a whole put takes here.
    let unlock_ms = ms(|| drop(vault.succeeds(&["put", "source"])));
    let bytes = fill(&source, 0, random);
    let whole_ms = ms(|| drop(vault.succeeds(&["put", "source"]))).max(unlock_ms + 10);
    let bytes_per_ms = bytes / (whole_ms - unlock_ms).max(1);
    let mut killed = 0;
    for round in 1..=ROUNDS_PER_VAULT {
        if killed == kills {
            break;
        }
        seen.rounds += 1;
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
        killed += u64::from(vault.killed_after(&["put", "source"], begun, moment));
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
    killed
}

/// A kill that comes when the program has ended is none, and is made up for, as long as not all
/// come too late.
fn most_rounds(kills: u64) -> u64 {
    10 * kills + 2 * ROUNDS_PER_VAULT
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
        let name = source.join(format!("{round:03}-{file:02}"));
        std::fs::write(name, random.noise(size)).unwrap();
    }
    total
}

/// A vault that a recovery code opens, which costs no time.
struct Small {
    vault: Vault,
    folder: tempfile::TempDir,
    random: Random,
    /// How long a verb takes here that nobody kills.
    whole: Duration,
    /// How often one was killed before it had ended.
    killed: u64,
}

impl Small {
    fn new(seed: u64) -> Small {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::at(folder.path(), "vault", vec![]);
        let said = vault.succeeds(&["init", "--json"]);
        let code = said.split("\"recoveryCode\":\"").nth(1).unwrap().split('"').next().unwrap();
        std::fs::write(folder.path().join("code"), code).unwrap();
        std::fs::create_dir(folder.path().join("source")).unwrap();
        let (random, whole) = (Random::new(seed), Duration::ZERO);
        let mut small = Small { vault, folder, random, whole, killed: 0 };
        small.changes(0);
        small.does(&["put", "source"]);
        small
    }

    fn with_code<'a>(verb: &[&'a str]) -> Vec<&'a str> {
        [verb, &["--recovery-file", "code"]].concat()
    }

    fn does(&self, verb: &[&str]) -> String {
        self.vault.succeeds(&Small::with_code(verb))
    }

    /// Changes a part of the source.
    fn changes(&mut self, round: u64) {
        let name = self.folder.path().join(format!("source/{}", round % 5));
        std::fs::write(name, self.random.noise(200_000)).unwrap();
    }

    /// Runs a verb to its end at first, and then kills it in what it took.
    fn kills(&mut self, round: u64, verb: &[&str]) {
        if round == 0 {
            let start = Instant::now();
            // A repair names what nothing brings back, and fails.
            self.vault.run(&Small::with_code(verb));
            self.whole = start.elapsed();
            return;
        }
        let micros = self.random.within(0..self.whole.as_micros() as u64 * 11 / 10);
        let moment = Duration::from_micros(micros);
        let killed = self.vault.killed_after(&Small::with_code(verb), || true, moment);
        self.killed += u64::from(killed);
    }

    /// The rounds until a verb was killed often enough, the first of which kills nothing.
    fn is_enough(&self, round: u64, verb: &str) -> bool {
        let kills = kills();
        assert!(round <= most_rounds(kills), "{} of {kills} kills", self.killed);
        if self.killed == kills && round > 0 {
            println!("{kills} kills of a {verb} in {} rounds", round - 1);
        }
        self.killed == kills && round > 0
    }

    fn comes_back(&self) {
        let _ = std::fs::remove_dir_all(self.folder.path().join("restored"));
        self.does(&["get", "--to", "restored"]);
        let restored = self.folder.path().join("restored/source");
        crate::vault::assert_same(&self.folder.path().join("source"), &restored);
    }
}

fn kills() -> u64 {
    std::env::var("SEALANE_KILLS").map_or(20, |kills| kills.parse().unwrap())
}

#[test]
fn a_prune_outlives_kill() {
    let _turn = crate::TURN.blocking_lock();
    let mut small = Small::new(random::seed());
    let prune = ["prune", "--keep-last", "2", "--now"];
    for round in 0.. {
        if small.is_enough(round, "prune") {
            break;
        }
        for change in 0..2 {
            small.changes(2 * round + change);
            small.does(&["put", "source"]);
        }
        small.kills(round, &prune);
        small.does(&["verify", "--read-data"]);
        small.does(&prune);
        small.comes_back();
        assert!(small.does(&["ls", "--json"]).lines().count() <= 2);
    }
    small.does(&["verify", "--read-data"]);
}

#[test]
fn a_repair_outlives_kill() {
    let _turn = crate::TURN.blocking_lock();
    let mut small = Small::new(random::seed());
    for round in 0.. {
        if small.is_enough(round, "repair") {
            break;
        }
        small.changes(round);
        small.does(&["put", "source"]);
        let mut packs = crate::vault::objects(&small.folder.path().join("vault/packs"));
        packs.sort();
        let (pack, size) = &packs[small.random.within(0..packs.len() as u64) as usize];
        let mut bytes = std::fs::read(pack).unwrap();
        bytes[(size / 2) as usize] ^= 1;
        std::fs::write(pack, bytes).unwrap();
        small.kills(round, &["repair", "source"]);
        small.vault.run(&Small::with_code(&["repair", "source"]));
        small.comes_back();
        // Data that only older snapshots had has no source: a prune lets go of those.
        small.does(&["prune", "--keep-last", "1", "--now"]);
        small.does(&["verify", "--read-data"]);
    }
}

#[test]
fn a_change_of_the_main_key_outlives_kill() {
    let _turn = crate::TURN.blocking_lock();
    let mut small = Small::new(random::seed());
    let rotate = ["key", "rotate", "--no-recovery"];
    for round in 0.. {
        if small.is_enough(round, "change of the main key") {
            break;
        }
        // A vault has no more than so many changes.
        if small.vault.count("rotations") + 2 > usize::from(MAX_ROTATIONS) {
            let (whole, killed) = (small.whole, small.killed);
            small = Small { whole, killed, ..Small::new(small.random.next()) };
        }
        small.kills(round, &rotate);
        small.comes_back();
        if round % 2 == 0 {
            small.does(&rotate);
        }
        let put = small.does(&["put", "source", "--json"]);
        assert!(put.contains("\"storedBytes\":0"), "{put}");
        small.comes_back();
    }
    small.does(&rotate);
    small.does(&["verify", "--read-data"]);
    small.does(&["key", "recovery"]);
}
