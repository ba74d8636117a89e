//! Orders that are dropped, swapped, repeated, cut, held back, changed, or mixed with those of
//! another group: a member never seals in an epoch from which somebody was removed by an order that
//! it was handed; it ends where one without faults ends if it was handed all, and says that it is
//! behind if it was not.

use std::path::{Path, PathBuf};

use crate::shared::{Place, apply, card, clone, invite, join, named, reopen, state};
use sealane_group::{
    EpochSource, Error, GroupMember, GroupNotice, GroupSender, KeyFolder, NewGroup, PastSecrets,
    RemovalMark,
};
use sealane_seal::{Binding, Epoch, Slot};

/// One notice of the log, in the place where it belongs.
#[derive(Clone)]
struct Logged {
    notice: GroupNotice,
    /// Before this epoch nobody may seal any more who was handed the notice: it has removed
    /// somebody.
    floor: Epoch,
}

/// The notices that the authority has given, in its order, and the state of its members before
/// each.
struct OrderLog {
    place: Place,
    log: Vec<Logged>,
    /// Notices of another group, whose authority and beater are the same.
    foreign: Vec<GroupNotice>,
    /// Tells, behind all, how many orders were given.
    heartbeat: GroupNotice,
}

/// An action of the authority.
enum Step {
    Invite(&'static str, PastSecrets),
    Revoke(&'static str),
    Rotate,
    Advance,
    Mark(u64),
    Beater(Option<u8>),
    Heal(&'static [&'static str], bool),
}

use Step::{Advance, Beater, Heal, Invite, Mark as Marks, Revoke, Rotate};

/// About forty changes of a group of about six. `car` stays, and `bus` is removed late.
const STEPS: &[Step] = &[
    Invite("van", PastSecrets::All),
    Rotate,
    Invite("cab", PastSecrets::None),
    Revoke("van"),
    Marks(10),
    Advance,
    Beater(Some(1)),
    Invite("van", PastSecrets::All),
    Rotate,
    Rotate,
    Invite("cab", PastSecrets::All),
    Marks(20),
    Invite("tram", PastSecrets::None),
    Advance,
    Advance,
    Revoke("tram"),
    Marks(30),
    Beater(Some(2)),
    Heal(&["car", "van"], false),
    Rotate,
    Revoke("cab"),
    Invite("cab", PastSecrets::None),
    Marks(40),
    Invite("van", PastSecrets::None),
    Advance,
    Beater(None),
    Rotate,
    Revoke("van"),
    Invite("ship", PastSecrets::All),
    Invite("ship", PastSecrets::All),
    Marks(50),
    Heal(&["car", "bus", "cab"], true),
    Rotate,
    Advance,
    Revoke("bus"),
    Marks(60),
    Invite("bus", PastSecrets::None),
    Beater(Some(3)),
    Rotate,
    Advance,
];

impl OrderLog {
    fn new() -> OrderLog {
        let place = Place::quick();
        let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
        for name in ["car", "bus"] {
            join(&mut base, &place.keys(name));
        }
        for name in ["car", "bus"] {
            apply(&mut reopen(&place.path(name)), &base.notices(0).unwrap()).unwrap();
        }
        // The cards that heal are made beforehand: what is copied later has them.
        let fresh = ["car", "bus", "car"].map(|name| card(&keys(&place, name)));
        for name in ["car", "bus"] {
            clone(&place.path(name), &place.path(&format!("{name}.0")));
        }
        for name in ["van", "cab", "tram", "ship"] {
            place.keys(name);
        }
        let mut log = Vec::new();
        let mut given = Given { place: &place, base: &mut base, fresh: fresh.to_vec() };
        STEPS.iter().for_each(|step| log.extend(given.logged(step)));
        let heartbeat = base.heartbeat().unwrap();
        let foreign = foreign(&place);
        OrderLog { place, log, foreign, heartbeat }
    }

    /// A folder as it was when so many notices had been obeyed without a fault.
    fn folder(&self, name: &str, obeyed: usize) -> PathBuf {
        self.place.path(&format!("{name}.{obeyed}"))
    }

    /// Obeys the whole log without a fault, and keeps each state on the way.
    fn obey_all(&self, name: &str) {
        for (at, logged) in self.log.iter().enumerate() {
            let (from, to) = (self.folder(name, at), self.folder(name, at + 1));
            clone(&from, &to);
            match reopen(&to).apply(&logged.notice) {
                Ok(_) | Err(Error::Removed) => {}
                Err(error) => panic!("{name} at {at}: {error}"),
            }
        }
    }
}

fn keys(place: &Place, name: &str) -> KeyFolder {
    KeyFolder::open(&place.path(name), None).unwrap()
}

/// Orders of a group that has the same authority and members.
fn foreign(place: &Place) -> Vec<GroupNotice> {
    let mut boats = keys(place, "base").new_group("boats", NewGroup::default()).unwrap();
    let slot = invite(&mut boats, &keys(place, "van")).slot;
    boats.set_beater(Some(&[1; 32])).unwrap();
    boats.revoke(&[slot]).unwrap();
    let mut foreign = boats.notices(0).unwrap();
    foreign.push(boats.heartbeat().unwrap());
    foreign.extend(boats.renew(None).unwrap());
    foreign
}

/// An authority that gives orders.
struct Given<'a> {
    place: &'a Place,
    base: &'a mut GroupMember,
    fresh: Vec<sealane_group::IdentityCard>,
}

