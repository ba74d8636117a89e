//! `sealane vault status`, `inspect` and `leaks`.

use sealane::Value;
use sealane_vault::{VaultMetadata, leaks as seen};

use super::care::drill_record;
use super::{VaultAccess, ms, size, time, warn_anew};
use crate::terminal::table;
use crate::{CliFailure, Terminal};

pub(super) fn status(location: &VaultAccess, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let vault = location.open()?;
    let known = vault.warnings();
    let snapshots = vault.snapshots()?;
    let objects = vault.store().list("")?;
    let bytes = objects.iter().map(|object| object.size).sum();
    let proven = vault.last_proven()?;
    let unbelieved = vault.unbelieved()?;
    let head = vault.head_text()?;
    warn_anew(&vault, &known);
    if terminal.json() {
        let proven = proven.as_ref().map(|report| {
            let fields = drill_record(report).into_iter();
            Value::Map(fields.map(|(name, value)| (name.to_owned(), value)).collect())
        });
        return terminal.record(vec![
            ("vault", Value::from(vault.id())),
            ("anchor", Value::from(vault.anchor())),
            ("location", Value::from(vault.store().location())),
            ("head", Value::from(head)),
            ("snapshots", Value::from(snapshots.len() as u64)),
            ("lastTimeMs", snapshots.last().map_or(Value::Null, |s| Value::from(ms(s.time_ns)))),
            ("unbelieved", Value::from(unbelieved)),
            ("objects", Value::from(objects.len() as u64)),
            ("storedBytes", Value::from(bytes)),
            ("state", Value::from(vault.state()?.display().to_string())),
            ("lastProven", proven.unwrap_or(Value::Null)),
        ]);
    }
    terminal.line(format_args!("vault        {}", vault.id()))?;
    terminal.line(format_args!("expect       {}", vault.anchor()))?;
    terminal.line(format_args!("place        {}", vault.store().location()))?;
    terminal.line(format_args!("head         {head}"))?;
    terminal.line(format_args!("snapshots    {}", snapshots.len()))?;
    if let Some(last) = snapshots.last() {
        let (files, kept) = (last.counts.files, size(last.counts.bytes));
        terminal.line(format_args!(
            "last         {} on {}: {files} files, {kept}",
            time(last.time_ns),
            last.source
        ))?;
    }
    if unbelieved > 0 {
        let what = "of removed writers: the next prune removes them";
        terminal.line(format_args!("unbelieved   {unbelieved} {what}"))?;
    }
    terminal.line(format_args!("stored       {} in {} objects", size(bytes), objects.len()))?;
    terminal.line(format_args!("state        {}", vault.state()?.display()))?;
    match proven {
        Some(report) => terminal.line(format_args!(
            "last proven  {}: {} of snapshot {}, {} files, {}",
            time(report.time_ns),
            if report.all { "all" } else { "a sample" },
            report.snapshot,
            report.files,
            size(report.bytes)
        )),
        None => terminal.line("last proven  never: run `sealane vault drill`"),
    }
}

pub(super) fn inspect(
    key: Option<&str>,
    location: &VaultAccess,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let Some(key) = key else {
        for object in location.store()?.list("")? {
            if terminal.json() {
                terminal.record(vec![
                    ("key", Value::from(object.key.as_str())),
                    ("size", Value::from(object.size)),
                ])?;
            } else {
                terminal.line(format_args!("{:>12} {}", object.size, object.key))?;
            }
        }
        return Ok(());
    };
    let facts = location.open()?.inspect(key)?;
    if terminal.json() {
        let fields: Vec<(&str, Value)> = facts
            .iter()
            .map(|(name, value)| (name.as_str(), Value::from(value.as_str())))
            .collect();
        return terminal.record(fields);
    }
    facts.iter().try_for_each(|(name, value)| terminal.line(format_args!("{name:<10} {value}")))
}

pub(super) fn leaks(location: &VaultAccess, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let leaks = seen(&location.store()?)?;
    let plain = leaks.metadata == VaultMetadata::Plain;
    if terminal.json() {
        for group in &leaks.groups {
            terminal.record(vec![
                ("prefix", Value::from(group.prefix.as_str())),
                ("objects", Value::from(group.objects)),
                ("bytes", Value::from(group.bytes)),
                ("smallest", Value::from(group.sizes.0)),
                ("largest", Value::from(group.sizes.1)),
                ("firstMs", Value::from(group.written_ms.0)),
                ("lastMs", Value::from(group.written_ms.1)),
            ])?;
        }
        return terminal.record(vec![
            ("vault", Value::from(leaks.vault)),
            ("owner", Value::from(leaks.owner)),
            ("createdMs", Value::from(ms(leaks.created_ns))),
            ("namesReadable", Value::from(plain)),
            ("slots", Value::from(leaks.slots.len() as u64)),
        ]);
    }
    terminal.line("What the storage provider sees, without any key:\n")?;
    let rows: Vec<Vec<String>> = leaks
        .groups
        .iter()
        .map(|group| {
            vec![
                group.prefix.clone(),
                group.objects.to_string(),
                size(group.bytes),
                format!("{} to {}", size(group.sizes.0), size(group.sizes.1)),
                time(group.written_ms.0.saturating_mul(1_000_000)),
                time(group.written_ms.1.saturating_mul(1_000_000)),
            ]
        })
        .collect();
    let head = ["objects", "number", "bytes", "each", "first written", "last written"];
    terminal.write(table(&head, &rows).as_bytes())?;
    terminal.line(format_args!("\nvault {}, owner's public key {}", leaks.vault, leaks.owner))?;
    for (kind, cost) in &leaks.slots {
        let cost = cost.map(|cost| format!(": {} KiB, {} passes", cost.memory_kib, cost.passes));
        terminal.line(format_args!("key slot, {kind:?}{}", cost.unwrap_or_default()))?;
    }
    if plain {
        terminal.line("names, sizes, modes and times of all files, readable:")?;
        leaks.names.iter().try_for_each(|line| terminal.line(format_args!("  {line}")))?;
    } else {
        terminal.line("no path, name, size or number of files, and no hash of any content")?;
    }
    terminal.line("and which parts of which packs are read, and when")
}
