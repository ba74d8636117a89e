//! Scenarios: TOML that is read, checked and unfolded before anything runs.

mod air;
mod file;
mod going;
mod plan;
mod text;
mod who;

use std::collections::BTreeMap;

pub use plan::Scenario;
pub(crate) use plan::{
    CapturedBehaviour, FlowReceivers, LinkImpairments, LinkPlan, MediumPlan, MediumTopology,
    MeshPlan, MeshRole, MotionKind, NodePlacement, NodePlan, ProgramKind, ScenarioAction,
    StreetPlan,
};
use text::ScenarioSpot;

use crate::limits::{
    MAX_SCENARIO_BYTES, MAX_SIM_EVENTS, MAX_SIM_FLOWS, MAX_SIM_MEDIA, MAX_SIM_MOTIONS, MAX_SIM_S,
};
use crate::place::SimPlace;
use crate::{SimError, SimSpan};

/// The version of the format.
const VERSION: u64 = 1;
/// How far machines may be from the corner, in metres.
const MAX_METRES: f64 = 1e7;
/// Beyond a run, in seconds or as a factor: what a time in a scenario may be at most.
const MAX_SECONDS: f64 = MAX_SIM_S as f64;

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    ///
    /// [`SimError::Syntax`], [`SimError::Value`]: both name the line.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        if text.len() > MAX_SCENARIO_BYTES {
            let what = format!("the scenario is longer than {MAX_SCENARIO_BYTES} bytes");
            return Err(SimError::Syntax(what));
        }
        let file: file::ScenarioFile =
            toml::from_str(text).map_err(|error| text::syntax(text, &error))?;
        let top = |what: String| SimError::Value(what);
        if file.version != VERSION {
            return Err(top(format!("version = {} is not {VERSION}", file.version)));
        }
        if !(0.001..=MAX_SECONDS).contains(&file.duration_s) {
            let long = file.duration_s;
            return Err(top(format!("duration_s = {long} is not from 0.001 to {MAX_SECONDS}")));
        }
        let step_ms = file.step_ms.unwrap_or(100);
        if !(10..=10_000).contains(&step_ms) {
            return Err(top(format!("step_ms = {step_ms} is not from 10 to 10000")));
        }
        let counts = [
            ("medium", file.media.len(), MAX_SIM_MEDIA),
            ("motion", file.motions.len(), MAX_SIM_MOTIONS),
            ("flow", file.flows.len(), MAX_SIM_FLOWS),
            ("event", file.events.len(), MAX_SIM_EVENTS),
        ];
        if let Some((what, count, most)) = counts.iter().find(|(_, count, most)| count > most) {
            return Err(top(format!("{count} of [[{what}]] are more than {most}")));
        }
        Self::empty(&file, step_ms).filled(text, &file)
    }

    /// Reads what somebody wants done now: an event as JSON, without its time.
    ///
    /// # Errors
    ///
    /// [`SimError::Order`].
    pub(crate) fn order(&self, text: &str) -> Result<ScenarioAction, SimError> {
        let refused = |error: &dyn std::fmt::Display| SimError::Order(error.to_string());
        let mut fields: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(text).map_err(|error| refused(&error))?;
        // An order is an event whose time is now.
        if fields.insert("at_s".to_owned(), 0.into()).is_some() {
            return Err(SimError::Order("at_s: an order is done at once".to_owned()));
        }
        let event: file::ScenarioEventTable =
            serde_json::from_value(fields.into()).map_err(|error| refused(&error))?;
        let spot = ScenarioSpot { text: "", at: 0, table: "event", name: "" };
        self.act(&spot, &event).map_err(|error| {
            let said = error.to_string();
            SimError::Order(said.strip_prefix(NO_LINE).unwrap_or(&said).to_owned())
        })
    }

    fn empty(file: &file::ScenarioFile, step_ms: u64) -> Self {
        Self {
            name: file.name.clone().unwrap_or_else(|| "scenario".to_owned()),
            seed: file.seed.unwrap_or(1),
            duration: seconds(file.duration_s),
            step: SimSpan::from_ms(step_ms),
            mesh: None,
            media: vec![],
            motions: vec![],
            nodes: vec![],
            groups: BTreeMap::new(),
            links: vec![],
            flows: vec![],
            events: vec![],
        }
    }

    /// Fills in the tables, each kind after the kinds that it names.
    fn filled(mut self, text: &str, file: &file::ScenarioFile) -> Result<Self, SimError> {
        let spot = |table, name, at| ScenarioSpot { text, at, table, name };
        let named = ScenarioSpot { text, at: 0, table: "name", name: &self.name };
        named.plain_name()?;
        for medium in &file.media {
            let spot = spot("medium", &medium.get_ref().name, medium.span().start);
            let plan = air::medium(&spot, medium.get_ref())?;
            distinct(&spot, self.media.iter().map(|other| &other.name))?;
            self.media.push(plan);
        }
        for motion in &file.motions {
            let spot = spot("motion", &motion.get_ref().name, motion.span().start);
            let plan = going::motion(&spot, motion.get_ref())?;
            distinct(&spot, self.motions.iter().map(|other| &other.name))?;
            self.motions.push(plan);
        }
        for node in &file.nodes {
            let spot = spot("node", &node.get_ref().name, node.span().start);
            self.add_nodes(&spot, node.get_ref())?;
        }
        if self.nodes.is_empty() {
            return Err(SimError::Value("there is no [[node]]".to_owned()));
        }
        self.mesh = match &file.mesh {
            Some(mesh) => Some(self.mesh_of(text, mesh)?),
            None => None,
        };
        for link in &file.links {
            let spot = spot("link", "", link.span().start);
            self.add_links(&spot, link.get_ref())?;
        }
        let mut deliveries = 0;
        for flow in &file.flows {
            let spot = spot("flow", "", flow.span().start);
            deliveries = self.add_flow(&spot, flow.get_ref(), deliveries)?;
        }
        for event in &file.events {
            let spot = spot("event", "", event.span().start);
            self.add_event(&spot, event.get_ref())?;
        }
        Ok(self)
    }
}

/// How refusals of an order begin, which has no lines.
const NO_LINE: &str = "line 1: [[event]]: ";

/// A name that is new among those of its kind.
fn distinct<'a>(
    spot: &ScenarioSpot<'_>,
    mut others: impl Iterator<Item = &'a String>,
) -> Result<(), SimError> {
    spot.plain_name()?;
    match others.any(|other| other == spot.name) {
        true => Err(spot.refuses("another one has this name")),
        false => Ok(()),
    }
}

/// A number of seconds, to the microsecond.
fn seconds(s: f64) -> SimSpan {
    SimSpan((s * 1e6).round() as u64)
}

/// A number of milliseconds, to the microsecond.
fn milliseconds(ms: f64) -> SimSpan {
    SimSpan((ms * 1e3).round() as u64)
}

/// A place of two numbers.
fn place(spot: &ScenarioSpot<'_>, key: &str, value: [f64; 2]) -> Result<SimPlace, SimError> {
    let [x, y] = value;
    let bounds = -MAX_METRES..=MAX_METRES;
    Ok(SimPlace {
        x: spot.number(key, Some(x), x, bounds.clone())?,
        y: spot.number(key, Some(y), y, bounds)?,
    })
}

#[cfg(test)]
mod tests;
