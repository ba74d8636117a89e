//! The messages that publishing sessions have had stored, so that a repeated message is stored once
//! (spec/store.md §10).

use std::collections::VecDeque;
use std::sync::Arc;

use rusqlite::{OptionalExtension, params};
use sealane_protocol::{EnqueueOutcome, StreamPosition};

use super::{StoreFault, StoreWrites};
use crate::shares::{ShareChanges, ShareKind};

/// The messages that one session has had stored in one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoredSession {
    /// The number of the last message that was stored.
    n: u64,
    /// Where the last messages are, oldest first; the last run ends with `n`.
    places: VecDeque<SessionRun>,
    /// Messages in `places`.
    kept: u64,
    /// The hour that its row has; none: it has no row.
    hour: Option<u64>,
    /// Up to this number, what it says does not depend on a commit.
    certain: u64,
    /// Digests of the last messages, oldest first; the last one is of `n`.
    digests: Vec<u32>,
    /// Numbers up to this one were stored before there were digests. Whatever comes under them
    /// counts as repeated.
    unproven: u64,
    /// The owner of the share that its row counts to.
    owner: Arc<str>,
}

/// Messages with numbers and places that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SessionRun {
    count: u64,
    first: EnqueueOutcome,
}

/// A session's row, as a commit writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionRow {
    n: u64,
    places: Vec<u8>,
    digests: Option<Vec<u8>>,
    owner: Arc<str>,
    hour: u64,
    /// The hour that its row had when it was read; none: it had no row.
    before: Option<u64>,
}

impl SessionRow {
    /// The owner whose share it counts to.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.places.len() + self.digests.as_ref().map_or(0, Vec::len)) as u64
    }
}

/// The meaning of a message number for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionNext {
    /// The one that comes next.
    New,
    /// It was stored before, here.
    Stored(EnqueueOutcome),
    /// Another message was stored under it.
    Reused,
    /// Numbers begin with 1.
    Zero,
    /// It is too low for its place to be known.
    Forgotten,
    /// It is too high: this one comes next.
    Skipped(u64),
}

impl StoredSession {
    /// The meaning of the number `n` of a message with this digest.
    pub(crate) fn look(&self, n: u64, digest: u32) -> SessionNext {
        if n == 0 {
            return SessionNext::Zero;
        }
        // Numbers follow without a gap. A gap means that a message was lost on the way, and storing
        // on would hide it.
        match n.checked_sub(self.n) {
            Some(1) => SessionNext::New,
            Some(ahead) if ahead > 1 => SessionNext::Skipped(self.n + 1),
            _ => match (self.place(n), self.digest(n)) {
                (Some(place), Some(before)) if before == digest => SessionNext::Stored(place),
                (Some(_), Some(_)) => SessionNext::Reused,
                (Some(place), None) if n <= self.unproven => SessionNext::Stored(place),
                // A place alone does not show that this is the message that stands there.
                (_, None) | (None, _) => SessionNext::Forgotten,
            },
        }
    }

    /// The number of the last message that was stored.
    pub(crate) fn last(&self) -> u64 {
        self.n
    }

    /// Says whose share its row counts to, if it has none yet.
    pub(crate) fn belong_to(&mut self, owner: &Arc<str>) {
        // A row keeps the owner that it was made for, so that no count goes astray.
        if self.hour.is_none() {
            self.owner = owner.clone();
        }
    }

    fn digest(&self, n: u64) -> Option<u32> {
        let back = usize::try_from(self.n.checked_sub(n)?).ok()?;
        self.digests.len().checked_sub(back + 1).and_then(|at| self.digests.get(at)).copied()
    }

    fn place(&self, n: u64) -> Option<EnqueueOutcome> {
        let mut end = self.n;
        for run in self.places.iter().rev() {
            // A run is never longer than what was numbered before its end.
            let before = end.checked_sub(run.count)?;
            if n > before {
                return Some(run.first.behind(n - before - 1));
            }
            end = before;
        }
        None
    }

    /// Notes where the next messages were stored, the first of them here, by their digests, and
    /// forgets all but the last `keep`.
    pub(crate) fn push(&mut self, place: EnqueueOutcome, digests: &[u32], keep: u64) {
        let count = digests.len() as u64;
        self.digests.extend_from_slice(digests);
        let more = self.digests.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
        self.digests.drain(..more);
        // A client repeats what is unanswered before it sends anything new. So nothing from before
        // there were digests comes again.
        self.unproven = 0;
        self.n += count;
        self.kept += count;
        match self.places.back_mut() {
            // Messages of a session mostly stand side by side. One run then holds thousands of
            // places.
            Some(run) if run.first.behind(run.count) == place => run.count += count,
            _ => self.places.push_back(SessionRun { count, first: place }),
        }
        // Only places that may still be unanswered are needed. A client repeats none that it has
        // seen answered.
        while let Some(oldest) = self.places.front()
            && self.kept - oldest.count >= keep
        {
            self.kept -= oldest.count;
            self.places.pop_front();
        }
        debug_assert_eq!(self.kept, self.places.iter().map(|run| run.count).sum::<u64>());
        debug_assert!(self.kept <= self.n);
    }

