//! The attacks again, by a machine of the mesh beside its victim, through the mesh of both.

use std::collections::BTreeMap;

use sealane_document::agent::DocumentLeaver;
use sealane_document::{DocumentQuota, DocumentStore, ShelfKeeper, entry_of};
use sealane_mesh::{MeshMedium, MeshSpan};
use sealane_message::DataType;
use sealane_seal::{Class, Epoch, Sealer, SigningKey, Slot};

use crate::field::net::{Link, Net, seal};
use crate::team::{GROUP, group};
use crate::victim::{BODY, as_class, message_of, refused};

const VICTIM: usize = 0;
const ATTACKER: usize = 1;
/// Nobody of them is near: the attacker has what they have sealed, or writes in their names.
const ORIGIN: u16 = 2;
const OTHER: u16 = 3;
const REMOVED: u16 = 4;

/// A victim and an attacker in reach of each other, in one mesh.
struct Field {
    net: Net,
    /// Starts of senders.
    starts: u64,
}

/// The outcome of an attack at the victim.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    taken: u64,
    refused: BTreeMap<&'static str, u64>,
}

impl Field {
    fn new() -> Field {
        let link = Link {
            medium: MeshMedium::wire(1500),
            loss_percent: 0,
            repeat_percent: 0,
            late: MeshSpan(0),
        };
        let mut net = Net::new(1, &[0, 1, 9, 9, 9], &[ATTACKER], link);
        // The attacker's own agent keeps nothing, so that all that comes is the attack.
        net.nodes[ATTACKER].agent.set_strangers(vec![]);
        net.run(MeshSpan::seconds(8));
        Field { net, starts: 1 << 32 }
    }

    fn sealer(&mut self, slot: u16, epoch: u64) -> Sealer {
        self.starts += 1;
        self.net.team.sealer(slot, Epoch(epoch), self.starts << 16 | u64::from(slot))
    }

    /// The counts of the victim until now.
    fn counted(&self) -> Came {
        let agent = &self.net.nodes[VICTIM].agent;
        Came { taken: agent.counters().taken, refused: refused(agent) }
    }

    /// The attacker says that to its neighbour.
    fn say(&mut self, messages: &[Vec<u8>]) -> Came {
        let mut before = self.counted();
        for message in messages {
            self.net.inject(ATTACKER, message);
            self.net.run(MeshSpan::millis(20));
        }
        self.net.run(MeshSpan::millis(200));
        let after = self.counted();
        let more = |(name, count): (&'static str, u64)| {
            let more = count - before.refused.remove(name).unwrap_or(0);
            (more > 0).then_some((name, more))
        };
        let refused = after.refused.into_iter().filter_map(more).collect();
        Came { taken: after.taken - before.taken, refused }
    }

    /// The attacker hands these frames on, each in a message.
    fn hand_on(&mut self, frames: &[&[u8]]) -> Came {
        let messages: Vec<_> = frames.iter().map(|frame| message_of(&[frame])).collect();
        self.say(&messages)
    }

