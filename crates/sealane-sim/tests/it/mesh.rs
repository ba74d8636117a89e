//! The demands on the mesh: `cargo xtask prove mesh` prints rows of demands and measurements. The
//! daily tests run the same with smaller numbers.

mod churn;
mod density;
mod failover;

use std::fmt::Display;

/// A number that a proof sets in its environment.
fn size(key: &str, usual: u64) -> u64 {
    std::env::var(key).map_or(usual, |value| value.parse().unwrap())
}

/// Prints a row, and fails the test if what is demanded is missed.
fn row(what: &str, demanded: impl Display, measured: impl Display, is_met: bool) {
    show(what, &demanded, &measured, is_met);
    assert!(is_met, "{what}: demanded {demanded}, measured {measured}");
}

/// Prints a row of what is missed here and there, and fails the test where demands decide.
fn wish(what: &str, demanded: impl Display, measured: impl Display, is_met: bool) {
    show(what, &demanded, &measured, is_met);
    let decides = std::env::var_os("SEALANE_DEMANDS").is_some();
    assert!(is_met || !decides, "{what}: demanded {demanded}, measured {measured}");
}

fn show(what: &str, demanded: &impl Display, measured: &impl Display, is_met: bool) {
    let verdict = if is_met { "met" } else { "MISSED" };
    // The first row of a test would stand behind its name.
    println!("\n{what:<44} | {demanded:<30} | {measured:<44} | {verdict}");
}

/// Seconds of microseconds.
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}
