//! Captures of the simulator.

use std::path::Path;

use sealane_sim::{Scenario, SimRun, SimSpan, SimWatch};

use super::{number, records};
use crate::cli::text;

/// How many records a capture has.
fn count(file: &[u8]) -> u64 {
    let (mut rest, mut count) = (&file[24..], 0);
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        rest = &rest[16 + length..];
        count += 1;
    }
    count
}

#[test]
fn what_the_simulator_captures_on_wires_and_radios_is_explained_to_the_last_record() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenario = std::fs::read_to_string(scenarios.join("mixed.toml")).unwrap();
    let scenario = Scenario::parse(&scenario).unwrap().lasting(SimSpan::from_s(8));
    let mut file = vec![];
    let watch = SimWatch::new().with_capture(&mut file);
    SimRun::new(scenario, 3, &[], watch).unwrap().finish().unwrap();
    let (code, lines, summary) = records(&file, &[]);
    let refused: Vec<_> = lines.iter().filter(|line| text(line, "status") == "refused").collect();
    assert!(code == 0 && refused.is_empty(), "{code}: {refused:?}");
    assert_eq!(lines.len() as u64, count(&file));
    assert_eq!(number(&summary, "frames"), count(&file), "none is passed over");
    let of = |medium: &str, form: &str| {
        let lines = lines.iter().filter(|line| text(line, "to").ends_with(medium));
        lines.filter(|line| text(line, "form") == form).count()
    };
    // On wires all frames are of the full form. On radios long ones are, without their hops.
    assert!(of(":9191", "full") > 20 && of(":9191", "compact") == 0);
    assert!(of(":9190", "full") > 5 && of(":9190", "compact") > 20);
}
