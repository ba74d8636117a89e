//! `sealane-bench report`.

use super::cost::{bar, write};
use super::programs;
use crate::book::{self, BookOptions, ReportName};
use crate::output::BenchOutput;
use crate::programs::BenchPrograms;
use crate::{BenchFailure, args, page};

pub(super) fn run(
    args: &args::BenchReportArgs,
    output: &mut BenchOutput,
) -> Result<(), BenchFailure> {
    let names = if args.all { ReportName::ALL.into() } else { args.names.clone() };
    let programs = match names.contains(&ReportName::Blobs) {
        true => programs()?,
        // The others measure within this process.
        false => BenchPrograms::here().map_err(BenchFailure::measurement)?,
    };
    let options = BookOptions { names, quick: args.quick, programs, data: args.data.clone() };
    let bar = bar();
    let mut progress = |name: &str, part: f64| {
        bar.set_message(name.to_owned());
        bar.set_position((part * 100.0) as u64);
    };
    let book = book::run(&options, &mut progress)?;
    bar.finish_and_clear();
    if let Some(file) = &args.html {
        write(file, &page::book(&book))?;
    }
    match output.json() {
        true => output.datum(&book::record(&book)),
        false => output.line(&book),
    }
}
