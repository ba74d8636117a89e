use std::fmt;

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
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

impl FigureUnit {
    /// The unit's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FigureUnit::Bytes => "bytes",
            FigureUnit::Nanoseconds => "ns",
            FigureUnit::Allocations => "allocations",
            FigureUnit::PerSecond => "perSecond",
            FigureUnit::MegabytesPerSecond => "megabytesPerSecond",
            FigureUnit::Mebibytes => "mebibytes",
            FigureUnit::Percent => "percent",
            FigureUnit::Times => "times",
            FigureUnit::Count => "count",
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, FigureUnit::PerSecond | FigureUnit::MegabytesPerSecond | FigureUnit::Times)
    }
}

/// A number and what it counts, shown so that people can read it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BenchFigure {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: FigureUnit,
}

impl BenchFigure {
    /// Nanoseconds.
    pub fn ns(value: f64) -> Self {
        Self { value, unit: FigureUnit::Nanoseconds }
    }

    /// Bytes.
    pub fn bytes(value: usize) -> Self {
        Self { value: value as f64, unit: FigureUnit::Bytes }
    }

    /// Any other.
    pub fn of(value: f64, unit: FigureUnit) -> Self {
        Self { value, unit }
    }
}

impl fmt::Display for BenchFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        let shown = match self.unit {
            FigureUnit::Nanoseconds => return f.pad(&time(value)),
            FigureUnit::Bytes => format!("{} B", grouped(value)),
            FigureUnit::Allocations => trimmed(value),
            FigureUnit::PerSecond => format!("{}/s", grouped(value)),
            FigureUnit::MegabytesPerSecond => format!("{} MB/s", significant(value)),
            FigureUnit::Mebibytes => format!("{} MiB", significant(value)),
            FigureUnit::Percent if value.abs() < 1.0 => format!("{value:.3} %"),
            FigureUnit::Percent => format!("{value:.1} %"),
            FigureUnit::Count => grouped(value),
            FigureUnit::Times => format!("{}x", significant(value)),
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
        let shown = |value, unit| BenchFigure::of(value, unit).to_string();
        assert_eq!(shown(3_151_811.0, FigureUnit::Bytes), "3,151,811 B");
        assert_eq!(shown(12_807_000.0, FigureUnit::Nanoseconds), "12.8 ms");
        assert_eq!(shown(2.2, FigureUnit::Nanoseconds), "2.20 ns");
        assert_eq!(shown(1.5, FigureUnit::Allocations), "1.50");
        assert_eq!(shown(-1234.0, FigureUnit::PerSecond), "-1,234/s");
        assert_eq!(shown(12.44, FigureUnit::Times), "12.4x");
        assert_eq!(shown(12.44, FigureUnit::Percent), "12.4 %");
        assert_eq!(shown(0.0432, FigureUnit::Percent), "0.043 %");
        assert_eq!(shown(28_800.4, FigureUnit::Count), "28,800");
    }
}
