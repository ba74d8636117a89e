//! The page: one file with a map on which the machines move. It fetches nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::SimMachineEvent;
use crate::limits::{MAX_PAGE_PICTURES, MAX_PAGE_PLACES};
use crate::place::SimPlace;
use crate::{SimSpan, SimTime};

/// Pictures of a run, taken at even distances.
#[derive(Debug)]
pub struct RunPage {
    title: String,
    seed: u64,
    names: Vec<String>,
    every: SimSpan,
    lasts: SimSpan,
    next: SimTime,
    /// The pictures so far, as the page has them.
    pictures: String,
    /// The machines, and the changes since the last picture.
    shown: Vec<MapMachine>,
    changed: BTreeSet<u32>,
    senders: BTreeSet<u32>,
    delivered: u64,
}

/// A machine on the map.
#[derive(Debug, Clone, Copy, Default)]
struct MapMachine {
    place: SimPlace,
    state: MapMachineState,
    is_captured: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum MapMachineState {
    #[default]
    Away,
    Awake,
    Asleep,
}

impl RunPage {
    pub(crate) fn new(title: &str, seed: u64, lasts: SimSpan, names: Vec<String>) -> Self {
        let pictures = (MAX_PAGE_PLACES / (names.len() as u64).max(1)).min(MAX_PAGE_PICTURES);
        let every = SimSpan(lasts.0.div_ceil(pictures.max(1))).max(SimSpan::from_s(1));
        Self {
            title: title.to_owned(),
            seed,
            every,
            lasts,
            next: SimTime(0) + every,
            pictures: String::new(),
            shown: vec![MapMachine::default(); names.len()],
            names,
            changed: BTreeSet::new(),
            senders: BTreeSet::new(),
            delivered: 0,
        }
    }

    pub(crate) fn sends(&mut self, now: SimTime, node: u32) {
        self.pass(now);
        self.senders.insert(node);
    }

    pub(crate) fn delivers(&mut self, now: SimTime) {
        self.pass(now);
        self.delivered += 1;
    }

    pub(crate) fn happens(
        &mut self,
        now: SimTime,
        what: SimMachineEvent,
        node: u32,
        place: SimPlace,
    ) {
        self.pass(now);
        let Some(shown) = self.shown.get_mut(node as usize) else { return };
        shown.place = place;
        match what {
            SimMachineEvent::Join | SimMachineEvent::Wake => shown.state = MapMachineState::Awake,
            SimMachineEvent::Leave | SimMachineEvent::Empty => shown.state = MapMachineState::Away,
            SimMachineEvent::Sleep => shown.state = MapMachineState::Asleep,
            SimMachineEvent::Capture => shown.is_captured = true,
            SimMachineEvent::Move => {}
        }
        self.changed.insert(node);
    }

    /// Takes the pictures that are due.
    fn pass(&mut self, now: SimTime) {
        while now >= self.next {
            self.take();
            self.next = self.next + self.every;
        }
    }

    fn take(&mut self) {
        let comma = if self.pictures.is_empty() { "" } else { ",\n" };
        let _ = write!(self.pictures, "{comma}{{\"c\":[");
        let changed = self.changed.iter().filter_map(|n| Some((n, self.shown.get(*n as usize)?)));
        for (at, (node, shown)) in changed.enumerate() {
            let (comma, SimPlace { x, y }) = (if at > 0 { "," } else { "" }, shown.place);
            let state = shown.state as u8 + 4 * u8::from(shown.is_captured);
            let _ = write!(self.pictures, "{comma}[{node},{x:.1},{y:.1},{state}]");
        }
        self.pictures += "],\"s\":[";
        for (at, node) in self.senders.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(self.pictures, "{comma}{node}");
        }
        let _ = write!(self.pictures, "],\"d\":{}}}", self.delivered);
        self.changed.clear();
        self.senders.clear();
        self.delivered = 0;
    }

    /// The page, with what is to be said below the map.
    pub fn to_html(mut self, words: &str) -> String {
        self.pass(SimTime(0) + self.lasts);
        if !self.changed.is_empty() || self.pictures.is_empty() {
            self.take();
        }
        let names = self.names.join("\",\"");
        let data = format!(
            "{{\"every\":{},\"names\":[\"{names}\"],\"pictures\":[{}]}}",
            self.every.as_s(),
            self.pictures
        );
        let title = format!("{}, seed {}", self.title, self.seed);
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        // Names have no letter that could end the script: a to z, digits and `-`.
        with_map(PAGE)
            .replace("@TITLE@", &title)
            .replace("@WORDS@", &words)
            .replace("@DATA@", &data)
    }
}

const PAGE: &str = include_str!("page.html");

/// A page with what all maps have: how they look, and what they draw.
pub(crate) fn with_map(page: &str) -> String {
    let [style, script] = [include_str!("map.css"), include_str!("map.js")];
    page.replace("@STYLE@", style.trim_end()).replace("@MAP@", script.trim_end())
}
