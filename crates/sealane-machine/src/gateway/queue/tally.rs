//! How much of what a queue holds, so that nobody counts its rows.

use std::collections::BTreeMap;

use rusqlite::Connection;
use sealane_frame::PeerTag;

use super::{QueueLoss, QueueLossReason, weight};
use crate::gateway::stream::{GatewayUrgency, MeshStream};

/// The sums over a queue's rows. Its size is bounded by the members on relay cards.
#[derive(Debug, Clone, Default)]
pub(super) struct QueueTally {
    frames: u64,
    bytes: u64,
    /// Frames of each stream, by its number.
    streams: BTreeMap<i64, u64>,
    /// Frames of each origin, by urgency.
    sources: BTreeMap<(GatewayUrgency, [u8; 8]), u64>,
    lost: BTreeMap<(&'static str, GatewayUrgency), u64>,
}

impl QueueTally {
    /// Counts the rows of a file once.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<QueueTally> {
        let mut tally = QueueTally::default();
        let mut query = connection.prepare("SELECT stream, source, length(bytes) FROM frame")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let source = PeerTag::from_bytes(row.get(1)?);
            tally.add(MeshStream::numbered(row.get(0)?), source, weight(row.get(2)?));
        }
        let mut query = connection.prepare("SELECT why, urgency, frames FROM lost")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (why, urgency): (String, u8) = (row.get(0)?, row.get(1)?);
            let why = QueueLossReason::ALL.into_iter().find(|known| known.name() == why);
            // A reason that a newer program wrote is passed over here and stays in the file.
            let urgency = GatewayUrgency::ALL.into_iter().find(|known| *known as u8 == urgency);
            if let Some((why, urgency)) = why.zip(urgency) {
                tally.lost.insert((why.name(), urgency), row.get(2)?);
            }
        }
        Ok(tally)
    }

    pub(super) fn add(&mut self, stream: MeshStream, source: PeerTag, weight: u64) {
        self.frames += 1;
        self.bytes += weight;
        *self.streams.entry(stream.number()).or_default() += 1;
        *self.sources.entry((stream.urgency(), source.to_bytes())).or_default() += weight;
    }

    pub(super) fn remove(&mut self, stream: MeshStream, source: PeerTag, weight: u64) {
        self.frames = self.frames.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(weight);
        take(&mut self.streams, stream.number(), 1);
        take(&mut self.sources, (stream.urgency(), source.to_bytes()), weight);
    }

    pub(super) fn lose(&mut self, why: QueueLossReason, urgency: GatewayUrgency) {
        *self.lost.entry((why.name(), urgency)).or_default() += 1;
    }

    /// Of the least urgent that there is, the origin that has the most.
    pub(super) fn heaviest(&self) -> Option<(GatewayUrgency, PeerTag)> {
        // The map is ordered by urgency first, so that its first key has the least.
        let (least, _) = self.sources.keys().next()?;
        let of_least = self.sources.iter().take_while(|((urgency, _), _)| urgency == least);
        let (_, source) = of_least.max_by_key(|(_, bytes)| **bytes).map(|(key, _)| *key)?;
        Some((*least, PeerTag::from_bytes(source)))
    }

    /// The streams that have frames here.
    pub(super) fn streams(&self) -> impl Iterator<Item = MeshStream> + '_ {
        self.streams.keys().map(|number| MeshStream::numbered(*number))
    }

    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The dropped frames by reason and urgency, also the pairs that never happened.
    pub(super) fn lost(&self) -> Vec<QueueLoss> {
        let each = |why: QueueLossReason| {
            GatewayUrgency::ALL.map(|urgency| {
                let frames = self.lost.get(&(why.name(), urgency)).copied().unwrap_or_default();
                QueueLoss { why, urgency, frames }
            })
        };
        QueueLossReason::ALL.into_iter().flat_map(each).collect()
    }
}

/// Takes so much from a sum, which goes when nothing is left.
fn take<K: Ord>(sums: &mut BTreeMap<K, u64>, key: K, amount: u64) {
    let Some(sum) = sums.get_mut(&key) else { return };
    *sum = sum.saturating_sub(amount);
    // A sum of nothing goes. Otherwise origins that ever sent would stay in memory.
    if *sum == 0 {
        sums.remove(&key);
    }
}