    /// Whether the message `n`, which was stored, stays so whatever becomes of the next commit.
    pub(crate) fn is_certain(&self, n: u64) -> bool {
        n <= self.certain
    }

    /// The same session, of which nothing depends on a commit.
    pub(crate) fn made_certain(&self) -> Self {
        Self { certain: self.n, ..self.clone() }
    }

    /// The same session once the commit that has written its row stands.
    pub(crate) fn stored(self, hour: u64) -> Self {
        Self { hour: Some(hour), certain: self.n, ..self }
    }

    /// Its size in memory, in runs of places.
    pub(crate) fn runs(&self) -> usize {
        self.places.len() + self.digests.len() * size_of::<u32>() / size_of::<SessionRun>()
    }

    /// Its row, where a commit writes it in this hour.
    pub(crate) fn row(&self, hour: u64) -> SessionRow {
        // Byte by byte, the 4,096 of a large credit took longer than the row's statement.
        let mut digests = Vec::with_capacity(size_of_val(self.digests.as_slice()));
        self.digests.iter().for_each(|digest| digests.extend_from_slice(&digest.to_le_bytes()));
        SessionRow {
            n: self.n,
            places: self.write_places(),
            digests: Some(digests).filter(|_| self.unproven == 0),
            owner: self.owner.clone(),
            hour,
            before: self.hour,
        }
    }

    /// Each run as its length and where it begins: the difference to the end of the run before, or
    /// a generation and an offset; generation 0: when a delayed message is due.
    fn write_places(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.places.len() * 4 + 12);
        let mut before: Option<StreamPosition> = None;
        for run in &self.places {
            let place = match run.first {
                EnqueueOutcome::At(position) => position,
                EnqueueOutcome::Due(due_ms) => StreamPosition { generation: 0, offset: due_ms },
            };
            // Most runs follow the one before in the same generation, and then cost two short
            // numbers.
            let ahead = before
                .filter(|before| before.generation == place.generation && place.generation > 0)
                .and_then(|before| place.offset.checked_sub(before.offset));
            write_number(run.count << 1 | u64::from(ahead.is_none()), &mut out);
            match ahead {
                Some(ahead) => write_number(ahead, &mut out),
                None => {
                    write_number(place.generation, &mut out);
                    write_number(place.offset, &mut out);
                }
            }
            let offset = place.offset.saturating_add(run.count);
            before = Some(StreamPosition { offset, ..place });
        }
        out
    }

    /// Reads a row. Of damaged places none is known: what is repeated is refused then, and never
    /// answered wrongly.
    fn read(n: u64, places: &[u8], digests: Option<&[u8]>, hour: u64) -> Self {
        let places = read_places(places).unwrap_or_default();
        let kept = places.iter().fold(0_u64, |sum, run| sum.saturating_add(run.count));
        let (sums, rest) = digests.unwrap_or_default().as_chunks::<4>();
        // Digests that are cut off anywhere are those of other numbers.
        let sums = if rest.is_empty() { sums } else { &[] };
        let whole = Self {
            n,
            places,
            kept,
            hour: Some(hour),
            certain: n,
            digests: sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect(),
            unproven: if digests.is_some() { 0 } else { n },
            owner: Arc::default(),
        };
        // A damaged row loses its places and keeps its number, so that nothing is stored twice.
        if kept <= n { whole } else { Self { places: VecDeque::new(), kept: 0, ..whole } }
    }
}

fn read_places(mut bytes: &[u8]) -> Option<VecDeque<SessionRun>> {
    let mut places = VecDeque::new();
    let mut before = StreamPosition { generation: 0, offset: 0 };
    while !bytes.is_empty() {
        let head = read_number(&mut bytes)?;
        let place = if head & 1 == 1 {
            let generation = read_number(&mut bytes)?;
            StreamPosition { generation, offset: read_number(&mut bytes)? }
        } else {
            let offset = before.offset.checked_add(read_number(&mut bytes)?)?;
            StreamPosition { offset, ..before }
        };
        let first = match place.generation {
            0 => EnqueueOutcome::Due(place.offset),
            _ => EnqueueOutcome::At(place),
        };
        let count = head >> 1;
        before = StreamPosition { offset: place.offset.checked_add(count)?, ..place };
        places.push_back(SessionRun { count, first });
    }
    Some(places)
}

