//! Two owners, a writer, a prune and a reader at the same time, for days: each file that a put
//! confirmed comes back byte for byte, or went by a rule.
//!
//! Each but the reader is a process, and one in three is killed. During each prune one object, any,
//! cannot be read. A bucket refuses requests and loses answers. Between two days, while nobody
//! puts, the clock goes on. A ledger of the test's own says what must be there: it shares no code
//! with the vault's rules.
//!
//! `SEALANE_SECONDS` says for how long, on each kind of store; it makes forty days of that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::hostile_s3::HostileS3;
use crate::s3::Server;
use crate::shared::{CHEAP, PASSPHRASE, Place, Seed};
use sealane_vault::{
    Error, OpenOptions, PruneOptions, PutAccess, PutOptions, RetentionGroupBy, RetentionRules,
    S3Store, SlotSecret, VaultMetadata, VaultOwner, VaultReader, VaultStore, VaultWriter,
    WriterKey, hostile,
};

/// Snapshots of each user that stay, however old they are.
const LAST: usize = 3;
/// Days of which the newest snapshot of each user stays.
const DAILY: usize = 4;
const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
/// The noon of the first day, by which snapshots are dated: no day of the test ends with a midnight
/// of this machine.
const FIRST_NOON_NS: i64 = 20_000 * DAY_NS + DAY_NS / 2;
/// The users: two owners and a writer, each a host of its own.
const USERS: [&str; 3] = ["one", "two", "writer"];
/// Requests of a thousand that the bucket refuses, or of which it loses the answer.
const FAULTS: u64 = 20;
/// A busy machine may stand still for longer than a server may be silent.
const SILENCE: Duration = Duration::from_secs(3600);
/// The variable by which a process of this test is told what it is to do.
const ACTOR: &str = "SEALANE_VAULT_ACTOR";

#[test]
fn in_a_folder() {
    let place = Place::new();
    let store = StageStore::Folder(place.path("vault"));
    run(&place, &store, None);
}

#[test]
fn in_a_bucket() {
    let (place, server) = (Place::new(), HostileS3::start());
    let store = StageStore::Bucket { port: server.port, home: place.path("home") };
    run(&place, &store, Some(&server));
}

/// Where the vault is, as a process is told it.
#[derive(Clone)]
enum StageStore {
    Folder(PathBuf),
    Bucket { port: u16, home: PathBuf },
}

impl StageStore {
    fn open(&self) -> VaultStore {
        match self {
            StageStore::Folder(folder) => VaultStore::open(folder.to_str().unwrap()).unwrap(),
            StageStore::Bucket { port, home } => {
                let environment = Server::environment(*port, home);
                let store = S3Store::with_patience("s3://bucket/vault", environment, SILENCE);
                VaultStore::S3(store.unwrap().into())
            }
        }
    }

    fn words(&self) -> String {
        match self {
            StageStore::Folder(folder) => format!("0 {}", folder.display()),
            StageStore::Bucket { port, home } => format!("{port} {}", home.display()),
        }
    }

    fn of_words(port: &str, path: &str) -> StageStore {
        match port.parse().unwrap() {
            0 => StageStore::Folder(path.into()),
            port => StageStore::Bucket { port, home: path.into() },
        }
    }
}

/// The content of a put of a user: every other one is the same for all.
fn content(user: &str, turn: u64) -> Vec<u8> {
    let own = user.bytes().fold(7, |sum, byte| sum * 31 + u64::from(byte));
    match turn % 2 {
        0 => Seed(turn).random(40_000),
        _ => Seed(own + turn).random(60_000),
    }
}

fn options(state: PathBuf) -> OpenOptions {
    OpenOptions { state: Some(state), ..OpenOptions::default() }
}

fn owner(store: VaultStore, state: PathBuf) -> Result<VaultOwner, Error> {
    VaultOwner::open(store, &SlotSecret::Passphrase(PASSPHRASE), &options(state))
}

fn rules() -> PruneOptions {
    let keep = RetentionRules { last: LAST, daily: DAILY, ..RetentionRules::default() };
    let group_by = RetentionGroupBy { signer: true, host: true, paths: false, tags: false };
    PruneOptions { keep, group_by, ..PruneOptions::default() }
}

/// A snapshot that a put has confirmed, or a put that was killed and may have made one.
#[derive(Clone)]
struct Attempt {
    user: String,
    turn: u64,
    day: u64,
}

