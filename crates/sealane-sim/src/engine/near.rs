//! The machines in reach of each other on a shared medium, and the effect of distance on a
//! transmission.

use super::air::{RadioReach, chance, own_loss};
use super::body::SimMachineState;
use crate::limits::MAX_SIM_NEARS;
use crate::place::PlaceGrid;
use crate::random::DrawOdds;
use crate::scenario::MediumPlan;

/// A machine in reach of a sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct NearMachine {
    /// The chance that the radio carries a unit so far.
    pub(super) arrives: DrawOdds,
    /// The extra loss of this direction.
    pub(super) own_loss: DrawOdds,
    /// The mean power of the sender there, where 1 is what is just received.
    pub(super) power: f64,
    /// How far it is.
    pub(super) metres: f64,
    pub(super) node: u32,
    /// The number of its port on the medium.
    pub(super) port: u16,
    /// Whether its radio finds the channel busy.
    pub(super) senses: bool,
    /// Whether it is within the range. Beyond it most of what is sent is not heard, which is no
    /// loss.
    pub(super) is_in_range: bool,
}

/// Those in reach of each machine, in the order of their numbers, reckoned when a machine sends for
/// the first time since anybody has moved.
///
/// The lists together have [`MAX_SIM_NEARS`] machines and those of one list more at most: then they
/// are all forgotten, and reckoned anew.
#[derive(Debug, Default)]
pub(super) struct NearMachineTable {
    lists: Vec<NearMachineList>,
    held: usize,
    /// The list that is made anew, as it was; kept for its room.
    before: Vec<NearMachine>,
    /// Which of the times between two moves it is.
    age: u64,
}

#[derive(Debug, Default)]
struct NearMachineList {
    near: Vec<NearMachine>,
    /// When it was reckoned; nothing if it was not.
    age: Option<u64>,
}

/// The inputs from which a list is reckoned.
#[derive(Debug, Clone, Copy)]
pub(super) struct NearListInputs<'a> {
    pub(super) medium: usize,
    pub(super) plan: &'a MediumPlan,
    pub(super) seed: u64,
    pub(super) reach: &'a RadioReach,
    pub(super) cells: &'a PlaceGrid,
    pub(super) bodies: &'a [SimMachineState],
}

impl NearMachineTable {
    /// Somebody has moved.
    pub(super) fn forget(&mut self) {
        self.age += 1;
    }

    /// Takes out the list of a machine, to be kept again afterwards.
    pub(super) fn lend(&mut self, node: u32, scene: NearListInputs<'_>) -> Vec<NearMachine> {
        if self.lists.len() <= node as usize {
            self.lists.resize_with(node as usize + 1, NearMachineList::default);
        }
        let Some(list) = self.lists.get_mut(node as usize) else { return vec![] };
        let mut near = std::mem::take(&mut list.near);
        self.held = self.held.saturating_sub(near.len());
        if list.age != Some(self.age) {
            std::mem::swap(&mut near, &mut self.before);
            near.clear();
            near.extend(scene.near(node, &self.before));
            near.sort_unstable_by_key(|near| near.node);
        }
        near
    }

    /// Takes back what was lent.
    pub(super) fn keep(&mut self, node: u32, near: Vec<NearMachine>) {
        if self.held + near.len() > MAX_SIM_NEARS {
            self.lists.iter_mut().for_each(|list| *list = NearMachineList::default());
            self.held = 0;
        }
        if let Some(list) = self.lists.get_mut(node as usize) {
            self.held += near.len();
            *list = NearMachineList { near, age: Some(self.age) };
        }
    }
}

impl NearListInputs<'_> {
    /// Those in reach of a machine. Of one that is as far as it was `before`, in the order of
    /// numbers, nothing is reckoned anew: most stand still, and others stand in a queue.
    fn near(self, from: u32, before: &[NearMachine]) -> impl Iterator<Item = NearMachine> {
        let NearListInputs { medium, plan, seed, reach, cells, bodies } = self;
        let place = bodies.get(from as usize).map(|body| body.place);
        let around = place.into_iter().flat_map(move |place| {
            cells.around(place).filter(move |node| *node != from).map(move |node| (node, place))
        });
        around.filter_map(move |(node, place)| {
            let body = bodies.get(node as usize)?;
            let metres = body.place.metres_to(place);
            let port = body.port_on(medium).filter(|_| metres <= reach.farthest_m())?;
            let known = before.binary_search_by_key(&node, |near| near.node).ok();
            if let Some(known) = known.and_then(|at| before.get(at))
                && known.metres == metres
            {
                return Some(*known);
            }
            Some(NearMachine {
                arrives: DrawOdds::of(chance(plan, metres)),
                own_loss: DrawOdds::of(own_loss(plan, seed, from, node)),
                power: reach.power(metres),
                metres,
                node,
                port: port as u16,
                senses: metres <= reach.senses_m(),
                is_in_range: metres <= plan.range_m,
            })
        })
    }
}