/// LEB128.
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

impl StoreWrites {
    /// The stored state of a session in a stream.
    pub(crate) fn find_session(
        &self,
        stream: u32,
        session: &[u8],
    ) -> Result<StoredSession, StoreFault> {
        #[cfg(test)]
        self.trouble.statement()?;
        let mut query = self.connection.prepare_cached(
            "SELECT n, places, hour, digests, owner FROM session
             WHERE stream = ?1 AND session = ?2",
        )?;
        let row = query.query_row(params![stream, session], |row| {
            let places = row.get_ref(1)?.as_blob()?;
            let digests = row.get_ref(3)?.as_blob_or_null()?;
            let (n, hour) = (row.get::<_, u64>(0)?, row.get::<_, u64>(2)?);
            let session = StoredSession::read(n, places, digests, hour);
            Ok(StoredSession { owner: row.get_ref(4)?.as_str()?.into(), ..session })
        });
        Ok(row.optional()?.unwrap_or_default())
    }

    /// Keeps what a session has had stored; returns whether it had no row. The index of hours is
    /// touched once an hour: it is a second tree to write, and a session that publishes writes its
    /// row in each commit.
    pub(super) fn keep_session(
        &self,
        stream: u32,
        session: &[u8],
        row: &SessionRow,
    ) -> Result<bool, StoreFault> {
        let SessionRow { n, places, digests, owner, hour, before } = row;
        if *before == Some(*hour) {
            let query = "UPDATE session SET n = ?3, places = ?4, digests = ?5
                 WHERE stream = ?1 AND session = ?2";
            let changed = self.change(query, params![stream, session, n, places, digests])?;
            // The row may have been swept or expired since it was read: then it is made again.
            if changed > 0 {
                return Ok(false);
            }
        }
        // The store alone knows whether there is a row: one commit may write it twice.
        let made = self.change(
            "INSERT INTO session VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
            params![stream, session, n, places, hour, &**owner, digests],
        )?;
        if made == 0 {
            self.run(
                "UPDATE session SET n = ?3, places = ?4, hour = ?5, digests = ?6
                 WHERE stream = ?1 AND session = ?2",
                params![stream, session, n, places, hour, digests],
            )?;
        }
        Ok(made > 0)
    }

    /// How many rows of sessions there are.
    pub(crate) fn count_sessions(&self) -> Result<u64, StoreFault> {
        self.number("SELECT count(*) FROM session")
    }

