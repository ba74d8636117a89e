//! Pages that need nothing but themselves: text, tables and charts in one file.
//!
//! A page fetches nothing and runs no script, which its own policy tells the browser; it is light
//! or dark as the reader's system is.

mod chart;
mod words;

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use sealane_protocol::Level;
use sealane_seal::Class;

use crate::book::{BookRow, BookTable, ReportBook, ReportCorrection};
use crate::cost::{CostLink, CostReport, CostStep, FigureSource, WayRow, text};
use crate::measure::{BenchFigure, BenchHost, FigureUnit};

use chart::{ChartBar, ChartBarPart, ChartDot, ChartGroup, bars, columns, dots};

const STYLE: &str = include_str!("page/style.css");

/// The page of `sealane-bench cost`.
pub(crate) fn cost(report: &CostReport) -> String {
    let mut body = String::new();
    let input = escaped(&report.input.to_string());
    let _ = write!(body, "<p>{}</p><p>{input}</p>", conditions(&report.machine));
    body += "<h2>What follows</h2><ul>";
    for line in &report.advice {
        let (head, rest) = line.split_once(": ").unwrap_or(("", line));
        let _ = write!(body, "<li><b>{}</b> {}</li>", escaped(head), escaped(rest));
    }
    body += "</ul>";
    body += "<h2>What it costs</h2>";
    body += &legend();
    for TimeChart { title, is_in } in TIMES {
        let rows = report.ways.iter().enumerate().filter(|(_, row)| is_in(row));
        let times = rows.map(|(at, row)| time_bar(at, row)).collect();
        body += &bars(title, "CPU of one message", times, |ns| BenchFigure::ns(ns).to_string());
    }
    let rows = report.ways.iter().enumerate();
    let bytes = rows.map(|(at, row)| size_bar(at, row)).collect();
    let shown = |bytes| BenchFigure::of(bytes, FigureUnit::Bytes).to_string();
    body += BYTES_LEGEND;
    body += &bars("Bytes: what a link carries", "bytes of one message", bytes, shown);
    let all: Vec<ChartDot> = report
        .ways
        .iter()
        .enumerate()
        .filter(|(_, row)| is_unsigned(row))
        .map(|(at, row)| dot(at, row))
        .collect();
    body += &dots("Size against time, in memory", &all);
    body += "<h2>Words</h2>";
    let meanings: Vec<Vec<String>> =
        words::MEANINGS.iter().map(|row| row.map(str::to_owned).into()).collect();
    body += &table(&["word", "meaning"], &meanings, &[0, 1]);
    body += "<h2>From end to end</h2>";
    body += &ways(report);
    let _ = write!(body, "<h2>Links</h2><p>{}</p>", escaped(text::LINKS));
    let links: Vec<Vec<String>> = report.links.iter().map(text::link).collect();
    body += &table(&text::LINKS_HEAD, &links, &[0]);
    if !report.radios.is_empty() {
        let _ = write!(body, "<h2>Radios</h2><p>{}</p>", escaped(text::RADIOS));
        let radios: Vec<Vec<String>> = report.radios.iter().map(text::radio).collect();
        body += &table(&text::RADIOS_HEAD, &radios, &[0, 1]);
    }
    body += "<h2>Each step alone</h2>";
    body += &steps(report);
    document("What a message costs", &body)
}

/// A chart of times, and which ways stand in it.
struct TimeChart {
    title: &'static str,
    is_in: fn(&WayRow) -> bool,
}

/// All of them. A signature takes ten times as long as all the
/// rest in memory, so that signed messages would make the others' bars too short to be compared.
const TIMES: [TimeChart; 3] = [
    TimeChart { title: "Time: both ends and a relay in memory", is_in: is_unsigned },
    TimeChart {
        title: "Time: the same, signed",
        is_in: |row| is_in_memory(row) && !is_unsigned(row),
    },
    TimeChart { title: "Time: over a hub, in all processes", is_in: |row| !is_in_memory(row) },
];

fn is_in_memory(row: &WayRow) -> bool {
    row.way.link == CostLink::Memory
}

fn is_unsigned(row: &WayRow) -> bool {
    is_in_memory(row) && row.way.seal.is_none_or(|(class, _)| class != Class::Signed)
}

