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

use calendar::CalendarPeriod;

/// Which snapshots to keep of each group. The newest of a group is always kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionRules {
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
pub struct RetentionGroupBy {
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

impl Default for RetentionGroupBy {
    fn default() -> RetentionGroupBy {
        RetentionGroupBy { signer: true, host: true, paths: true, tags: false }
    }
}

/// The verdict of a prune on one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetentionVerdict {
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
pub struct SnapshotGroup {
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
pub struct RetentionPlan {
    /// The group of the snapshots.
    pub group: SnapshotGroup,
    /// Each of them, newest first.
    pub verdicts: Vec<RetentionVerdict>,
}

/// The properties of a snapshot that the rules read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RetentionCandidate {
    pub(super) number: u64,
    pub(super) time_ns: i64,
    pub(super) group: SnapshotGroup,
    pub(super) tags: Vec<String>,
}

/// The outcome of a rule for a snapshot.
struct RetentionRuleOutcome {
    keeps: bool,
    reason: String,
}

impl RetentionRules {
    /// The verdicts of the rules on all snapshots, in any order, at `now_ns`.
    pub(super) fn judge(&self, all: &[RetentionCandidate], now_ns: i64) -> Vec<RetentionPlan> {
        let mut groups: BTreeMap<&SnapshotGroup, Vec<&RetentionCandidate>> = BTreeMap::new();
        for candidate in all {
            groups.entry(&candidate.group).or_default().push(candidate);
        }
        let judged = groups.into_iter().map(|(group, mut members)| {
            members.sort_by_key(|member| std::cmp::Reverse(member.number));
            RetentionPlan { group: group.clone(), verdicts: self.judge_group(&members, now_ns) }
        });
        judged.collect()
    }

    /// The same of one group, newest first.
    fn judge_group(&self, members: &[&RetentionCandidate], now_ns: i64) -> Vec<RetentionVerdict> {
        let mut opinions: Vec<Vec<RetentionRuleOutcome>> =
            members.iter().map(|_| Vec::new()).collect();
        let mut add = |rule: Vec<RetentionRuleOutcome>| {
            opinions.iter_mut().zip(rule).for_each(|(all, one)| all.push(one));
        };
        if self.last > 0 {
            add(last(self.last, members));
        }
        for (count, period) in [
            (self.hourly, CalendarPeriod::Hour),
            (self.daily, CalendarPeriod::Day),
            (self.weekly, CalendarPeriod::Week),
            (self.monthly, CalendarPeriod::Month),
            (self.yearly, CalendarPeriod::Year),
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
        let verdict = |((place, member), opinions): (
            (usize, &&RetentionCandidate),
            Vec<RetentionRuleOutcome>,
        )| { verdict(place == 0, member, opinions) };
        members.iter().enumerate().zip(opinions).map(verdict).collect()
    }

    fn tagged(&self, member: &RetentionCandidate) -> RetentionRuleOutcome {
        match member.tags.iter().find(|tag| self.tags.contains(tag)) {
            Some(tag) => RetentionRuleOutcome { keeps: true, reason: format!("tag {tag}") },
            None => RetentionRuleOutcome { keeps: false, reason: "no tag that is kept".to_owned() },
        }
    }
}

fn verdict(
    newest: bool,
    member: &RetentionCandidate,
    opinions: Vec<RetentionRuleOutcome>,
) -> RetentionVerdict {
    let stays = newest || opinions.iter().any(|opinion| opinion.keeps);
    let said = opinions.into_iter().filter(|opinion| opinion.keeps == stays);
    let first = newest.then(|| "newest".to_owned());
    let reasons = first.into_iter().chain(said.map(|opinion| opinion.reason)).collect();
    RetentionVerdict { snapshot: member.number, time_ns: member.time_ns, stays, reasons }
}

fn last(count: usize, members: &[&RetentionCandidate]) -> Vec<RetentionRuleOutcome> {
    let opinion = |place: usize| match place < count {
        true => RetentionRuleOutcome {
            keeps: true,
            reason: format!("{} of the last {count}", place + 1),
        },
        false => RetentionRuleOutcome { keeps: false, reason: format!("not of the last {count}") },
    };
    (0..members.len()).map(opinion).collect()
}

fn periods(
    count: usize,
    period: CalendarPeriod,
    members: &[&RetentionCandidate],
) -> Vec<RetentionRuleOutcome> {
    // The snapshot that stands for each period, and how many periods came before it.
    let mut held: HashMap<i64, u64> = HashMap::new();
    let opinion = |member: &&RetentionCandidate| {
        let at = period.of(member.time_ns);
        let shown = period.shown(at);
        if let Some(stands) = held.get(&at) {
            return RetentionRuleOutcome {
                keeps: false,
                reason: format!("{stands} stands for {shown}"),
            };
        }
        if held.len() >= count {
            return RetentionRuleOutcome { keeps: false, reason: period.beyond(count) };
        }
        held.insert(at, member.number);
        RetentionRuleOutcome { keeps: true, reason: shown }
    };
    members.iter().map(opinion).collect()
}

fn within(
    span: Duration,
    members: &[&RetentionCandidate],
    now_ns: i64,
) -> Vec<RetentionRuleOutcome> {
    let span_ns = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    let newest = members.first().map_or(now_ns, |newest| newest.time_ns);
    let since = newest.min(now_ns).saturating_sub(span_ns);
    let opinion = |member: &&RetentionCandidate| match member.time_ns >= since {
        true => {
            RetentionRuleOutcome { keeps: true, reason: "within the time that is kept".to_owned() }
        }
        false => {
            RetentionRuleOutcome { keeps: false, reason: "before the time that is kept".to_owned() }
        }
    };
    members.iter().map(opinion).collect()
}
