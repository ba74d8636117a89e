//! The verbs of `sealane-sim`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use sealane_message::{ErrorInfo, Exit};

use crate::args::{
    SimCli, SimCtlArgs, SimLiveArgs as LiveArgs, SimReplayArgs as ReplayArgs,
    SimRunArgs as RunArgs, SimVerb,
};
use crate::limits::{MAX_SCENARIO_BYTES, MAX_TRACE_BYTES};
use crate::live::{self, LiveSettings};
use crate::{
    LogReplay, NamedTrace, Scenario, SimError, SimOutcome, SimRun, SimSpan, SimWatch, VehicleTrace,
};

/// The exit codes, those of `sealane`.
const FAILURE: u8 = 1;
const USAGE: u8 = 2;

/// Runs the command line `args` to its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match SimCli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help that nobody reads is no failure; whether it was help the code says.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    match start(&cli) {
        Err(error) if !is_broken_pipe(&error) => {
            print(&error, cli.json);
            ExitCode::from(if error.info().exit == Exit::Usage { USAGE } else { FAILURE })
        }
        _ => ExitCode::SUCCESS,
    }
}

fn start(cli: &SimCli) -> Result<(), SimError> {
    match &cli.command {
        SimVerb::Run(args) => run(args, cli.json),
        SimVerb::Live(args) => live(args, cli.json),
        SimVerb::Ctl(args) => ctl(args, cli.json),
        SimVerb::Check { scenario } => check(scenario, cli.json),
        SimVerb::Replay(args) => replay(args, cli.json),
    }
}

fn run(args: &RunArgs, json: bool) -> Result<(), SimError> {
    let scenario = read_scenario(&args.scenario)?;
    if let Some(name) = scenario.first_process() {
        let what = format!("`{name}` is a process, which only `sealane sim live` runs");
        return Err(SimError::Value(what));
    }
    perform(args, scenario, json, |run| run.finish())
}

fn live(args: &LiveArgs, json: bool) -> Result<(), SimError> {
    let file = &args.run.scenario;
    let setting =
        LiveSettings { file, prefix: &args.prefix, logs: args.logs.as_deref(), page: args.page };
    perform(&args.run, read_scenario(file)?, json, |run| live::run(run, &setting))
}

