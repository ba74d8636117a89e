//! Traces of vehicles that SUMO writes (`--fcd-output`): timesteps with vehicles in them.
//!
//! Of XML this reads what SUMO writes: tags with attributes, comments, instructions. Text between
//! tags, and tags and attributes that say something else, are passed over.

use std::collections::BTreeMap;

use crate::limits::{
    MAX_SIM_NODES, MAX_SIM_S, MAX_TRACE_BYTES, MAX_TRACE_PLACES, MAX_TRACE_TAG_BYTES,
};
use crate::place::SimPlace;
use crate::{SimError, SimSpan, SimTime};

/// As far as a place may be from the corner, in metres: a 32-bit number tells centimetres there.
const MAX_METRES: f64 = 100_000.0;

/// Where vehicles were when, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub struct VehicleTrace {
    tracks: Vec<Vec<TraceSample>>,
}

#[derive(Debug, Clone, Copy)]
struct TraceSample {
    at: SimTime,
    x: f32,
    y: f32,
}

impl VehicleTrace {
    /// Reads a trace.
    ///
    /// # Errors
    ///
    /// [`SimError::Trace`], with the line.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        if text.len() > MAX_TRACE_BYTES {
            return Err(SimError::Trace(format!(
                "the trace is longer than {MAX_TRACE_BYTES} bytes"
            )));
        }
        let mut reader = TraceReader::default();
        let mut rest = text;
        while let Some(open) = rest.find('<') {
            let from = rest.get(open..).unwrap_or_default();
            let line = || {
                text.get(..text.len() - from.len()).unwrap_or_default().matches('\n').count() + 1
            };
            let wrong = |what: String| SimError::Trace(format!("line {}: {what}", line()));
            let tag = tag(from).map_err(|what| wrong(what.to_owned()))?;
            reader.take(tag).map_err(wrong)?;
            rest = from.get(tag.len()..).unwrap_or_default();
        }
        if reader.trace.tracks.is_empty() {
            return Err(SimError::Trace("no vehicle is in any timestep".to_owned()));
        }
        Ok(reader.trace)
    }

    /// From the beginning to the last place of any vehicle.
    pub fn length(&self) -> SimSpan {
        let last = self.tracks.iter().filter_map(|track| track.last()).map(|sample| sample.at);
        last.max().unwrap_or_default() - SimTime(0)
    }

    /// How many vehicles it has.
    pub fn vehicles(&self) -> usize {
        self.tracks.len()
    }

    /// Where a vehicle is, while it is anywhere: between two places on the straight line.
    pub fn place(&self, vehicle: usize, now: SimTime) -> Option<SimPlace> {
        let track = self.tracks.get(vehicle)?;
        let next = track.partition_point(|sample| sample.at <= now);
        let before = track.get(next.checked_sub(1)?)?;
        let Some(after) = track.get(next) else {
            return (before.at == now).then(|| before.place());
        };
        let part = (now - before.at).as_s() / (after.at - before.at).as_s();
        Some(before.place().toward(after.place(), part))
    }
}

impl TraceSample {
    fn place(&self) -> SimPlace {
        SimPlace { x: f64::from(self.x), y: f64::from(self.y) }
    }
}

/// The part of a trace that was read so far.
#[derive(Debug, Default)]
struct TraceReader<'a> {
    trace: VehicleTrace,
    numbers: BTreeMap<&'a str, usize>,
    /// Of the timestep that is open.
    at: Option<SimTime>,
    last: Option<SimTime>,
    places: usize,
}

impl<'a> TraceReader<'a> {
    /// Takes a whole tag, from `<` to `>`.
    fn take(&mut self, tag: &'a str) -> Result<(), String> {
        let inner = tag.trim_start_matches('<').trim_end_matches('>');
        let name = inner.split([' ', '\t', '\r', '\n', '/']).next().unwrap_or_default();
        match name {
            "timestep" => self.begin(inner),
            "vehicle" => self.vehicle(inner),
            // Its first piece is empty where it closes.
            "" if inner == "/timestep" => {
                self.at = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, tag: &'a str) -> Result<(), String> {
        let time_s = number(tag, "time", 0.0, MAX_SIM_S as f64)?;
        let at = SimTime((time_s * 1e6).round() as u64);
        if self.last.is_some_and(|last| at <= last) {
            return Err(format!("the time {at} is not after the one before"));
        }
        self.last = Some(at);
        // `<timestep time="0.00"/>` has nobody in it.
        self.at = (!tag.ends_with('/')).then_some(at);
        Ok(())
    }

    fn vehicle(&mut self, tag: &'a str) -> Result<(), String> {
        let at = self.at.ok_or("a vehicle outside of a timestep")?;
        let id = attribute(tag, "id").ok_or("a vehicle without `id`")?;
        let x = number(tag, "x", -MAX_METRES, MAX_METRES)? as f32;
        let y = number(tag, "y", -MAX_METRES, MAX_METRES)? as f32;
        let next = self.trace.tracks.len();
        let index = *self.numbers.entry(id).or_insert(next);
        if index == next {
            if next == MAX_SIM_NODES {
                return Err(format!("more than {MAX_SIM_NODES} vehicles"));
            }
            self.trace.tracks.push(vec![]);
        }
        self.places += 1;
        if self.places > MAX_TRACE_PLACES {
            return Err(format!("more than {MAX_TRACE_PLACES} places"));
        }
        let Some(track) = self.trace.tracks.get_mut(index) else { return Ok(()) };
        if track.last().is_some_and(|last| last.at == at) {
            return Err("a vehicle that is there twice".to_owned());
        }
        track.push(TraceSample { at, x, y });
        Ok(())
    }
}

/// The tag that a text begins with, to its `>`.
fn tag(from: &str) -> Result<&str, &'static str> {
    let end = if from.starts_with("<!--") {
        from.find("-->").map(|at| at + 3)
    } else {
        // A `>` within quotes is a part of a value; SUMO writes it as `&gt;`.
        let mut quote = None;
        let end = from.bytes().take(MAX_TRACE_TAG_BYTES + 1).position(|byte| match quote {
            Some(open) => {
                quote = Some(open).filter(|open| *open != byte);
                false
            }
            None => {
                quote = Some(byte).filter(|byte| matches!(byte, b'"' | b'\''));
                byte == b'>'
            }
        });
        if end.is_none() && from.len() > MAX_TRACE_TAG_BYTES {
            return Err("a tag that is too long");
        }
        end.map(|at| at + 1)
    };
    end.and_then(|end| from.get(..end)).ok_or("a tag that does not end")
}

/// The value of an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag.split_once(char::is_whitespace)?.1;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, next) = after.get(1..)?.split_once(quote)?;
        if key.trim() == name {
            return Some(value);
        }
        rest = next;
    }
}