impl Given<'_> {
    fn logged(&mut self, step: &Step) -> Vec<Logged> {
        let before = self.base.live_from();
        let notices = self.give(step);
        let after = self.base.live_from();
        // The first notice of a change is the one that removes.
        let floor = |at: usize| if at == 0 && after > before { after } else { Epoch(0) };
        let notices = notices.into_iter().enumerate();
        notices.map(|(at, notice)| Logged { notice, floor: floor(at) }).collect()
    }

    fn give(&mut self, step: &Step) -> Vec<GroupNotice> {
        let base = &mut *self.base;
        match *step {
            Invite(name, past) => {
                let keys = keys(self.place, name);
                let invited = base.invite(&card(&keys), past).unwrap();
                keys.join(&invited.invitation, None, None).unwrap();
                invited.notices
            }
            Revoke(name) => base.revoke(&[slot_of(base, name)]).unwrap(),
            Rotate => base.rotate().unwrap(),
            Advance => base.advance().unwrap(),
            Marks(next) => {
                let marks = ["log", "chat"].map(|name| RemovalMark {
                    stream: Binding::stream(name),
                    generation: 1,
                    next,
                });
                base.mark(&marks).unwrap()
            }
            Beater(seed) => base.set_beater(seed.map(|seed| [seed; 32]).as_ref()).unwrap(),
            Heal(names, drops_silent) => {
                let cards: Vec<_> = names.iter().map(|name| self.card(name)).collect();
                self.base.heal(&cards, drops_silent).unwrap().notices
            }
        }
    }

    /// A fresh card: of those that were made beforehand, or a new one.
    fn card(&mut self, name: &str) -> sealane_group::IdentityCard {
        match self.fresh.iter().position(|card| card.name() == name) {
            Some(at) => self.fresh.remove(at),
            None => card(&keys(self.place, name)),
        }
    }
}

fn slot_of(base: &GroupMember, name: &str) -> Slot {
    base.roster().find(name).unwrap().slot()
}

/// The fault of a notice at a place of a member's sequence.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Dropped,
    SwappedWithNext,
    Repeated,
    Cut(usize),
    HeldBack,
    BehindForeign(usize),
    Flipped(usize),
}

use Fault::{BehindForeign, Cut, Dropped, Flipped, HeldBack, Repeated, SwappedWithNext};

impl Fault {
    fn all(seed: usize) -> [Fault; 7] {
        [
            Dropped,
            SwappedWithNext,
            Repeated,
            Cut(seed),
            HeldBack,
            BehindForeign(seed),
            Flipped(seed),
        ]
    }
}

/// The input of a member: a notice of the log, or bytes that are none of it.
#[derive(Clone)]
enum Handed {
    Logged(usize),
    Other(Vec<u8>),
}

fn with_fault(world: &OrderLog, handed: &mut Vec<Handed>, at: usize, fault: Fault) {
    let bytes = match &handed[at] {
        Handed::Logged(number) => world.log[*number].notice.as_bytes().to_vec(),
        Handed::Other(bytes) => bytes.clone(),
    };
    match fault {
        Dropped => drop(handed.remove(at)),
        SwappedWithNext if at + 1 < handed.len() => handed.swap(at, at + 1),
        SwappedWithNext => {}
        Repeated => handed.insert(at, handed[at].clone()),
        Cut(seed) => {
            let end = seed % bytes.len();
            handed[at] = Handed::Other(bytes[..end].to_vec());
        }
        HeldBack => {
            let held = handed.remove(at);
            handed.push(held);
        }
        BehindForeign(seed) => {
            let foreign = &world.foreign[seed % world.foreign.len()];
            handed.insert(at, Handed::Other(foreign.as_bytes().to_vec()));
        }
        Flipped(seed) => {
            let mut bytes = bytes;
            let bit = seed % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            handed[at] = Handed::Other(bytes);
        }
    }
}

/// A member that is handed notices one after the other.
struct Run<'a> {
    world: &'a OrderLog,
    member: GroupMember,
    sender: Option<GroupSender>,
    /// The highest floor of the notices that it was handed so far.
    floor: Epoch,
}

