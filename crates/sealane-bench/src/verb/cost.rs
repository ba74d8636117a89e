//! `sealane-bench cost`.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::programs;
use crate::cost::{self, CostOptions, MessageSample};
use crate::output::BenchOutput;
use crate::{BenchFailure, args, page};

pub(super) async fn run(
    args: &args::BenchCostArgs,
    output: &mut BenchOutput,
) -> Result<(), BenchFailure> {
    let sample = MessageSample::read(&args.files, args.holding)?;
    let programs = match args.no_hub {
        true => None,
        false => Some(programs()?),
    };
    let options = CostOptions {
        quick: args.quick,
        programs,
        data: args.data.clone(),
        radios: args.links.clone(),
    };
    let bar = bar();
    let mut progress = |what: &str, part: f64| {
        bar.set_message(what.to_owned());
        bar.set_position((part * 100.0) as u64);
    };
    let report = cost::run(sample, &options, &mut progress).await?;
    bar.finish_and_clear();
    if let Some(file) = &args.html {
        write(file, &page::cost(&report))?;
    }
    match output.json() {
        true => output.datum(&cost::record(&report)),
        false => output.line(&report),
    }
}

/// Writes a page.
pub(super) fn write(file: &Path, page: &str) -> Result<(), BenchFailure> {
    std::fs::write(file, page).map_err(BenchFailure::file(file))
}

/// How far it is, for whoever watches.
pub(super) fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:28} {bar:40} {pos:>3} %  {elapsed}");
    let bar =
        ProgressBar::new(100).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
