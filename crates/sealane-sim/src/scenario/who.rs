//! `[[node]]`, `[[link]]`, `[[flow]]` and `[[event]]`: machines, and what names them.

use std::ops::Range;

use sealane_document::limits::{APPLICATION_LOGS, APPLICATION_TYPES};
use sealane_message::DataType;
use toml::Spanned;

use super::file;
use super::going::rectangle;
use super::plan::{
    CapturedBehaviour, EventPlan, FlowPlan, FlowReceivers, LinkPlan, MeshPlan, MeshRole,
    MotionSeat, NodePlacement, NodePlan, ProgramKind, Scenario, ScenarioAction, SleepCycle,
};
use super::text::{ScenarioSpot, nearest};
use super::{MAX_METRES, MAX_SECONDS, milliseconds, place, seconds};
use crate::limits::{
    MAX_SIM_DELIVERIES, MAX_SIM_DOCUMENT_BYTES, MAX_SIM_KEEPERS, MAX_SIM_LINKS, MAX_SIM_MEMBERS,
    MAX_SIM_NODES, MAX_SIM_UNIT_BYTES,
};
use crate::place::SimPlace;
use crate::{SimError, SimSpan};

/// All machines.
const EVERYBODY: &str = "*";

impl Scenario {
    /// A machine, or a group of machines.
    pub(super) fn add_nodes(
        &mut self,
        spot: &ScenarioSpot<'_>,
        file: &file::ScenarioNodeTable,
    ) -> Result<(), SimError> {
        spot.plain_name()?;
        let (first, count) = (self.nodes.len(), file.count.unwrap_or(1));
        if count == 0 || first + count > MAX_SIM_NODES {
            return Err(spot.refuses(format!("count: 1 to {MAX_SIM_NODES} machines in all")));
        }
        let is_member = |node: &&NodePlan| matches!(node.kind, ProgramKind::Mesh { .. });
        let members = self.nodes.iter().filter(is_member).count();
        if file.kind == "mesh" && members + count > MAX_SIM_MEMBERS {
            return Err(spot.refuses(format!("a mesh has {MAX_SIM_MEMBERS} members at most")));
        }
        let media = self.media_of(spot, file)?;
        let motion = self.motion_of(spot, file)?;
        let kind = kind(spot, file)?;
        let second = |key, value| spot.number(key, value, 0.0, 0.0..=MAX_SECONDS);
        let joins_s = second("joins_s", file.joins_s)?;
        let every_s = second("joins_every_s", file.joins_every_s)?;
        let leaves = file.leaves_s.map(|s| second("leaves_s", Some(s)).map(seconds)).transpose()?;
        let battery = file.battery_j;
        let battery_j =
            battery.map(|j| spot.number("battery_j", Some(j), j, 0.001..=1e9)).transpose()?;
        let sleep = sleep(spot, file)?;
        for index in 0..count {
            let name = match file.count {
                None => file.name.clone(),
                Some(_) => format!("{}-{}", file.name, index + 1),
            };
            if self.groups.insert(name.clone(), first + index..first + index + 1).is_some() {
                return Err(spot.refuses(format!("another machine or group is called `{name}`")));
            }
            self.nodes.push(NodePlan {
                name,
                kind,
                media: media.clone(),
                place: placement(spot, file, index)?,
                motion: motion.map(|rider| MotionSeat { seat: rider.seat + index, ..rider }),
                joins: seconds(joins_s + every_s * index as f64),
                leaves,
                battery_j,
                sleep,
                command: file.command.clone().unwrap_or_default(),
            });
        }
        let group = self.groups.insert(file.name.clone(), first..first + count);
        match group.filter(|_| file.count.is_some()) {
            Some(_) => Err(spot.refuses("another machine or group has this name")),
            None => Ok(()),
        }
    }

