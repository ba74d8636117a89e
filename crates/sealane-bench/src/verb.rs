//! The work of each verb: options from flags, figures to [`BenchOutput`].

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{BenchHopVerb, BenchVerb};
use crate::failure::{BenchFailure, Result};
use crate::measure::BenchHost;
use crate::output::BenchOutput;
use crate::programs::BenchPrograms;
use crate::{book, cost, guard, hop, load, page, publish, race, relay, vault};

/// Measures, and shows each row as it comes.
pub(crate) async fn run(command: &BenchVerb, output: &mut BenchOutput) -> Result<()> {
    match command {
        BenchVerb::Cost(options) => run_cost(options, output).await,
        BenchVerb::Counts { alone } => counts(alone, output),
        BenchVerb::Report(options) => report(options, output),
        BenchVerb::Load(options) => run_load(options, output).await,
        BenchVerb::Publish(options) => run_publish(options, output).await,
        BenchVerb::Vault(options) => run_vault(options, output),
        BenchVerb::Hop(part) => run_hop(part, output),
        BenchVerb::Race(options) => run_race(options, output).await,
        BenchVerb::Relay(options) => run_relay(options, output),
        BenchVerb::RaceClient { address, peer, subscribers, body, each_ms } => {
            let each = Duration::from_millis(*each_ms);
            race::work(address, peer, *subscribers, *body, each).await
        }
        BenchVerb::N2s { source, target } => vault::work(source, target),
        BenchVerb::Worker { address, work } => load::work(address, work).await,
    }
}

/// This program, and what it measures, which has to be there.
fn programs() -> Result<BenchPrograms> {
    let programs = BenchPrograms::here().map_err(BenchFailure::of)?;
    programs.check()?;
    Ok(programs)
}

async fn run_cost(options: &cost::CostOptions, output: &mut BenchOutput) -> Result<()> {
    let sample = cost::MessageSample::read(&options.files, options.holding)?;
    let programs = if options.no_hub { None } else { Some(programs()?) };
    let bar = bar();
    let mut progress = |what: &str, part: f64| show_part(&bar, what, part);
    let report = cost::run(sample, options, programs.as_ref(), &mut progress).await?;
    bar.finish_and_clear();
    if let Some(file) = &options.html {
        std::fs::write(file, page::cost(&report)).map_err(BenchFailure::file(file))?;
    }
    if output.json() { output.record(&cost::record(&report)) } else { output.line(&report) }
}

fn report(options: &book::BookOptions, output: &mut BenchOutput) -> Result<()> {
    let programs = match options.names().contains(&book::ReportName::Blobs) {
        true => programs()?,
        // The others measure within this process.
        false => BenchPrograms::here().map_err(BenchFailure::of)?,
    };
    let bar = bar();
    let book = book::run(options, &programs, &mut |name, part| show_part(&bar, name, part))?;
    bar.finish_and_clear();
    if let Some(file) = &options.html {
        std::fs::write(file, page::book(&book)).map_err(BenchFailure::file(file))?;
    }
    if output.json() { output.record(&book) } else { output.line(&book) }
}

/// A bar for a terminal.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:28} {bar:40} {pos:>3} %  {elapsed}");
    let bar =
        ProgressBar::new(100).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn show_part(bar: &ProgressBar, what: &str, part: f64) {
    bar.set_message(what.to_owned());
    bar.set_position((part * 100.0) as u64);
}

/// Says that the links are open, and carries until it is ended.
fn run_hop(part: &BenchHopVerb, output: &mut BenchOutput) -> Result<()> {
    let mut said = Ok(());
    let ready = || said = output.line_now("ready");
    match part {
        BenchHopVerb::Forward(args) => hop::forward(args, ready),
        BenchHopVerb::End(args) => hop::end(args, ready),
    }?;
    said
}

fn counts(alone: &[usize], output: &mut BenchOutput) -> Result<()> {
    if let [way, rounds] = alone {
        return guard::repeat(*way, *rounds);
    }
    let counts = guard::counts()?;
    counts.iter().try_for_each(|count| output.line(format!("{} = {}", count.name, count.value)))
}

async fn run_load(options: &load::LoadOptions, output: &mut BenchOutput) -> Result<()> {
    let programs = programs()?;
    let mut shown = output.rows();
    shown.show(load::LoadRow::HEAD);
    let rows = load::run(&programs, options, &mut |row| shown.show(row)).await?;
    shown.done()?;
    let machine = BenchHost::here();
    if !output.json() {
        return output.line(&machine);
    }
    output.record(&machine)?;
    rows.iter().try_for_each(|row| output.record(&row.record()))
}

async fn run_publish(
    options: &publish::PublishCostOptions,
    output: &mut BenchOutput,
) -> Result<()> {
    let programs = programs()?;
    let rows = publish::run(&programs, options).await?;
    let machine = BenchHost::here();
    if output.json() {
        output.record(&machine)?;
        return rows.iter().try_for_each(|row| output.record(row));
    }
    let time = std::time::UNIX_EPOCH + Duration::from_secs(machine.time_s);
    output.line(format!("{machine}, {}", humantime::format_rfc3339_seconds(time)))?;
    output.line(publish::PublishCostRow::head())?;
    rows.iter().try_for_each(|row| output.line(row))
}

fn run_vault(options: &vault::VaultBenchOptions, output: &mut BenchOutput) -> Result<()> {
    let programs = programs()?;
    let mut lines = output.rows();
    lines.show(BenchHost::here());
    let rows = vault::run(&programs, options, &mut |line| lines.show(line))?;
    lines.done()?;
    let rows = if output.json() { &*rows } else { &[] };
    rows.iter().try_for_each(|row| output.record(row))
}

async fn run_race(options: &race::RaceOptions, output: &mut BenchOutput) -> Result<()> {
    let programs = programs()?;
    let mut lines = output.rows();
    let report = race::run(&programs, options, &mut |line| lines.show(line)).await?;
    lines.done()?;
    if !output.json() {
        return Ok(());
    }
    let race::RaceReport { head, rows, demands } = report;
    output.record(&head)?;
    rows.iter().try_for_each(|row| output.record(row))?;
    demands.iter().try_for_each(|demand| output.record(&demand.record()))
}

fn run_relay(options: &relay::RelayBenchOptions, output: &mut BenchOutput) -> Result<()> {
    let programs = programs()?;
    if !output.json() {
        output.line_now(BenchHost::here())?;
    }
    let mut shown = Ok(());
    let outcome = relay::run(&programs, options, &mut |entry| {
        if shown.is_ok() {
            shown = match output.json().then(|| entry.record()) {
                None => output.line_now(entry),
                Some(record) => record.map_or(Ok(()), |record| output.record(&record)),
            };
        }
    });
    shown.and(outcome)
}
