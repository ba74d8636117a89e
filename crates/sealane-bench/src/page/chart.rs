//! Charts as SVG.

use std::fmt::Write;

use super::escaped;
use crate::measure::{BenchFigure, FigureUnit};

/// A bar of several parts.
pub(super) struct ChartBar {
    pub(super) name: String,
    pub(super) parts: Vec<ChartBarPart>,
    /// Whether it can be the best: others lack something that most users want.
    pub(super) is_candidate: bool,
}

impl ChartBar {
    /// The value behind the bar.
    fn counted(&self) -> f64 {
        let counted = self.parts.iter().filter(|part| part.is_counted);
        counted.map(|part| part.value).sum()
    }

    /// Its length.
    fn whole(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }
}

/// A part of a bar; its class says its colour.
pub(super) struct ChartBarPart {
    pub(super) class: &'static str,
    pub(super) value: f64,
    /// Whether it belongs to the sum that stands behind the bar.
    pub(super) is_counted: bool,
}

/// A point in a plane, both axes logarithmic.
pub(super) struct ChartDot {
    pub(super) label: String,
    pub(super) name: String,
    pub(super) x: f64,
    pub(super) y: f64,
}

const WIDTH: f64 = 900.0;
/// Where names end, and behind them the sums. Both stand before the bars, so that a phone shows
/// them without scrolling.
const NAMES: f64 = 345.0;
const SUMS: f64 = 415.0;
/// The width of a figure behind a bar.
const FIGURE: f64 = 90.0;
const LINE: f64 = 24.0;

/// Bars below each other, on one scale from 0, the smallest first. The first candidate is marked.
pub(super) fn bars(
    title: &str,
    what: &str,
    mut bars: Vec<ChartBar>,
    shown: fn(f64) -> String,
) -> String {
    let largest = bars.iter().map(ChartBar::whole).fold(0.0, f64::max);
    if largest <= 0.0 {
        return String::new();
    }
    bars.sort_by(|one, other| one.counted().total_cmp(&other.counted()));
    let best = bars.iter().position(|bar| bar.is_candidate).filter(|_| bars.len() > 1);
    let scale = (WIDTH - SUMS) / largest;
    let mut chart = open(title, what, bars.len() as f64 * LINE + 8.0);
    for (line, bar) in bars.iter().enumerate() {
        let is_best = best == Some(line);
        write_bar(&mut chart, bar, line as f64 * LINE + 4.0, scale, shown, is_best);
    }
    chart + "</svg></figure>"
}

fn write_bar(
    chart: &mut String,
    bar: &ChartBar,
    y: f64,
    scale: f64,
    shown: fn(f64) -> String,
    is_best: bool,
) {
    let (name, counted) = (escaped(&bar.name), shown(bar.counted()));
    let (star, class) = if is_best { ("★ ", "name best") } else { ("", "name") };
    let (sum, line) = (SUMS - 8.0, y + 14.0);
    let _ = write!(
        chart,
        "<text x=\"{NAMES}\" y=\"{line:.0}\" class=\"{class}\"><title>{name}: {counted}</title>\
         {star}{name}</text><text x=\"{sum}\" y=\"{line:.0}\" class=\"{class}\">{counted}</text>"
    );
    let mut x = SUMS;
    for part in bar.parts.iter().filter(|part| part.value > 0.0) {
        let width = part.value * scale;
        let share = part.value / bar.whole() * 100.0;
        let _ = write!(
            chart,
            "<rect class=\"{}\" x=\"{x:.2}\" y=\"{y:.0}\" width=\"{width:.2}\" height=\"18\">\
             <title>{}: {}, {share:.0} %</title></rect>",
            part.class,
            part.class,
            shown(part.value)
        );
        x += width;
    }
}

/// Values of one thing, each with its class; nothing where there is none.
pub(super) struct ChartGroup {
    pub(super) name: String,
    pub(super) values: [(&'static str, Option<f64>); 3],
    /// How many times better the last is than the one before it.
    pub(super) factor: Option<f64>,
}

/// Groups of bars, each group on a scale of its own from 0, since groups differ by orders of
/// magnitude. The factor stands behind them.
pub(super) fn columns(title: &str, groups: &[ChartGroup], unit: FigureUnit) -> String {
    const BAR: f64 = 11.0;
    let shown =
        |group: &ChartGroup| group.values.iter().filter(|(_, value)| value.is_some()).count();
    let height = |group: &ChartGroup| shown(group) as f64 * BAR + 10.0;
    let heights: f64 = groups.iter().map(height).sum();
    let mut chart = open(title, "a bar for each column, each row on its scale", heights + 8.0);
    let mut y = 4.0;
    for group in groups {
        let middle = y + height(group) / 2.0;
        let (right, name) = (SUMS - 8.0, escaped(&group.name));
        let _ = write!(chart, "<text x=\"{NAMES}\" y=\"{middle:.1}\" class=\"name\">{name}</text>");
        if let Some(factor) = group.factor {
            let class = if factor < 0.995 { "name worse" } else { "name better" };
            let factor = BenchFigure::of(factor, FigureUnit::Times);
            let _ = write!(
                chart,
                "<text x=\"{right}\" y=\"{middle:.1}\" class=\"{class}\">{factor}</text>"
            );
        }
        let values = || group.values.iter().filter_map(|(class, value)| Some((class, (*value)?)));
        let largest = values().map(|(_, value)| value).fold(f64::MIN_POSITIVE, f64::max);
        let scale = (WIDTH - SUMS - FIGURE) / largest;
        for (class, value) in values() {
            let (width, figure) = ((value * scale).max(1.0), BenchFigure::of(value, unit));
            let _ = write!(
                chart,
                "<rect class=\"{class}\" x=\"{SUMS}\" y=\"{y:.1}\" width=\"{width:.1}\" \
                 height=\"{:.0}\"><title>{class}: {figure}</title></rect><text x=\"{:.1}\" \
                 y=\"{:.1}\" class=\"small\">{figure}</text>",
                BAR - 1.0,
                SUMS + width + 4.0,
                y + 8.5,
            );
            y += BAR;
        }
        y += 10.0;
    }
    chart + "</svg></figure>"
}

/// Dots on axes that begin below the smallest.
pub(super) fn dots(title: &str, dots: &[ChartDot]) -> String {
    const HEIGHT: f64 = 420.0;
    const LEFT: f64 = 80.0;
    const FOOT: f64 = 50.0;
    let xs = ChartAxis::of(dots.iter().map(|dot| dot.x), LEFT, WIDTH - 30.0);
    let ys = ChartAxis::of(dots.iter().map(|dot| dot.y), HEIGHT - FOOT, 20.0);
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
            BenchFigure::ns(value)
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
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{}: {:.0} B, {}</title></circle>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            escaped(&dot.name),
            dot.x,
            BenchFigure::ns(dot.y),
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
struct ChartAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl ChartAxis {
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
