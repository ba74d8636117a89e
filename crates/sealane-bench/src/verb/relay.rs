//! `sealane-bench relay`.

use super::programs;
use crate::measure::Machine;
use crate::output::Output;
use crate::relay::{self, Entry, Options};
use crate::{Failure, args};

/// Runs the parts, and shows each line as it comes.
pub(super) fn run(args: &args::Relay, output: &mut Output) -> Result<(), Failure> {
    let options = Options {
        programs: programs()?,
        each_s: args.each,
        rounds: args.rounds.max(1),
        kills: args.kills,
        steady_s: args.steady,
        iperf: !args.without_iperf,
        only: args.only.clone(),
    };
    if !output.json() {
        output.line_now(Machine::here())?;
    }
    let mut shown = Ok(());
    let mut each = |entry: &Entry| {
        if shown.is_ok() {
            shown = show(entry, output);
        }
    };
    let outcome = relay::run(&options, &mut each);
    shown?;
    Ok(outcome?)
}

fn show(entry: &Entry, output: &mut Output) -> Result<(), Failure> {
    if !output.json() {
        return output.line_now(entry);
    }
    match entry {
        Entry::Line(_) => Ok(()),
        Entry::Figure { part, what, value, unit } => output.record(vec![
            ("part", (*part).into()),
            ("what", what.as_str().into()),
            ("value", sealane_message::Value::F64(*value)),
            ("unit", (*unit).into()),
        ]),
        Entry::Demand { part, what, value, bound, is_met } => output.record(vec![
            ("part", (*part).into()),
            ("what", what.as_str().into()),
            ("value", sealane_message::Value::F64(*value)),
            ("demanded", sealane_message::Value::F64(*bound)),
            ("met", (*is_met).into()),
        ]),
    }
}
