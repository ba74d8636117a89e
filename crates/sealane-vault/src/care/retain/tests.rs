use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::format::page::{SnapshotEntry, SnapshotEntryKind, compare};
use crate::format::snapshot::SnapshotBody;
use crate::get::{ChunkReader, roots};
use crate::put::{PutOptions, PutSource, SkippedItem, put};
use crate::{Argon2Cost, OpenOptions, PruneOptions, Vault, VaultMetadata, VaultStore};

const HOUR_NS: i64 = 3600 * 1_000_000_000;

fn candidate(number: u64, time_ns: i64, owner: &str, host: &str, path: &str) -> RetentionCandidate {
    let group = SnapshotGroup {
        signer: Some(owner.to_owned()),
        host: Some(host.to_owned()),
        paths: Some(vec![path.as_bytes().to_vec()]),
        tags: None,
    };
    RetentionCandidate { number, time_ns, group, tags: Vec::new() }
}

fn staying(judged: &[RetentionPlan]) -> BTreeSet<u64> {
    let verdicts = judged.iter().flat_map(|group| &group.verdicts);
    verdicts.filter(|verdict| verdict.stays).map(|verdict| verdict.snapshot).collect()
}

/// Snapshots of one group at these hours, the first with number 1.
fn history(hours: &[i64]) -> Vec<RetentionCandidate> {
    let at = |(number, hour): (u64, &i64)| candidate(number, hour * HOUR_NS, "owner", "h", "/a");
    (1..).zip(hours).map(at).collect()
}

#[test]
fn each_rule_says_what_it_keeps_and_why() {
    // Three on one day, one the day before, one a month earlier.
    let all = history(&[0, 31 * 24, 32 * 24, 32 * 24 + 1, 32 * 24 + 2]);
    let keep = RetentionRules { daily: 2, ..RetentionRules::default() };
    let judged = keep.judge(&all, 1000 * 24 * HOUR_NS);
    let said: Vec<(u64, bool, String)> = judged[0]
        .verdicts
        .iter()
        .map(|verdict| (verdict.snapshot, verdict.stays, verdict.reasons.join("; ")))
        .collect();
    let expected = [
        (5, true, "newest; day 1970-02-02"),
        (4, false, "5 stands for day 1970-02-02"),
        (3, false, "5 stands for day 1970-02-02"),
        (2, true, "day 1970-02-01"),
        (1, false, "behind the 2 days that are kept"),
    ];
    assert_eq!(said, expected.map(|(number, stays, why)| (number, stays, why.to_owned())));
}

#[test]
fn a_clock_that_was_wrong_for_a_while_uses_nothing_up() {
    // Ten days of the year 2099, then a clock that is right again.
    let far = 129 * 365 * 24;
    let mut hours: Vec<i64> = (0..10).map(|day| far + day * 24).collect();
    hours.extend((0..7).map(|day| 56 * 365 * 24 + day * 24));
    let all = history(&hours);
    let now_ns = (56 * 365 + 7) * 24 * HOUR_NS;
    let right: BTreeSet<u64> = (11..=17).collect();
    for keep in [
        RetentionRules { daily: 7, ..RetentionRules::default() },
        RetentionRules { last: 7, ..RetentionRules::default() },
    ] {
        assert_eq!(staying(&keep.judge(&all, now_ns)), right);
    }
    // A newest from the future does not make the others old.
    let all = history(&[0, 24, 48, far]);
    let week = Some(Duration::from_secs(7 * 24 * 3600));
    let keep = RetentionRules { within: week, ..RetentionRules::default() };
    assert_eq!(staying(&keep.judge(&all, 49 * HOUR_NS)).len(), 4);
}

#[test]
fn years_are_kept_by_the_calendar() {
    let year = 365 * 24;
    let all = history(&[0, year, 2 * year, 2 * year + 5, 3 * year + 30]);
    let keep = RetentionRules { yearly: 3, ..RetentionRules::default() };
    // 1972 has a day more, so the fourth year begins 24 hours later.
    assert_eq!(staying(&keep.judge(&all, 9 * year * HOUR_NS)), BTreeSet::from([2, 4, 5]));
}

