//! Media that all share: whoever sends is heard by all that are near, and by nobody who sends.

use super::body::SimMachineState;
use super::near::{NearMachine, NearMachineTable};
use super::slots::SlotId;
use crate::node::SimUnitTarget;
use crate::place::{PlaceGrid, SimPlace};
use crate::random::{DrawOdds, TransmissionDraws};
use crate::scenario::MediumPlan;
use crate::{SimMediumProfile, SimRandom, SimSpan, SimTime};

/// A stronger transmission is received though others are heard, if it has four times the power of
/// all of them together: 6 dB, as measured for LoRa and for 802.11 with strong codes.
const CAPTURE: f64 = 4.0;
/// A radio finds a channel busy that has half the power that it needs to receive: of 802.11p at 6
/// Mbit/s in 10 MHz -85 and -82 dBm (IEEE 802.11-2020, 17.3.10.2 and 17.3.10.6).
const SENSES: f64 = 0.5;
/// One of LoRa finds what it could receive (AN1200.48, as sensitive as reception).
const SENSES_LORA: f64 = 1.0;
/// Nearer than this power does not grow.
const NEAREST_M: f64 = 1.0;

/// A shared medium.
#[derive(Debug)]
pub(super) struct SharedMedium {
    /// Where the chances of its transmissions come from.
    pub(super) source: u64,
    pub(super) reach: RadioReach,
    pub(super) loss: DrawOdds,
    pub(super) cells: PlaceGrid,
    pub(super) nears: NearMachineTable,
    transmissions: Vec<Option<RadioTransmission>>,
    /// The places of those under way.
    active: Vec<usize>,
    free: Vec<usize>,
}

/// The distances that decide which machines hear a sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct RadioReach {
    range_m: f64,
    exponent: f64,
    /// Within it a radio finds the channel busy.
    senses_m: f64,
    /// Beyond it nobody hears anything.
    farthest_m: f64,
}

/// A transmission in the air.
#[derive(Debug)]
pub(super) struct RadioTransmission {
    pub(super) from: u32,
    /// The sender's life.
    pub(super) life: u32,
    pub(super) side: u16,
    pub(super) place: SimPlace,
    pub(super) what: TransmissionKind,
    pub(super) draws: TransmissionDraws,
    pub(super) starts: SimTime,
    pub(super) ends: SimTime,
    /// The transmissions at the same time.
    pub(super) over: Vec<RivalTransmission>,
}

/// The kind of a transmission.
#[derive(Debug, Clone, Copy)]
pub(super) enum TransmissionKind {
    /// A unit, which the transmission holds.
    Unit { slot: SlotId, to: SimUnitTarget },
    /// The answer of a radio to a unit for it alone, and the machine that it answers.
    Acknowledgement { to: u32 },
}

/// Another transmission at the same time.
#[derive(Debug, Clone, Copy)]
pub(super) struct RivalTransmission {
    pub(super) from: u32,
    place: SimPlace,
    side: u16,
}

/// When a channel is busy.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChannelBusy {
    pub(super) since: SimTime,
    pub(super) until: SimTime,
}

impl RadioReach {
    pub(super) fn new(plan: &MediumPlan) -> Self {
        let farthest_m = plan.fading.map_or(plan.range_m, |fading| fading.reach_m());
        let senses =
            if matches!(plan.profile, SimMediumProfile::Lora(_)) { SENSES_LORA } else { SENSES };
        let senses_m = plan.range_m * senses.powf(-plan.exponent.recip());
        Self { range_m: plan.range_m, exponent: plan.exponent, senses_m, farthest_m }
    }

    pub(super) fn farthest_m(&self) -> f64 {
        self.farthest_m
    }

    pub(super) fn senses_m(&self) -> f64 {
        self.senses_m
    }

    /// The mean power, where 1 is what is just received.
    pub(super) fn power(&self, metres: f64) -> f64 {
        (self.range_m / metres.max(NEAREST_M)).powf(self.exponent)
    }
}