    /// The groups of a live run.
    pub(super) fn mesh_of(
        &self,
        text: &str,
        file: &Spanned<file::ScenarioMeshTable>,
    ) -> Result<MeshPlan, SimError> {
        let file::ScenarioMeshTable { group, ends, keys } = file.get_ref();
        let spot = |name| ScenarioSpot { text, at: file.span().start, table: "mesh", name };
        for name in [Some(group), ends.as_ref()].into_iter().flatten() {
            spot(name).plain_name()?;
        }
        if ends.as_ref() == Some(group) {
            return Err(spot(group).refuses("the mesh is a group of its own: call ends otherwise"));
        }
        let members = self.nodes.iter().filter(|node| node.kind.holds_keys()).count();
        if members > MAX_SIM_MEMBERS {
            return Err(
                spot(group).refuses(format!("{members} members, at most {MAX_SIM_MEMBERS}"))
            );
        }
        Ok(MeshPlan { group: group.clone(), ends: ends.clone(), keys: keys.clone() })
    }

    fn media_of(
        &self,
        spot: &ScenarioSpot<'_>,
        file: &file::ScenarioNodeTable,
    ) -> Result<Vec<usize>, SimError> {
        let mut media = vec![];
        for name in &file.media {
            let medium = self.medium_named(spot, name)?;
            if media.contains(&medium) {
                return Err(spot.refuses(format!("media: `{name}` stands there twice")));
            }
            media.push(medium);
        }
        Ok(media)
    }

    fn medium_named(&self, spot: &ScenarioSpot<'_>, name: &str) -> Result<usize, SimError> {
        let found = self.media.iter().position(|medium| medium.name == *name);
        let known = self.media.iter().map(|medium| medium.name.as_str());
        found.ok_or_else(|| spot.refuses(nothing("medium", name, known)))
    }

    /// The motion that a table names, and the first seat in it that is free.
    fn motion_of(
        &self,
        spot: &ScenarioSpot<'_>,
        file: &file::ScenarioNodeTable,
    ) -> Result<Option<MotionSeat>, SimError> {
        let Some(name) = &file.motion else { return Ok(None) };
        let found = self.motions.iter().position(|motion| motion.name == *name);
        let known = self.motions.iter().map(|motion| motion.name.as_str());
        let motion = found.ok_or_else(|| spot.refuses(nothing("motion", name, known)))?;
        let riders = self.nodes.iter().filter_map(|node| node.motion);
        let seat = riders.filter(|rider| rider.motion == motion).count();
        Ok(Some(MotionSeat { motion, seat }))
    }

    /// The machines that a name stands for.
    fn machines_named(
        &self,
        spot: &ScenarioSpot<'_>,
        name: &str,
    ) -> Result<Range<usize>, SimError> {
        if name == EVERYBODY {
            return Ok(0..self.nodes.len());
        }
        let known = self.groups.keys().map(String::as_str);
        let found = self.groups.get(name).cloned();
        found.ok_or_else(|| spot.refuses(nothing("machine or group", name, known)))
    }