/// A random history: a few signers, hosts, paths and tags; times that stand still, jump and go
/// back; numbers with gaps, in any order.
fn histories() -> impl Strategy<Value = Vec<RetentionCandidate>> {
    let hour = prop_oneof![
        -10_i64..10,
        0_i64..50 * 24,
        400_000_i64..440_000,
        Just(i64::MAX / HOUR_NS),
        Just(i64::MIN / HOUR_NS),
    ];
    let tags = prop::sample::subsequence(vec!["a", "b"], 0..=2);
    let one = (1_u64..3, hour, 0_usize..2, 0_usize..2, 0_usize..3, tags);
    let all = prop::collection::vec(one, 0..40).prop_map(|rows| {
        let mut number = 0;
        rows.into_iter()
            .map(|(gap, hour, signer, host, path, tags)| {
                number += gap;
                let (signer, host) = (["owner", "ab"][signer], ["here", "there"][host]);
                let path = ["/a", "/b", "/a/b"][path];
                let one = candidate(number, hour * HOUR_NS, signer, host, path);
                RetentionCandidate { tags: tags.into_iter().map(str::to_owned).collect(), ..one }
            })
            .collect::<Vec<_>>()
    });
    all.prop_shuffle()
}

fn rules() -> impl Strategy<Value = RetentionRules> {
    let count = || prop_oneof![3 => Just(0_usize), 1 => 1_usize..6, 1 => Just(usize::MAX)];
    let within = prop::option::of((0_u64..2000).prop_map(|h| Duration::from_secs(h * 3600)));
    let tags = prop::sample::subsequence(vec!["a".to_owned(), "b".to_owned()], 0..=2);
    (count(), count(), count(), count(), count(), count(), within, tags).prop_map(
        |(last, hourly, daily, weekly, monthly, yearly, within, tags)| RetentionRules {
            last,
            hourly,
            daily,
            weekly,
            monthly,
            yearly,
            within,
            tags,
        },
    )
}

/// Says what a rule would have to keep of a group, in the plainest way that can be written.
fn owed(keep: &RetentionRules, group: &[&RetentionCandidate], now_ns: i64, stays: &BTreeSet<u64>) {
    let kept: Vec<_> = group.iter().filter(|one| stays.contains(&one.number)).collect();
    // The newest by the chain, whatever the clocks say.
    assert!(stays.contains(&group.iter().map(|one| one.number).max().unwrap()));
    let mut numbers: Vec<u64> = group.iter().map(|one| one.number).collect();
    numbers.sort_by(|a, b| b.cmp(a));
    assert!(numbers.iter().take(keep.last).all(|number| stays.contains(number)));
    for (count, period) in [
        (keep.hourly, CalendarPeriod::Hour),
        (keep.daily, CalendarPeriod::Day),
        (keep.weekly, CalendarPeriod::Week),
        (keep.monthly, CalendarPeriod::Month),
        (keep.yearly, CalendarPeriod::Year),
    ] {
        let there: BTreeSet<i64> = group.iter().map(|one| period.of(one.time_ns)).collect();
        let left: BTreeSet<i64> = kept.iter().map(|one| period.of(one.time_ns)).collect();
        assert!(left.len() >= there.len().min(count), "{period:?}");
    }
    let newest = group.iter().max_by_key(|one| one.number).unwrap().time_ns;
    if let Some(span) = keep.within {
        let since = newest.min(now_ns).saturating_sub(span.as_nanos() as i64);
        assert!(group.iter().all(|one| one.time_ns < since || stays.contains(&one.number)));
    }
    let tagged = |one: &&&RetentionCandidate| one.tags.iter().any(|tag| keep.tags.contains(tag));
    assert!(group.iter().filter(tagged).all(|one| stays.contains(&one.number)));
}

/// A vault with one snapshot of small files at these paths.
fn vault_of(folder: &std::path::Path, paths: &[Vec<u8>]) -> Vault {
    let store = VaultStore::open(folder.join("vault").to_str().unwrap()).unwrap();
    let state = Some(folder.join("state"));
    let options = OpenOptions { state, ..OpenOptions::default() };
    let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
    let vault = Vault::init(store, b"secret", cost, VaultMetadata::Sealed, &options).unwrap();
    let mut sorted = paths.to_vec();
    sorted.sort_by(|a, b| compare(a, b));
    let mut paths = sorted.into_iter();
    let mut next = |_: &mut Vec<SkippedItem>| {
        let path = paths.next()?;
        let content = path.clone();
        let node = SnapshotEntryKind::Folder;
        let (mtime_ns, hard_link, attributes) = (0, None, Vec::new());
        let entry = SnapshotEntry {
            path,
            mode: 0o600,
            uid: 0,
            gid: 0,
            mtime_ns,
            node,
            hard_link,
            attributes,
        };
        Some((entry, content))
    };
    let source = PutSource::Each { from: folder, next: &mut next };
    put(&vault, source, &PutOptions::default()).unwrap();
    vault
}