    /// So many are news, and the rest is refused for these reasons and no others.
    fn check<const N: usize>(
        &mut self,
        why: &str,
        frames: &[&[u8]],
        taken: u64,
        reasons: [(&'static str, u64); N],
    ) {
        let came = self.hand_on(frames);
        assert_eq!(came, Came { taken, refused: BTreeMap::from(reasons) }, "{why}");
    }

    /// All are refused for one of these reasons or another.
    fn check_refused(&mut self, why: &str, frames: &[&[u8]], reasons: &[&str]) {
        let came = self.hand_on(frames);
        assert_eq!(came.taken, 0, "{why}: {came:?}");
        assert_eq!(came.refused.values().sum::<u64>(), frames.len() as u64, "{why}: {came:?}");
        assert!(came.refused.keys().all(|name| reasons.contains(name)), "{why}: {came:?}");
    }

    /// The bodies of what the victim keeps of a member and type, oldest first.
    fn bodies(&mut self, slot: u16, data_type: DataType) -> Vec<Vec<u8>> {
        let agent = &mut self.net.nodes[VICTIM].agent;
        let registers = agent.store().registers(GROUP).into_iter();
        let slot = Slot::new(slot).unwrap();
        let held: Vec<_> = registers.flat_map(|all| all.of(slot, data_type)).cloned().collect();
        held.iter().map(|entry| agent.body(GROUP, entry).unwrap()).collect()
    }
}

fn all(frames: &[Vec<u8>]) -> Vec<&[u8]> {
    frames.iter().map(Vec::as_slice).collect()
}

/// The number of a call stands behind its time and its flags.
fn call(number: u8) -> Vec<u8> {
    vec![0, 0, 0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0, 0]
}

#[test]
fn what_is_not_of_its_origin_is_refused_by_name() {
    let mut field = Field::new();
    let mut origin = field.sealer(ORIGIN, 0);
    let frame = seal(&mut origin, ORIGIN, 4, BODY);
    let mut plain = frame.clone();
    plain.truncate(64);
    plain.extend(BODY);
    field.check("a marker that is stripped", &[&plain], 0, [("no document", 1)]);
    let flipped = |at: usize, bit: u8| {
        let mut other = frame.clone();
        other[at] ^= 1 << bit;
        other
    };
    let rewritten: Vec<_> = (0..8).map(|bit| flipped(19, bit)).collect();
    field.check_refused("a class that is rewritten", &all(&rewritten), &["forged", "no document"]);
    let last = frame.len() - 1;
    let changed: Vec<_> = (64..=last).map(|at| flipped(at, 0)).collect();
    let reasons = ["forged", "no document", "unknown epoch"];
    field.check_refused("a byte that is changed", &all(&changed), &reasons);
    let other = seal(&mut origin, ORIGIN, 4, &[9; 15]);
    let mixed: Vec<_> =
        (40..last).step_by(5).map(|at| [&frame[..at], &other[at..]].concat()).collect();
    let mixed: Vec<_> = mixed.into_iter().filter(|one| *one != frame && *one != other).collect();
    field.check_refused("parts of two frames", &all(&mixed), &["forged", "no document"]);
    let mut nowhere = BODY.to_vec();
    nowhere[7..15].fill(0x7f);
    let nowhere = seal(&mut origin, ORIGIN, 4, &nowhere);
    field.check("a position that cannot be", &[&nowhere], 0, [("malformed body", 1)]);
    let mut strange = frame.clone();
    let group_at = frame.windows(4).position(|four| four == GROUP.to_bytes()).unwrap();
    strange[group_at] = 100;
    field.check("a group that is made up", &[&strange], 0, [("strange group", 1)]);
    // A message that ends within a frame, and one of no sort.
    let came = field.say(&[vec![0, 0, 0, 0, 4, 101, 1, 2, 3], vec![9, 9, 9, 9, 77, 1]]);
    assert_eq!((came.taken, came.refused), (0, BTreeMap::from([("malformed", 2)])));
    assert!(field.net.nodes[VICTIM].agent.store().is_empty());
    field.check("the true one, last of all", &[&frame], 1, []);
}

#[test]
fn a_member_gone_bad_signs_for_nobody_and_what_it_writes_in_class_c_is_counted() {
    let mut field = Field::new();
    let mut bad = field.sealer(ORIGIN, 0);
    bad.set_signing_key(SigningKey::from_seed(&[5; 32]).unwrap());
    let lifted = as_class(&mut bad, ORIGIN, 1, Class::Signed, &[1, 99]);
    field.check("a count that is lifted in class S", &[&lifted], 0, [("forged", 1)]);
    let mut answers = vec![];
    for data_type in [8, 9] {
        for class in [Class::Signed, Class::Group, Class::Authenticated] {
            answers.push(as_class(&mut bad, ORIGIN, data_type, class, &call(0)));
        }
    }
    let reasons = [("below floor", 4), ("forged", 2)];
    field.check("answers for another", &all(&answers), 0, reasons);
    // In class C whoever holds the secret can write it. Two frames of one stamp are a conflict, of
    // which all keep the same one.
    let frames = [5, 99].map(|total| seal(&mut field.sealer(OTHER, 0), OTHER, 1, &[1, total]));
    let [first, second] =
        [&frames[0], &frames[1]].map(|one| entry_of(one, Epoch(0)).unwrap().mark());
    let taken = 1 + u64::from(second > first);
    field.check("a count of one stamp", &all(&frames), taken, [("conflicts", 1)]);
}

#[test]
fn an_origin_goes_on_behind_what_is_lifted_ahead_of_it_and_counts_each_time() {
    let mut field = Field::new();
    field.net.write(VICTIM, 1, &[1, 5]);
    for times in 1..=3_u8 {
        let own = field.net.nodes[VICTIM].sealer.as_ref().unwrap().next_counter().unwrap();
        let mut bad = field.sealer(VICTIM as u16, 0);
        bad.go_on_at(own + 100);
        let lifted = seal(&mut bad, VICTIM as u16, 1, &[1, 90 + times]);
        field.check("a count that is lifted", &[&lifted, &lifted], 1, [("repeats", 1)]);
        assert_eq!(field.net.nodes[VICTIM].agent.counters().ahead, u64::from(times));
        assert_eq!(field.bodies(0, DataType::COUNTER), [[1, 90 + times]], "it is taken as news");
        field.net.write(VICTIM, 1, &[1, 5 + times]);
        assert_eq!(field.bodies(0, DataType::COUNTER), [[1, 5 + times]], "and gone behind");
    }
    let mut far = field.sealer(VICTIM as u16, 0);
    far.go_on_at(2 << 20);
    let far = seal(&mut far, VICTIM as u16, 1, &[1, 99]);
    field.check("a lift that is too far", &[&far], 0, [("too far ahead", 1)]);
    assert_eq!(field.net.nodes[VICTIM].agent.counters().ahead, 3);
}

#[test]
fn what_is_replayed_is_no_news_in_this_epoch_the_next_or_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    let open =
        || DocumentStore::open(&path, ShelfKeeper::Member, DocumentQuota::default()).unwrap();
    let mut field = Field::new();
    field.net.restart(VICTIM, open());
    field.net.run(MeshSpan::seconds(8));
    let (mut caller, mut other) = (field.sealer(ORIGIN, 0), field.sealer(OTHER, 0));
    let (first, second) =
        (seal(&mut caller, ORIGIN, 7, &call(1)), seal(&mut caller, ORIGIN, 7, &call(2)));
    let of_first = [&[0; 8][..], &[ORIGIN as u8, 0, 1, 0, 0, 0]].concat();
    let clear = seal(&mut other, OTHER, 9, &of_first);
    let gone = seal(&mut field.sealer(REMOVED, 0), REMOVED, 7, &call(1));
    field.check("a call, its clear, and a later call", &[&first, &clear, &second, &gone], 4, []);
    let replayed = [&first, &clear, &second].map(Vec::as_slice);
    let no_news = [("older", 1), ("repeats", 2)];
    field.check("the same epoch", &replayed, 0, no_news);
    field.net.team.removed.push(vec![REMOVED]);
    field.net.rekey(VICTIM);
    field.check("the next epoch", &replayed, 0, no_news);
    let old = seal(&mut caller, ORIGIN, 4, BODY);
    field.check("an epoch that is over", &[&old], 0, [("stale epoch", 1)]);
    let late = seal(&mut field.sealer(REMOVED, 0), REMOVED, 7, &call(2));
    field.check("of who was removed", &[&gone, &late], 0, [("no member", 2)]);
    // Two processes never have one file open.
    field.net.restart(
        VICTIM,
        DocumentStore::in_memory(ShelfKeeper::Member, DocumentQuota::default()).unwrap(),
    );
    field.net.restart(VICTIM, open());
    field.net.run(MeshSpan::seconds(8));
    field.check("after a restart", &replayed, 0, no_news);
    assert_eq!(field.bodies(ORIGIN, DataType::EMERGENCY), [call(2)]);
}

#[test]
fn who_is_about_to_be_removed_is_heard_as_far_as_the_notice_says_and_reset_hops_are_no_news() {
    let mut field = Field::new();
    let mut thief = field.sealer(REMOVED, 0);
    let frames: Vec<_> = (0..3).map(|_| seal(&mut thief, REMOVED, 72, BODY)).collect();
    let leaver = DocumentLeaver { slot: Slot::new(REMOVED).unwrap(), epoch: Epoch(0), mark: 2 };
    field.net.nodes[VICTIM].agent.set_leaving(GROUP, vec![leaver]);
    field.check("a notice of removal", &all(&frames), 2, [("leaving", 1)]);
    let hops = (0..=50).map(|hops| {
        let mut other = frames[0].clone();
        (other[0], other[16]) = (7, hops);
        other
    });
    let hops: Vec<_> = hops.collect();
    field.check("hops that are reset", &all(&hops), 0, [("repeats", 51)]);
    assert_eq!(field.net.nodes[VICTIM].agent.counters().opened, 2, "each is opened once");
}

#[test]
fn clocks_of_another_decade_decide_nothing() {
    const NOW_MS: u64 = 1_795_000_000_000;
    const TEN_YEARS_MS: u64 = 10 * 365 * 86_400_000;
    let mut field = Field::new();
    let mut origin = field.sealer(ORIGIN, 0);
    for (data_type, rest) in [(7, &[0, 1, 0, 0, 0, 0][..]), (8, &[3, 0, 1, 0, 0, 0])] {
        let times = [NOW_MS + TEN_YEARS_MS, NOW_MS - TEN_YEARS_MS, NOW_MS];
        let bodies = times.map(|time| [&time.to_le_bytes()[..], rest].concat());
        let frames = bodies.clone().map(|body| seal(&mut origin, ORIGIN, data_type, &body));
        field.check("clocks", &all(&frames), 3, []);
        let kept = field.bodies(ORIGIN, DataType::from_number(data_type));
        assert_eq!(kept.last(), bodies.last(), "the later message counts, whatever clocks said");
        let answered = match data_type {
            7 => [("older", 2), ("repeats", 1)],
            _ => [("repeats", 3), ("older", 0)],
        };
        let refused = answered.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(field.hand_on(&all(&frames)), Came { taken: 0, refused }, "{data_type}");
    }
}

#[test]
fn an_origin_that_writes_without_end_and_a_relay_that_hands_out_the_old_move_nothing() {
    let mut field = Field::new();
    let mut origin = field.sealer(ORIGIN, 0);
    let log: Vec<_> =
        (0..150_u8).map(|round| seal(&mut origin, ORIGIN, 72, &[round; 40])).collect();
    field.check("a log without end", &all(&log), 150, []);
    let kept = field.bodies(ORIGIN, DataType::from_number(72));
    assert_eq!(kept, (86..150).map(|round| vec![round; 40]).collect::<Vec<_>>());
    let held = field.net.nodes[VICTIM].agent.store().total_bytes();
    assert!(held < 64 * 200, "{held} bytes");
    let places: Vec<_> = (0..20).map(|_| seal(&mut origin, ORIGIN, 4, BODY)).collect();
    field.check("the newest place", &[&places[19]], 1, []);
    field.check("old ones", &all(&places), 0, [("older", 19), ("repeats", 1)]);
}

#[test]
fn the_attacker_is_heard_over_the_mesh() {
    let mut field = Field::new();
    assert!(!group().is_pair());
    let frame = seal(&mut field.sealer(ORIGIN, 0), ORIGIN, 4, BODY);
    field.check("a true frame", &[&frame], 1, []);
    field.net.down(ATTACKER);
    field.check("out of reach", &[&frame], 0, []);
}
