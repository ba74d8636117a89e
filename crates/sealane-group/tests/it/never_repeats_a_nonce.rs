//! No two messages are sealed under one key and counter, whatever was copied: by processes at once,
//! killed or forked, by copies of a folder, by a disk that was put back, by containers of one
//! image. And none of them is locked out for it.
//!
//! `SEALANE_NONCES` says how many messages each sender seals, 10,000 by default.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::shared::{Place, apply, clone, copy, invite, join, named, reopen, seal};
use sealane_frame::{FrameBuf, FrameView};
use sealane_group::{
    EpochSource, GroupChange, GroupMember, GroupNotice, GroupSender, KeyFolder, NewGroup,
    PastSecrets,
};
use sealane_seal::{Class, Epoch};
use sealane_testing::{MountedDisk, require_mounts};

/// The owner of the counters: with the class, everything that a key derives from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Owner {
    epoch: u64,
    slot: u16,
    context: String,
}

/// Counters that one sender has used one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    owner: Owner,
    first: u64,
    last: u64,
}

impl Run {
    /// The counter that a frame has used. `near` is the epoch of its sender, or near it.
    fn of(frame: &[u8], near: Epoch) -> Run {
        let view = FrameView::parse(frame).unwrap();
        let seal = view.seal_header();
        let (epoch, slot) = (seal.key.epoch(near).0, seal.key.slot.number());
        let owner = Owner { epoch, slot, context: view.header().context().to_string() };
        Run { owner, first: seal.counter, last: seal.counter }
    }

    /// A line that another process has told.
    fn read(line: &str) -> Option<Run> {
        // The name of the test that tells stands before the first.
        let line = line.get(line.find("used ")?..)?;
        let ["used", epoch, slot, context, first, last] = line.split(' ').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let (epoch, slot) = (epoch.parse().ok()?, slot.parse().ok()?);
        let owner = Owner { epoch, slot, context: context.to_owned() };
        Some(Run { owner, first: first.parse().ok()?, last: last.parse().ok()? })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { owner: Owner { epoch, slot, context }, first, last } = self;
        write!(out, "used {epoch} {slot} {context} {first} {last}")
    }
}

/// Adds what follows the last one directly to it.
fn push(runs: &mut Vec<Run>, next: Run) {
    match runs.last_mut() {
        Some(run) if run.owner == next.owner && run.last + 1 == next.first => run.last = next.last,
        _ => runs.push(next),
    }
}

/// All that was used: nothing may come twice.
#[derive(Default)]
struct Used(HashMap<Owner, Vec<Run>>);

impl Used {
    fn add(&mut self, runs: &[Run]) {
        for run in runs {
            let known = self.0.entry(run.owner.clone()).or_default();
            let twice = known.iter().find(|one| one.first <= run.last && run.first <= one.last);
            assert!(twice.is_none(), "{run} was used before: {}", twice.unwrap());
            known.push(run.clone());
        }
    }

    fn messages(&self) -> u64 {
        self.0.values().flatten().map(|run| run.last - run.first + 1).sum()
    }

    fn contexts(&self) -> usize {
        self.0.keys().map(|owner| &owner.context).collect::<HashSet<_>>().len()
    }
}

fn count() -> u64 {
    std::env::var("SEALANE_NONCES").map_or(10_000, |count| count.parse().unwrap())
}

/// Seals so many messages of all classes, each of which uses one counter.
fn seal_with(sender: &mut GroupSender, count: u64, mut told: impl FnMut(Run)) {
    let classes = [Class::Group, Class::Authenticated, Class::Signed];
    let fields = classes.map(|class| sender.fields(class, 1));
    let (binding, mut buf) = (crate::shared::log(), FrameBuf::new());
    for at in 0..count {
        let fields = match at % 16 {
            5 => &fields[1],
            11 => &fields[2],
            _ => &fields[0],
        };
        let frame = sender.seal(fields, &binding, b"x", &mut buf).unwrap();
        let run = Run::of(frame, Epoch(0));
        told(run);
    }
}

/// The full name of the ignored test that is started as a process of its own.
const PROCESS: &str = "never_repeats_a_nonce::as_process_of_its_own";

/// A process that does something with a key folder.
fn process(folder: &Path, what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", PROCESS, "--ignored", "--nocapture", "--test-threads=1"]);
    within(command, folder, what)
}

fn within(mut command: Command, folder: &Path, what: &str) -> Command {
    command.env("SEALANE_TEST_KEYS", folder).env("SEALANE_TEST_DOES", what);
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

fn start(mut command: Command) -> Child {
    command.spawn().unwrap()
}

/// The counters that a process has used, which must end well.
fn told(child: Child) -> Vec<Run> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(Run::read).collect()
}

