//! Charts as SVG.

use std::fmt::Write;

use super::escaped;
use crate::measure::{Figure, Unit};

/// A bar of several parts.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<Part>,
}

/// A part of a bar; its class says its colour.
pub(super) struct Part {
    pub(super) class: &'static str,
    pub(super) value: f64,
    /// Whether it belongs to the sum that stands behind the bar.
    pub(super) is_counted: bool,
}

/// A point in a plane, both axes logarithmic.
pub(super) struct Dot {
    pub(super) label: String,
    pub(super) name: String,
    pub(super) x: f64,
    pub(super) y: f64,
}

const WIDTH: f64 = 1080.0;
const NAMES: f64 = 440.0;
const SUMS: f64 = 90.0;
const LINE: f64 = 24.0;

/// Bars below each other, on one scale from 0.
pub(super) fn bars(title: &str, what: &str, bars: &[Bar], shown: fn(f64) -> String) -> String {
    let sum = |bar: &Bar| bar.parts.iter().map(|part| part.value).sum::<f64>();
    let largest = bars.iter().map(sum).fold(0.0, f64::max);
    if largest <= 0.0 {
        return String::new();
    }
    let scale = (WIDTH - NAMES - SUMS) / largest;
    let mut chart = open(title, what, bars.len() as f64 * LINE + 8.0);
    for (line, bar) in bars.iter().enumerate() {
        let y = line as f64 * LINE + 4.0;
        let _ = write!(
            chart,
            "<text x=\"{:.0}\" y=\"{:.0}\" class=\"name\">{}</text>",
            NAMES - 8.0,
            y + 15.0,
            escaped(&bar.name)
        );
        let (mut x, mut counted) = (NAMES, 0.0);
        for part in bar.parts.iter().filter(|part| part.value > 0.0) {
            let width = part.value * scale;
            let _ = write!(
                chart,
                "<rect class=\"{}\" x=\"{x:.2}\" y=\"{y:.0}\" width=\"{width:.2}\" height=\"18\">\
                 <title>{}: {}</title></rect>",
                part.class,
                part.class,
                shown(part.value)
            );
            x += width;
            counted += if part.is_counted { part.value } else { 0.0 };
        }
        let _ = write!(
            chart,
            "<text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
            x + 6.0,
            y + 15.0,
            shown(counted)
        );
    }
    chart + "</svg></figure>"
}

/// Values of one thing, each with its class; nothing where there is none.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) values: [(&'static str, Option<f64>); 3],
}

/// Groups of bars on one logarithmic scale, since what is compared differs by orders of magnitude.
pub(super) fn columns(title: &str, groups: &[Group], unit: Unit) -> String {
    const BAR: f64 = 9.0;
    let values = groups.iter().flat_map(|group| group.values).filter_map(|(_, value)| value);
    let scale = Axis::of(values, NAMES, WIDTH - SUMS);
    let shown = |group: &Group| group.values.iter().filter(|(_, value)| value.is_some()).count();
    let height = |group: &Group| shown(group) as f64 * BAR + 8.0;
    let heights: f64 = groups.iter().map(height).sum();
    let mut chart = open(&format!("{title} (logarithmic)"), "a bar for each column", heights + 8.0);
    let mut y = 4.0;
    for group in groups {
        let middle = y + height(group) / 2.0;
        let _ = write!(
            chart,
            "<text x=\"{:.0}\" y=\"{middle:.1}\" class=\"name\">{}</text>",
            NAMES - 8.0,
            escaped(&group.name)
        );
        for (class, value) in &group.values {
            let Some(value) = *value else { continue };
            let end = scale.coordinate(value).max(NAMES + 1.0);
            let _ = write!(
                chart,
                "<rect class=\"{class}\" x=\"{NAMES}\" y=\"{y:.1}\" width=\"{:.1}\" \
                 height=\"{:.0}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"small\">{}</text>",
                end - NAMES,
                BAR - 1.0,
                end + 4.0,
                y + 7.5,
                Figure::of(value, unit)
            );
            y += BAR;
        }
        y += 8.0;
    }
    chart + "</svg></figure>"
}

/// Dots on axes that begin below the smallest.
pub(super) fn dots(title: &str, dots: &[Dot]) -> String {
    const HEIGHT: f64 = 420.0;
    const LEFT: f64 = 80.0;
    const FOOT: f64 = 50.0;
    let xs = Axis::of(dots.iter().map(|dot| dot.x), LEFT, WIDTH - 30.0);
    let ys = Axis::of(dots.iter().map(|dot| dot.y), HEIGHT - FOOT, 20.0);
    let mut chart = open(title, "bytes of a frame, CPU of a message", HEIGHT);
    for value in xs.ticks() {
        let (x, y) = (xs.coordinate(value), HEIGHT - FOOT);
        let _ = write!(
            chart,
            "<line x1=\"{x:.1}\" y1=\"20\" x2=\"{x:.1}\" y2=\"{y}\"/><text x=\"{x:.1}\" \
             y=\"{:.0}\" class=\"tick\">{value:.0} B</text>",
            y + 18.0
        );
    }
    for value in ys.ticks() {
        let y = ys.coordinate(value);
        let _ = write!(
            chart,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.0}\" y2=\"{y:.1}\"/><text x=\"{:.0}\" \
             y=\"{:.1}\" class=\"name\">{}</text>",
            WIDTH - 30.0,
            LEFT - 8.0,
            y + 4.0,
            Figure::ns(value)
        );
    }
    let mut taken: Vec<(f64, f64)> = vec![];
    for dot in dots {
        let (x, y) = (xs.coordinate(dot.x), ys.coordinate(dot.y));
        // Numbers of dots that lie on each other stand beside each other.
        let near = taken.iter().filter(|(a, b)| (a - x).abs() < 14.0 && (b - y).abs() < 12.0);
        let shift = near.count() as f64 * 18.0;
        taken.push((x, y));
        let _ = write!(
            chart,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{}</title></circle>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            escaped(&dot.name),
            x + 8.0 + shift,
            y + 4.0,
            escaped(&dot.label)
        );
    }
    let _ = write!(
        chart,
        "<text x=\"{:.0}\" y=\"{:.0}\" class=\"tick\">bytes that a link carries; less is better on \
         both axes; the numbers are those of the table</text></svg></figure>",
        (LEFT + WIDTH) / 2.0,
        HEIGHT - 8.0
    );
    chart
}

fn open(title: &str, what: &str, height: f64) -> String {
    format!(
        "<figure><figcaption>{0}</figcaption><svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"{0}: {1}\">",
        escaped(title),
        escaped(what)
    )
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0)
            .fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let low = low.min(high);
        Self { low: low / 1.15, high: high * 1.15, from, to }
    }

    fn coordinate(&self, value: f64) -> f64 {
        let part = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.from + part * (self.to - self.from)
    }

    /// Values of one digit within the axis: all of them, or 1, 2 and 5 where those are many.
    fn ticks(&self) -> Vec<f64> {
        let all = |digits: &[f64]| {
            let powers = (-2..12).map(|power| 10_f64.powi(power));
            let values = powers.flat_map(|power| digits.iter().map(move |digit| digit * power));
            values.filter(|value| (self.low..=self.high).contains(value)).collect::<Vec<_>>()
        };
        let few = all(&[1.0, 2.0, 5.0]);
        if few.len() >= 3 { few } else { all(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]) }
    }
}