fn number(tag: &str, name: &str, least: f64, most: f64) -> Result<f64, String> {
    let text = attribute(tag, name).ok_or_else(|| format!("`{name}` is missing"))?;
    let value: f64 = text.parse().map_err(|_| format!("{name}: no number"))?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(format!("{name} = {value} is not from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As SUMO 1.15 writes it, with persons and a vehicle that comes later.
    const SAMPLE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- generated on 2026-11-23 by Eclipse SUMO sumo <Version 1.15.0> -->
<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <timestep time="0.00">
        <vehicle id="a>b" x="10.00" y="-1.60" angle="90.00" type="car" speed="0.00" lane="e_0"/>
    </timestep>
    <timestep time="1.00">
        <vehicle id="a>b" x="12.00" y="-1.60" angle="90.00" type="car" speed="2.00" lane="e_0"/>
        <person id="p" x="1.00" y="1.00" angle="0.00" speed="0.00" edge="e"/>
        <vehicle y='7' x='5' id='c'/>
    </timestep>
    <timestep time="2.00"/>
    <timestep time="3.00">
        <vehicle id="c" x="9.00" y="7.00"/>
    </timestep>
</fcd-export>
"#;

    #[test]
    fn vehicles_are_where_sumo_says_and_nowhere_before_and_after() {
        let trace = VehicleTrace::parse(SAMPLE).unwrap();
        assert_eq!((trace.vehicles(), trace.length()), (2, SimSpan::from_s(3)));
        let at = |vehicle, ms: u64| trace.place(vehicle, SimTime(ms * 1000)).map(|place| place.x);
        assert_eq!(
            [0, 500, 1000, 1001].map(|ms| at(0, ms)),
            [Some(10.0), Some(11.0), Some(12.0), None]
        );
        assert_eq!(
            [999, 1000, 2000, 3000].map(|ms| at(1, ms)),
            [None, Some(5.0), Some(7.0), Some(9.0)]
        );
        assert_eq!(at(2, 0), None);
    }

    #[test]
    fn what_is_no_trace_is_refused_by_line() {
        for (from, to, said) in [
            ("x=\"10.00\"", "x=\"east\"", "line 5: x: no number"),
            ("x=\"10.00\"", "x=\"NaN\"", "line 5: x = NaN"),
            ("x=\"10.00\"", "x=\"1e9\"", "line 5: x = 1000000000 is not from"),
            ("x=\"10.00\" ", "", "line 5: `x` is missing"),
            ("id=\"a>b\"", "name=\"a\"", "line 5: a vehicle without `id`"),
            ("time=\"1.00\"", "time=\"0.00\"", "line 7: the time 0.000000 is not after"),
            ("time=\"1.00\"", "time=\"-1\"", "line 7: time = -1"),
            ("<timestep time=\"2.00\"/>", "<vehicle id=\"z\" x=\"1\" y=\"1\"/>", "outside"),
            ("id='c'", "id='a>b'", "line 10: a vehicle that is there twice"),
            ("</fcd-export>", "</fcd-export", "line 16: a tag that does not end"),
            ("-->", "", "line 2: a tag that does not end"),
        ] {
            let text = SAMPLE.replacen(from, to, 1);
            assert_ne!(text, SAMPLE);
            let error = VehicleTrace::parse(&text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}: {said}");
        }
        assert!(VehicleTrace::parse("").is_err());
        let long = format!("<timestep time=\"{}\">", "0".repeat(MAX_TRACE_TAG_BYTES));
        assert!(VehicleTrace::parse(&long).unwrap_err().to_string().contains("too long"));
    }
}
