//! The command line of Sealane: the one binary `sealane`.
//!
//! Each verb is a function of this library that takes what was asked for and a [`Terminal`];
//! `main.rs` only calls [`main`]. `args` holds every flag once: the parser, `--help`, the man
//! pages, the completions and `docs/reference/CLI.md` are made from it.
#![forbid(unsafe_code)]

pub mod args;
pub mod audit;
pub mod backup;
pub mod beside;
pub mod cert;
mod colour;
pub mod complete;
pub mod config;
pub mod consumer;
pub mod context;
pub mod demo;
pub mod doc;
pub mod doctor;
pub mod envelope;
pub mod explain;
mod failure;
mod folder;
pub mod gateway;
pub mod group;
mod hints;
pub mod inspect;
pub mod key;
pub mod leaks;
pub mod limits;
pub mod mesh;
pub mod pages;
mod passphrase;
pub mod policy;
pub mod publish;
pub mod relay;
pub mod request;
pub mod sealed;
mod show;
mod signals;
pub mod status;
pub mod stream;
pub mod subscribe;
mod terminal;
pub mod times;
pub mod token;
pub mod top;
pub mod up;
pub mod vault;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::mpsc;

use clap::FromArgMatches;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use failure::{CliFailure, ERRORS, exit};
pub use terminal::Terminal;

use args::{CliArgs, CliVerb};
use colour::OutputColours;

/// The number, commit and target of this build, as `--version` says them.
pub const VERSION: &str = env!("SEALANE_VERSION");

/// Says how the allocator of this process gives back what nobody uses any more. The program has
/// chosen its allocator, and this library has not.
pub fn give_back_by(give_back: fn()) {
    let _ = up::GIVE_BACK.set(give_back);
}

/// Runs the command line `args` to its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match parse(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help that nobody reads is no failure; whether it was help the code says.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE));
        }
    };
    let json = cli.json;
    let outcome = start(cli);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(json);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Parses a command line. `help VERB` becomes `VERB --help`, which knows the verbs that resemble a
/// wrong one.
///
/// # Errors
/// The fault of the command line, or the help or version that was asked for.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<CliArgs, clap::Error> {
    let mut command = args::command();
    let cli = CliArgs::from_arg_matches(&command.try_get_matches_from_mut(args)?)?;
    let CliVerb::Help(help) = &cli.command else { return Ok(cli) };
    let words = ["sealane"].into_iter().chain(help.verb.iter().map(String::as_str));
    CliArgs::from_arg_matches(&command.try_get_matches_from_mut(words.chain(["--help"]))?)
}

fn start(cli: CliArgs) -> Result<(), CliFailure> {
    log(is_daemon(&cli.command));
    let runtime = runtime(cli.json)?;
    let mut terminal = Terminal::standard(cli.json);
    let outcome = runtime.block_on(run(cli, &mut terminal));
    let flushed = terminal.flush();
    // A thread may still wait for a line of standard input that never comes.
    runtime.shutdown_background();
    outcome.and(flushed)
}

/// Whether a verb goes on, so that its log is of use where nobody has asked for it.
fn is_daemon(command: &CliVerb) -> bool {
    match command {
        CliVerb::Up(_) | CliVerb::Relay(_) | CliVerb::Gateway(_) => true,
        CliVerb::Mesh(mesh) => matches!(mesh.verb, args::mesh::MeshVerb::Up(_)),
        _ => false,
    }
}

/// The threads of all verbs. Where the system gives too few, tokio panics, and then waits for ever
/// for those that it has got: so the program ends where it panics. A thread that has no memory to
/// begin with panics too, and it begins at some time later: all of them are waited for.
fn runtime(json: bool) -> Result<tokio::runtime::Runtime, CliFailure> {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |_| {
        let failure = CliFailure::Runtime(io::ErrorKind::OutOfMemory.into());
        failure.print(json);
        std::process::exit(i32::from(failure.exit_code()));
    }));
    let (begins, begun) = mpsc::channel();
    let built = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // Behind the first ones nobody listens any more.
        .on_thread_start(move || _ = begins.send(()))
        .build();
    if let Ok(runtime) = &built {
        begun.iter().take(runtime.metrics().num_workers()).for_each(drop);
    }
    std::panic::set_hook(usual);
    built.map_err(CliFailure::Runtime)
}

