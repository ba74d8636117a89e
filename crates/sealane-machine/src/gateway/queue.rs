//! The queue of a gateway: one SQLite file with a bound. It holds each frame until the hub has it.
//!
//! SQLite does what the queue needs and no log of ours does. Frames leave from the middle, by
//! urgency and origin. The counts of dropped frames change in the same commit. A commit is fsynced
//! before anything in it counts as kept.

mod file;
mod tally;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use sealane_frame::PeerTag;

use crate::GatewayError;
use crate::gateway::frame::SealedFrame;
use crate::gateway::stream::{GatewayUrgency, MeshStream};
use crate::limits::{MAX_UPLOAD_WINDOW, QUEUED_FRAME_BYTES};
use tally::QueueTally;

/// Frames on disk, in the order in which they came.
#[derive(Debug)]
pub(crate) struct GatewayQueue {
    file: PathBuf,
    bound_bytes: u64,
    inner: Mutex<GatewayQueueState>,
}

#[derive(Debug)]
struct GatewayQueueState {
    connection: Connection,
    tally: QueueTally,
}

/// A frame that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GatewayQueuedFrame {
    /// Its place: frames that came later have greater numbers.
    pub(crate) number: i64,
    pub(crate) stream: MeshStream,
    pub(crate) source: PeerTag,
    pub(crate) bytes: Vec<u8>,
}

/// Why frames of the queue were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueLossReason {
    /// The queue was full, and others were more urgent, or their origins had less there.
    Crowded,
    /// The hub refuses this very frame, and always will.
    Refused,
}

/// Frames that were dropped since the queue was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLoss {
    /// Why.
    pub why: QueueLossReason,
    /// How urgent they were.
    pub urgency: GatewayUrgency,
    /// How many.
    pub frames: u64,
}

/// How far a store of documents was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedStore {
    /// The id that tells the store from others.
    pub store: [u8; 16],
    /// The place of the last frame.
    pub at: u64,
}

/// How far a stream of the hub was read into the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DownlinkPosition {
    pub(crate) generation: u64,
    /// The offset that comes next.
    pub(crate) next: u64,
}

/// The state of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStatus {
    /// Frames that wait.
    pub frames: u64,
    /// The bytes that they count together.
    pub bytes: u64,
    /// The bytes that they may count together.
    pub bound_bytes: u64,
    /// Frames that were dropped since the queue was made.
    pub lost: Vec<QueueLoss>,
}

impl QueueLossReason {
    /// All reasons.
    pub const ALL: [QueueLossReason; 2] = [QueueLossReason::Crowded, QueueLossReason::Refused];

    /// Its name in metrics and status.
    pub fn name(self) -> &'static str {
        match self {
            QueueLossReason::Crowded => "crowded",
            QueueLossReason::Refused => "refused",
        }
    }
}

impl GatewayQueue {
    /// Opens the queue of a file, or makes it. A smaller bound than before drops what is beyond.
    pub(crate) fn open(file: &Path, bound_bytes: u64) -> Result<GatewayQueue, GatewayError> {
        let connection = file::open(file)?;
        let failed = |cause| file::failed(file, &cause);
        let tally = QueueTally::read(&connection).map_err(failed)?;
        let inner = Mutex::new(GatewayQueueState { connection, tally });
        let queue = GatewayQueue { file: file.to_owned(), bound_bytes, inner };
        // An empty commit applies a bound that is smaller than before. It also shows whether the
        // file can be written.
        queue.put(&[])?;
        Ok(queue)
    }

    /// Keeps frames, all of them or none: after this they are on disk. What the queue has already
    /// is not taken twice. Beyond the bound the least urgent goes, the oldest first, of the origin
    /// that has the most there: nobody pushes out those who send little.
    pub(crate) fn put(&self, frames: &[SealedFrame]) -> Result<(), GatewayError> {
        self.change(|commit, tally| self.insert_all(commit, tally, frames))
    }

    /// The same with frames of a store of documents, and how far that was followed by them, in one
    /// commit: so each frame of the store is put once.
    pub(crate) fn put_followed(
        &self,
        frames: &[SealedFrame],
        followed: FollowedStore,
    ) -> Result<(), GatewayError> {
        self.change(|commit, tally| {
            self.insert_all(commit, tally, frames)?;
            // The place is written in the commit that keeps the frames. In two commits a kill would
            // repeat or lose frames.
            let FollowedStore { store, at } = followed;
            // A file has one store at a time: of those before nothing is needed any more.
            commit.prepare_cached("DELETE FROM followed WHERE store <> ?1")?.execute([store])?;
            let sql = "INSERT OR REPLACE INTO followed (store, at) VALUES (?1, ?2)";
            commit.prepare_cached(sql)?.execute(params![store, at]).map(drop)
        })
    }