/// The snapshots that must be in the vault, as the test knows them.
#[derive(Default)]
struct ManyLedger {
    confirmed: BTreeMap<u64, Attempt>,
    /// Puts of which nobody knows whether they made a snapshot.
    perhaps: Vec<Attempt>,
    /// The next put of each user.
    turns: BTreeMap<String, u64>,
    pruned: u64,
    /// Objects that could not be read during a prune.
    hidden: u64,
    killed: u64,
    removed_packs: u64,
}

impl ManyLedger {
    /// Whether the rules let a snapshot go: enough newer ones of its user are there. One that may
    /// be there counts, so that the rules are never taken for stricter than they are.
    fn may_go(&self, number: u64) -> bool {
        let Some(one) = self.confirmed.get(&number) else { return true };
        let newer = self.confirmed.range(number + 1..).map(|(_, other)| other);
        let newer = newer.chain(self.perhaps.iter().filter(|other| other.turn > one.turn));
        let newer: Vec<&Attempt> = newer.filter(|other| other.user == one.user).collect();
        let days: BTreeSet<u64> = newer.iter().map(|other| other.day).collect();
        newer.len() >= LAST && (days.contains(&one.day) || days.len() >= DAILY)
    }
}

struct Scene<'a> {
    place: &'a Place,
    store: &'a StageStore,
    server: Option<&'a HostileS3>,
    key: String,
    ledger: Mutex<ManyLedger>,
    seed: Mutex<Seed>,
}

fn run(place: &Place, store: &StageStore, server: Option<&HostileS3>) {
    let seconds = std::env::var("SEALANE_SECONDS").ok().map(|text| text.parse::<u64>().unwrap());
    let (days, whole) = seconds.map_or((3, 1200), |seconds| (40, seconds * 1000));
    let (passphrase, sealed) = (PASSPHRASE, VaultMetadata::Sealed);
    let vault =
        VaultOwner::init(store.open(), passphrase, CHEAP, sealed, &options(place.path("first")));
    let key = vault.unwrap().add_writer("writer").unwrap().expose().to_string();
    let (ledger, seed) = (Mutex::default(), Mutex::new(Seed(days)));
    let scene = Scene { place, store, server, key, ledger, seed };
    for day in 0..days {
        scene.lives(day, Duration::from_millis(whole / days));
        scene.checks();
    }
    let vault = owner(store.open(), place.path("fresh")).unwrap();
    let mut problems = vault.verify(true).unwrap().problems;
    // A link that could not be read when the next one was written stays behind, readable and kept.
    problems.retain(|problem| !problem.reason.contains("no link of the chain leads to it"));
    assert_eq!(problems, []);
    let ledger = scene.ledger.lock().unwrap();
    println!(
        "{} puts confirmed, {} unsure, {} killed; {} prunes, {} objects hidden, {} packs removed",
        ledger.confirmed.len(),
        ledger.perhaps.len(),
        ledger.killed,
        ledger.pruned,
        ledger.hidden,
        ledger.removed_packs,
    );
    let there: BTreeSet<u64> = vault.snapshots().unwrap().iter().map(|one| one.number).collect();
    let gone = ledger.confirmed.keys().filter(|number| !there.contains(number)).count();
    assert!(!ledger.confirmed.is_empty() && ledger.hidden > 0);
    if seconds.is_some() {
        let puts = |user: &&str| ledger.confirmed.values().any(|one| one.user == **user);
        assert!(USERS.iter().all(|user| puts(user)) && ledger.pruned > 0);
        assert!(gone > 0 && ledger.removed_packs > 0 && ledger.killed > 0);
    }
}

