//! `sealane bench report`.

use sealane_bench::book::{self, Name, Options};
use sealane_bench::page;

use super::cost::{bar, write};
use crate::args::bench::BenchReport;
use crate::{Failure, Terminal};

pub(super) fn run(args: &BenchReport, terminal: &mut Terminal) -> Result<(), Failure> {
    let options = Options {
        names: if args.all { Name::ALL.into() } else { args.names.clone() },
        quick: args.quick,
        sealane: std::env::current_exe().map_err(Failure::Runtime)?,
        data: args.data.clone(),
    };
    let bar = bar(terminal.interactive());
    let mut progress = |name: &str, part: f64| {
        bar.set_message(name.to_owned());
        bar.set_position((part * 100.0) as u64);
    };
    let book = book::run(&options, &mut progress)?;
    bar.finish_and_clear();
    if let Some(file) = &args.html {
        write(file, &page::book(&book))?;
    }
    match terminal.json() {
        true => terminal.datum(&book::record(&book)),
        false => terminal.line(&book),
    }
}