    /// How far a store of documents was followed: 0 if it never was.
    pub(crate) fn followed(&self, store: [u8; 16]) -> Result<u64, GatewayError> {
        let inner = self.inner.lock();
        let sql = "SELECT at FROM followed WHERE store = ?1";
        let found = inner.connection.query_row(sql, [store], |row| row.get(0)).optional();
        Ok(found.map_err(|cause| file::failed(&self.file, &cause))?.unwrap_or_default())
    }

    fn insert_all(
        &self,
        commit: &Transaction<'_>,
        tally: &mut QueueTally,
        frames: &[SealedFrame],
    ) -> rusqlite::Result<()> {
        for frame in frames {
            insert(commit, tally, frame)?;
        }
        // The bound is held within the commit. If it failed afterwards, the file would stay beyond
        // it.
        while tally.bytes() > self.bound_bytes {
            // An origin that sends much pushes out its own frames, whoever forged them.
            let Some((urgency, source)) = tally.heaviest() else { break };
            if !drop_oldest(commit, tally, urgency, source)? {
                break;
            }
        }
        Ok(())
    }

    /// The next frames of streams that are not in `held`: the most urgent first, and then in the
    /// order in which they came.
    pub(crate) fn window(
        &self,
        held: &HashSet<MeshStream>,
    ) -> Result<Vec<GatewayQueuedFrame>, GatewayError> {
        let inner = self.inner.lock();
        let mut found = Vec::new();
        // Each urgency fills what room those above it leave. So a call for help never waits behind
        // telemetry.
        for urgency in GatewayUrgency::ALL.into_iter().rev() {
            let room = MAX_UPLOAD_WINDOW.saturating_sub(found.len());
            let of = |stream: &MeshStream| stream.urgency() == urgency && !held.contains(stream);
            let streams: Vec<i64> =
                inner.tally.streams().filter(of).map(MeshStream::number).collect();
            if room == 0 || streams.is_empty() {
                continue;
            }
            let read = read(&inner.connection, &streams, room);
            found.extend(read.map_err(|cause| file::failed(&self.file, &cause))?);
        }
        Ok(found)
    }

    /// Forgets frames that the hub has.
    pub(crate) fn stored(&self, numbers: &[i64]) -> Result<(), GatewayError> {
        self.change(|commit, tally| {
            numbers.iter().try_for_each(|number| remove(commit, tally, *number).map(drop))
        })
    }

    /// Drops a frame that the hub will never take.
    pub(crate) fn refused(&self, number: i64) -> Result<(), GatewayError> {
        self.change(|commit, tally| match remove(commit, tally, number)? {
            Some(urgency) => count_lost(commit, tally, QueueLossReason::Refused, urgency),
            None => Ok(()),
        })
    }

    /// How far a stream was read into the mesh, if it was.
    pub(crate) fn place(
        &self,
        stream: MeshStream,
    ) -> Result<Option<DownlinkPosition>, GatewayError> {
        let inner = self.inner.lock();
        let row = |row: &rusqlite::Row<'_>| {
            Ok(DownlinkPosition { generation: row.get(0)?, next: row.get(1)? })
        };
        let sql = "SELECT generation, next FROM place WHERE stream = ?1";
        let found = inner.connection.query_row(sql, [stream.number()], row).optional();
        found.map_err(|cause| file::failed(&self.file, &cause))
    }

    /// Stores how far a stream was read into the mesh.
    pub(crate) fn set_place(
        &self,
        stream: MeshStream,
        place: DownlinkPosition,
    ) -> Result<(), GatewayError> {
        self.change(|commit, _| {
            let sql = "INSERT OR REPLACE INTO place (stream, generation, next) VALUES (?1, ?2, ?3)";
            let values = params![stream.number(), place.generation, place.next];
            commit.prepare_cached(sql)?.execute(values).map(drop)
        })
    }

    pub(crate) fn status(&self) -> QueueStatus {
        let inner = self.inner.lock();
        QueueStatus {
            frames: inner.tally.frames(),
            bytes: inner.tally.bytes(),
            bound_bytes: self.bound_bytes,
            lost: inner.tally.lost(),
        }
    }

    /// Has the file refuse every change, as a full disk does, or take them again.
    #[cfg(test)]
    pub(crate) fn fail(&self, fails: bool) {
        self.inner.lock().connection.pragma_update(None, "query_only", fails).unwrap();
    }

    /// Makes a change in one commit. One that fails changes nothing, and neither do the numbers.
    fn change(
        &self,
        make: impl FnOnce(&Transaction<'_>, &mut QueueTally) -> rusqlite::Result<()>,
    ) -> Result<(), GatewayError> {
        let GatewayQueueState { connection, tally } = &mut *self.inner.lock();
        // The sums change on a copy. A commit that fails must leave them as the file is.
        let mut after = tally.clone();
        let made = connection.transaction().and_then(|commit| {
            make(&commit, &mut after)?;
            commit.commit()
        });
        made.map_err(|cause| file::failed(&self.file, &cause))?;
        *tally = after;
        Ok(())
    }
}

