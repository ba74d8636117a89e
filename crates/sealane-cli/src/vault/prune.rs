//! `sealane vault prune`.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use sealane::Value;
use sealane_vault::{
    PruneOptions, PruneReport, RetentionGroupBy, RetentionPlan, RetentionRules, RetentionVerdict,
    SkippedItem, SnapshotGroup, Vault,
};

use super::{VaultAccess, ms, places, shown, size, time, warn_anew};
use crate::args::vault::{GroupByArg as By, PruneActArgs, VaultForget, VaultPrune};
use crate::terminal::one_line;
use crate::times::count;
use crate::{CliFailure, Terminal};

pub(super) fn run(
    args: &VaultPrune,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let keep = keep(args);
    if keep == RetentionRules::default() {
        return Err(CliFailure::Usage("say which snapshots to keep, for example --keep-last 10"));
    }
    let group_by = group_by(&args.group_by)?;
    let give_up = args.give_up.iter().copied().collect();
    let PruneActArgs { now, dry_run, .. } = args.act;
    let options = PruneOptions { keep, group_by, now, dry_run, give_up, ..PruneOptions::default() };
    act(&options, args.act, location, terminal)
}

/// `sealane vault forget`: with numbers it removes those, and without it is a prune.
pub(super) fn forget(
    args: &VaultForget,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if args.snapshots.is_empty() {
        return run(&args.prune, location, terminal);
    }
    if keep(&args.prune) != RetentionRules::default() || !args.prune.give_up.is_empty() {
        return Err(CliFailure::Usage("name snapshots, or say which to keep"));
    }
    let PruneActArgs { now, dry_run, .. } = args.prune.act;
    let forget = Some(args.snapshots.iter().copied().collect());
    let options = PruneOptions { forget, now, dry_run, ..PruneOptions::default() };
    act(&options, args.prune.act, location, terminal)
}

/// Shows what goes, asks, and removes it.
fn act(
    options: &PruneOptions,
    act: PruneActArgs,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let vault = location.open()?;
    let known = vault.warnings();
    let groups = vault.retention(options)?;
    warn_anew(&vault, &known);
    if !terminal.json() {
        show(&groups, terminal)?;
    }
    let going = groups.iter().flat_map(|group| &group.verdicts).filter(|verdict| !verdict.stays);
    let going: BTreeSet<u64> = going.map(|verdict| verdict.snapshot).collect();
    if !act.dry_run && !act.yes {
        ask(going.len() + options.give_up.len(), terminal)?;
    }
    summary(&vault, PruneOptions { approved: Some(going), ..options.clone() }, terminal)
}

fn keep(args: &VaultPrune) -> RetentionRules {
    RetentionRules {
        last: args.keep_last,
        hourly: args.keep_hourly,
        daily: args.keep_daily,
        weekly: args.keep_weekly,
        monthly: args.keep_monthly,
        yearly: args.keep_yearly,
        within: args.keep_within,
        tags: args.keep_tag.clone(),
    }
}

fn group_by(list: &[By]) -> Result<RetentionGroupBy, CliFailure> {
    if list.contains(&By::None) && list.len() > 1 {
        return Err(CliFailure::Usage("--group-by none goes with nothing else"));
    }
    let has = |by| list.contains(&by);
    Ok(RetentionGroupBy {
        signer: has(By::Signer),
        host: has(By::Host),
        paths: has(By::Paths),
        tags: has(By::Tags),
    })
}

/// Asks whoever sits at a terminal, unless nothing goes.
fn ask(count: usize, terminal: &mut Terminal) -> Result<(), CliFailure> {
    if count == 0 || !std::io::stdin().is_terminal() || !terminal.interactive() {
        return Ok(());
    }
    terminal.flush()?;
    eprint!("remove {count} snapshots? [y/N] ");
    std::io::stderr().flush().map_err(CliFailure::Output)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(CliFailure::Input)?;
    match answer.trim().eq_ignore_ascii_case("y") {
        true => Ok(()),
        false => Err(CliFailure::Declined("nothing was removed")),
    }
}

/// Shows the snapshots that stay and the snapshots that go, and why.
fn show(groups: &[RetentionPlan], terminal: &mut Terminal) -> Result<(), CliFailure> {
    for RetentionPlan { group, verdicts, .. } in groups {
        let stay = verdicts.iter().filter(|verdict| verdict.stays).count();
        let goes = verdicts.len() - stay;
        let name = one_line(&title(group)).into_owned();
        terminal.line(format_args!("{name}: {stay} stay, {goes} go"))?;
        for RetentionVerdict { snapshot, time_ns, stays, reasons, .. } in verdicts {
            let what = if *stays { "stays" } else { "goes " };
            let (time, why) = (time(*time_ns), reasons.join("; "));
            terminal.line(format_args!("  {what} {snapshot:>6}  {time}  {}", one_line(&why)))?;
        }
    }
    Ok(())
}