/// A process that seals in a folder.
fn seals(folder: &Path) -> Vec<Run> {
    told(start(process(folder, "seal")))
}

/// Not a test by itself: what a process of its own does.
#[test]
#[ignore = "a process that others start"]
fn as_process_of_its_own() {
    let Some(path) = std::env::var_os("SEALANE_TEST_KEYS") else { return };
    let path = Path::new(&path);
    let what = std::env::var("SEALANE_TEST_DOES").unwrap();
    let mut out = std::io::stdout();
    let mut tell = |run: &Run| writeln!(out, "{run}").unwrap();
    match what.as_str() {
        "seal" => {
            let (mut runs, mut sender) = (Vec::new(), reopen(path).sender().unwrap());
            seal_with(&mut sender, count(), |run| push(&mut runs, run));
            runs.iter().for_each(tell);
        }
        "seal and tell" => {
            let mut sender = reopen(path).sender().unwrap();
            seal_with(&mut sender, 200_000, |run| tell(&run));
        }
        "fork" => forked::seal_in_parent_and_child(&mut reopen(path).sender().unwrap(), &mut tell),
        "found" => {
            let keys = KeyFolder::create(path, "base", None).unwrap();
            keys.new_group("fleet", NewGroup::default()).unwrap();
        }
        "rotate" => tell(&of_order(&reopen(path).rotate().unwrap()[0])),
        other => panic!("{other}"),
    }
}

/// The counter that an order has used.
fn of_order(notice: &GroupNotice) -> Run {
    Run::of(notice.frame().unwrap(), Epoch(0))
}

/// The one place that forks.
#[allow(unsafe_code)] // A process can only be forked so.
mod forked {
    use super::*;

    /// Seals, forks, and goes on with the very same sender on both sides; and the child once more.
    pub(super) fn seal_in_parent_and_child(sender: &mut GroupSender, tell: &mut impl FnMut(&Run)) {
        let mut runs = Vec::new();
        seal_with(sender, 100, |run| push(&mut runs, run));
        for generation in 0..2 {
            // SAFETY: the other thread of this process waits for this one, and holds nothing that
            // the child needs.
            let child = unsafe { libc::fork() };
            assert!(child >= 0, "no process could be forked");
            if child == 0 {
                runs.clear();
            }
            seal_with(sender, count(), |run| push(&mut runs, run));
            if child > 0 {
                runs.iter().for_each(&mut *tell);
                let mut status = 0;
                // SAFETY: the child was forked above, and the status is ours.
                let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!((ended, status), (child, 0));
                if generation == 0 {
                    return;
                }
                // SAFETY: this is a child; its parent waits for it.
                unsafe { libc::_exit(0) };
            }
        }
        runs.iter().for_each(tell);
        // SAFETY: as above.
        unsafe { libc::_exit(0) };
    }
}

/// A group with the member `car`.
fn group(place: &Place) -> (GroupMember, GroupMember) {
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let (car, _) = join(&mut base, &place.keys("car"));
    (base, car)
}

#[test]
fn copies_of_a_folder_at_once() {
    let place = Place::new();
    let (mut base, mut car) = group(&place);
    let mut used = Used::default();
    copy(&place.path("car"), &place.path("early"));
    used.add(&seals(&place.path("car")));
    copy(&place.path("car"), &place.path("late"));
    clone(&place.path("car"), &place.path("cloned"));
    let names = ["car", "early", "late", "cloned"];
    let all = names.map(|name| start(process(&place.path(name), "seal")));
    all.map(told).iter().for_each(|runs| used.add(runs));
    assert_eq!((used.messages(), used.contexts()), (5 * count(), 5));

    // In a later epoch counters begin anew, and again all go on.
    let rotated = base.rotate().unwrap();
    apply(&mut car, &rotated).unwrap();
    names[1..]
        .iter()
        .for_each(|name| drop(apply(&mut reopen(&place.path(name)), &rotated).unwrap()));
    let all = names.map(|name| start(process(&place.path(name), "seal")));
    let all = all.map(told);
    all.iter().for_each(|runs| used.add(runs));
    assert!(all.iter().all(|runs| runs[0].owner.epoch == 1 && runs[0].first == 0));
    assert_eq!((used.messages(), used.contexts()), (9 * count(), 9));
}

#[test]
fn a_folder_that_a_backup_brought_back() {
    let place = Place::new();
    let _group = group(&place);
    let (path, kept) = (place.path("car"), place.path("kept"));
    copy(&path, &kept);
    let mut used = Used::default();
    let first = seals(&path);
    fs::remove_dir_all(&path).unwrap();
    copy(&kept, &path);
    let second = seals(&path);
    assert_eq!(first[0].first, second[0].first, "the folder told nothing of the counters");
    used.add(&first);
    used.add(&second);
    // A backup of the identity and its groups, too.
    let backup = KeyFolder::open(&path, None).unwrap().backup(None).unwrap();
    KeyFolder::restore(&place.path("restored"), &backup, None).unwrap();
    used.add(&seals(&place.path("restored")));
    assert_eq!((used.messages(), used.contexts()), (3 * count(), 3));
}

