//! `sealane doctor`: looks for what will hurt a node later, on this machine and at the hub.

mod clock;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use sealane::{Client, ConsumerInfo, HubError};
use sealane_message::Pattern;
use sealane_node::access::{AccessToken, TokenFile, TokenRight};
use sealane_stream::ShareHeld;

use crate::args::operate::DoctorArgs;
use crate::colour::ColourTone;
use crate::config::{SettingKey, SettingsFile};
use crate::folder::{self, FolderMatch};
use crate::limits::{MAX_NAMED_CONSUMERS, MIN_DOCTOR_COLUMNS};
use crate::terminal::wrap;
use crate::times::{count, show_bytes, show_duration};
use crate::token::ORDERS_OPEN;
use crate::{CliFailure, Terminal, consumer, stream, token};

/// Room below which a disk counts as nearly full.
const LITTLE_ROOM_BYTES: u64 = 64 << 20;
/// Room below which it counts as full: the next commit, or the one after it, has none.
const NO_ROOM_BYTES: u64 = 1 << 20;
/// Open files below which a busy node may run out.
const FEW_FILES: u64 = 4096;
/// Writes that are timed.
const WRITES: usize = 30;
/// Below this a disk cannot have written what it says is safe; beyond that every message waits.
const PLAUSIBLE: std::ops::Range<Duration> = Duration::from_micros(15)..Duration::from_millis(50);
/// File systems by the number of statfs(2), where a promise of `disk` is another one.
const FILE_SYSTEMS: [(u64, &str, &str); 6] = [
    (0x0102_1994, "tmpfs", "its content is gone after a restart"),
    (0x8584_58f6, "ramfs", "its content is gone after a restart"),
    (0x6969, "NFS", "locks and fsync depend on the server; use a disk of this machine"),
    (0xfe53_4d42, "SMB", "locks and fsync depend on the server; use a disk of this machine"),
    (0xff53_4d42, "SMB", "locks and fsync depend on the server; use a disk of this machine"),
    (0x6573_5546, "FUSE", "what fsync means depends on the program behind it"),
];

/// Columns of the verdict and of what was looked at.
const SAID_AT: usize = 23;

#[derive(Clone, Copy, PartialEq, Eq)]
enum DoctorVerdict {
    Good,
    Warning,
    Bad,
}

impl DoctorVerdict {
    fn name(self) -> &'static str {
        match self {
            DoctorVerdict::Good => "ok",
            DoctorVerdict::Warning => "warning",
            DoctorVerdict::Bad => "bad",
        }
    }

    fn tone(self) -> ColourTone {
        match self {
            DoctorVerdict::Good => ColourTone::Good,
            DoctorVerdict::Warning => ColourTone::Warning,
            DoctorVerdict::Bad => ColourTone::Bad,
        }
    }
}

/// The result of one check.
struct DoctorFinding {
    what: &'static str,
    verdict: DoctorVerdict,
    said: String,
}

#[derive(Default)]
struct DoctorFindings(Vec<DoctorFinding>);

impl DoctorFindings {
    fn good(&mut self, what: &'static str, said: impl Into<String>) {
        self.0.push(DoctorFinding { what, verdict: DoctorVerdict::Good, said: said.into() });
    }

    fn warning(&mut self, what: &'static str, said: impl Into<String>) {
        self.0.push(DoctorFinding { what, verdict: DoctorVerdict::Warning, said: said.into() });
    }

    fn bad(&mut self, what: &'static str, said: impl Into<String>) {
        self.0.push(DoctorFinding { what, verdict: DoctorVerdict::Bad, said: said.into() });
    }
}