#[test]
fn paths_and_roots_are_found_over_many_pages() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = vec![b"alone".to_vec(), b"zz".to_vec()];
    for root in ["a", "a b", "a-b", "a/x", "b", "\u{7f}"] {
        paths.extend((0..400).map(|number| format!("{root}/{number:03}/file").into_bytes()));
    }
    let vault = vault_of(folder.path(), &paths);
    let snapshot = vault.snapshot(None).unwrap();
    let mut chunks = ChunkReader::new(&vault, vault.manifest()).unwrap();
    let pages = &snapshot.body.pages;
    assert!(pages.len() > 3, "{}", pages.len());
    let found = roots(&mut chunks, pages).unwrap();
    let expected = ["a", "a b", "a-b", "alone", "b", "zz", "\u{7f}"];
    assert_eq!(found, expected.map(|root| root.as_bytes().to_vec()));
    let mut asked: Vec<Vec<u8>> = paths.iter().step_by(7).cloned().collect();
    asked.extend(paths.iter().step_by(7).map(|path| [path, &b"/x"[..]].concat()));
    asked.extend(paths.iter().step_by(7).map(|path| path[..path.len() - 1].to_vec()));
    for path in ["", "a", "a/", "a/x", "a/x/399", "a/x/400", "a-", "b/1", "zz", "zzz", "~"] {
        asked.push(path.as_bytes().to_vec());
    }
    for path in asked {
        let there =
            paths.iter().any(|one| *one == path || one.starts_with(&[&path[..], b"/"].concat()));
        let checked = vault.check_paths(&snapshot, std::slice::from_ref(&path));
        assert_eq!(checked.is_ok(), there, "{}", String::from_utf8_lossy(&path));
    }
}

#[test]
fn snapshots_that_name_no_paths_are_told_apart_by_the_names_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let vault = vault_of(folder.path(), &[b"docs/a".to_vec()]);
    vault.put_reader("photos/a", &mut &b"a"[..], &PutOptions::default()).unwrap();
    // As versions wrote them that knew no paths.
    for number in [1, 2, 1] {
        let body = vault.snapshot(Some(number)).unwrap().body;
        vault.append(&SnapshotBody { paths: Vec::new(), ..body }, Vec::new()).unwrap();
    }
    let keep = RetentionRules { last: 1, ..RetentionRules::default() };
    let groups = vault.retention(&PruneOptions { keep, ..PruneOptions::default() }).unwrap();
    let stays: BTreeSet<u64> = staying(&groups);
    assert_eq!(stays, [1, 2, 4, 5].into());
    let named = groups.iter().filter_map(|group| group.group.paths.clone());
    assert!(named.clone().any(|paths| paths == [b"docs"]), "{groups:?}");
    assert!(named.clone().any(|paths| paths == [b"photos"]), "{groups:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_rule_keeps_less_than_it_says_of_any_group(
        all in histories(), keep in rules(), now in 0_i64..500_000,
    ) {
        let now_ns = now * HOUR_NS;
        let judged = keep.judge(&all, now_ns);
        let stays = staying(&judged);
        let mut groups: BTreeMap<&SnapshotGroup, Vec<&RetentionCandidate>> = BTreeMap::new();
        all.iter().for_each(|one| groups.entry(&one.group).or_default().push(one));
        prop_assert_eq!(judged.len(), groups.len());
        for group in groups.values() {
            owed(&keep, group, now_ns, &stays);
        }
        // Each snapshot is judged once, with a reason, whatever order they came in.
        let mut verdicts: Vec<&RetentionVerdict> =
            judged.iter().flat_map(|one| &one.verdicts).collect();
        prop_assert_eq!(verdicts.len(), all.len());
        let ruled = keep != RetentionRules::default();
        prop_assert!(verdicts.iter().all(|one| !ruled || !one.reasons.is_empty()));
        verdicts.sort_by_key(|one| one.snapshot);
        verdicts.dedup_by_key(|one| one.snapshot);
        prop_assert_eq!(verdicts.len(), all.len());
        let sorted = { let mut sorted = all.clone(); sorted.sort_by_key(|one| one.number); sorted };
        prop_assert_eq!(&keep.judge(&sorted, now_ns), &judged);
        // The snapshots of others change nothing in a group.
        for (group, members) in &groups {
            let alone: Vec<RetentionCandidate> = members.iter().map(|one| (*one).clone()).collect();
            let alone = keep.judge(&alone, now_ns);
            prop_assert_eq!(Some(&alone[0]), judged.iter().find(|one| one.group == **group));
        }
        // A second prune at the same time removes nothing: every snapshot that was kept is kept
        // again.
        let left: Vec<RetentionCandidate> =
            all.iter().filter(|one| stays.contains(&one.number)).cloned().collect();
        prop_assert_eq!(staying(&keep.judge(&left, now_ns)), stays);
    }
}
