//! A vehicle's data message forwarded in the report's three ways: through a tree of objects, in one
//! pass into a fresh buffer, and in one pass into a buffer that is there already.
//!
//! ```text
//!  next hop 6 │ this hop 6 │ 30 30 │ type │ subtype │ origin 6 │ destination 6 │ payload
//!                                                             down only
//! ```

use std::borrow::Cow;

/// A station's address.
pub(crate) type BaselineAddress = [u8; 6];

const MARKER: [u8; 2] = [0x30, 0x30];

/// A heartbeat: 46 bytes on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BaselineHeartbeat {
    pub(crate) duration: u128,
    pub(crate) id: u32,
    pub(crate) hops: u32,
    pub(crate) source: BaselineAddress,
}

/// The content of a data message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BaselineUplink<'a> {
    pub(crate) origin: Cow<'a, [u8]>,
    pub(crate) data: Cow<'a, [u8]>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BaselineDownlink<'a> {
    pub(crate) origin: Cow<'a, [u8]>,
    pub(crate) destination: Cow<'a, [u8]>,
    pub(crate) data: Cow<'a, [u8]>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BaselineControl {
    Heartbeat(BaselineHeartbeat),
    Reply(BaselineHeartbeat, BaselineAddress),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BaselinePayload<'a> {
    Up(BaselineUplink<'a>),
    Down(BaselineDownlink<'a>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BaselinePacket<'a> {
    Control(BaselineControl),
    Data(BaselinePayload<'a>),
}

/// A message as a tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BaselineMessage<'a> {
    pub(crate) from: BaselineAddress,
    pub(crate) to: BaselineAddress,
    pub(crate) packet: BaselinePacket<'a>,
}

impl BaselineMessage<'_> {
    /// Each level makes a buffer of its own, which the level above copies.
    pub(crate) fn to_wire(&self) -> Vec<u8> {
        [self.to.to_vec(), self.from.to_vec(), MARKER.to_vec(), self.packet.to_wire()].concat()
    }
}

impl BaselinePacket<'_> {
    fn to_wire(&self) -> Vec<u8> {
        match self {
            BaselinePacket::Control(control) => [vec![0], control.to_wire()].concat(),
            BaselinePacket::Data(data) => [vec![1], data.to_wire()].concat(),
        }
    }
}

impl BaselineControl {
    fn to_wire(&self) -> Vec<u8> {
        match self {
            BaselineControl::Heartbeat(beat) => [vec![0], beat.to_wire()].concat(),
            BaselineControl::Reply(beat, sender) => {
                [vec![1], beat.to_wire(), sender.to_vec()].concat()
            }
        }
    }
}

impl BaselineHeartbeat {
    fn to_wire(&self) -> Vec<u8> {
        let BaselineHeartbeat { duration, id, hops, source } = self;
        let numbers = [id.to_be_bytes(), hops.to_be_bytes()].concat();
        [duration.to_be_bytes().to_vec(), numbers, source.to_vec()].concat()
    }
}

impl BaselinePayload<'_> {
    fn to_wire(&self) -> Vec<u8> {
        match self {
            BaselinePayload::Up(up) => [vec![0], up.origin.to_vec(), up.data.to_vec()].concat(),
            BaselinePayload::Down(down) => {
                let BaselineDownlink { origin, destination, data } = down;
                [vec![1], origin.to_vec(), destination.to_vec(), data.to_vec()].concat()
            }
        }
    }
}

#[inline]
fn head_into(kind: [u8; 2], from: BaselineAddress, to: BaselineAddress, wire: &mut Vec<u8>) {
    wire.clear();
    wire.extend_from_slice(&to);
    wire.extend_from_slice(&from);
    wire.extend_from_slice(&MARKER);
    wire.extend_from_slice(&kind);
}

/// Up again: one pass.
pub(crate) fn up_into(
    up: &BaselineUplink<'_>,
    from: BaselineAddress,
    to: BaselineAddress,
    wire: &mut Vec<u8>,
) {
    head_into([1, 0], from, to, wire);
    wire.extend_from_slice(&up.origin);
    wire.extend_from_slice(&up.data);
}

/// Down, or down again: one pass.
pub(crate) fn down_into(
    down: &BaselineDownlink<'_>,
    from: BaselineAddress,
    to: BaselineAddress,
    wire: &mut Vec<u8>,
) {
    head_into([1, 1], from, to, wire);
    wire.extend_from_slice(&down.origin);
    wire.extend_from_slice(&down.destination);
    wire.extend_from_slice(&down.data);
}

/// A heartbeat reply: one pass.
pub(crate) fn reply_into(
    beat: &BaselineHeartbeat,
    sender: BaselineAddress,
    from: BaselineAddress,
    to: BaselineAddress,
    wire: &mut Vec<u8>,
) {
    head_into([0, 1], from, to, wire);
    wire.extend_from_slice(&beat.duration.to_be_bytes());
    wire.extend_from_slice(&beat.id.to_be_bytes());
    wire.extend_from_slice(&beat.hops.to_be_bytes());
    wire.extend_from_slice(&beat.source);
    wire.extend_from_slice(&sender);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: BaselineAddress = [1; 6];
    const TO: BaselineAddress = [2; 6];

    fn message(packet: BaselinePacket<'_>) -> Vec<u8> {
        BaselineMessage { from: FROM, to: TO, packet }.to_wire()
    }

    #[test]
    fn messages_have_the_reports_sizes_and_all_ways_the_same_bytes() {
        let beat = BaselineHeartbeat { duration: 1, id: 2, hops: 3, source: [4; 6] };
        assert_eq!(
            message(BaselinePacket::Control(BaselineControl::Heartbeat(beat.clone()))).len(),
            46
        );
        let mut wire = Vec::new();
        reply_into(&beat, [5; 6], FROM, TO, &mut wire);
        assert_eq!(wire.len(), 52);
        assert_eq!(message(BaselinePacket::Control(BaselineControl::Reply(beat, [5; 6]))), wire);
        for length in [0, 33, 1500] {
            let (origin, destination, data) = ([6; 6], [7; 6], vec![8; length]);
            let (origin, data) = (Cow::Borrowed(&origin[..]), Cow::Borrowed(&data[..]));
            let up = BaselineUplink { origin: origin.clone(), data: data.clone() };
            let down = BaselineDownlink { origin, destination: (&destination[..]).into(), data };
            let mut wire = Vec::new();
            up_into(&up, FROM, TO, &mut wire);
            assert_eq!(wire.len(), 22 + length);
            assert_eq!(message(BaselinePacket::Data(BaselinePayload::Up(up))), wire);
            down_into(&down, FROM, TO, &mut wire);
            assert_eq!(wire.len(), 28 + length);
            assert_eq!(message(BaselinePacket::Data(BaselinePayload::Down(down))), wire);
        }
    }
}
