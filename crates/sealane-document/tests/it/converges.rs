//! Twenty machines over seven hops that lose a third of all they send end up with the same.

use crate::shared::entries::{TYPES, all, entry, holding, slot, stamp};
use sealane_document::exchange::{differing, digest, inventory, lacks, overview};
use sealane_document::{RegisterEntry, RegisterSet};
use sealane_testing::SeededRandom;

/// Machines in eight rows, each of which hears its own row and the next ones.
const ROWS: [usize; 20] = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 7];
/// Bytes that a message of a small radio carries.
const MAX_BYTES: usize = 222;

struct Team {
    random: SeededRandom,
    machines: Vec<RegisterSet>,
    /// The digest of each machine for its hello, until it takes something.
    digests: Vec<Option<[u8; 8]>>,
    counters: Vec<u64>,
    /// All that was ever said.
    said: Vec<RegisterEntry>,
    /// The rows from this one on are out of reach of those before it.
    cut: Option<usize>,
}

impl Team {
    /// Whether a transmission is lost: three of ten are.
    fn loses(&mut self) -> bool {
        self.random.below(10) < 3
    }

    fn new(seed: u64) -> Self {
        Self {
            random: SeededRandom::new(seed),
            machines: vec![RegisterSet::new(); ROWS.len()],
            digests: vec![None; ROWS.len()],
            counters: vec![0; ROWS.len()],
            said: vec![],
            cut: None,
        }
    }

    fn take(&mut self, machine: usize, entry: RegisterEntry) {
        self.machines[machine].take(entry);
        self.digests[machine] = None;
    }

    fn digest(&mut self, machine: usize) -> [u8; 8] {
        *self.digests[machine].get_or_insert_with(|| digest(&self.machines[machine]))
    }

    fn neighbours(&self, of: usize) -> Vec<usize> {
        let side = |row: usize| self.cut.map(|cut| row < cut);
        let hears = |one: usize| {
            ROWS[one].abs_diff(ROWS[of]) <= 1 && one != of && side(ROWS[one]) == side(ROWS[of])
        };
        (0..ROWS.len()).filter(|one| hears(*one)).collect()
    }

    fn say(&mut self, epoch: u64) {
        let who = self.random.below(ROWS.len() as u64) as usize;
        let what = TYPES[self.random.below(TYPES.len() as u64) as usize];
        self.counters[who] += 1;
        let said = entry(who as u16, what, stamp(epoch, self.counters[who]), 0);
        self.said.push(said.clone());
        self.take(who, said);
    }

    /// A hello of one machine, and what follows of it, each message lost on its own.
    fn hello(&mut self, from: usize) -> usize {
        let mut messages = 1;
        for to in self.neighbours(from) {
            let same = self.digest(from) == self.digest(to);
            if self.loses() || same {
                continue;
            }
            for message in overview(&self.machines[to], 3, MAX_BYTES) {
                messages += 1;
                if self.loses() {
                    continue;
                }
                let origins = differing(&self.machines[from], &message).unwrap();
                for held in inventory(&self.machines[from], &origins, MAX_BYTES) {
                    messages += 1;
                    if self.loses() {
                        continue;
                    }
                    let lacking = lacks(&self.machines[to], &held).unwrap();
                    let lacking: Vec<RegisterEntry> = lacking.into_iter().cloned().collect();
                    messages += lacking.len();
                    for entry in lacking {
                        // Some come twice.
                        let copies = 1 + usize::from(self.random.below(10) == 0);
                        if !self.loses() {
                            for _ in 0..copies {
                                self.take(from, entry.clone());
                            }
                        }
                    }
                }
            }
        }
        messages
    }

    fn round(&mut self) {
        for machine in 0..ROWS.len() {
            self.hello(machine);
        }
    }

    fn agrees(&mut self) -> bool {
        (0..ROWS.len()).all(|machine| self.digest(machine) == self.digest(0))
    }
}

#[test]
fn all_end_up_with_the_newest_of_all_that_was_said() {
    for seed in 0..5 {
        let mut team = Team::new(seed);
        for turn in 0..60 {
            // In the middle the team is cut in two, and the epoch changes.
            team.cut = (20..40).contains(&turn).then_some(4);
            let epoch = u64::from(turn >= 30);
            (0..5).for_each(|_| team.say(epoch));
            team.round();
        }
        let mut rounds = 0;
        while !team.agrees() {
            team.round();
            rounds += 1;
            assert!(rounds < 60, "seed {seed}");
        }
        let wanted = all(&holding(&team.said));
        for machine in &team.machines {
            assert_eq!(all(machine), wanted, "seed {seed}");
        }
        // A machine that starts anew with nothing gets all of it.
        team.machines[0] = RegisterSet::new();
        team.digests[0] = None;
        (0..20).for_each(|_| team.round());
        assert_eq!(all(&team.machines[0]), wanted, "seed {seed}");
        assert!(team.machines[19].of(slot(0), TYPES[0]).count() <= 1);
    }
}