/// Prepares a run, has it run, and shows what it came to.
fn perform(
    args: &RunArgs,
    scenario: Scenario,
    json: bool,
    to_end: impl FnOnce(SimRun<'_>) -> Result<SimOutcome, SimError>,
) -> Result<(), SimError> {
    let traces = read_traces(&scenario, &args.scenario)?;
    let scenario = match args.seconds {
        Some(seconds) => scenario.lasting(SimSpan::from_s(u64::from(seconds.max(1)))),
        None => scenario,
    };
    let seed = args.seed.unwrap_or(scenario.seed);
    let mut log = BufWriter::with_capacity(1 << 16, io::stdout());
    let capture = args.pcap.as_deref().map(create).transpose()?;
    let mut capture = capture.map(|file| BufWriter::with_capacity(1 << 16, file));
    let mut watch = SimWatch::new();
    if json {
        watch = watch.with_log(&mut log);
    }
    if let Some(capture) = &mut capture {
        watch = watch.with_capture(capture);
    }
    if args.html.is_some() {
        watch = watch.with_page(&scenario, seed);
    }
    let SimOutcome { summary, page } = to_end(SimRun::new(scenario, seed, &traces, watch)?)?;
    if !json {
        say(&summary.to_string())?;
    }
    if summary.missed_by_capture() > 0 {
        let missed = summary.missed_by_capture();
        eprintln!("sealane-sim: the capture is full, {missed} units are not in it");
    }
    match (&args.html, page) {
        (Some(file), Some(page)) => write(file, &page.to_html(&summary.to_string())),
        _ => Ok(()),
    }
}

/// Gives an order, and shows what was answered.
fn ctl(args: &SimCtlArgs, json: bool) -> Result<(), SimError> {
    let answer = live::give(&args.scenario, &args.order)?;
    match json {
        true => say(&answer.to_string()),
        false => live::words(&answer).map_or(Ok(()), |words| say(&words)),
    }
}

fn check(file: &Path, json: bool) -> Result<(), SimError> {
    let scenario = read_scenario(file)?;
    let traces = read_traces(&scenario, file)?;
    let (name, machines, seconds) =
        (scenario.name.clone(), scenario.machines(), scenario.duration.as_s());
    let seed = scenario.seed;
    // Some faults show only with places and motions: streets that are too short, traces with too
    // few vehicles.
    SimRun::new(scenario, seed, &traces, SimWatch::new())?;
    say(&match json {
        true => format!(
            "{{\"v\":1,\"scenario\":\"{name}\",\"machines\":{machines},\"seconds\":{seconds}}}"
        ),
        false => format!("{name}: {machines} machines, {seconds} s, nothing is wrong with it"),
    })
}

fn replay(args: &ReplayArgs, json: bool) -> Result<(), SimError> {
    let replay = match args.log.as_os_str() == "-" {
        true => LogReplay::read(io::stdin().lock())?,
        false => {
            let file = File::open(&args.log).map_err(of_file(&args.log))?;
            LogReplay::read(BufReader::with_capacity(1 << 16, file))?
        }
    };
    let words = replay.to_string();
    say(&if json { replay.to_json() } else { words.clone() })?;
    match &args.html {
        Some(file) => write(file, &replay.page.to_html(&words)),
        None => Ok(()),
    }
}

fn read_scenario(file: &Path) -> Result<Scenario, SimError> {
    Scenario::parse(&read(file, MAX_SCENARIO_BYTES)?)
}

/// The traces that a scenario names, from the folder that it is in.
fn read_traces(scenario: &Scenario, file: &Path) -> Result<Vec<NamedTrace>, SimError> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let traces = scenario.traces().into_iter().map(|name| {
        let text = read(&folder.join(name), MAX_TRACE_BYTES)?;
        let trace = VehicleTrace::parse(&text).map_err(|error| match error {
            SimError::Trace(what) => SimError::Trace(format!("{name}: {what}")),
            other => other,
        })?;
        Ok(NamedTrace { file: name.to_owned(), trace: Arc::new(trace) })
    });
    traces.collect()
}

/// Reads a text, and no more than one byte beyond its bound.
fn read(file: &Path, most: usize) -> Result<String, SimError> {
    let mut text = String::new();
    let opened = File::open(file).map_err(of_file(file))?;
    let mut bounded = io::Read::take(opened, most as u64 + 1);
    io::Read::read_to_string(&mut bounded, &mut text).map_err(of_file(file))?;
    Ok(text)
}

fn create(file: &Path) -> Result<File, SimError> {
    File::create(file).map_err(of_file(file))
}

fn write(file: &Path, text: &str) -> Result<(), SimError> {
    std::fs::write(file, text).map_err(of_file(file))
}

fn of_file(file: &Path) -> impl Fn(io::Error) -> SimError + '_ {
    move |cause| SimError::File { file: file.to_owned(), cause }
}

fn say(text: &str) -> Result<(), SimError> {
    let mut out = io::stdout();
    let shown = if out.is_terminal() { harmless(text) } else { text.to_owned() };
    writeln!(out, "{shown}").map_err(SimError::Output)
}

/// Whether the reader of our output has gone, which is its good right.
fn is_broken_pipe(error: &SimError) -> bool {
    matches!(error, SimError::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Says it on standard error, once.
fn print(error: &SimError, json: bool) {
    let ErrorInfo { code, hint, .. } = error.info();
    if json {
        let said = serde_json::json!({
            "v": 1,
            "error": { "code": code, "message": error.to_string(), "hint": hint },
        });
        eprintln!("{said}");
    } else {
        // Names of files and keys are others' words.
        let said = harmless(&format!("{error} [{code}]"));
        eprintln!("sealane-sim: error: {said}\n  hint: {hint}");
    }
}

/// The same text with control characters, but for the ends of lines, shown as `\u001b`.
fn harmless(text: &str) -> String {
    let shown = |c: char| match c.is_control() && c != '\n' {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}
