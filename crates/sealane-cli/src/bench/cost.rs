//! `sealane bench cost`.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use sealane_bench::cost::{self, Options, Sample};
use sealane_bench::load::Programs;
use sealane_bench::page;

use crate::args::bench::BenchCost;
use crate::{Failure, Terminal};

pub(super) async fn run(args: &BenchCost, terminal: &mut Terminal) -> Result<(), Failure> {
    let sample = Sample::read(&args.files, args.holding)?;
    let programs = match args.no_hub {
        true => None,
        false => Some(Programs::of(std::env::current_exe().map_err(Failure::Runtime)?)),
    };
    let options = Options { quick: args.quick, programs, data: args.data.clone() };
    let bar = bar(terminal.interactive());
    let mut progress = |what: &str, part: f64| {
        bar.set_message(what.to_owned());
        bar.set_position((part * 100.0) as u64);
    };
    let report = cost::run(sample, &options, &mut progress).await?;
    bar.finish_and_clear();
    if let Some(file) = &args.html {
        write(file, &page::cost(&report))?;
    }
    match terminal.json() {
        true => terminal.datum(&cost::record(&report)),
        false => terminal.line(&report),
    }
}

/// Writes a page.
pub(super) fn write(file: &Path, page: &str) -> Result<(), Failure> {
    std::fs::write(file, page)
        .map_err(|cause| Failure::File { file: file.to_owned(), cause: cause.to_string() })
}

/// How far it is, for whoever watches.
pub(super) fn bar(is_watched: bool) -> ProgressBar {
    if !is_watched {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:28} {bar:40} {pos:>3} %  {elapsed}");
    let bar =
        ProgressBar::new(100).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
