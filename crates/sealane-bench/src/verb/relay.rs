//! `sealane-bench relay`.

use super::programs;
use crate::measure::BenchHost;
use crate::output::BenchOutput;
use crate::relay::{self, RelayBenchOptions, RelayFinding};
use crate::{BenchFailure, args};

/// Runs the parts, and shows each line as it comes.
pub(super) fn run(
    args: &args::BenchRelayArgs,
    output: &mut BenchOutput,
) -> Result<(), BenchFailure> {
    let options = RelayBenchOptions {
        programs: programs()?,
        each_s: args.each,
        rounds: args.rounds.max(1),
        kills: args.kills,
        steady_s: args.steady,
        iperf: !args.without_iperf,
        only: args.only.clone(),
    };
    if !output.json() {
        output.line_now(BenchHost::here())?;
    }
    let mut shown = Ok(());
    let mut each = |entry: &RelayFinding| {
        if shown.is_ok() {
            shown = show(entry, output);
        }
    };
    let outcome = relay::run(&options, &mut each);
    shown?;
    Ok(outcome?)
}

fn show(entry: &RelayFinding, output: &mut BenchOutput) -> Result<(), BenchFailure> {
    if !output.json() {
        return output.line_now(entry);
    }
    match entry {
        RelayFinding::Line(_) => Ok(()),
        RelayFinding::Figure { part, what, value, unit } => output.record(vec![
            ("part", (*part).into()),
            ("what", what.as_str().into()),
            ("value", sealane_message::Value::F64(*value)),
            ("unit", (*unit).into()),
        ]),
        RelayFinding::Demand { part, what, value, bound, is_met } => output.record(vec![
            ("part", (*part).into()),
            ("what", what.as_str().into()),
            ("value", sealane_message::Value::F64(*value)),
            ("demanded", sealane_message::Value::F64(*bound)),
            ("met", (*is_met).into()),
        ]),
    }
}
