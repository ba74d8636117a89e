//! No (epoch, slot, counter) is sealed twice: by processes at once, by processes that are killed,
//! by copies of a folder, or by a folder that a backup brought back.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::shared::{Place, apply, copy, invite, join, seal};
use sealane_frame::{FrameBuf, FrameView};
use sealane_group::{Card, Change, EpochSource, Error, KeyFolder, Member, NewGroup, Past};
use sealane_seal::{Class, Epoch, Form, Opened, Sealer, Witness};

/// Epoch (its low bits suffice here), slot and counter.
type Used = (u64, u16, u64);

fn used(frame: &[u8], near: Epoch) -> Used {
    let header = FrameView::parse(frame).unwrap().seal_header();
    (header.key.epoch(near).0, header.key.slot.number(), header.counter)
}

/// Seals so many messages with a sender of its own, as a process would.
fn seal_some(keys: &KeyFolder, count: usize) -> Result<Vec<Used>, Error> {
    let member = keys.group("fleet")?;
    let mut sender = member.sender()?;
    let (fields, mut buf) = (sender.fields(Class::Group, 1), FrameBuf::new());
    let near = member.epochs().newest();
    (0..count).map(|_| Ok(used(sender.seal(&fields, b"x", &mut buf)?, near))).collect()
}

fn collect(all: &mut HashSet<Used>, more: Vec<Used>) {
    for used in more {
        assert!(all.insert(used), "{used:?} was used twice");
    }
}

fn open(path: &Path) -> KeyFolder {
    KeyFolder::open(path, None).unwrap()
}

fn is_refused<T>(outcome: Result<T, Error>) {
    let error = outcome.err().expect("a copy went on");
    assert_eq!(error.info().name, "CopiedFolder", "{error}");
}

#[test]
fn a_copied_folder_seals_nothing() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let (mut car, _) = join(&mut base, &keys);
    let mut all = HashSet::new();
    copy(&place.path("car"), &place.path("early"));
    collect(&mut all, seal_some(&keys, 100).unwrap());
    copy(&place.path("car"), &place.path("late"));
    for name in ["early", "late"] {
        is_refused(seal_some(&open(&place.path(name)), 1));
    }
    collect(&mut all, seal_some(&keys, 2000).unwrap());

    // Nor in a later epoch, in which counters begin anew.
    let rotated = base.rotate().unwrap();
    apply(&mut car, &rotated).unwrap();
    collect(&mut all, seal_some(&keys, 100).unwrap());
    for name in ["early", "late"] {
        let copy = open(&place.path(name));
        apply(&mut copy.group("fleet").unwrap(), &rotated).unwrap();
        is_refused(seal_some(&copy, 1));
    }
    assert_eq!(all.len(), 2200);

    // A new slot heals it, and the original goes on in its own.
    let copy = open(&place.path("late"));
    let invited = invite(&mut base, &copy);
    copy.join(&invited.invitation, None, None).unwrap();
    collect(&mut all, seal_some(&copy, 100).unwrap());
    collect(&mut all, seal_some(&keys, 100).unwrap());
    // Until it hears that its slot was retired for the new one.
    let told = apply(&mut car, &invited.notices).unwrap();
    assert_eq!(told.last(), Some(&Change::Removed));
    assert!(matches!(seal_some(&keys, 1), Err(Error::Removed)));
}

#[test]
fn a_folder_that_a_backup_brought_back_seals_nothing() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (path, kept) = (place.path("car"), place.path("kept"));
    join(&mut base, &place.keys("car"));
    let mut all = HashSet::new();
    collect(&mut all, seal_some(&open(&path), 10).unwrap());
    copy(&path, &kept);
    collect(&mut all, seal_some(&open(&path), 10).unwrap());

    // In place of the folder: the file system may give out the very same inodes.
    fs::remove_dir_all(&path).unwrap();
    copy(&kept, &path);
    is_refused(seal_some(&open(&path), 1));
}

#[test]
fn files_that_are_overwritten_in_place_by_older_ones_seal_nothing() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    join(&mut base, &place.keys("car"));
    let (path, kept) = (place.path("car"), place.path("kept"));
    seal_some(&open(&path), 10).unwrap();
    copy(&path, &kept);
    seal_some(&open(&path), 10).unwrap();
    let counters = "groups/fleet/counters-1";
    // The inode stays; what is written into it tells of another file.
    fs::write(path.join(counters), fs::read(kept.join(counters)).unwrap()).unwrap();
    is_refused(seal_some(&open(&path), 1));
    fs::remove_file(path.join(counters)).unwrap();
    is_refused(seal_some(&open(&path), 1));
}