impl<'a> Run<'a> {
    /// Begins where so many notices were obeyed.
    fn begin(world: &'a OrderLog, name: &str, obeyed: usize, folder: &Path) -> Run<'a> {
        clone(&world.folder(name, obeyed), folder);
        let member = reopen(folder);
        let floor = world.log[..obeyed].iter().map(|logged| logged.floor).max();
        let sender = member.sender().ok();
        Run { world, member, sender, floor: floor.unwrap_or_default() }
    }

    fn hand(&mut self, handed: &Handed) {
        // A notice that was changed on its way is refused or says nothing, and does not keep the
        // rest away.
        let _ = match handed {
            Handed::Logged(number) => {
                let logged = &self.world.log[*number];
                self.floor = self.floor.max(logged.floor);
                self.member.apply(&logged.notice)
            }
            Handed::Other(bytes) => {
                GroupNotice::from_bytes(bytes).and_then(|notice| self.member.apply(&notice))
            }
        };
        // A sender that was had before, and one that is had now.
        if self.sender.as_mut().is_some_and(|sender| sender.follow().is_err()) {
            self.sender = None;
        }
        let now = self.member.sender();
        for sender in now.as_ref().ok().into_iter().chain(&self.sender) {
            assert!(sender.epoch() >= self.floor, "seals behind a removal that it was handed");
            assert_eq!(sender.epoch(), self.member.epochs().newest());
        }
        assert_eq!(now.is_ok(), self.member.check_sealing().is_ok());
        self.sender = self.sender.take().or(now.ok());
    }
}

/// Hands a member what is left of the log behind a place, with faults in it, and checks where that
/// leads.
fn run(world: &OrderLog, name: &str, first: usize, handed: &[Handed], case: &str) {
    let folder = tempfile::tempdir_in(world.place.folder.path()).unwrap();
    let root = folder.path().join(name);
    let mut run = Run::begin(world, name, first, &root);
    handed.iter().for_each(|one| run.hand(one));
    let is_missing = |number: &usize| {
        !handed.iter().any(|one| matches!(one, Handed::Logged(known) if known == number))
    };
    let missing = (first..world.log.len()).find(is_missing);
    let ends = world.folder(name, world.log.len());
    if run.member.is_removed() {
        assert!(reopen(&ends).is_removed(), "{case}");
        assert_eq!(named(run.member.sender()), "RemovedMember");
        return;
    }
    let Some(missing) = missing else {
        assert!(state(&root) == state(&ends), "{case}: it was handed all and ends elsewhere");
        run.member.sender().unwrap();
        return;
    };
    // Where nothing else has shown it, a heartbeat does.
    run.member.apply(&world.heartbeat).unwrap();
    let number = world.log[missing].notice.number();
    match run.member.check_sealing() {
        Err(Error::Behind { missing, .. }) if number.is_none_or(|number| number == missing) => {}
        other => panic!("{case}: {other:?}, and order {number:?} is missing"),
    }
    assert_eq!(run.member.orders(), reopen(&world.folder(name, missing)).orders(), "{case}");
    // It is told again what it has missed, and goes on.
    for logged in &world.log[missing..] {
        if matches!(run.member.apply(&logged.notice), Err(Error::Removed)) {
            return;
        }
    }
    let sealing = run.member.check_sealing();
    assert!(sealing.is_ok() || run.member.is_removed(), "{case}: {sealing:?}");
}

fn handed_from(world: &OrderLog, first: usize) -> Vec<Handed> {
    (first..world.log.len()).map(Handed::Logged).collect()
}

#[test]
fn any_fault_in_any_place() {
    let world = OrderLog::new();
    assert!(world.log.len() > 50, "{}", world.log.len());
    for name in ["car", "bus"] {
        world.obey_all(name);
    }
    let [car, bus] = ["car", "bus"].map(|name| reopen(&world.folder(name, world.log.len())));
    assert!(!car.is_removed() && bus.is_removed());
    assert_eq!(car.roster(), reopen(&world.place.path("base")).roster());
    for at in 0..world.log.len() {
        let seed = at * 7919;
        let faults = Fault::all(seed);
        // The one that stays meets every fault; the one that leaves, one in each place.
        let cases = faults.iter().map(|fault| ("car", fault));
        for (name, fault) in cases.chain([("bus", &faults[at % faults.len()])]) {
            let mut handed = handed_from(&world, at);
            with_fault(&world, &mut handed, 0, *fault);
            run(&world, name, at, &handed, &format!("{name}, {fault:?} at {at}"));
        }
    }
}

/// A sequence of numbers that look random, the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// `SEALANE_SEEDS` says how many, 200 by default, and `SEALANE_SEED` which is the first.
#[test]
fn three_faults_at_once() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap())
    };
    let (first, count) = (number("SEALANE_SEED", 0), number("SEALANE_SEEDS", 200));
    let world = OrderLog::new();
    for name in ["car", "bus"] {
        world.obey_all(name);
    }
    for seed in first..first + count {
        let mut numbers = Numbers(seed);
        let name = ["car", "car", "car", "bus"][numbers.below(4)];
        let begin = numbers.below(world.log.len() - 4);
        let mut handed = handed_from(&world, begin);
        let mut faults = Vec::new();
        for _ in 0..3 {
            let seed = numbers.below(1 << 20);
            let all = Fault::all(seed);
            let fault = all[numbers.below(all.len())];
            let at = numbers.below(handed.len());
            with_fault(&world, &mut handed, at, fault);
            faults.push((at, fault));
        }
        let case = format!("seed {seed}: {name} from {begin} on, {faults:?}");
        run(&world, name, begin, &handed, &case);
    }
}
