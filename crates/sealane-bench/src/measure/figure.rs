use std::fmt;

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; less is better.
    Bytes,
    /// Nanoseconds; less is better.
    Nanoseconds,
    /// Calls of the allocator; less is better.
    Allocations,
    /// Things a second; more is better.
    PerSecond,
    /// Megabytes (10^6 bytes) a second; more is better.
    MegabytesPerSecond,
    /// Mebibytes; less is better.
    Mebibytes,
    /// A part of a hundred; less is better.
    Percent,
    /// How many times as much.
    Times,
    /// Things; less is better.
    Count,
}

impl Unit {
    /// The unit's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Nanoseconds => "ns",
            Unit::Allocations => "allocations",
            Unit::PerSecond => "perSecond",
            Unit::MegabytesPerSecond => "megabytesPerSecond",
            Unit::Mebibytes => "mebibytes",
            Unit::Percent => "percent",
            Unit::Times => "times",
            Unit::Count => "count",
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Unit::PerSecond | Unit::MegabytesPerSecond | Unit::Times)
    }
}

/// A number and what it counts, shown so that people can read it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl Figure {
    /// Nanoseconds.
    pub fn ns(value: f64) -> Self {
        Self { value, unit: Unit::Nanoseconds }
    }

    /// Bytes.
    pub fn bytes(value: usize) -> Self {
        Self { value: value as f64, unit: Unit::Bytes }
    }

    /// Any other.
    pub fn of(value: f64, unit: Unit) -> Self {
        Self { value, unit }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        let shown = match self.unit {
            Unit::Nanoseconds => return f.pad(&time(value)),
            Unit::Bytes => format!("{} B", grouped(value)),
            Unit::Allocations => trimmed(value),
            Unit::PerSecond => format!("{}/s", grouped(value)),
            Unit::MegabytesPerSecond => format!("{} MB/s", significant(value)),
            Unit::Mebibytes => format!("{} MiB", significant(value)),
            Unit::Percent if value.abs() < 1.0 => format!("{value:.3} %"),
            Unit::Percent => format!("{value:.1} %"),
            Unit::Count => grouped(value),
            Unit::Times => format!("{}x", significant(value)),
        };
        f.pad(&shown)
    }
}

fn time(ns: f64) -> String {
    let (scaled, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", significant(scaled))
}

/// Three digits that say something.
fn significant(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => grouped(value),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn trimmed(value: f64) -> String {
    if value.fract() == 0.0 { grouped(value) } else { format!("{value:.2}") }
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        let shown = |value, unit| Figure::of(value, unit).to_string();
        assert_eq!(shown(3_151_811.0, Unit::Bytes), "3,151,811 B");
        assert_eq!(shown(12_807_000.0, Unit::Nanoseconds), "12.8 ms");
        assert_eq!(shown(2.2, Unit::Nanoseconds), "2.20 ns");
        assert_eq!(shown(1.5, Unit::Allocations), "1.50");
        assert_eq!(shown(-1234.0, Unit::PerSecond), "-1,234/s");
        assert_eq!(shown(12.44, Unit::Times), "12.4x");
        assert_eq!(shown(12.44, Unit::Percent), "12.4 %");
        assert_eq!(shown(0.0432, Unit::Percent), "0.043 %");
        assert_eq!(shown(28_800.4, Unit::Count), "28,800");
    }
}