/// Whether a way gives what most users want: nobody but a group can read it, and what a hub has
/// acknowledged is on its disk.
fn is_candidate(row: &WayRow) -> bool {
    let is_kept = matches!(row.way.link, CostLink::Memory | CostLink::WebSocket(Level::Disk));
    is_kept && row.way.seal.is_some_and(|(class, _)| class == Class::Group)
}

/// The page of `sealane-bench report`.
pub(crate) fn book(book: &ReportBook) -> String {
    let mut body = format!("<p>{}</p>{BOOK_WORDS}{COLUMNS_LEGEND}", conditions(&book.machine));
    body += &index(book);
    for report in &book.reports {
        let (title, about) = (escaped(report.title), escaped(report.about));
        let name = report.name.name();
        let _ = write!(body, "<h2 id=\"{name}\">{name}: {title}</h2><p>{about}</p>");
        for (at, table) in report.tables.iter().enumerate() {
            body += &book_table(table, &format!("{name}-{at}"));
        }
        body += "<h3>What the report says, and what is right</h3><ul>";
        for ReportCorrection { said, right } in &report.corrections {
            let _ = write!(body, "<li><q>{}</q>: {}</li>", escaped(said), escaped(right));
        }
        body += "</ul>";
    }
    document("Five reports, reproduced", &body)
}

/// The contents of the page, each with a link to it.
fn index(book: &ReportBook) -> String {
    let mut list = String::from("<nav><ul>");
    for report in &book.reports {
        let (name, title) = (report.name.name(), escaped(report.title));
        let _ = write!(list, "<li><a href=\"#{name}\">{name}</a>: {title}<ul>");
        for (at, table) in report.tables.iter().enumerate() {
            let _ = write!(list, "<li><a href=\"#{name}-{at}\">{}</a></li>", escaped(&table.title));
        }
        list += "</ul></li>";
    }
    list + "</ul></nav>"
}

const BOOK_WORDS: &str = "<p>Sealane began with five reports about other programs. Each row has \
    what the report <b>published</b>; what its own way of doing it takes on this machine, the \
    <b>reproduced baseline</b>; and what <b>Sealane</b> takes. The factor says how many times \
    better Sealane is than the baseline, and below 1 it is worse. <i>Demanded</i> is what was set \
    as a goal before it was measured. The bars of one row are on one scale from 0, which is not \
    that of the next row.</p>";

const COLUMNS_LEGEND: &str = "<ul class=\"legend\"><li><i class=\"published\"></i>published</li>\
    <li><i class=\"baseline\"></i>reproduced baseline</li>\
    <li><i class=\"sealane\"></i>Sealane</li></ul>";

/// A chart of a table whose figures are of one unit, and the table.
fn book_table(table: &BookTable, id: &str) -> String {
    let (title, note) = (escaped(&table.title), escaped(&table.note));
    let mut text = format!("<h3 id=\"{id}\">{title}</h3><p>{note}</p>");
    let figures = table.rows.iter().flat_map(|row| [row.published, row.baseline, row.sealane]);
    let mut units = figures.flatten().map(|figure| figure.unit);
    let unit = units.next();
    if let Some(unit) = unit.filter(|unit| units.all(|other| other == *unit)) {
        let groups: Vec<ChartGroup> = table.rows.iter().map(group).collect();
        text += &columns(&table.title, &groups, unit);
    }
    let rows: Vec<Vec<String>> = table.rows.iter().map(BookRow::cells).collect();
    text + &self::table(&crate::book::HEAD, &rows, &[0, 5])
}

fn group(row: &BookRow) -> ChartGroup {
    let value = |figure: Option<BenchFigure>| figure.map(|figure| figure.value);
    ChartGroup {
        name: row.name.clone(),
        values: [
            ("published", value(row.published)),
            ("baseline", value(row.baseline)),
            ("sealane", value(row.sealane)),
        ],
        factor: row.ratio(),
    }
}

/// A whole page.
fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><main><h1>{title}</h1>{body}</main></body></html>\n",
        title = escaped(title)
    )
}