/// A group as people know it.
fn title(group: &SnapshotGroup) -> String {
    let signer = group.signer.as_ref().map(|signer| match signer.as_str() {
        "owner" => signer.clone(),
        writer => format!("writer {writer}"),
    });
    let host = group.host.as_ref().map(|host| format!("on {host}"));
    let paths = group.paths.as_ref().map(|paths| places(paths));
    let tags = group.tags.as_ref().map(|tags| format!("tags {}", tags.join(", ")));
    let parts: Vec<String> = [signer, host, paths, tags].into_iter().flatten().collect();
    if parts.is_empty() { "all snapshots".to_owned() } else { parts.join(" ") }
}

fn summary(
    vault: &Vault,
    options: PruneOptions,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let known = vault.warnings();
    let report = vault.prune(&options)?;
    warn_anew(vault, &known);
    if terminal.json() {
        return terminal.record(record(&report, options.dry_run));
    }
    for lost in &report.given_up {
        let line = format!("gives up {}, and what only it needs: {}", lost.path, lost.reason);
        terminal.line(one_line(&line))?;
    }
    if report.unbelieved > 0 {
        let links = count(report.unbelieved, "links");
        terminal
            .line(format_args!("{links} of removed writers, which nobody believes, go as well"))?;
    }
    let (would, removed) = match options.dry_run {
        true => ("would keep", "remove"),
        false => ("kept", "removed"),
    };
    terminal.line(format_args!(
        "{would} {}, {removed} {}; packs: {} rewritten, {} condemned, {} removed ({})",
        count(report.kept, "snapshots"),
        report.removed,
        report.repacked,
        report.condemned,
        report.removed_packs,
        size(report.removed_bytes)
    ))?;
    if report.waiting > 0 {
        let packs = count(report.waiting, "packs");
        terminal.line(format_args!(
            "{packs} wait for the next prune: others have put while this one ran"
        ))?;
    }
    if report.stuck > 0 {
        let packs = count(report.stuck, "packs");
        terminal
            .line(format_args!("{packs} stay: what is needed of them cannot be read just now"))?;
    }
    Ok(())
}

fn record(report: &PruneReport, dry: bool) -> Vec<(&'static str, Value)> {
    vec![
        ("kept", Value::from(report.kept)),
        ("removed", Value::from(report.removed)),
        ("condemned", Value::from(report.condemned)),
        ("repacked", Value::from(report.repacked)),
        ("removedPacks", Value::from(report.removed_packs)),
        ("removedBytes", Value::from(report.removed_bytes)),
        ("waiting", Value::from(report.waiting)),
        ("stuck", Value::from(report.stuck)),
        ("unbelieved", Value::from(report.unbelieved)),
        ("givenUp", Value::Array(report.given_up.iter().map(lost_value).collect())),
        ("groups", Value::Array(report.groups.iter().map(group_value).collect())),
        ("dryRun", Value::from(dry)),
    ]
}

fn group_value(RetentionPlan { group, verdicts, .. }: &RetentionPlan) -> Value {
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::from);
    let paths = group.paths.as_ref().map(|paths| paths.iter().map(|path| shown(path)).collect());
    let tags = group.tags.as_ref();
    let tags = tags.map(|tags| tags.iter().map(|tag| tag.as_str().into()).collect());
    map(vec![
        ("signer", text(&group.signer)),
        ("source", text(&group.host)),
        ("paths", paths.map_or(Value::Null, Value::Array)),
        ("tags", tags.map_or(Value::Null, Value::Array)),
        ("snapshots", Value::Array(verdicts.iter().map(verdict_value).collect())),
    ])
}

fn lost_value(lost: &SkippedItem) -> Value {
    map(vec![
        ("path", Value::from(lost.path.as_str())),
        ("reason", Value::from(lost.reason.as_str())),
    ])
}

fn verdict_value(verdict: &RetentionVerdict) -> Value {
    let reasons = verdict.reasons.iter().map(|reason| reason.as_str().into()).collect();
    map(vec![
        ("snapshot", Value::from(verdict.snapshot)),
        ("timeMs", Value::from(ms(verdict.time_ns))),
        ("stays", Value::from(verdict.stays)),
        ("reasons", Value::Array(reasons)),
    ])
}

fn map(fields: Vec<(&str, Value)>) -> Value {
    Value::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