/// Runs a parsed command line.
///
/// # Errors
/// The failure of the verb.
pub async fn run(cli: CliArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let file = config::SettingsFile::find(cli.config.as_deref(), cli.context.as_deref());
    hints::say(&cli.command);
    match cli.command {
        CliVerb::Up(args) => up::run(&args, &file?, terminal).await,
        CliVerb::Pub(args) => publish::run(&args, &file?, terminal).await,
        CliVerb::Sub(args) => subscribe::run(&args, &file?, terminal).await,
        CliVerb::Request(args) => request::request(&args, &file?, terminal).await,
        CliVerb::Reply(args) => request::reply(&args, &file?, terminal).await,
        CliVerb::Consumer(args) => consumer::run(&args, &file?, terminal).await,
        CliVerb::Delayed(args) => consumer::delayed(&args, &file?, terminal).await,
        CliVerb::Stream(args) => stream::run(&args, &file?, terminal).await,
        CliVerb::Ls(args) => stream::ls(&args, &file?, terminal).await,
        CliVerb::Status(args) => status::run(&args, &file?, terminal).await,
        CliVerb::Policy(args) => policy::run(&args, &file?, terminal),
        CliVerb::Vault(args) => vault::run(&args, terminal),
        CliVerb::Key(args) => key::run(&args, terminal),
        CliVerb::Group(args) => {
            group::run(&args, terminal)?;
            group::publish(&args, &file?, terminal).await
        }
        CliVerb::Mesh(args) => mesh::run(&args, terminal).await,
        CliVerb::Doc(args) => doc::run(&args, terminal).await,
        CliVerb::Emergency(args) => doc::emergency(&args, terminal).await,
        CliVerb::Relay(args) => relay::run(&args, terminal).await,
        CliVerb::Gateway(args) => gateway::run(&args, terminal).await,
        CliVerb::Context(args) => context::run(&args, terminal),
        CliVerb::Cert(args) => cert::run(&args, terminal),
        CliVerb::Config(args) => config::show(&args, &file?, terminal),
        CliVerb::Token(args) => token::run(&args, &file?, terminal).await,
        CliVerb::Top(args) => top::run(&args, &file?, terminal).await,
        CliVerb::Doctor(args) => doctor::run(&args, file, terminal).await,
        CliVerb::Backup(args) => backup::backup(&args, &file?, terminal).await,
        CliVerb::Restore(args) => backup::restore(&args, &file?, terminal).await,
        CliVerb::Audit(args) => audit::run(&args, &file?, terminal).await,
        CliVerb::Explain(args) => explain::run(&args, file, terminal).await,
        CliVerb::Inspect(args) => inspect::run(&args, terminal),
        CliVerb::Bench(args) => {
            beside::run(beside::SiblingProgram::Bench, &args.arguments, terminal.json())
        }
        CliVerb::Sim(args) => {
            beside::run(beside::SiblingProgram::Sim, &args.arguments, terminal.json())
        }
        CliVerb::Demo(args) => demo::run(&args, terminal).await,
        CliVerb::Completions(args) => complete::script(&args, terminal),
        CliVerb::Man(args) => pages::man(&args, terminal),
        CliVerb::Complete(args) => complete::run(&args, terminal).await,
        CliVerb::Help(_) => pages::help(terminal),
        CliVerb::Version => pages::version(terminal),
    }
}

/// Messages of the program itself go to standard error; `SEALANE_LOG` chooses which, by a level or
/// by `TARGET=LEVEL,...`, `SEALANE_LOG_FORMAT` whether they are lines of JSON.
fn log(is_daemon: bool) {
    let default = if is_daemon { LevelFilter::INFO } else { LevelFilter::ERROR };
    let asked = std::env::var("SEALANE_LOG").ok().and_then(|text| text.parse().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(default));
    let colours = OutputColours::of(&std::io::stderr());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(std::io::stderr)
        .with_ansi(colours.shown());
    let is_json = std::env::var_os("SEALANE_LOG_FORMAT").is_some_and(|format| format == "json");
    // A program that uses this library may have a subscriber already.
    let _ = if is_json {
        subscriber.json().finish().with(filter).try_init()
    } else {
        subscriber.finish().with(filter).try_init()
    };
}
