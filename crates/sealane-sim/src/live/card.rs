//! Ethernet on both sides of a card: frames of a process become units of the medium, and back.

use crate::engine::{OutsideDeparture, SimEthernetHeader};
use crate::node::SimUnitTarget;

/// The address of a card.
pub(super) type SimMacAddress = [u8; 6];

/// Addresses of target and source, and the type of what is inside (IEEE 802.3 §3.1.1).
const HEADER_BYTES: usize = 14;
/// The type of units: `spec/link.md`, section *Raw Ethernet*.
const UNITS: [u8; 2] = [0x88, 0xb5];
/// The prefix of all addresses of cards here: locally administered.
const OURS: [u8; 3] = [0x02, 0x53, 0x4c];
/// Before a unit of a radio, since Ethernet may put zeros behind what is short.
const LENGTH_BYTES: usize = 2;

/// A card of a machine: the medium that it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimCardMedium {
    pub(super) medium: u8,
    /// Whether units stand behind their length, as they do on radios.
    pub(super) is_radio: bool,
}

/// A frame that a process has sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CardFrame<'a> {
    pub(super) to: SimUnitTarget,
    pub(super) cover: SimEthernetHeader,
    pub(super) unit: &'a [u8],
}

impl SimCardMedium {
    /// The address of a machine's card here.
    pub(super) fn mac(self, node: u32) -> SimMacAddress {
        let ([a, b, c], [.., high, low]) = (OURS, node.to_be_bytes());
        [a, b, c, self.medium, high, low]
    }

    /// Whom an address is of. A radio sends to an address that nobody has, and nobody hears it.
    fn target(self, mac: SimMacAddress) -> SimUnitTarget {
        match mac {
            [first, ..] if first & 1 == 1 => SimUnitTarget::Everybody,
            [a, b, c, medium, high, low] if [a, b, c] == OURS && medium == self.medium => {
                SimUnitTarget::One(u32::from_be_bytes([0, 0, high, low]))
            }
            _ => SimUnitTarget::One(u32::MAX),
        }
    }

    /// Reads a frame of a process; nothing if it is none.
    pub(super) fn read(self, frame: &[u8]) -> Option<CardFrame<'_>> {
        let (header, inside) = frame.split_first_chunk::<HEADER_BYTES>()?;
        let (target, kind) = (header.first_chunk::<6>()?, header.last_chunk::<2>()?);
        let is_ours = *kind == UNITS;
        let unit = match (is_ours, self.is_radio) {
            (true, true) => measured(inside),
            (true, false) => Some(inside),
            _ => None,
        };
        let cover = SimEthernetHeader { header: *header, is_unit: unit.is_some() };
        Some(CardFrame { to: self.target(*target), cover, unit: unit.unwrap_or(inside) })
    }

    /// Writes the frame in which a unit comes to a process.
    pub(super) fn write(self, departure: &OutsideDeparture, frame: &mut Vec<u8>) {
        frame.clear();
        match departure.cover {
            Some(cover) => frame.extend_from_slice(&cover.header),
            None => {
                frame.extend_from_slice(&self.mac(departure.node));
                frame.extend_from_slice(&self.mac(departure.from));
                frame.extend_from_slice(&UNITS);
            }
        }
        if self.is_radio && departure.cover.is_none_or(|cover| cover.is_unit) {
            // No medium carries more than a length of 16 bits tells.
            let length = u16::try_from(departure.unit.len()).unwrap_or(u16::MAX);
            frame.extend_from_slice(&length.to_le_bytes());
        }
        frame.extend_from_slice(&departure.unit);
    }
}

/// A unit behind its length, and nothing but zeros behind it.
fn measured(inside: &[u8]) -> Option<&[u8]> {
    let (length, rest) = inside.split_first_chunk::<LENGTH_BYTES>()?;
    let (unit, behind) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    behind.iter().all(|byte| *byte == 0).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RADIO: SimCardMedium = SimCardMedium { medium: 3, is_radio: true };
    const WIRE: SimCardMedium = SimCardMedium { medium: 3, is_radio: false };

    fn frame(to: SimMacAddress, kind: [u8; 2], inside: &[u8]) -> Vec<u8> {
        [&to[..], &RADIO.mac(7), &kind, inside].concat()
    }

    #[test]
    fn a_unit_of_a_radio_stands_behind_its_length_and_comes_back_as_it_was() {
        let sent = frame(RADIO.mac(300), UNITS, &[3, 0, 9, 8, 7, 0, 0]);
        let CardFrame { to, cover, unit } = RADIO.read(&sent).unwrap();
        assert_eq!((to, unit, cover.is_unit), (SimUnitTarget::One(300), &[9, 8, 7][..], true));
        let mut frame = vec![];
        let mut departure = OutsideDeparture {
            node: 300,
            port: 0,
            from: 7,
            cover: Some(cover),
            unit: unit.to_vec(),
        };
        RADIO.write(&departure, &mut frame);
        assert_eq!(frame, sent[..sent.len() - 2]);
        // Of a machine of the simulator the header is made.
        departure.cover = None;
        let made = frame.clone();
        RADIO.write(&departure, &mut frame);
        assert_eq!(frame, made);
    }

    #[test]
    fn what_is_no_unit_goes_from_process_to_process_as_it_is() {
        let multicast = [0x33, 0x33, 0, 0, 0, 1];
        for (place, kind, inside, is_unit) in [
            (RADIO, [0x86, 0xdd], &[0x60, 1, 2][..], false),
            (RADIO, UNITS, &[200, 0, 1], false),
            (RADIO, UNITS, &[1, 0, 1, 2], false),
            (RADIO, UNITS, &[1], false),
            (WIRE, UNITS, &[200, 0, 1], true),
            (WIRE, [8, 0], &[], false),
        ] {
            let sent = frame(multicast, kind, inside);
            let CardFrame { to, cover, unit } = place.read(&sent).unwrap();
            assert_eq!(
                (to, unit, cover.is_unit),
                (SimUnitTarget::Everybody, inside, is_unit),
                "{inside:?}"
            );
            let departure = OutsideDeparture {
                node: 1,
                port: 0,
                from: 7,
                cover: Some(cover),
                unit: unit.to_vec(),
            };
            let mut frame = vec![];
            place.write(&departure, &mut frame);
            assert_eq!(frame, sent);
        }
    }

    #[test]
    fn an_address_that_nobody_has_is_nobody() {
        for mac in [[0x02, 0, 0, 0, 0, 1], SimCardMedium { medium: 4, ..RADIO }.mac(1)] {
            let sent = frame(mac, UNITS, &[0, 0]);
            assert_eq!(RADIO.read(&sent).unwrap().to, SimUnitTarget::One(u32::MAX));
        }
        assert_eq!(RADIO.read(&[0; 13]), None);
    }
}