    /// Forgets up to `limit` of the oldest sessions of before `hour`; returns how many.
    pub(super) fn drop_sessions(
        &self,
        hour: u64,
        limit: u64,
        shares: &mut ShareChanges,
    ) -> Result<u64, StoreFault> {
        self.remove_owned(
            "DELETE FROM session WHERE (stream, session) IN (SELECT stream, session
             FROM session WHERE hour < ?1 ORDER BY hour LIMIT ?2) RETURNING owner",
            params![hour.min(i64::MAX as u64) as i64, limit as i64],
            |owner| shares.remove(owner, ShareKind::Sessions, 1),
        )
    }

    /// Forgets so many of the oldest sessions of an owner, less those that it lost by this very
    /// commit; returns how many.
    pub(super) fn trim_sessions(
        &self,
        owner: &str,
        rows: u64,
        shares: &mut ShareChanges,
    ) -> Result<u64, StoreFault> {
        let rows = rows.saturating_sub(shares.lost(owner, ShareKind::Sessions));
        self.remove_owned(
            "DELETE FROM session WHERE (stream, session) IN (SELECT stream, session
             FROM session WHERE owner = ?1 ORDER BY hour, stream, session LIMIT ?2)
             RETURNING owner",
            params![owner, rows],
            |owner| shares.remove(owner, ShareKind::Sessions, 1),
        )
    }

    /// Removes up to `limit` rows that a removed stream has left; returns how many.
    pub(super) fn sweep_sessions(
        &self,
        stream: u32,
        limit: u64,
        shares: &mut ShareChanges,
    ) -> Result<u64, StoreFault> {
        self.remove_owned(
            "DELETE FROM session WHERE stream = ?1 AND session IN
             (SELECT session FROM session WHERE stream = ?1 ORDER BY session LIMIT ?2)
             RETURNING owner",
            params![stream, limit],
            |owner| shares.remove(owner, ShareKind::Sessions, 1),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(generation: u64, offset: u64) -> EnqueueOutcome {
        EnqueueOutcome::At(StreamPosition { generation, offset })
    }

    #[test]
    fn a_number_is_new_stored_skipped_or_forgotten() {
        let mut session = StoredSession::default();
        assert_eq!(session.look(1, 1), SessionNext::New);
        assert_eq!(
            (session.look(0, 0), session.look(3, 3)),
            (SessionNext::Zero, SessionNext::Skipped(1))
        );
        let places = [at(9, 4), at(9, 5), at(9, 8), EnqueueOutcome::Due(70), at(10, 2)];
        for (n, place) in (1..).zip(places) {
            session.push(place, &[n], 3);
        }
        let read = StoredSession::read(
            session.n,
            &session.write_places(),
            session.row(0).digests.as_deref(),
            0,
        );
        for session in [&session, &read] {
            assert_eq!(
                (session.look(6, 6), session.look(7, 7)),
                (SessionNext::New, SessionNext::Skipped(6))
            );
            assert_eq!(session.look(5, 5), SessionNext::Stored(at(10, 2)));
            assert_eq!(session.look(4, 4), SessionNext::Stored(EnqueueOutcome::Due(70)));
            assert_eq!(session.look(3, 3), SessionNext::Stored(at(9, 8)));
            assert_eq!(session.look(3, 4), SessionNext::Reused, "another message");
            // The first two are more than were to be kept.
            assert_eq!(
                (session.look(2, 2), session.look(1, 1)),
                (SessionNext::Forgotten, SessionNext::Forgotten)
            );
        }
    }

    #[test]
    fn a_session_from_before_digests_repeats_what_it_had_until_it_goes_on() {
        let mut session = StoredSession::default();
        session.push(at(9, 4), &[1, 2, 3], 8);
        let mut old = StoredSession::read(3, &session.write_places(), None, 0);
        assert_eq!(old.look(2, 77), SessionNext::Stored(at(9, 5)));
        assert_eq!(old.row(0).digests, None, "it stays so");
        old.push(at(9, 7), &[4], 8);
        assert_eq!(old.look(2, 77), SessionNext::Forgotten);
        assert_eq!(
            (old.look(4, 4), old.look(4, 5)),
            (SessionNext::Stored(at(9, 7)), SessionNext::Reused)
        );
    }

    #[test]
    fn a_long_run_does_not_prove_what_is_older_than_was_to_be_kept() {
        let mut session = StoredSession::default();
        session.push(at(9, 0), &(0..100).collect::<Vec<u32>>(), 8);
        assert_eq!(session.look(93, 92), SessionNext::Stored(at(9, 92)));
        assert_eq!(session.look(92, 91), SessionNext::Forgotten, "its place is known alone");
    }

    proptest! {
        #[test]
        fn every_kept_place_is_found_again(
            gaps in proptest::collection::vec((0..4_u64, 0..3_u64), 1..60),
            keep in 1..40_u64,
        ) {
            let (mut session, mut places) = (StoredSession::default(), Vec::new());
            let (mut generation, mut offset) = (1_700_000_000, 0);
            for (gap, kind) in gaps {
                offset += gap;
                generation += u64::from(kind == 2);
                let place = match kind {
                    1 => EnqueueOutcome::Due(offset),
                    _ => at(generation, offset),
                };
                offset += u64::from(kind != 1);
                places.push(place);
                session.push(place, &[places.len() as u32], keep);
            }
            let row = session.row(0);
            let read = StoredSession::read(row.n, &row.places, row.digests.as_deref(), 0);
            prop_assert_eq!(&read.places, &session.places);
            prop_assert_eq!(&read.digests, &session.digests);
            for (n, place) in (1..).zip(&places) {
                let is_kept = n + keep > places.len() as u64;
                match read.look(n, n as u32) {
                    SessionNext::Stored(found) => prop_assert_eq!(found, *place),
                    other => {
                        let is_lost = !is_kept && other == SessionNext::Forgotten;
                        prop_assert!(is_lost, "{} {:?}", n, other);
                    }
                }
            }
        }

        #[test]
        fn many_that_are_pushed_at_once_are_as_many_that_are_pushed_singly(
            runs in proptest::collection::vec((0..3_u64, 1..9_u64), 1..30),
            keep in 1..40_u64,
        ) {
            let (mut single, mut many) = (StoredSession::default(), StoredSession::default());
            let mut offset = 0;
            for (gap, count) in runs {
                offset += gap;
                many.push(at(7, offset), &vec![5; count as usize], keep);
                for _ in 0..count {
                    single.push(at(7, offset), &[5], keep);
                    offset += 1;
                }
                prop_assert_eq!(&many, &single);
            }
        }

        #[test]
        fn damaged_places_are_no_places(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let session = StoredSession::read(7, &bytes, Some(&bytes), 0);
            prop_assert!(session.kept <= 7);
            (0..9).for_each(|n| { session.look(n, 0); });
        }
    }
}
