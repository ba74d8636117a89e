//! A relay's decisions by themselves: for simulations and measurements.

use std::sync::Arc;

use sealane_frame::FrameAtHop;

use crate::counters::Reason;
use crate::desk::{Way, way};
use crate::floods::Floods;
use crate::table::{NeighbourIndex, Table};
use crate::{Config, LinkError, RelayCard};

/// What a [`Relay`](crate::Relay) decides of frames, without links and threads.
#[derive(Debug)]
pub struct Judge {
    table: Arc<Table>,
    floods: Floods,
}

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// To the neighbour of that place in the configuration. Its header says so already.
    To(usize),
    /// To the machine itself.
    Here,
    /// To all neighbours, if it was not here before.
    Everywhere,
}

impl Judge {
    /// One that knows what a relay of this configuration knows.
    ///
    /// # Errors
    ///
    /// As [`Relay::start`](crate::Relay::start).
    pub fn new(config: &Config, cards: &[RelayCard]) -> Result<Self, LinkError> {
        Ok(Self { table: Arc::new(Table::new(config, cards, None)?), floods: Floods::new() })
    }

    /// Goes on with another configuration.
    ///
    /// # Errors
    ///
    /// As [`Judge::new`].
    pub fn reload(&mut self, config: &Config, cards: &[RelayCard]) -> Result<(), LinkError> {
        self.table = Arc::new(Table::new(config, cards, None)?);
        Ok(())
    }

    /// Decides where a frame goes that the neighbour of that place in the configuration has
    /// brought, and makes it one for the next hop if that is one neighbour.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    #[inline]
    pub fn decide(&self, by: usize, frame: &mut [u8]) -> Result<Verdict, Reason> {
        let by = NeighbourIndex::try_from(by).map_err(|_| Reason::Stranger)?;
        Ok(match way(&self.table, by, frame)? {
            Way::To(to) => Verdict::To(usize::from(to)),
            Way::Here => Verdict::Here,
            Way::Everywhere => Verdict::Everywhere,
        })
    }

    /// Whether a frame to everybody was not here before, as far as is remembered.
    ///
    /// # Errors
    ///
    /// [`Reason::Malformed`].
    #[inline]
    pub fn is_new(&mut self, frame: &mut [u8]) -> Result<bool, Reason> {
        let at_hop = FrameAtHop::parse(frame, self.table.own()).map_err(|_| Reason::Malformed)?;
        let header = *at_hop.header();
        Ok(self.floods.is_new(&header, frame))
    }
}