#[test]
fn a_card_and_its_invitation_make_one_member() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let card = keys.card().unwrap();
    let invited = base.invite(&Card::from_bytes(&card).unwrap(), Past::All).unwrap();
    copy(&place.path("car"), &place.path("copy"));
    let copied = open(&place.path("copy"));
    is_refused(copied.join(&invited.invitation, None, None));
    keys.join(&invited.invitation, None, None).unwrap();
    let again = keys.join(&invited.invitation, None, None);
    assert!(matches!(again, Err(Error::UnknownCard)));
    is_refused(copied.join(&invited.invitation, None, None));
    // Nor after the file of waiting cards comes back.
    fs::write(place.path("car/cards"), fs::read(place.path("copy/cards")).unwrap()).unwrap();
    is_refused(keys.join(&invited.invitation, None, None));
}

/// What a machine that was rolled back with everything in it would seal: a message of that slot
/// with that counter. Nothing in its folder tells.
fn rolled_back(member: &Member, counter: u64) -> Opened {
    let (group, epochs) = (member.group(), member.epochs());
    let mut clone = Sealer::fresh(group, member.slot(), epochs, Witness([0; 32])).unwrap();
    let block = clone.reserve(counter + 1).unwrap();
    clone.confirm(block).unwrap();
    let mut sealed = Vec::new();
    for _ in 0..=counter {
        sealed.clear();
        clone.append(Class::Group, Form::Full, b"", b"x", &mut sealed).unwrap();
    }
    let mut opener = member.opener().unwrap();
    opener.open_stored(Epoch(0), Form::Full, b"", &mut sealed, 0).unwrap()
}

#[test]
fn a_sender_that_hears_its_clone_falls_silent_for_good() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (car, _) = join(&mut base, &place.keys("car"));
    let (mut one, mut two) = (car.sender().unwrap(), car.sender().unwrap());
    let mut reader = base.opener().unwrap();
    let mut heard =
        |frame: &mut [u8]| sealane_frame::open_stored(&mut reader, Epoch(0), frame).unwrap().opened;
    // What this sender and another process of the folder have sealed is no clone's.
    for mut frame in [seal(&mut one, Class::Group, b"1"), seal(&mut two, Class::Group, b"2")] {
        let opened = heard(&mut frame);
        one.heard(&opened).unwrap();
        two.heard(&opened).unwrap();
    }
    one.heard(&heard(&mut seal(&mut base.sender().unwrap(), Class::Group, b"3"))).unwrap();

    // A counter of the own block that is still free: somebody else has used it.
    is_refused(one.heard(&rolled_back(&car, 1000)));
    is_refused(one.seal(&one.fields(Class::Group, 1), b"x", &mut FrameBuf::new()));
    is_refused(car.sender().map(|_| ()));

    // A counter beyond all that was ever reserved in this folder.
    let (car, _) = join(&mut base, &place.keys("car2"));
    let mut sender = car.sender().unwrap();
    is_refused(sender.heard(&rolled_back(&car, 5000)));
    is_refused(car.sender().map(|_| ()));
}

/// The full name of the ignored test that is started as a process of its own.
const WORKER: &str = "never_repeats_a_counter::seals_until_it_is_killed";

fn worker(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", WORKER, "--ignored", "--nocapture"])
        .env("SEALANE_TEST_KEYS", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test by itself: a process that seals and says what it used.
#[test]
#[ignore = "a process that others start and kill"]
fn seals_until_it_is_killed() {
    let Some(path) = std::env::var_os("SEALANE_TEST_KEYS") else { return };
    let keys = open(Path::new(&path));
    let mut sender = keys.group("fleet").unwrap().sender().unwrap();
    let (fields, mut buf) = (sender.fields(Class::Group, 1), FrameBuf::new());
    for _ in 0..200_000 {
        let (epoch, slot, counter) = used(sender.seal(&fields, b"x", &mut buf).unwrap(), Epoch(0));
        println!("used {epoch} {slot} {counter}");
    }
}

/// Reads so many counters of a worker, kills it, and reads what it had written by then.
fn read_and_kill(mut worker: Child, count: usize) -> Vec<Used> {
    let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines();
    let mut read = Vec::new();
    let mut more = |count: usize, read: &mut Vec<Used>| {
        for line in lines.by_ref().map_while(Result::ok).take(count) {
            let words: Vec<&str> = line.split(' ').collect();
            if let ["used", epoch, slot, counter] = words[..]
                && let Ok(counter) = counter.parse()
            {
                read.push((epoch.parse().unwrap(), slot.parse().unwrap(), counter));
            }
        }
    };
    more(count, &mut read);
    worker.kill().unwrap();
    more(usize::MAX, &mut read);
    worker.wait().unwrap();
    // The last line may have been cut in the middle of its counter.
    read.pop();
    read
}

#[test]
fn killed_processes_and_processes_at_once_share_no_counter() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    join(&mut base, &place.keys("car"));
    let mut all = HashSet::new();
    for round in 0..12 {
        let workers = [worker(&place.path("car")), worker(&place.path("car"))];
        for worker in workers {
            let read = read_and_kill(worker, 50 + round * 700);
            assert!(read.len() > 40, "a worker sealed {} messages only", read.len());
            collect(&mut all, read);
        }
    }
    collect(&mut all, seal_some(&open(&place.path("car")), 5000).unwrap());
    assert!(all.len() > 50_000, "{}", all.len());
}
