//! One program for all targets: the environment names the law to which libFuzzer's inputs go.
#![no_main]

use std::sync::OnceLock;

use sealane_fuzz::{FuzzLaw, TARGETS};

/// Names the target.
const VARIABLE: &str = "SEALANE_FUZZ_TARGET";

static LAW: OnceLock<FuzzLaw> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: LAW.get_or_init(law),
    |bytes: &[u8]| LAW.get().expect("libFuzzer initializes first")(bytes)
);

fn law() -> FuzzLaw {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let target = TARGETS.iter().find(|(target, _)| *target == name);
    target.unwrap_or_else(|| panic!("{VARIABLE} is `{name}`, which is no target")).1
}
