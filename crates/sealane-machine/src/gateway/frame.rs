//! Frames as a hub is given them.

use sealane_frame::limits::{MAX_FRAME_BODY_BYTES, MAX_HOP_LIMIT};
use sealane_frame::{FrameKind, FrameView, PeerTag, RELAY_BYTES, hop_bytes};
use sealane_protocol::limits::MAX_ENVELOPE_BYTES;

use crate::gateway::stream::MeshStream;

/// Tells frames apart, whichever way they came: a hash of all bytes that no relay writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FrameName(pub(crate) [u8; 16]);

/// A sealed frame whose relay's bytes are those that its sender wrote. So the hub gets the same
/// bytes from every gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedFrame {
    pub(crate) stream: MeshStream,
    pub(crate) source: PeerTag,
    pub(crate) name: FrameName,
    pub(crate) bytes: Vec<u8>,
}

/// Why a frame is none that a gateway carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotCarried {
    /// It is no frame.
    Malformed,
    /// It is of a kind or for a member that no stream is for.
    Other,
}

/// Every frame has room in an envelope of MessagePack, with what stands around it there.
const _: () = assert!(MAX_FRAME_BODY_BYTES + 192 <= MAX_ENVELOPE_BYTES);

impl SealedFrame {
    /// A frame in the full form, as it came from the mesh or from a hub.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, NotCarried> {
        let view = FrameView::parse(bytes).map_err(|_| NotCarried::Malformed)?;
        let header = view.header();
        // A frame for one member belongs to no stream (`spec/gateway.md`, *Streams*). The relay
        // takes it on.
        if header.kind() != FrameKind::Message || header.destination() != PeerTag::BROADCAST {
            return Err(NotCarried::Other);
        }
        let source = header.source();
        let relayed = hop_bytes(PeerTag::BROADCAST, source, MAX_HOP_LIMIT);
        // Name and stored bytes leave out what relays write. So frames that came by two ways are
        // one.
        let sealed = bytes.get(RELAY_BYTES..).unwrap_or_default();
        let mut name = FrameName([0; 16]);
        // The derivation separates these names from other hashes of the same bytes.
        let mut hasher = blake3::Hasher::new_derive_key("sealane frame of a gateway v1");
        hasher.update(sealed).finalize_xof().fill(&mut name.0);
        let bytes = [relayed.as_slice(), sealed].concat();
        Ok(Self { stream: MeshStream::of(header), source, name, bytes })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use sealane_frame::{GroupTag, Header, HeaderFields};
    use sealane_seal::{Class, Epoch, Form, KeyId, SenderContext, SframeHeader, Slot};

    use super::*;

    /// A frame that nobody without the keys can tell from a true one.
    pub(crate) fn frame(group: u8, source: u8, data_type: u16, sequence: u64) -> Vec<u8> {
        let source = PeerTag::from_bytes([0xa1, 0, 0, 0, 0, 0, 0, source]);
        framed(&HeaderFields::new(GroupTag::from_bytes([group; 4]), source, data_type), sequence)
    }

    fn framed(fields: &HeaderFields, sequence: u64) -> Vec<u8> {
        let header = Header::new(fields, 10, sequence, SenderContext([1; 8])).unwrap();
        let key = KeyId::new(Slot::new(1).unwrap(), Class::Group, Epoch(0));
        let seal = SframeHeader { key, counter: sequence }.encode(Form::Full);
        [header.as_bytes(), &seal, &[7; 10 + 16]].concat()
    }

    #[test]
    fn ways_of_a_frame_make_no_difference() {
        let sent = frame(1, 2, 72, 5);
        let mut relayed = sent.clone();
        relayed[..17].copy_from_slice(&[0x55; 17]);
        let read = SealedFrame::read(&relayed).unwrap();
        assert_eq!(read, SealedFrame::read(&sent).unwrap());
        assert_eq!(read.bytes, sent, "as its sender wrote it");
        assert_eq!(read.stream.to_string(), "mesh/01010101/72");
        for at in 17..sent.len() {
            let mut changed = sent.clone();
            changed[at] ^= 1;
            let other = SealedFrame::read(&changed);
            assert!(other.is_err() || other.unwrap().name != read.name, "byte {at}");
        }
    }

    #[test]
    fn what_no_stream_is_for_is_told_apart() {
        let all = HeaderFields::new(GroupTag::default(), PeerTag::from_hash([1; 8]), 72);
        let to_one = HeaderFields { destination: PeerTag::from_hash([2; 8]), ..all };
        let control = HeaderFields { kind: FrameKind::Control, ..all };
        for other in [to_one, control] {
            assert_eq!(SealedFrame::read(&framed(&other, 1)), Err(NotCarried::Other));
        }
        for cut in 0..framed(&all, 1).len() {
            let cut = framed(&all, 1)[..cut].to_vec();
            assert_eq!(SealedFrame::read(&cut), Err(NotCarried::Malformed));
        }
    }
}
