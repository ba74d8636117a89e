//! A relay's decisions by themselves: for simulations and measurements.

use std::sync::Arc;

use sealane_frame::FrameAtHop;

use crate::counters::DropReason;
use crate::desk::{ForwardDecision, way};
use crate::floods::RelayFloods;
use crate::routing::RoutingFound;
use crate::table::{NeighbourIndex, OwnAddresses, RelayTable};
use crate::{Config, LinkError, RelayCard};

/// The decisions of a [`LinkRelay`](crate::LinkRelay) on frames, without links and threads.
#[derive(Debug)]
pub struct RelayJudge {
    table: Arc<RelayTable>,
    floods: RelayFloods,
}

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayVerdict {
    /// To the neighbour of that place in the configuration. Its header says so already.
    To(usize),
    /// To the machine itself.
    Here,
    /// To all neighbours, if it was not here before.
    Everywhere,
}

impl RelayJudge {
    /// One that knows what a relay of this configuration knows.
    ///
    /// # Errors
    ///
    /// As [`LinkRelay::start`](crate::LinkRelay::start).
    pub fn new(config: &Config, cards: &[RelayCard]) -> Result<Self, LinkError> {
        Ok(Self {
            table: Arc::new(RelayTable::new(
                config,
                cards,
                OwnAddresses::default(),
                &RoutingFound::default(),
            )?),
            floods: RelayFloods::new(),
        })
    }

    /// Goes on with another configuration.
    ///
    /// # Errors
    ///
    /// As [`RelayJudge::new`].
    pub fn reload(&mut self, config: &Config, cards: &[RelayCard]) -> Result<(), LinkError> {
        self.table = Arc::new(RelayTable::new(
            config,
            cards,
            OwnAddresses::default(),
            &RoutingFound::default(),
        )?);
        Ok(())
    }

    /// Decides where a frame goes that the neighbour of that place in the configuration has
    /// brought, and makes it one for the next hop if that is one neighbour.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    #[inline]
    pub fn decide(&self, by: usize, frame: &mut [u8]) -> Result<RelayVerdict, DropReason> {
        let by = NeighbourIndex::try_from(by).map_err(|_| DropReason::Stranger)?;
        Ok(match way(&self.table, by, frame)? {
            ForwardDecision::To(to) | ForwardDecision::ToGateway(to, _) => {
                RelayVerdict::To(usize::from(to))
            }
            ForwardDecision::Here => RelayVerdict::Here,
            ForwardDecision::Everywhere => RelayVerdict::Everywhere,
            // Neighbours of a radio are found, and here none is.
            ForwardDecision::ByRadio => return Err(DropReason::NoRoute),
        })
    }

    /// Whether a frame to everybody was not here before, as far as is remembered.
    ///
    /// # Errors
    ///
    /// [`DropReason::Malformed`].
    #[inline]
    pub fn is_new(&mut self, frame: &mut [u8]) -> Result<bool, DropReason> {
        let at_hop =
            FrameAtHop::parse(frame, self.table.own()).map_err(|_| DropReason::Malformed)?;
        let header = *at_hop.header();
        Ok(self.floods.is_new(&header, frame))
    }
}

#[cfg(test)]
mod tests {
    use sealane_frame::{GroupTag, Header, HeaderFields, PeerTag};
    use sealane_seal::{Epoch, SenderContext, Slot};

    use super::*;

    const TEXT: &str = "version = 1\ntag = \"b100000000000001\"\n[[link]]\nname = \"l\"\n\
         udp = \"127.0.0.1:9\"\n[[neighbour]]\nname = \"a\"\ntag = \"slot 0\"\nlink = \"l\"\n\
         address = \"127.0.0.1:1\"\n[[neighbour]]\nname = \"b\"\ntag = \"slot 1\"\nlink = \"l\"\n\
         address = \"127.0.0.1:2\"\n[[route]]\nto = \"slot 1\"\nvia = \"b\"\n";

    fn tag(slot: u8) -> PeerTag {
        PeerTag::from_bytes([0xa1, 0, 0, 0, 0, 0, 0, slot])
    }

    fn frame(to: PeerTag) -> Vec<u8> {
        let group = GroupTag::from_bytes([7; 4]);
        let fields = HeaderFields { destination: to, ..HeaderFields::new(group, tag(0), 13) };
        let header = Header::new(&fields, 10, 3, SenderContext([1; 8])).unwrap();
        [header.as_bytes(), &[0; 10 + 5 + 16]].concat()
    }

    #[test]
    fn it_decides_as_a_relay_of_its_configuration() {
        let slots = [0, 1].map(|slot| (Slot::new(slot.into()).unwrap(), tag(slot)));
        let cards = [RelayCard::new(GroupTag::from_bytes([7; 4]), Epoch(0), slots)];
        let config = Config::parse(TEXT).unwrap();
        let mut judge = RelayJudge::new(&config, &cards).unwrap();
        let mut to_one = frame(tag(1));
        assert_eq!(judge.decide(0, &mut to_one), Ok(RelayVerdict::To(1)));
        assert_eq!(to_one[..8], tag(1).to_bytes());
        assert_eq!(to_one[16], 14);
        assert_eq!(judge.decide(1, &mut frame(tag(1))), Err(DropReason::FalseHop));
        assert_eq!(judge.decide(9, &mut frame(tag(1))), Err(DropReason::FalseHop));
        assert_eq!(judge.decide(0, &mut frame(tag(0))), Err(DropReason::NoRoute));
        let own = PeerTag::from_bytes([0xb1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(judge.decide(0, &mut frame(own)), Ok(RelayVerdict::Here));
        let mut to_all = frame(PeerTag::BROADCAST);
        assert_eq!(judge.decide(0, &mut to_all), Ok(RelayVerdict::Everywhere));
        assert_eq!((judge.is_new(&mut to_all), judge.is_new(&mut to_all)), (Ok(true), Ok(false)));
        assert_eq!(judge.is_new(&mut [7; 9]), Err(DropReason::Malformed));
        let without = Config::parse(&TEXT.replace("slot 1\"\nvia", "slot 0\"\nvia")).unwrap();
        judge.reload(&without, &cards).unwrap();
        assert_eq!(judge.decide(0, &mut frame(tag(1))), Err(DropReason::NoRoute));
    }
}