/// When, where and of what the figures are.
fn conditions(machine: &BenchHost) -> String {
    let note =
        if machine.build == "debug" { " <b>Debug build: no figure to go by.</b>" } else { "" };
    let time = UNIX_EPOCH + Duration::from_secs(machine.time_s);
    let time = humantime::format_rfc3339_seconds(time).to_string();
    let (date, time) = time.split_once('T').unwrap_or((&time, ""));
    let time = time.get(..5).unwrap_or_default();
    format!("Measured on {date} at {time} UTC: {}.{note}", escaped(&machine.to_string()))
}

fn legend() -> String {
    let mut text = String::from(
        "<p>The ways are sorted, the cheapest first. The numbers are those of the table below. A \
         pointer on a part shows its value.</p><ul class=\"legend\"><li>★ least CPU of those that \
         encrypt for a group, and are on disk where there is a hub</li>",
    );
    for step in CostStep::ALL {
        let (name, says) = (step.name(), step.says());
        let _ = write!(text, "<li><i class=\"{name}\"></i>{name}: {says}</li>");
    }
    text + "</ul>"
}

const BYTES_LEGEND: &str = "<ul class=\"legend\"><li><i class=\"body\"></i>body</li>\
    <li><i class=\"around\"></i>seal and frame; over a hub, envelope and delivery, both ways</li>\
    <li><i class=\"saved\"></i>saved by compression</li><li>★ fewest bytes of those that encrypt \
    for a group, and are on disk where there is a hub</li></ul>";

fn name(at: usize, row: &WayRow) -> String {
    let composed = if row.source == FigureSource::Measured { "" } else { " *" };
    format!("{}. {}{composed}", at + 1, words::way(&row.way))
}

fn time_bar(at: usize, row: &WayRow) -> ChartBar {
    let parts = CostStep::ALL.map(|step| ChartBarPart {
        class: step.name(),
        value: row.steps[step as usize],
        is_counted: true,
    });
    ChartBar { name: name(at, row), parts: parts.into(), is_candidate: is_candidate(row) }
}

fn size_bar(at: usize, row: &WayRow) -> ChartBar {
    let part =
        |class, value: f64, is_counted| ChartBarPart { class, value: value.max(0.0), is_counted };
    let parts = vec![
        part("body", row.pressed, true),
        part("around", row.wire - row.pressed, true),
        part("saved", row.body - row.pressed, false),
    ];
    ChartBar { name: name(at, row), parts, is_candidate: is_candidate(row) }
}

fn dot(at: usize, row: &WayRow) -> ChartDot {
    ChartDot { label: (at + 1).to_string(), name: name(at, row), x: row.wire, y: row.cpu_ns.median }
}

fn ways(report: &CostReport) -> String {
    let head = ["way", "body", "wire", "at rest", "p50", "p99", "allocations", "CPU s per million"];
    let head = [&head[..], &["where the CPU goes"]].concat();
    let rows = report.ways.iter().enumerate().map(|(at, row)| text::way(row, name(at, row), "–"));
    table(&head, &rows.collect::<Vec<_>>(), &[0, 8])
}

fn steps(report: &CostReport) -> String {
    let rows: Vec<Vec<String>> = report.steps.iter().map(|row| text::step(row, "–")).collect();
    table(&text::STEPS_HEAD, &rows, &[0, 1])
}

/// A table; cells of the `texts` columns stand to the left.
fn table(head: &[&str], rows: &[Vec<String>], texts: &[usize]) -> String {
    let class = |at| if texts.contains(&at) { " class=\"text\"" } else { "" };
    let mut table = String::from("<div class=\"wide\"><table><thead><tr>");
    for (at, name) in head.iter().enumerate() {
        let _ = write!(table, "<th{}>{}</th>", class(at), escaped(name));
    }
    table += "</tr></thead><tbody>";
    for row in rows {
        table += "<tr>";
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(table, "<td{}>{}</td>", class(at), escaped(cell));
        }
        table += "</tr>";
    }
    table + "</tbody></table></div>"
}

/// Text within a page. What it shows may come from anybody's files.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\n', "<br>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_no_markup() {
        let page = document("a<b>", &table(&["h"], &[vec!["<img src=x>&".to_owned()]], &[]));
        assert!(page.contains("<title>a&lt;b&gt;</title>") && !page.contains("<img"));
        assert!(page.contains("<td>&lt;img src=x&gt;&amp;</td>"));
    }
}