impl Scene<'_> {
    fn random(&self, below: u64) -> u64 {
        self.seed.lock().unwrap().next() % below
    }

    /// A day on which everybody works at once.
    fn lives(&self, day: u64, length: Duration) {
        if let Some(server) = self.server {
            server.fail(FAULTS);
        }
        let until = Instant::now() + length;
        std::thread::scope(|scope| {
            for user in USERS {
                scope.spawn(move || {
                    while Instant::now() < until {
                        self.puts(user, day, until);
                    }
                });
            }
            scope.spawn(move || {
                while Instant::now() < until {
                    self.prunes(day);
                }
            });
            scope.spawn(move || self.reads(until));
        });
        if let Some(server) = self.server {
            server.fail(0);
        }
    }

    fn puts(&self, user: &str, day: u64, until: Instant) {
        let turn = self.ledger.lock().unwrap().turns.get(user).copied().unwrap_or(0);
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        let key = if user == "writer" { &self.key } else { "owner" };
        let words = format!("put {day} {user} {turn} {left} {key}");
        let mut begun = None;
        self.acts(&words, &mut |said| {
            let attempt = |turn| Attempt { user: user.to_owned(), turn, day };
            let mut ledger = self.ledger.lock().unwrap();
            match said {
                ["begin", turn] => {
                    let turn: u64 = turn.parse().unwrap();
                    ledger.turns.insert(user.to_owned(), turn + 1);
                    begun = Some(turn);
                }
                ["kept", turn, number] => {
                    begun = None;
                    let attempt = attempt(turn.parse().unwrap());
                    ledger.confirmed.insert(number.parse().unwrap(), attempt);
                }
                // An answer that was lost, or a kill: the snapshot may be there.
                _ => ledger.perhaps.extend(begun.take().map(attempt)),
            }
        });
    }

    fn prunes(&self, day: u64) {
        let hidden = self.hide();
        self.acts(&format!("prune {day} prunes 0 0 owner"), &mut |said| {
            if let ["pruned", packs] = said {
                let mut ledger = self.ledger.lock().unwrap();
                ledger.pruned += 1;
                ledger.removed_packs += packs.parse::<u64>().unwrap();
            }
        });
        if let Some(hidden) = hidden {
            self.show(hidden);
        }
    }

    /// Makes one object unreadable.
    fn hide(&self) -> Option<HiddenObject> {
        let kinds = ["snapshots/", "packs/", "index/", "condemned/", "roster/", "keys/"];
        let kind = kinds[self.random(kinds.len() as u64) as usize];
        let garbage = [&b""[..], b"<html>one moment</html>"][self.random(2) as usize].to_vec();
        let keys: Vec<String> = match self.server {
            Some(server) => server.keys(&format!("vault/{kind}")),
            None => {
                let listed = self.store.open().list(kind).unwrap();
                listed.into_iter().map(|object| object.key).collect()
            }
        };
        let key = keys.get(self.random(keys.len().max(1) as u64) as usize)?.clone();
        let whole = match (self.server, self.store) {
            (Some(server), _) => {
                server.rot(&key, garbage.clone());
                Vec::new()
            }
            (None, StageStore::Folder(folder)) => {
                let path = folder.join(&key);
                let whole = fs::read(&path).ok()?;
                overwrite(&path, &garbage);
                whole
            }
            (None, StageStore::Bucket { .. }) => return None,
        };
        self.ledger.lock().unwrap().hidden += 1;
        Some(HiddenObject { key, garbage, whole })
    }

    /// Makes it readable again, unless somebody has removed or mended it.
    fn show(&self, HiddenObject { key, garbage, whole }: HiddenObject) {
        match (self.server, self.store) {
            (Some(server), _) => server.heal(&key),
            (None, StageStore::Folder(folder)) => {
                let path = folder.join(&key);
                if fs::read(&path).is_ok_and(|found| found == garbage) {
                    overwrite(&path, &whole);
                }
            }
            (None, StageStore::Bucket { .. }) => {}
        }
    }

    /// Runs a process to its end, or kills it, and gives what it says line by line. The end is
    /// given as no words.
    fn acts(&self, words: &str, say: &mut dyn FnMut(&[&str])) {
        let mut child = self.start(words);
        let out = BufReader::new(child.stdout.take().unwrap());
        let (lines, said) = channel();
        let kill = (self.random(3) == 0).then(|| Duration::from_millis(self.random(400)));
        let due = kill.map(|after| Instant::now() + after);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                out.lines().map_while(Result::ok).for_each(|line| drop(lines.send(line)));
            });
            let mut is_killed = false;
            loop {
                let left = match due.filter(|_| !is_killed) {
                    Some(due) => due.saturating_duration_since(Instant::now()),
                    None => SILENCE,
                };
                match said.recv_timeout(left) {
                    // Only a line of its own is whole; the harness prints others.
                    Ok(line) => {
                        if let Some(words) = line.strip_prefix('@') {
                            say(&words.split(' ').collect::<Vec<_>>());
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        is_killed = true;
                        let _ = child.kill();
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            self.ledger.lock().unwrap().killed += u64::from(is_killed);
        });
        child.wait().unwrap();
        say(&[]);
    }

    fn start(&self, words: &str) -> Child {
        let told = format!("{} {} {words}", self.place.folder.path().display(), self.store.words());
        Command::new(std::env::current_exe().unwrap())
            .args(["serves_many_at_once::acts_as_it_is_told", "--exact", "--nocapture"])
            .env(ACTOR, told)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Reads all that is there: never another byte than was put. What cannot be read just now is
    /// named.
    fn reads(&self, until: Instant) {
        while Instant::now() < until {
            let Ok(vault) = owner(self.store.open(), self.place.path("reads")) else { continue };
            for snapshot in vault.snapshots().unwrap_or_default() {
                if let Ok(Some(read)) = read(&vault, snapshot.number) {
                    assert!(read, "snapshot {} holds something else", snapshot.number);
                }
            }
        }
    }

    /// Between two days nobody works, and every object can be read.
    fn checks(&self) {
        let vault = owner(self.store.open(), self.place.path("checks")).unwrap();
        let mut ledger = self.ledger.lock().unwrap();
        let numbers: Vec<u64> = ledger.confirmed.keys().copied().collect();
        for number in numbers {
            match read(&vault, number).unwrap() {
                Some(read) => assert!(read, "snapshot {number} holds something else"),
                None => assert!(ledger.may_go(number), "snapshot {number} went, and by no rule"),
            }
        }
        // A put that nobody heard of has made a snapshot or none.
        let known: BTreeSet<(String, String)> = vault
            .snapshots()
            .unwrap()
            .into_iter()
            .filter(|one| !ledger.confirmed.contains_key(&one.number))
            .map(|one| (one.source, one.note))
            .collect();
        ledger.perhaps.retain(|one| known.contains(&(one.user.clone(), one.turn.to_string())));
    }
}

/// An object that cannot be read for a while.
struct HiddenObject {
    key: String,
    garbage: Vec<u8>,
    whole: Vec<u8>,
}

/// Writes over a file that is there, and makes none.
fn overwrite(path: &std::path::Path, bytes: &[u8]) {
    let file = fs::File::options().write(true).truncate(true).open(path);
    let _ = file.and_then(|mut file| file.write_all(bytes));
}

/// Whether a snapshot has what its put kept; none if there is no such snapshot.
fn read(vault: &VaultReader, number: u64) -> Result<Option<bool>, Error> {
    let snapshot = match vault.snapshot(Some(number)) {
        Err(Error::NoSnapshot(_) | Error::Removed(_)) => return Ok(None),
        snapshot => snapshot?,
    };
    let kept = content(&snapshot.source, snapshot.note.parse().unwrap());
    let mut out = Vec::new();
    let size = kept.len() as u64 + 1;
    match vault.file(&snapshot, b"file").and_then(|mut file| file.read_range(0, size, &mut out)) {
        Err(Error::Removed(_)) => Ok(None),
        done => done.map(|_| Some(out == kept)),
    }
}

/// The part of a process of this test, which says what it does line by line. Without being told it
/// does nothing.
#[test]
fn acts_as_it_is_told() {
    let Ok(told) = std::env::var(ACTOR) else { return };
    let words: Vec<&str> = told.split(' ').collect();
    let [folder, port, path, what, day, user, turn, ms, key] = words[..] else { panic!("{told}") };
    let (store, state) = (StageStore::of_words(port, path), PathBuf::from(folder).join(user));
    let day: i64 = day.parse().unwrap();
    hostile::set_clock_forward(day * DAY_NS);
    // The harness has begun a line.
    println!();
    if what == "prune" {
        match owner(store.open(), state).and_then(|vault| vault.prune(&rules())) {
            Ok(report) => println!("@pruned {}", report.removed_packs),
            Err(error) => println!("@refused {}", error.info().name),
        }
        return;
    }
    let until = Instant::now() + Duration::from_millis(ms.parse().unwrap());
    for turn in turn.parse().unwrap().. {
        println!("@begin {turn}");
        let kept = match key {
            "owner" => {
                let vault = owner(store.open(), state.clone());
                vault.and_then(|vault| put(&vault, day, user, turn))
            }
            key => {
                let (key, options): (WriterKey, _) = (key.parse().unwrap(), options(state.clone()));
                let vault = VaultWriter::open(store.open(), &key, &options);
                vault.and_then(|vault| put(&vault, day, user, turn))
            }
        };
        match kept {
            Ok(number) => println!("@kept {turn} {number}"),
            Err(error) => println!("@failed {turn} {}", error.info().name),
        }
        if Instant::now() > until {
            break;
        }
    }
}

fn put(vault: &dyn PutAccess, day: i64, user: &str, turn: u64) -> Result<u64, Error> {
    let content = content(user, turn);
    let (host, note) = (Some(user.to_owned()), turn.to_string());
    let time_ns = Some(FIRST_NOON_NS + day * DAY_NS);
    let options = PutOptions { host, note, time_ns, threads: 1, ..PutOptions::default() };
    Ok(vault.put_reader("file", &mut content.as_slice(), &options)?.snapshot)
}
