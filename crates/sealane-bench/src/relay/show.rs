//! The findings: lines for people, figures for programs, and the demands on them.

use std::fmt;

use serde::Serialize;
use serde_json::json;

use crate::failure::{BenchFailure, Result};

/// One thing that was found, with the part that it is of.
#[derive(Debug, Clone)]
pub(crate) enum RelayFinding {
    /// A line for people.
    Line(String),
    Figure {
        part: &'static str,
        what: String,
        value: f64,
        unit: &'static str,
    },
    /// A demand on a figure: the least or the most, and whether it was met.
    Demand {
        part: &'static str,
        what: String,
        value: f64,
        bound: f64,
        is_met: bool,
    },
}

impl RelayFinding {
    /// The finding for programs, if it is one for them.
    pub(crate) fn record(&self) -> Option<impl Serialize> {
        match self {
            RelayFinding::Line(_) => None,
            RelayFinding::Figure { part, what, value, unit } => {
                Some(json!({"part": part, "what": what, "value": value, "unit": unit}))
            }
            RelayFinding::Demand { part, what, value, bound, is_met } => Some(json!({
                "part": part, "what": what, "value": value, "demanded": bound, "met": is_met,
            })),
        }
    }
}

/// Takes what is found.
pub(crate) struct RelayFindingSink<'a> {
    each: &'a mut dyn FnMut(&RelayFinding),
    part: &'static str,
    broken: Vec<String>,
}

impl<'a> RelayFindingSink<'a> {
    pub(super) fn new(each: &'a mut dyn FnMut(&RelayFinding)) -> Self {
        Self { each, part: "", broken: Vec::new() }
    }

    pub(super) fn part(&mut self, name: &'static str, title: &str) {
        self.part = name;
        self.line(&format!("\n{title}"));
    }

    pub(super) fn line(&mut self, line: &str) {
        (self.each)(&RelayFinding::Line(line.to_owned()));
    }

    pub(super) fn figure(&mut self, what: &str, value: f64, unit: &'static str) {
        let (part, what) = (self.part, what.to_owned());
        (self.each)(&RelayFinding::Figure { part, what, value, unit });
    }

    pub(super) fn at_most(&mut self, what: &str, value: f64, bound: f64) {
        self.demand(what, value, bound, value <= bound);
    }

    pub(super) fn at_least(&mut self, what: &str, value: f64, bound: f64) {
        self.demand(what, value, bound, value >= bound);
    }

    fn demand(&mut self, what: &str, value: f64, bound: f64, is_met: bool) {
        let (part, what) = (self.part, what.to_owned());
        (self.each)(&RelayFinding::Demand { part, what, value, bound, is_met });
    }

    /// A requirement that is no figure.
    pub(super) fn must(&mut self, holds: bool, otherwise: &str) {
        if !holds {
            self.line(&format!("BROKEN: {otherwise}"));
            self.broken.push(format!("{}: {otherwise}", self.part));
        }
    }

    pub(super) fn finish(self) -> Result<()> {
        if self.broken.is_empty() { Ok(()) } else { Err(BenchFailure::of(self.broken.join("; "))) }
    }
}

impl fmt::Display for RelayFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RelayFinding::Line(line) => f.write_str(line),
            RelayFinding::Figure { what, value, unit, .. } => {
                write!(f, "{what:<56}{value:>10.3} {unit}")
            }
            RelayFinding::Demand { what, value, bound, is_met, .. } => {
                let verdict = if *is_met { "met" } else { "MISSED" };
                write!(f, "{what:<56}{value:>10.3}; demanded {bound}: {verdict}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_figure_is_told_and_what_does_not_hold_fails() {
        let mut lines = Vec::new();
        let mut each = |entry: &RelayFinding| lines.push(entry.to_string());
        let mut show = RelayFindingSink::new(&mut each);
        show.part("speed", "How fast");
        show.at_least("of bare", 0.4, 0.5);
        show.at_most("of bare", 0.4, 0.5);
        assert!(show.finish().is_ok());
        assert!(lines[1].ends_with("0.400; demanded 0.5: MISSED"), "{lines:?}");
        assert!(lines[2].ends_with(": met"), "{lines:?}");
        let mut each = |_: &RelayFinding| ();
        let mut show = RelayFindingSink::new(&mut each);
        show.part("kills", "Kills");
        show.must(true, "well");
        show.must(false, "twice");
        assert_eq!(show.finish().unwrap_err().to_string(), "kills: twice");
    }
}