/// The bytes that a frame counts for.
fn weight(bytes: usize) -> u64 {
    bytes as u64 + QUEUED_FRAME_BYTES
}

fn insert(
    commit: &Transaction<'_>,
    tally: &mut QueueTally,
    frame: &SealedFrame,
) -> rusqlite::Result<()> {
    let SealedFrame { stream, source, name, bytes } = frame;
    // The name is unique, so that a frame that two neighbours brought is kept once.
    let sql = "INSERT OR IGNORE INTO frame (stream, urgency, source, name, bytes)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = params![stream.number(), stream.urgency() as u8, source.to_bytes(), name.0, bytes];
    // An ignored row was counted when it came first.
    if commit.prepare_cached(sql)?.execute(values)? > 0 {
        tally.add(*stream, *source, weight(bytes.len()));
    }
    Ok(())
}

/// Drops the oldest frame of an origin and urgency; says whether there was one.
fn drop_oldest(
    commit: &Transaction<'_>,
    tally: &mut QueueTally,
    urgency: GatewayUrgency,
    source: PeerTag,
) -> rusqlite::Result<bool> {
    // The index of origin answers this in one step. A full queue stays as fast as an empty one.
    let sql = "SELECT min(number) FROM frame WHERE urgency = ?1 AND source = ?2";
    let mut query = commit.prepare_cached(sql)?;
    let values = params![urgency as u8, source.to_bytes()];
    let number: Option<i64> = query.query_row(values, |row| row.get(0))?;
    let Some(number) = number else { return Ok(false) };
    if remove(commit, tally, number)?.is_some() {
        count_lost(commit, tally, QueueLossReason::Crowded, urgency)?;
    }
    Ok(true)
}

/// Removes a frame, and says how urgent it was, if it was there.
fn remove(
    commit: &Transaction<'_>,
    tally: &mut QueueTally,
    number: i64,
) -> rusqlite::Result<Option<GatewayUrgency>> {
    // One statement removes and tells. A frame that is gone already changes no sum.
    let sql = "DELETE FROM frame WHERE number = ?1 RETURNING stream, source, length(bytes)";
    let mut query = commit.prepare_cached(sql)?;
    let row = |row: &rusqlite::Row<'_>| {
        let source = PeerTag::from_bytes(row.get(1)?);
        Ok((MeshStream::numbered(row.get(0)?), source, row.get::<_, usize>(2)?))
    };
    let gone = query.query_row([number], row).optional()?;
    Ok(gone.map(|(stream, source, bytes)| {
        tally.remove(stream, source, weight(bytes));
        stream.urgency()
    }))
}

fn count_lost(
    commit: &Transaction<'_>,
    tally: &mut QueueTally,
    why: QueueLossReason,
    urgency: GatewayUrgency,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO lost (why, urgency, frames) VALUES (?1, ?2, 1)
               ON CONFLICT (why, urgency) DO UPDATE SET frames = frames + 1";
    commit.prepare_cached(sql)?.execute(params![why.name(), urgency as u8])?;
    tally.lose(why, urgency);
    Ok(())
}

/// The first frames of some streams, in the order in which they came.
fn read(
    connection: &Connection,
    streams: &[i64],
    room: usize,
) -> rusqlite::Result<Vec<GatewayQueuedFrame>> {
    let sql = "SELECT number, stream, source, bytes FROM frame WHERE stream = ?1
               ORDER BY number LIMIT ?2";
    // A query for each stream uses the index of streams. One query over all of them would sort the
    // whole table.
    let mut query = connection.prepare_cached(sql)?;
    let mut found = Vec::new();
    for stream in streams {
        let rows = query.query_map(params![stream, room as u64], |row| {
            Ok(GatewayQueuedFrame {
                number: row.get(0)?,
                stream: MeshStream::numbered(row.get(1)?),
                source: PeerTag::from_bytes(row.get(2)?),
                bytes: row.get(3)?,
            })
        })?;
        for row in rows {
            found.push(row?);
        }
    }
    // The streams came one after the other, but frames leave in the order in which they came.
    found.sort_by_key(|queued| queued.number);
    found.truncate(room);
    Ok(found)
}

#[cfg(test)]
mod tests;