/// The chance that a unit arrives over a distance, for what the radio does to it.
pub(super) fn chance(plan: &MediumPlan, metres: f64) -> f64 {
    match plan.fading {
        Some(fading) => fading.arrives(metres),
        None => f64::from(u8::from(metres <= plan.range_m)),
    }
}

/// The extra loss of one direction of a pair: the same throughout a run.
pub(super) fn own_loss(plan: &MediumPlan, seed: u64, from: u32, to: u32) -> f64 {
    if plan.asymmetry == 0.0 {
        return 0.0;
    }
    let pair = u64::from(from) << 32 | u64::from(to);
    plan.asymmetry * SimRandom::new(seed, "asymmetry", pair).part()
}

impl SharedMedium {
    /// A medium; `source` is where its chances come from.
    pub(super) fn new(plan: &MediumPlan, source: u64) -> Self {
        let reach = RadioReach::new(plan);
        Self {
            source,
            reach,
            loss: DrawOdds::of(plan.manners.loss),
            cells: PlaceGrid::new(reach.farthest_m),
            nears: NearMachineTable::default(),
            transmissions: vec![],
            active: vec![],
            free: vec![],
        }
    }

    /// The first and the last moment of what is heard at a place now, if anything is. What began
    /// less than `late` ago nobody can have noticed.
    pub(super) fn busy(
        &self,
        node: u32,
        body: &SimMachineState,
        now: SimTime,
        late: SimSpan,
    ) -> Option<ChannelBusy> {
        let active = self.active.iter().filter_map(|at| self.transmissions.get(*at)?.as_ref());
        let heard = active.filter(|other| {
            other.from != node
                && other.side == body.side
                && other.starts + late <= now
                && other.place.metres_to(body.place) <= self.reach.senses_m
        });
        heard.fold(None, |busy, other| {
            let ChannelBusy { since, until } =
                busy.unwrap_or(ChannelBusy { since: other.starts, until: other.ends });
            Some(ChannelBusy { since: since.min(other.starts), until: until.max(other.ends) })
        })
    }

    /// Puts a transmission into the air.
    pub(super) fn begin(&mut self, mut transmission: RadioTransmission) -> usize {
        let own = transmission.rival();
        for at in &self.active {
            let Some(Some(other)) = self.transmissions.get_mut(*at) else { continue };
            // One that ends at this moment is over.
            if other.ends > transmission.starts {
                other.over.push(own);
                transmission.over.push(other.rival());
            }
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.transmissions.push(None);
            self.transmissions.len() - 1
        });
        if let Some(place) = self.transmissions.get_mut(at) {
            *place = Some(transmission);
        }
        self.active.push(at);
        at
    }

    /// Takes a transmission out of the air.
    pub(super) fn take(&mut self, at: usize) -> Option<RadioTransmission> {
        let index = self.active.iter().position(|other| *other == at)?;
        self.active.swap_remove(index);
        let transmission = self.transmissions.get_mut(at)?.take()?;
        self.free.push(at);
        Some(transmission)
    }
}

impl RadioTransmission {
    fn rival(&self) -> RivalTransmission {
        RivalTransmission { from: self.from, place: self.place, side: self.side }
    }

    /// Whether others were too loud at a machine in reach of this one.
    pub(super) fn is_drowned(
        &self,
        reach: &RadioReach,
        body: &SimMachineState,
        near: &NearMachine,
    ) -> bool {
        let rivals = self.over.iter().filter(|rival| rival.side == body.side);
        let metres = rivals.map(|rival| rival.place.metres_to(body.place));
        let metres = || metres.clone().filter(|metres| *metres <= reach.farthest_m);
        // A rival that is as near is as loud, and a quarter of that is enough. Distances are
        // compared first, because powers take long.
        metres().any(|metres| metres <= near.metres)
            || metres().map(|metres| reach.power(metres)).sum::<f64>() * CAPTURE > near.power
    }
}