#[test]
fn files_that_are_overwritten_in_place() {
    let place = Place::new();
    let (mut base, mut car) = group(&place);
    let (path, kept) = (place.path("car"), place.path("kept"));
    let mut used = Used::default();
    used.add(&seals(&path));
    copy(&path, &kept);
    used.add(&seals(&path));
    apply(&mut car, &base.rotate().unwrap()).unwrap();
    let [counters, group] = ["groups/fleet/counters", "groups/fleet/group"];
    for what in [&[counters][..], &[group], &[counters, group]] {
        // The inodes stay; what is written into them tells of another time.
        for file in what {
            fs::write(path.join(file), fs::read(kept.join(file)).unwrap()).unwrap();
        }
        used.add(&seals(&path));
    }
    let mut damaged = fs::read(path.join(counters)).unwrap();
    damaged[50] ^= 1;
    fs::write(path.join(counters), damaged).unwrap();
    used.add(&seals(&path));
    fs::remove_file(path.join(counters)).unwrap();
    used.add(&seals(&path));
    assert_eq!((used.messages(), used.contexts()), (7 * count(), 7));
}

#[test]
fn a_sender_that_lives_through_its_folder_being_put_back() {
    let place = Place::new();
    let (_base, car) = group(&place);
    let (path, kept) = (place.path("car"), place.path("kept"));
    copy(&path, &kept);
    let mut used = Used::default();
    let (mut one, mut runs) = (car.sender().unwrap(), Vec::new());
    seal_with(&mut one, 3000, |run| push(&mut runs, run));
    fs::remove_dir_all(&path).unwrap();
    copy(&kept, &path);
    let mut two = car.sender().unwrap();
    for _ in 0..2 {
        for sender in [&mut one, &mut two] {
            seal_with(sender, 3000, |run| push(&mut runs, run));
        }
    }
    used.add(&runs);
    assert_eq!((used.messages(), used.contexts()), (15_000, 2));
}

/// Reads so many lines of a process, kills it, and reads what it had told by then.
fn read_and_kill(mut child: Child, count: usize) -> Vec<Run> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut runs = Vec::new();
    let first = lines.by_ref().filter_map(|line| Run::read(&line)).take(count);
    first.for_each(|run| push(&mut runs, run));
    child.kill().unwrap();
    let rest: Vec<Run> = lines.filter_map(|line| Run::read(&line)).collect();
    child.wait().unwrap();
    // The last line may have been cut in the middle of its counter.
    let whole = rest.len().saturating_sub(1);
    rest.into_iter().take(whole).for_each(|run| push(&mut runs, run));
    runs
}

#[test]
fn processes_that_are_killed_and_processes_at_once() {
    let place = Place::new();
    let (_base, car) = group(&place);
    let mut used = Used::default();
    for round in 0..6 {
        let pair = [(); 2].map(|()| start(process(&place.path("car"), "seal and tell")));
        for child in pair {
            used.add(&read_and_kill(child, 50 + round * 900));
        }
    }
    assert_eq!(used.contexts(), 12);
    assert!(used.messages() > 20_000, "{}", used.messages());
    // The next sender goes on behind all counters that they have used.
    let highest = used.0.values().flatten().map(|run| run.last).max().unwrap();
    let next = Run::of(&seal(&mut car.sender().unwrap(), Class::Group, b"x"), Epoch(0));
    assert!(next.first > highest, "{} is not above {highest}", next.first);
}

#[test]
fn a_process_that_forks() {
    let place = Place::new();
    let _group = group(&place);
    let runs = told(start(process(&place.path("car"), "fork")));
    let mut used = Used::default();
    used.add(&runs);
    // The parent with what came before the fork, the child before and after its own, and that one.
    assert_eq!((used.messages(), used.contexts()), (100 + 4 * count(), 3));
}

