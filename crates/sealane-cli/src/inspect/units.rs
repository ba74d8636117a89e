//! The carriers of frames: fragments and batches.

use std::collections::HashMap;

use sealane::Value;
use sealane_frame::{Fragment, FrameBatch, FrameError, PeerTag, Reassembly, ReassemblyProgress};
use sealane_link::LinkAddress;

use super::account::{CaptureSource, InspectAccount, InspectOrigin, InspectedKind, SealCoverage};
use super::walk::{FrameWalk, count};

/// The first byte of a fragment, of a batch, and of a frame of the full form without its hops.
pub(super) const FRAGMENT: u8 = 0;
pub(super) const BATCH: u8 = 1;
pub(super) const LONG: u8 = 2;

/// Explains a fragment.
pub(super) fn fragment(unit: &[u8], origin: &InspectOrigin) -> InspectAccount {
    let mut account = InspectAccount::new(InspectedKind::Fragment, origin, unit.len());
    let mut walk = FrameWalk::new(unit);
    let header = fragment_header(&mut walk);
    let part_bytes = walk.rest().len();
    walk.remainder(
        SealCoverage::Unit,
        "part",
        count(part_bytes, "byte", "bytes") + " of the frame",
    );
    account.rows = walk.rows;
    account.summary = match header {
        Some((id, index_field, frame)) => {
            let last = if index_field & LAST == 0 { "" } else { ", the last" };
            format!("part {} of frame id {id}{last}, of {frame} bytes in all", index_field & !LAST)
        }
        None => "cut off within its header".into(),
    };
    if let Err(error) = Fragment::parse(unit) {
        account.refusal = Some(error.into());
    }
    account
}

/// Id, index with the mark of the last part, and the length of the frame.
fn fragment_header(walk: &mut FrameWalk<'_>) -> Option<(u64, u64, u64)> {
    walk.number::<1>(SealCoverage::Unit, "mark", |mark| (mark.into(), "0: a fragment".into()))?;
    let id = walk.number::<2>(SealCoverage::Unit, "id", |id| {
        (id.into(), format!("{id}: tells the frames of one sender apart"))
    })?;
    let index_field = walk.number::<2>(SealCoverage::Unit, "index", |index_field| {
        let last = if index_field & LAST == 0 { "more follow" } else { "the last part" };
        ((index_field & !LAST).into(), format!("{} from 0; {last}", index_field & !LAST))
    })?;
    let frame = walk.number::<3>(SealCoverage::Unit, "frame length", |len| {
        (len.into(), format!("{len} bytes of the whole frame"))
    })?;
    Some((id, index_field, frame))
}

/// Explains a batch, and gives what it holds unless it is refused.
pub(super) fn batch<'a>(unit: &'a [u8], origin: &InspectOrigin) -> (InspectAccount, Vec<&'a [u8]>) {
    let mut account = InspectAccount::new(InspectedKind::Batch, origin, unit.len());
    let mut walk = FrameWalk::new(unit);
    let _ = walk.number::<1>(SealCoverage::Unit, "mark", |mark| (mark.into(), "1: a batch".into()));
    let mut number = 0;
    while !walk.rest().is_empty() && item(&mut walk, number + 1).is_some() {
        number += 1;
    }
    walk.remainder(SealCoverage::Unknown, "the rest", "behind a length in disorder".into());
    account.rows = walk.rows;
    account.summary = count(number, "item", "items");
    let items = match FrameBatch::parse(unit) {
        Ok(batch) => batch.collect(),
        Err(error) => {
            account.refusal = Some(error.into());
            Vec::new()
        }
    };
    (account, items)
}

/// One item behind its length.
fn item(walk: &mut FrameWalk<'_>, number: usize) -> Option<()> {
    let first = walk.rest().first().copied()?;
    let length = |bytes: &[u8]| match *bytes {
        [high, low] => usize::from(u16::from_be_bytes([high & 0x7f, low])),
        [low] => low.into(),
        _ => 0,
    };
    let bytes =
        walk.take(SealCoverage::Unit, if first < 0x80 { 1 } else { 2 }, "item length", |bytes| {
            let length = length(bytes);
            (
                Value::from(length as u64),
                format!("item {number} has {}", count(length, "byte", "bytes")),
            )
        })?;
    walk.take(SealCoverage::Unit, length(bytes), "item", |item| {
        let what = match item.first() {
            Some(&FRAGMENT) => "fragment",
            Some(&BATCH) => "batch, which may not stand in one",
            Some(_) => "frame",
            None => "nothing, which may not be",
        };
        ((number as u64).into(), format!("item {number}: a {what}"))
    })?;
    Some(())
}

/// The parts of frames that were seen so far, by who sent them. It holds what a node would hold.
#[derive(Default)]
pub(super) struct FragmentGathering {
    reassembly: Reassembly,
    peers: HashMap<Option<(LinkAddress, LinkAddress)>, PeerTag>,
    names: HashMap<PeerTag, String>,
    /// Sender and id of what was given up.
    incomplete: Vec<String>,
}

impl FragmentGathering {
    /// Takes a fragment, and gives its frame if all parts have come, with their number.
    pub(super) fn push(
        &mut self,
        origin: &InspectOrigin,
        fragment: &Fragment<'_>,
    ) -> Result<Option<(Vec<u8>, usize)>, FrameError> {
        let (link, now_ms) = match &origin.captured {
            CaptureSource::Packet(packet) => {
                (Some((packet.source, packet.destination)), packet.time_ms.unwrap_or_default())
            }
            _ => (None, 0),
        };
        let next = (self.peers.len() as u64).to_le_bytes();
        let peer = *self.peers.entry(link).or_insert(PeerTag::from_bytes(next));
        let name = || link.map_or("the input".to_owned(), |(from, to)| format!("{from} to {to}"));
        self.names.entry(peer).or_insert_with(name);
        self.give_up(now_ms);
        match self.reassembly.push(peer, now_ms, fragment)? {
            ReassemblyProgress::Whole(frame) => {
                // All parts but the last have one length.
                let [.., index_0, index_1, _, _, _] = fragment.header();
                let index_field = u16::from_le_bytes([index_0, index_1]);
                let last = usize::from(index_field & !(LAST as u16)) + 1;
                let is_last = u64::from(index_field) & LAST != 0;
                let stride = fragment.part().len().max(1);
                let parts = if is_last { last } else { frame.len().div_ceil(stride) };
                Ok(Some((frame.to_vec(), parts)))
            }
            ReassemblyProgress::Waiting | ReassemblyProgress::Repeated => Ok(None),
        }
    }

    /// The frames that stayed incomplete, at the end, and how many more newer frames pushed out.
    pub(super) fn finish(&mut self) -> (Vec<String>, u64) {
        self.give_up(u64::MAX);
        (std::mem::take(&mut self.incomplete), self.reassembly.losses().crowded_out)
    }

    fn give_up(&mut self, now_ms: u64) {
        let Self { reassembly, names, incomplete, .. } = self;
        reassembly.expire(now_ms, |peer, id| {
            let name = names.get(&peer).map_or("", String::as_str);
            incomplete.push(format!("frame id {id} from {name}"));
        });
    }
}

/// The bit of an index that marks the last part.
const LAST: u64 = 0x8000;