    fn all_named(&self, spot: &ScenarioSpot<'_>, names: &[String]) -> Result<Vec<u32>, SimError> {
        let mut all = vec![];
        for name in names {
            all.extend(self.machines_named(spot, name)?.map(|node| node as u32));
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// Links between each of some machines and each of others.
    pub(super) fn add_links(
        &mut self,
        spot: &ScenarioSpot<'_>,
        file: &file::ScenarioLinkTable,
    ) -> Result<(), SimError> {
        let medium = self.medium_named(spot, &file.medium)?;
        if self.media.get(medium).is_none_or(|medium| medium.profile.is_shared()) {
            let name = &file.medium;
            return Err(spot.refuses(format!("medium `{name}` is one air for all, and no links")));
        }
        let span = |key, value: Option<f64>| {
            let span = value.map(|ms| spot.number(key, Some(ms), ms, 0.0..=60_000.0));
            Ok::<_, SimError>(span.transpose()?.map(milliseconds))
        };
        let loss = file.loss.map(|loss| spot.number("loss", Some(loss), loss, 0.0..=1.0));
        let (loss, delay) = (loss.transpose()?, span("delay_ms", file.delay_ms)?);
        let jitter = span("jitter_ms", file.jitter_ms)?;
        let from = self.machines_named(spot, &file.from)?;
        let to = self.machines_named(spot, &file.to)?;
        let one_way = file.one_way.unwrap_or(false);
        for name in from.clone().chain(to.clone()) {
            let node = self.nodes.get(name).filter(|node| node.media.contains(&medium));
            if node.is_none() {
                let name = self.nodes.get(name).map_or("", |node| &node.name);
                return Err(spot.refuses(format!("`{name}` is not on `{}`", file.medium)));
            }
        }
        for from in from {
            for to in to.clone().filter(|to| *to != from) {
                let link =
                    LinkPlan { medium, from: from as u32, to: to as u32, loss, delay, jitter };
                self.links.push(link);
                if !one_way {
                    self.links.push(LinkPlan { from: link.to, to: link.from, ..link });
                }
                if self.links.len() > MAX_SIM_LINKS {
                    return Err(spot.refuses(format!("more than {MAX_SIM_LINKS} links")));
                }
            }
        }
        Ok(())
    }

    /// A flow of messages, and how many deliveries all flows so far ask for.
    pub(super) fn add_flow(
        &mut self,
        spot: &ScenarioSpot<'_>,
        file: &file::ScenarioFlowTable,
        before: u64,
    ) -> Result<u64, SimError> {
        let from = self.machines_named(spot, &file.from)?;
        if let Some(mute) = self
            .nodes
            .get(from.clone())
            .and_then(|nodes| nodes.iter().find(|node| !node.kind.takes_messages()))
        {
            let name = &mute.name;
            return Err(spot.refuses(format!("`{name}` is none that messages are made for")));
        }
        let to = match file.to.as_str() {
            EVERYBODY => FlowReceivers::Everybody,
            name => FlowReceivers::OneOf(self.machines_named(spot, name)?),
        };
        self.understand(spot, &from, &to)?;
        let document = self.document(spot, file, &from)?;
        let every = milliseconds(spot.needed("every_ms", Some(file.every_ms), 0.1..=1e8)?);
        if !(MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(&file.bytes) {
            let bytes = file.bytes;
            let bounds = format!("{MIN_MESSAGE_BYTES} to {MAX_MESSAGE_BYTES}");
            return Err(spot.refuses(format!("bytes = {bytes} is not from {bounds}")));
        }
        let starts = seconds(spot.number("from_s", file.from_s, 0.0, 0.0..=MAX_SECONDS)?);
        let until_s = spot.number("until_s", file.until_s, MAX_SECONDS, 0.0..=MAX_SECONDS)?;
        let ends = seconds(until_s).min(self.duration);
        let each = ends.0.saturating_sub(starts.0) / every.0.max(1) + 1;
        let receivers = match to {
            FlowReceivers::Everybody => self.nodes.len() as u64,
            FlowReceivers::OneOf(_) => 1,
        };
        // Twice: what is sent at random may be more, and an answer is a message too.
        let asked = each.saturating_mul(from.len() as u64).saturating_mul(receivers * 2);
        let all = before.saturating_add(asked);
        if all > MAX_SIM_DELIVERIES {
            return Err(
                spot.refuses(format!("all flows: more than {MAX_SIM_DELIVERIES} deliveries"))
            );
        }
        let answered = file.answered_ms;
        let answered = answered.map(|ms| spot.number("answered_ms", Some(ms), ms, 0.0..=1e7));
        self.flows.push(FlowPlan {
            from,
            to,
            every,
            bytes: file.bytes,
            starts,
            ends,
            is_random: file.random.unwrap_or(false),
            is_urgent: file.urgent.unwrap_or(false),
            answered: answered.transpose()?.map(milliseconds),
            document,
        });
        Ok(all)
    }

    /// The type of the documents that a flow is of: one for applications, whose bodies may be
    /// anything.
    fn document(
        &self,
        spot: &ScenarioSpot<'_>,
        file: &file::ScenarioFlowTable,
        from: &Range<usize>,
    ) -> Result<Option<DataType>, SimError> {
        let Some(number) = file.document else { return Ok(None) };
        let types = *APPLICATION_TYPES.start()..=*APPLICATION_LOGS.end();
        if !types.contains(&number) {
            let (first, last) = (types.start(), types.end());
            return Err(spot.refuses(format!("document = {number} is not from {first} to {last}")));
        }
        let unfit = [
            ("answered_ms", file.answered_ms.is_some()),
            ("urgent", file.urgent.is_some()),
            ("a receiver", file.to != EVERYBODY),
        ];
        if let Some((name, _)) = unfit.into_iter().find(|(_, is_given)| *is_given) {
            return Err(spot.refuses(format!("{name} does not go with `document`: all keep them")));
        }
        let mesh = |node: &&NodePlan| matches!(node.kind, ProgramKind::Mesh { .. });
        let senders = self.nodes.get(from.clone()).unwrap_or_default();
        if let Some(other) = senders.iter().find(|node| !mesh(node)) {
            let name = &other.name;
            return Err(spot.refuses(format!("`{name}` is not of kind `mesh`: it keeps none")));
        }
        if self.nodes.iter().filter(mesh).count() > MAX_SIM_KEEPERS {
            let cause = format!("more than {MAX_SIM_KEEPERS} machines would keep documents");
            return Err(spot.refuses(cause));
        }
        if file.bytes > MAX_SIM_DOCUMENT_BYTES {
            let cause = format!("bytes: a document has at most {MAX_SIM_DOCUMENT_BYTES}");
            return Err(spot.refuses(cause));
        }
        Ok(Some(DataType::from_number(number)))
    }

    /// Receivers run what their senders do.
    fn understand(
        &self,
        spot: &ScenarioSpot<'_>,
        from: &Range<usize>,
        to: &FlowReceivers,
    ) -> Result<(), SimError> {
        let FlowReceivers::OneOf(to) = to else { return Ok(()) };
        let of = |range: &Range<usize>| self.nodes.get(range.clone()).unwrap_or_default();
        let Some(first) = of(from).first() else { return Ok(()) };
        let mut others = of(from).iter().chain(of(to));
        match others.find(|other| !first.kind.talks_to(&other.kind)) {
            Some(other) => {
                let (one, other) = (&first.name, &other.name);
                Err(spot.refuses(format!("`{one}` and `{other}` run different programs")))
            }
            None => Ok(()),
        }
    }

    /// Something that happens.
    pub(super) fn add_event(
        &mut self,
        spot: &ScenarioSpot<'_>,
        file: &file::ScenarioEventTable,
    ) -> Result<(), SimError> {
        let at = seconds(spot.needed("at_s", Some(file.at_s), 0.0..=MAX_SECONDS)?);
        let act = self.act(spot, file)?;
        self.events.push(EventPlan { at, act });
        Ok(())
    }

    /// The action of an event.
    pub(super) fn act(
        &self,
        spot: &ScenarioSpot<'_>,
        file: &file::ScenarioEventTable,
    ) -> Result<ScenarioAction, SimError> {
        let name = file.act.as_str();
        spot.known("do", name, &ACTS)?;
        let has_sides = matches!(name, "partition" | "cut" | "mend");
        let has_who = !has_sides && !matches!(name, "heal" | "loss");
        let unfit = [
            ("who", file.who.is_some(), has_who),
            ("sides", file.sides.is_some(), has_sides),
            ("as", file.behaviour.is_some(), name == "capture"),
            ("to", file.to.is_some(), name == "move"),
            ("medium", file.medium.is_some(), name == "loss"),
            ("loss", file.loss.is_some(), name == "loss"),
        ];
        spot.none_of(name, &unfit.map(|(key, is_there, fits)| (key, is_there && !fits)))?;
        let who = || match &file.who {
            Some(names) => self.all_named(spot, names),
            None => Err(spot.refuses("who is missing")),
        };
        Ok(match name {
            "join" => ScenarioAction::Join(who()?),
            "leave" => ScenarioAction::Leave(who()?),
            "sleep" => ScenarioAction::Sleep(who()?),
            "wake" => ScenarioAction::Wake(who()?),
            "capture" => ScenarioAction::Capture { who: who()?, by: capture(spot, file)? },
            "move" => {
                let to = file.to.ok_or_else(|| spot.refuses("to is missing"))?;
                ScenarioAction::Move { who: who()?, to: place(spot, "to", to)? }
            }
            "partition" => {
                let sides = file.sides.as_deref().unwrap_or_default();
                ScenarioAction::Partition(
                    sides
                        .iter()
                        .map(|side| self.all_named(spot, side))
                        .collect::<Result<_, _>>()?,
                )
            }
            "heal" => ScenarioAction::Heal,
            "cut" | "mend" => {
                let sides = file.sides.as_deref().unwrap_or_default();
                let [one, other] = sides else {
                    return Err(spot.refuses("sides: two lists of machines are needed"));
                };
                let (one, other) = (self.all_named(spot, one)?, self.all_named(spot, other)?);
                if name == "cut" {
                    ScenarioAction::Cut { one, other }
                } else {
                    ScenarioAction::Mend { one, other }
                }
            }
            _ => {
                let medium = self.medium_named(spot, file.medium.as_deref().unwrap_or_default())?;
                ScenarioAction::Loss { medium, loss: spot.needed("loss", file.loss, 0.0..=1.0)? }
            }
        })
    }
}

const KINDS: [&str; 4] = ["beacon", "flood", "mesh", "process"];
const ACTS: [&str; 11] = [
    "capture",
    "cut",
    "heal",
    "join",
    "leave",
    "loss",
    "mend",
    "move",
    "partition",
    "sleep",
    "wake",
];
/// A message has its number in it.
const MIN_MESSAGE_BYTES: usize = 8;
/// A message with its header is one unit of the largest medium.
const MAX_MESSAGE_BYTES: usize = MAX_SIM_UNIT_BYTES - 128;

fn nothing<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let hint = nearest(name, known);
    let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    format!("no {what} is called `{name}`{hint}")
}

fn capture(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioEventTable,
) -> Result<CapturedBehaviour, SimError> {
    match file.behaviour.as_deref() {
        Some("black-hole") => Ok(CapturedBehaviour::BlackHole),
        Some("replay") => Ok(CapturedBehaviour::Replay),
        Some("noise") => Ok(CapturedBehaviour::Noise),
        Some("silence") => Ok(CapturedBehaviour::Silence),
        _ => Err(spot.refuses("as is none of black-hole, noise, replay, silence")),
    }
}

fn kind(spot: &ScenarioSpot<'_>, file: &file::ScenarioNodeTable) -> Result<ProgramKind, SimError> {
    let name = file.kind.as_str();
    spot.known("kind", name, &KINDS)?;
    let unfit = [
        ("beacon_ms", file.beacon_ms.is_some(), name == "beacon"),
        ("beacon_bytes", file.beacon_bytes.is_some(), name == "beacon"),
        ("hops", file.hops.is_some(), name == "flood"),
        ("role", file.role.is_some(), name == "mesh"),
        ("command", file.command.is_some(), name == "process"),
    ];
    spot.none_of(name, &unfit.map(|(key, is_there, fits)| (key, is_there && !fits)))?;
    match name {
        "beacon" => {
            let every = file.beacon_ms.unwrap_or(1000);
            let bytes = file.beacon_bytes.unwrap_or(32);
            if !(1..=86_400_000).contains(&every) || !(1..=MAX_SIM_UNIT_BYTES).contains(&bytes) {
                return Err(spot.refuses("beacon_ms and beacon_bytes: at least 1, and in bounds"));
            }
            Ok(ProgramKind::Beacon { every: SimSpan::from_ms(every), bytes })
        }
        "mesh" => {
            let role = file.role.as_deref().unwrap_or("member");
            spot.known("role", role, &["gateway", "member", "quiet"])?;
            let role = match role {
                "gateway" => MeshRole::Gateway,
                "quiet" => MeshRole::Quiet,
                _ => MeshRole::Member,
            };
            Ok(ProgramKind::Mesh { role })
        }
        "process" => match file.command.as_deref() {
            None => Ok(ProgramKind::Process),
            Some([program, ..]) if !program.is_empty() => Ok(ProgramKind::Process),
            Some(_) => Err(spot.refuses("command: a program with its arguments")),
        },
        _ => match file.hops.unwrap_or(7) {
            hops @ 1..=15 => Ok(ProgramKind::Flood { hops }),
            hops => Err(spot.refuses(format!("hops = {hops} is not from 1 to 15"))),
        },
    }
}

fn sleep(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioNodeTable,
) -> Result<Option<SleepCycle>, SimError> {
    match (file.awake_s, file.asleep_s) {
        (None, None) => Ok(None),
        (Some(awake), Some(asleep)) => Ok(Some(SleepCycle {
            awake: seconds(spot.needed("awake_s", Some(awake), 0.01..=MAX_SECONDS)?),
            asleep: seconds(spot.needed("asleep_s", Some(asleep), 0.01..=MAX_SECONDS)?),
        })),
        _ => Err(spot.refuses("awake_s and asleep_s go together")),
    }
}

/// Where the machine of this number in its group begins.
fn placement(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioNodeTable,
    index: usize,
) -> Result<NodePlacement, SimError> {
    let at = place(spot, "at", file.at.unwrap_or_default())?;
    let ways = [file.line.is_some(), file.columns.is_some(), file.area.is_some()];
    let ways = ways.into_iter().chain([file.ring_m.is_some()]).filter(|way| *way).count();
    if ways > 1 {
        return Err(spot.refuses("only one of line, columns, area and ring_m says where"));
    }
    if file.spacing_m.is_some() != file.columns.is_some() {
        return Err(spot.refuses("columns and spacing_m go together"));
    }
    let number = index as f64;
    if let Some(line) = file.line {
        let step = place(spot, "line", line)?;
        return Ok(NodePlacement::At(SimPlace {
            x: at.x + step.x * number,
            y: at.y + step.y * number,
        }));
    }
    if let Some(columns) = file.columns {
        let columns = spot.needed("columns", Some(f64::from(columns)), 1.0..=4096.0)? as usize;
        let spacing = spot.needed("spacing_m", file.spacing_m, 0.0..=MAX_METRES)?;
        let x = at.x + spacing * (index % columns) as f64;
        return Ok(NodePlacement::At(SimPlace { x, y: at.y + spacing * (index / columns) as f64 }));
    }
    if let Some(ring_m) = file.ring_m {
        let radius = spot.needed("ring_m", Some(ring_m), 0.0..=MAX_METRES)?;
        let angle = std::f64::consts::TAU * number / file.count.unwrap_or(1) as f64;
        let (sin, cos) = angle.sin_cos();
        return Ok(NodePlacement::At(SimPlace { x: at.x + radius * cos, y: at.y + radius * sin }));
    }
    Ok(match file.area {
        Some(area) => NodePlacement::Within { at, area: rectangle(spot, area)? },
        None => NodePlacement::At(at),
    })
}