#[test]
#[ignore = "lab: needs root (mounted file systems)"]
fn a_disk_that_is_put_back() {
    require_mounts();
    let place = Place::new();
    let image = place.path("image");
    MountedDisk::make_image(&image, 16 << 20);
    {
        let mounted = MountedDisk::new(&image, place.path("mounted"));
        let keys = KeyFolder::create(&mounted.folder.join("base"), "base", None).unwrap();
        let mut base = keys.new_group("fleet", NewGroup::default()).unwrap();
        let keys = KeyFolder::create(&mounted.folder.join("car"), "car", None).unwrap();
        let (car, _) = join(&mut base, &keys);
        seal(&mut car.sender().unwrap(), Class::Group, b"before");
    }
    let (mut used, mut firsts) = (Used::default(), HashSet::new());
    for at in 1..=3 {
        // A copy of the very same disk: a loop device may still hold the one before.
        let put_back = place.path(&format!("image.{at}"));
        fs::copy(&image, &put_back).unwrap();
        let mounted = MountedDisk::new(&put_back, place.path(&format!("mounted.{at}")));
        let runs = seals(&mounted.folder.join("car"));
        // The authority, too: it gives other orders under the same numbers.
        let orders = told(start(process(&mounted.folder.join("base"), "rotate")));
        let told = |runs: &[Run]| (runs[0].owner.epoch, runs[0].first);
        firsts.insert((told(&runs), told(&orders)));
        used.add(&[runs, orders].concat());
    }
    assert_eq!(firsts.len(), 1, "the disk has told them something: {firsts:?}");
    assert_eq!((used.messages(), used.contexts()), (3 * count() + 3, 6));
}

#[test]
#[ignore = "lab: needs root (mounted file systems)"]
fn containers_of_one_image() {
    require_mounts();
    let place = Place::new();
    let _group = group(&place);
    let both = ["one", "two"].map(|name| MountedDisk::over(&place.path("car"), place.path(name)));
    let mut used = Used::default();
    for _ in 0..2 {
        let all = both.each_ref().map(|one| start(process(&one.folder, "seal")));
        let all = all.map(told);
        assert_eq!(all[0][0].first, all[1][0].first, "neither sees the other's counters");
        all.iter().for_each(|runs| used.add(runs));
    }
    assert_eq!((used.messages(), used.contexts()), (4 * count(), 4));
}

/// A process on a machine of that name, which has no id.
fn deployed(host: &str, folder: &Path, what: &str) -> Child {
    let script = "hostname \"$0\" && for id in /etc/machine-id /var/lib/dbus/machine-id; do \
                  if [ -e $id ]; then mount --bind /dev/null $id || exit 1; fi; done; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--uts", "--mount", "sh", "-c", script, host]);
    let process = process(folder, what);
    command.arg(process.get_program()).args(process.get_args());
    start(within(command, folder, what))
}

#[test]
#[ignore = "lab: needs root (namespaces of a container)"]
fn a_container_that_is_deployed_again_under_another_name() {
    require_mounts();
    let place = Place::new();
    let folder = place.path("base");
    let mut used = Used::default();
    assert!(told(deployed("first", &folder, "found")).is_empty());
    for host in ["first", "second", "third"] {
        used.add(&told(deployed(host, &folder, "seal")));
        // Not even the authority is locked out: nothing was copied.
        used.add(&told(deployed(host, &folder, "rotate")));
    }
    assert_eq!((used.messages(), used.contexts()), (3 * count() + 3, 6));
    // A machine with an id is another one.
    assert!(reopen(&folder).is_copied());
}

#[test]
fn a_copy_that_brings_a_new_card_gets_a_slot_of_its_own() {
    let place = Place::new();
    let (mut base, mut car) = group(&place);
    copy(&place.path("car"), &place.path("copy"));
    let copy = KeyFolder::open(&place.path("copy"), None).unwrap();
    let invited = invite(&mut base, &copy);
    assert_eq!(invited.replaces, Some(car.slot()));
    let copied = copy.join(&invited.invitation, None, None).unwrap();
    assert_ne!(copied.slot(), car.slot());
    seal(&mut copied.sender().unwrap(), Class::Group, b"x");
    // The original seals until it hears that its slot was retired.
    seal(&mut car.sender().unwrap(), Class::Group, b"x");
    let told = apply(&mut car, &invited.notices[..1]).unwrap();
    assert_eq!(told, [GroupChange::Removed]);
    assert_eq!(named(car.sender()), "RemovedMember");
}

#[test]
fn a_card_and_its_invitation_make_one_member() {
    let place = Place::new();
    let mut base = place.keys("base").new_group("fleet", NewGroup::default()).unwrap();
    let keys = place.keys("car");
    let invited = base.invite(&crate::shared::card(&keys), PastSecrets::All).unwrap();
    copy(&place.path("car"), &place.path("copy"));
    let copied = KeyFolder::open(&place.path("copy"), None).unwrap();
    let join = |keys: &KeyFolder| named(keys.join(&invited.invitation, None, None));
    assert_eq!(join(&copied), "CopiedFolder");
    keys.join(&invited.invitation, None, None).unwrap();
    assert_eq!(join(&keys), "UnknownCard");
    assert_eq!(join(&copied), "CopiedFolder");
    // Nor after the file of waiting cards comes back.
    fs::write(place.path("car/cards"), fs::read(place.path("copy/cards")).unwrap()).unwrap();
    assert_eq!(join(&keys), "CopiedFolder");
}