/// Checks one thing after the other and says what it found.
///
/// # Errors
/// [`CliFailure::Doctor`] where something is bad; warnings are none.
pub async fn run(
    args: &DoctorArgs,
    file: Result<SettingsFile, CliFailure>,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let mut findings = DoctorFindings::default();
    let file = match file {
        Ok(file) => {
            findings.good("settings", "valid; `sealane config show --origin` shows them");
            file
        }
        Err(error) => {
            findings.bad("settings", error.to_string());
            SettingsFile::default()
        }
    };
    let data = PathBuf::from(file.setting(SettingKey::Data, args.data.as_ref()).value);
    if !args.remote {
        on_this_machine(&data, args.deep, &mut findings);
    }
    match file.client(args.hub.server.as_ref(), None) {
        Ok(client) => {
            let client = client.patience(Duration::ZERO);
            if !args.remote {
                node(&client, &data, &mut findings).await;
            }
            at_the_hub(&client, &mut findings).await;
        }
        Err(error) => findings.bad("hub", error.to_string()),
    }
    for finding in &findings.0 {
        if terminal.json() {
            terminal.record(vec![
                ("check", finding.what.into()),
                ("verdict", finding.verdict.name().into()),
                ("said", finding.said.as_str().into()),
            ])?;
        } else {
            show(finding, terminal)?;
        }
    }
    let bad = findings.0.iter().filter(|finding| finding.verdict == DoctorVerdict::Bad).count();
    if bad == 0 { Ok(()) } else { Err(CliFailure::Doctor(bad)) }
}

/// Writes a finding in columns; the words go on below each other where the terminal has room.
fn show(finding: &DoctorFinding, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let room = terminal.size().map(|size| size.columns.saturating_sub(SAID_AT));
    let lines = match room {
        Some(room) if room >= MIN_DOCTOR_COLUMNS => wrap(&finding.said, room),
        _ => vec![finding.said.clone()],
    };
    let verdict = format!("{:<9}", finding.verdict.name());
    let verdict = terminal.painted(finding.verdict.tone(), &verdict);
    terminal.write(verdict.as_bytes())?;
    let mut what = format!("{:<14}", finding.what);
    for line in lines {
        terminal.line(format_args!("{what}{line}"))?;
        what = " ".repeat(SAID_AT);
    }
    Ok(())
}

fn on_this_machine(data: &Path, deep: bool, findings: &mut DoctorFindings) {
    let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    match files {
        few if few < FEW_FILES => findings.warning(
            "open files",
            format!("{few} at most: as many connections; raise LimitNOFILE or `ulimit -Hn`"),
        ),
        many => findings.good("open files", format!("{many} at most")),
    }
    if !data.is_dir() {
        let said = format!("{} is not there yet; `sealane up` makes it", data.display());
        return findings.warning("data", said);
    }
    findings.good("data", data.display().to_string());
    free_room(data, findings);
    disk(data, findings);
    clock::of_this_machine(data, findings);
    store(data, deep, findings);
    tokens(data, findings);
}

/// Room, and which file system it is.
fn free_room(data: &Path, findings: &mut DoctorFindings) {
    match rustix::fs::statvfs(data) {
        Ok(found) => {
            let (verdict, said) = room(found.f_bavail * found.f_frsize);
            findings.0.push(DoctorFinding { what: "room", verdict, said });
        }
        Err(error) => findings.bad("room", error.to_string()),
    }
    let kind = match rustix::fs::statfs(data) {
        Ok(found) => found.f_type as u64,
        Err(error) => return findings.bad("file system", error.to_string()),
    };
    match FILE_SYSTEMS.iter().find(|(number, ..)| *number == kind) {
        Some((_, name, why)) => findings.warning("file system", format!("{name}: {why}")),
        None => findings.good("file system", "of a disk of this machine"),
    }
}

/// The verdict on so many free bytes.
fn room(free: u64) -> (DoctorVerdict, String) {
    let said = format!("{} free", show_bytes(free));
    if free < NO_ROOM_BYTES {
        (
            DoctorVerdict::Bad,
            format!("{said}: the disk is full, and messages are refused; make room"),
        )
    } else if free < LITTLE_ROOM_BYTES {
        (DoctorVerdict::Warning, format!("{said}: when the disk is full, messages are refused"))
    } else {
        (DoctorVerdict::Good, said)
    }
}

