//! The files that the simulator reads: scenarios, traces of vehicles, and logs.

use sealane_sim::limits::{MAX_SIM_NODES, MAX_TRACE_BYTES};
use sealane_sim::{
    LogReplay, Scenario, SimError, SimRun, SimSpan, SimTime, SimWatch, VehicleTrace,
};

/// A run of a scenario that was made up is so long at most: what it holds is bounded, and so is
/// the time of a fuzzer.
const SHORT: SimSpan = SimSpan(20_000);
const FEW_MACHINES: usize = 64;

/// An input taken for a scenario. A scenario that is read is within its bounds. It runs twice
/// without a panic, to the same figures. Errors have codes.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let scenario = match Scenario::parse(text) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert_eq!(error.info().code, "SL-SIM-02", "{error}");
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!((1..=MAX_SIM_NODES).contains(&scenario.machines()));
    if scenario.machines() > FEW_MACHINES || !scenario.traces().is_empty() {
        return;
    }
    let run = |scenario: Scenario| {
        let run = SimRun::new(scenario.lasting(SHORT), 1, &[], SimWatch::new())?;
        run.finish().map(|outcome| outcome.summary)
    };
    match (run(scenario.clone()), run(scenario)) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one, other, "the same run");
            assert!(one.delivered <= one.expected);
        }
        (Err(one), Err(other)) => {
            assert!(matches!(one, SimError::Value(_) | SimError::Pending { .. }), "{one}");
            assert_eq!(one.to_string(), other.to_string());
        }
        (one, other) => panic!("{one:?} and {other:?} of one scenario"),
    }
}

/// An input taken for a trace. A vehicle is somewhere within its time and nowhere else.
pub fn trace(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match VehicleTrace::parse(text) {
        Ok(trace) => {
            assert!(bytes.len() <= MAX_TRACE_BYTES);
            assert!((1..=MAX_SIM_NODES).contains(&trace.vehicles()));
            let end = SimTime(0) + trace.length();
            let places = |at: SimTime| {
                (0..trace.vehicles()).filter_map(|one| trace.place(one, at)).collect::<Vec<_>>()
            };
            assert!(!places(end).is_empty(), "somebody is there at the end");
            assert!(places(end + SimSpan(1)).is_empty());
            let places = (0..16).flat_map(|part| places(SimTime(end.0 / 16 * part)));
            for place in places {
                assert!(place.x.abs() <= 100_000.0 && place.y.abs() <= 100_000.0, "{place:?}");
            }
        }
        Err(error) => assert_eq!(error.info().code, "SL-SIM-03"),
    }
}

/// An input taken for a log. A log that is read draws a page that fetches nothing. No text of the
/// log ends the page's script.
pub fn log(bytes: &[u8]) {
    match LogReplay::read(bytes) {
        Ok(replay) => {
            assert!(replay.machines <= MAX_SIM_NODES);
            let page = replay.page.to_html("<b>&");
            assert_eq!(page.matches("</script>").count(), 2, "what is read ends no script");
            assert!(page.contains("&lt;b>&amp;"));
        }
        Err(error) => assert_eq!(error.info().code, "SL-SIM-04"),
    }
}
