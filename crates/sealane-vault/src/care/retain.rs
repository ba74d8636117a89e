//! Which snapshots a prune keeps, and why.
//!
//! Rules count within a group: the snapshots of one signer, host and set of paths. So whoever puts
//! most cannot use up what the rules leave to others. Of a group the order is that of the chain,
//! which no clock changes; days, weeks, months and years are those of the time that a snapshot
//! says.

mod calendar;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use calendar::Period;

/// Which snapshots to keep of each group. The newest of a group is always kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keep {
    /// So many of the newest.
    pub last: usize,
    /// The newest of each of so many hours that have one.
    pub hourly: usize,
    /// Of each of so many days (UTC).
    pub daily: usize,
    /// Of each of so many weeks, which begin on Monday.
    pub weekly: usize,
    /// Of each of so many months of the calendar.
    pub monthly: usize,
    /// Of each of so many years.
    pub yearly: usize,
    /// All that are no older than this before the newest of their group, or before now if the
    /// newest says that it was made later than now.
    pub within: Option<Duration>,
    /// All with one of these tags.
    pub tags: Vec<String>,
}

/// The properties that the snapshots of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupBy {
    /// The signer. Without it, a writer may name another's host and paths, and have its snapshots
    /// removed.
    pub signer: bool,
    /// The host that they name.
    pub host: bool,
    /// Where on the host the files were.
    pub paths: bool,
    /// Their tags.
    pub tags: bool,
}

impl Default for GroupBy {
    fn default() -> GroupBy {
        GroupBy { signer: true, host: true, paths: true, tags: false }
    }
}

/// The verdict of a prune on one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Its number.
    pub snapshot: u64,
    /// When it says that it was made: nanoseconds since 1970-01-01 UTC.
    pub time_ns: i64,
    /// Whether it stays.
    pub stays: bool,
    /// The reasons of the rules that keep it. If it goes, the reason why no rule keeps it.
    pub reasons: Vec<String>,
}

/// The name of a group: what its snapshots have in common, as far as that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Group {
    /// `owner`, or the slot of the writer.
    pub signer: Option<String>,
    /// The host.
    pub host: Option<String>,
    /// Where the files were; of older snapshots, which do not say it, the names that they have.
    pub paths: Option<Vec<Vec<u8>>>,
    /// The tags.
    pub tags: Option<Vec<String>>,
}

/// The verdicts of a prune on the snapshots of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// The group of the snapshots.
    pub group: Group,
    /// Each of them, newest first.
    pub verdicts: Vec<Verdict>,
}

/// The properties of a snapshot that the rules read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) number: u64,
    pub(super) time_ns: i64,
    pub(super) group: Group,
    pub(super) tags: Vec<String>,
}

/// The outcome of a rule for a snapshot.
struct Opinion {
    keeps: bool,
    reason: String,
}

impl Keep {
    /// The verdicts of the rules on all snapshots, in any order, at `now_ns`.
    pub(super) fn judge(&self, all: &[Candidate], now_ns: i64) -> Vec<Retention> {
        let mut groups: BTreeMap<&Group, Vec<&Candidate>> = BTreeMap::new();
        for candidate in all {
            groups.entry(&candidate.group).or_default().push(candidate);
        }
        let judged = groups.into_iter().map(|(group, mut members)| {
            members.sort_by_key(|member| std::cmp::Reverse(member.number));
            Retention { group: group.clone(), verdicts: self.judge_group(&members, now_ns) }
        });
        judged.collect()
    }

    /// The same of one group, newest first.
    fn judge_group(&self, members: &[&Candidate], now_ns: i64) -> Vec<Verdict> {
        let mut opinions: Vec<Vec<Opinion>> = members.iter().map(|_| Vec::new()).collect();
        let mut add = |rule: Vec<Opinion>| {
            opinions.iter_mut().zip(rule).for_each(|(all, one)| all.push(one));
        };
        if self.last > 0 {
            add(last(self.last, members));
        }
        for (count, period) in [
            (self.hourly, Period::Hour),
            (self.daily, Period::Day),
            (self.weekly, Period::Week),
            (self.monthly, Period::Month),
            (self.yearly, Period::Year),
        ] {
            if count > 0 {
                add(periods(count, period, members));
            }
        }
        if let Some(span) = self.within {
            add(within(span, members, now_ns));
        }
        if !self.tags.is_empty() {
            add(members.iter().map(|member| self.tagged(member)).collect());
        }
        let verdict = |((place, member), opinions): ((usize, &&Candidate), Vec<Opinion>)| {
            verdict(place == 0, member, opinions)
        };
        members.iter().enumerate().zip(opinions).map(verdict).collect()
    }

    fn tagged(&self, member: &Candidate) -> Opinion {
        match member.tags.iter().find(|tag| self.tags.contains(tag)) {
            Some(tag) => Opinion { keeps: true, reason: format!("tag {tag}") },
            None => Opinion { keeps: false, reason: "no tag that is kept".to_owned() },
        }
    }
}

fn verdict(newest: bool, member: &Candidate, opinions: Vec<Opinion>) -> Verdict {
    let stays = newest || opinions.iter().any(|opinion| opinion.keeps);
    let said = opinions.into_iter().filter(|opinion| opinion.keeps == stays);
    let first = newest.then(|| "newest".to_owned());
    let reasons = first.into_iter().chain(said.map(|opinion| opinion.reason)).collect();
    Verdict { snapshot: member.number, time_ns: member.time_ns, stays, reasons }
}

fn last(count: usize, members: &[&Candidate]) -> Vec<Opinion> {
    let opinion = |place: usize| match place < count {
        true => Opinion { keeps: true, reason: format!("{} of the last {count}", place + 1) },
        false => Opinion { keeps: false, reason: format!("not of the last {count}") },
    };
    (0..members.len()).map(opinion).collect()
}

fn periods(count: usize, period: Period, members: &[&Candidate]) -> Vec<Opinion> {
    // The snapshot that stands for each period, and how many periods came before it.
    let mut held: HashMap<i64, u64> = HashMap::new();
    let opinion = |member: &&Candidate| {
        let at = period.of(member.time_ns);
        let shown = period.shown(at);
        if let Some(stands) = held.get(&at) {
            return Opinion { keeps: false, reason: format!("{stands} stands for {shown}") };
        }
        if held.len() >= count {
            return Opinion { keeps: false, reason: period.beyond(count) };
        }
        held.insert(at, member.number);
        Opinion { keeps: true, reason: shown }
    };
    members.iter().map(opinion).collect()
}

fn within(span: Duration, members: &[&Candidate], now_ns: i64) -> Vec<Opinion> {
    let span_ns = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    let newest = members.first().map_or(now_ns, |newest| newest.time_ns);
    let since = newest.min(now_ns).saturating_sub(span_ns);
    let opinion = |member: &&Candidate| match member.time_ns >= since {
        true => Opinion { keeps: true, reason: "within the time that is kept".to_owned() },
        false => Opinion { keeps: false, reason: "before the time that is kept".to_owned() },
    };
    members.iter().map(opinion).collect()
}