/// How long it takes until what was written is safe.
fn disk(data: &Path, findings: &mut DoctorFindings) {
    let timed = || -> std::io::Result<Duration> {
        use std::io::Write;
        let mut file = tempfile::tempfile_in(data)?;
        let mut times = Vec::new();
        for _ in 0..WRITES {
            let begun = Instant::now();
            file.write_all(&[0x5e; 4096])?;
            file.sync_data()?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        Ok(times[WRITES / 2])
    };
    match timed() {
        Ok(median) => {
            let said = format!("{} us to make 4 KiB safe, median", median.as_micros());
            if median < PLAUSIBLE.start {
                let why = "too fast for a disk: what is acknowledged may be lost by a power cut";
                findings.warning("fsync", format!("{said}: {why}"));
            } else if median >= PLAUSIBLE.end {
                findings
                    .warning("fsync", format!("{said}: messages of the level disk wait so long"));
            } else {
                findings.good("fsync", said);
            }
        }
        Err(error) => findings.bad("fsync", format!("the folder cannot be written: {error}")),
    }
}

fn store(data: &Path, deep: bool, findings: &mut DoctorFindings) {
    let database = data.join("streams.db");
    let Ok(found) = database.metadata() else {
        return findings.good("store", "no streams yet");
    };
    let by =
        if sealane_stream::is_in_use(data) { "a node runs on it" } else { "no node runs on it" };
    if !deep {
        let said = format!("{}, {by}; --deep looks at every page", show_bytes(found.len()));
        return findings.good("store", said);
    }
    match sealane_stream::check(data) {
        Ok(whole) => findings.good(
            "store",
            format!(
                "{} of {}, pages and tables whole; {by}",
                count(whole.messages, "messages"),
                count(whole.streams, "streams")
            ),
        ),
        Err(error) => findings.bad("store", error.to_string()),
    }
}

fn tokens(data: &Path, findings: &mut DoctorFindings) {
    let path = TokenFile::path(data);
    match TokenFile::read(&path) {
        Ok(tokens) if tokens.is_empty() && tokens.guards() => {
            findings.warning("tokens", "none is left, and the node serves nobody without one");
        }
        Ok(tokens) if tokens.is_empty() => {
            findings.good("tokens", "none: the node serves this machine alone");
        }
        Ok(tokens) => {
            let mode = path.metadata().map_or(0, |found| found.permissions().mode() & 0o077);
            let said = format!("{}", tokens.iter().count());
            full_shares(data, &tokens, findings);
            if mode == 0 {
                findings.good("tokens", said);
                tokens.iter().for_each(|token| open_patterns(token, findings));
            } else {
                let who = format!("{said}, in a file that others can read or write");
                findings.bad("tokens", format!("{who}: chmod 600 {}", path.display()));
            }
        }
        Err(error) => findings.bad("tokens", error.to_string()),
    }
}

/// Percent of a share from which on it counts as nearly taken.
const NEARLY_TAKEN: u64 = 90;

/// Finds shares that are taken, or nearly: their tokens are refused, or lose their oldest.
fn full_shares(data: &Path, tokens: &TokenFile, findings: &mut DoctorFindings) {
    // A store that cannot be read has a finding of its own.
    let Ok(held) = sealane_stream::owned(data) else { return };
    let rules = tokens.share_rules();
    let all = tokens.iter().flat_map(|token| token::shares(token.name(), &rules, &held));
    for ShareHeld { owner, kind, held, limit, .. } in all {
        if held > 0 && held.saturating_mul(100) >= limit.saturating_mul(NEARLY_TAKEN) {
            let said = format!("{owner} has {held} of its {limit} {}", kind.what());
            findings.warning("shares", said);
        }
    }
}

/// Finds the topics that a token's patterns with a leading wildcard do not grant.
fn open_patterns(token: &AccessToken, findings: &mut DoctorFindings) {
    let (rights, name) = (token.rights(), token.name());
    if rights.orders.iter().any(Pattern::begins_open) {
        findings.warning("orders", format!("{name}: {ORDERS_OPEN}"));
    }
    let is_open = |right: &TokenRight| rights.of(*right).iter().any(Pattern::begins_open);
    let open =
        [TokenRight::Read, TokenRight::Publish, TokenRight::Manage].into_iter().filter(is_open);
    let named: Vec<&str> = open.map(TokenRight::name).collect();
    if !named.is_empty() {
        let rights = named.join(", ");
        findings.good("patterns", format!("{name}: `**` of {rights} leaves out dead/ and groups/"));
    }
}

/// Whether folder and hub are one node. If they are two, a finding about the one says nothing of
/// the other.
async fn node(client: &Client, data: &Path, findings: &mut DoctorFindings) {
    // Without streams there is no node here that could be taken for the hub.
    if !data.join("streams.db").is_file() {
        return;
    }
    let id = || match sealane_stream::store_id(data) {
        Ok(Some(id)) => format!("store {id}"),
        _ => "a store without an id, which its next start gives it".to_owned(),
    };
    let (address, folder) = (client.address(), data.display());
    match folder::compare(client, data).await {
        FolderMatch::Same => findings.good("node", format!("{}, of folder and hub alike", id())),
        FolderMatch::Other => findings.bad(
            "node",
            format!(
                "{address} does not run on {folder} ({}): these are two nodes; name the hub's own \
                 folder with --data, or look at the hub alone with --remote",
                id()
            ),
        ),
        FolderMatch::Unknown(_) | FolderMatch::Empty => {
            findings.good("node", format!("{}, of the folder", id()))
        }
    }
}

async fn at_the_hub(client: &Client, findings: &mut DoctorFindings) {
    let begun = Instant::now();
    let health = match client.health().await {
        Ok(health) => health,
        Err(error) => {
            return findings.warning("hub", format!("{error}; the rest of it was not checked"));
        }
    };
    let (mine, theirs) = (env!("CARGO_PKG_VERSION"), &health.version);
    let took = begun.elapsed().as_micros();
    let said = format!("{}, {} after {took} us", client.address(), health.status);
    if let Some(cause) = &health.cause {
        // A hub that stores nothing answers, reads and removes all the same.
        findings.bad("hub", format!("{said}: {cause}"));
    } else if mine == theirs {
        findings.good("hub", said);
    } else {
        findings.warning("hub", format!("{said}; it is {theirs}, this program {mine}"));
    }
    clock::of_the_hub(client, findings).await;
    match streams(client).await {
        Ok((count, damaged, dead)) => {
            if damaged > 0 {
                findings.bad("streams", format!("{damaged} of {count} are damaged on disk"));
            } else {
                findings.good("streams", format!("{count}, none damaged"));
            }
            if dead > 0 {
                let look = "sealane stream ls 'dead/**'";
                findings.warning("dead letters", format!("{dead} messages were given up: {look}"));
            }
        }
        Err(error) => findings.warning("streams", error.to_string()),
    }
    match client.all_consumers(None).await {
        Ok(all) => consumers(&all, findings),
        // An older hub has no list of all of them.
        Err(error) if error.hub_error() == Some(HubError::NotFound) => {}
        Err(error) => findings.warning("consumers", error.to_string()),
    }
}

/// Names the consumers that have messages and nobody who works at them.
fn consumers(all: &[ConsumerInfo], findings: &mut DoctorFindings) {
    let is_left = |info: &&ConsumerInfo| info.unfinished > 0 && info.state.members == 0;
    let mut left: Vec<&ConsumerInfo> = all.iter().filter(is_left).collect();
    if left.is_empty() {
        let said = format!("{}, none left with messages and no member", all.len());
        return findings.good("consumers", said);
    }
    left.sort_by_key(|info| std::cmp::Reverse(info.oldest_ms));
    for info in left.iter().take(MAX_NAMED_CONSUMERS) {
        let name = consumer::shown(&info.state.consumer);
        let unfinished = count(info.unfinished, "messages");
        let said = format!(
            "{} {name}: {unfinished} unfinished, the oldest for {}, and no member",
            info.stream,
            show_duration(info.oldest_ms)
        );
        findings.warning("consumers", said);
    }
    if let Some(more) = left.len().checked_sub(MAX_NAMED_CONSUMERS).filter(|more| *more > 0) {
        findings.warning("consumers", format!("{more} more: sealane consumer ls"));
    }
}

/// How many there are, how many are damaged, and how many dead letters wait.
async fn streams(client: &Client) -> Result<(usize, usize, u64), sealane::Error> {
    let all = stream::all(client, None).await?;
    let damaged = all.iter().filter(|state| !state.damaged.is_empty()).count();
    let dead = all.iter().filter(|state| state.stream.as_str().starts_with("dead/"));
    Ok((all.len(), damaged, dead.map(|state| state.count).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_bad_and_one_that_is_nearly_full_a_warning() {
        let verdict = |free| room(free).0.name();
        for (free, expected) in [
            (0, "bad"),
            ((1 << 20) - 1, "bad"),
            (1 << 20, "warning"),
            ((64 << 20) - 1, "warning"),
            (64 << 20, "ok"),
            (1 << 40, "ok"),
        ] {
            assert_eq!(verdict(free), expected, "{free}");
        }
    }
}
