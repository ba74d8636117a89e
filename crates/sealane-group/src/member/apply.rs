//! What a notice does to a member's state.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use sealane_frame::{FrameView, Kind, open_stored};
use sealane_seal::limits::MAX_EPOCHS_AHEAD;
use sealane_seal::{Binding, Class, Epoch, KeyId, Opener, Slot};

use super::control_topic;
use crate::certificate::Certificate;
use crate::folder::{IdentityKeys, Lock};
use crate::limits::MAX_ORDERS_HELD;
use crate::notice::{Heartbeat, Parsed};
use crate::order::{Numbered, Order, Rekey, WrapId};
use crate::renewal::Renewal;
use crate::state::{Beat, GroupState};
use crate::{Change, Document, Error, Notice};

/// A notice that the authority, or its beater, has signed.
pub(super) enum Verified<'a> {
    Order { number: u64, notice: &'a Notice },
    Renewal(Renewal<'a>),
    Heartbeat(Heartbeat),
}

/// Checks who signed a notice. Gives nothing for one that cannot change anything.
pub(super) fn verify<'a>(
    state: &GroupState,
    is_authority: bool,
    notice: &'a Notice,
) -> Result<Option<Verified<'a>>, Error> {
    if state.is_removed {
        return Err(Error::Removed);
    }
    let (group, authority) = (state.id(), &state.charter.authority.curve);
    match notice.parse()? {
        Parsed::Order { number, frame } => {
            if FrameView::parse(frame)?.header().group() != state.tag() {
                return Err(Error::OtherGroup(Document::Order));
            }
            if number < state.orders && !is_authority {
                return Ok(None);
            }
            notice.verified(group, authority)?;
            Ok(Some(Verified::Order { number, notice }))
        }
        Parsed::Renewal(bytes) => {
            Ok(Some(Verified::Renewal(Renewal::read(&state.charter, bytes)?)))
        }
        Parsed::Heartbeat(heartbeat) => {
            let is_newer = heartbeat.time_ms > state.beat.time_ms;
            if !is_newer && heartbeat.orders <= state.known {
                return Ok(None);
            }
            let by_beater = |error| match &state.beater {
                Some(key) => notice.verified(group, key),
                None => Err(error),
            };
            notice.verified(group, authority).or_else(by_beater)?;
            Ok(Some(Verified::Heartbeat(heartbeat)))
        }
    }
}

/// Changes the state by a notice that was verified. On an error what it has shown stays.
pub(super) fn apply(
    state: &mut GroupState,
    keys: &IdentityKeys,
    lock: &Lock,
    held: &mut BTreeMap<u64, Notice>,
    verified: &Verified<'_>,
) -> Result<Vec<Change>, Error> {
    let own = keys.identity().public().verifying_key();
    let is_authority = state.charter.authority.curve == *own;
    match verified {
        Verified::Heartbeat(heartbeat) => Ok(beat(state, is_authority, *heartbeat)),
        Verified::Renewal(renewal) if is_authority => known_here(state, keys, renewal.number),
        Verified::Order { number, .. } if is_authority => known_here(state, keys, *number),
        Verified::Renewal(renewal) => {
            let change = renew(state, keys, lock, renewal)?;
            held.retain(|number, _| *number >= state.orders);
            Ok(change.into_iter().collect())
        }
        Verified::Order { number, notice } => in_turn(state, held, *number, notice),
    }
}

/// Whether two states are the same but for what no order changes.
pub(super) fn is_same(one: &GroupState, other: &GroupState) -> bool {
    (one.orders, one.known, one.beat, one.is_removed, one.is_copied, one.awaited)
        == (other.orders, other.known, other.beat, other.is_removed, other.is_copied, other.awaited)
}

/// An authority hears what it has given itself. An order of its own key beyond those shows that a
/// copy of its folder is at work.
fn known_here(
    state: &mut GroupState,
    keys: &IdentityKeys,
    number: u64,
) -> Result<Vec<Change>, Error> {
    if number < state.orders {
        return Ok(Vec::new());
    }
    state.is_copied = true;
    Err(Error::Elsewhere(keys.path().to_owned()))
}

fn beat(state: &mut GroupState, is_authority: bool, heartbeat: Heartbeat) -> Vec<Change> {
    if !is_authority {
        state.known = state.known.max(heartbeat.orders);
    }
    if heartbeat.time_ms > state.beat.time_ms {
        state.beat = Beat { time_ms: heartbeat.time_ms, came_ms: now_ms() };
    }
    vec![Change::Heartbeat(heartbeat)]
}

/// Obeys an order if it is its turn, and then those that were held for it.
fn in_turn(
    state: &mut GroupState,
    held: &mut BTreeMap<u64, Notice>,
    number: u64,
    notice: &Notice,
) -> Result<Vec<Change>, Error> {
    // From here on it is known that the order exists, whatever becomes of it.
    state.known = state.known.max(number.saturating_add(1));
    if number < state.orders {
        return Ok(Vec::new());
    }
    held.insert(number, notice.clone());
    while held.len() > MAX_ORDERS_HELD {
        held.pop_last();
    }
    let mut changes = Vec::new();
    while let Some(next) = held.remove(&state.orders) {
        let mut after = state.clone();
        changes.extend(obey(&mut after, &next)?);
        after.orders += 1;
        debug_assert!(after.orders <= after.known, "what was obeyed is known");
        *state = after;
        if state.is_removed {
            return Ok(changes);
        }
    }
    if state.known > state.orders {
        changes.push(Change::Held { missing: state.orders });
    }
    Ok(changes)
}

/// Obeys the order whose turn it is.
fn obey(state: &mut GroupState, notice: &Notice) -> Result<Option<Change>, Error> {
    let (data_type, body) = open(state, notice.frame().unwrap_or_default())?;
    let Numbered { number, order } = Order::from_bytes(data_type, &body)?;
    if number != state.orders {
        return Err(Error::Malformed(Document::Order));
    }
    match order {
        Order::Certify(certificate) => certify(state, &certificate).map(Some),
        Order::Advance(to) => advance(state, to).map(Some),
        Order::Admit { slot, certificate, replaces } => {
            admit(state, slot, certificate, replaces).map(Some)
        }
        Order::Rekey(order) => rekey(state, &order),
        Order::Mark { epoch, marks } => {
            state.marks.add(epoch, &marks);
            Ok(Some(Change::Marked(marks.len())))
        }
        Order::Beater(key) => {
            state.beater = key;
            Ok(Some(Change::Beater(key)))
        }
    }
}

/// Opens a control frame of the authority: its data type and body.
fn open(state: &GroupState, frame: &[u8]) -> Result<(u16, Vec<u8>), Error> {
    let view = FrameView::parse(frame)?;
    let (header, key) = (*view.header(), view.seal_header().key);
    if header.kind() != Kind::Control || key.class != Class::Signed {
        return Err(Error::Malformed(Document::Order));
    }
    let authority = state.charter.authority.curve;
    let is_authority = state.roster.entry(key.slot).is_some_and(|one| one.verifying == authority);
    if !is_authority {
        return Err(Error::Unauthorized(key.slot.number()));
    }
    let mut opener = Opener::new(state.charter.group(), None, state.epochs.clone())?;
    opener.set_terms(state.roster.entries().iter().map(crate::Entry::term))?;
    let binding = Binding::stream(&control_topic(state.tag()));
    let mut refusal = None;
    for epoch in candidates(state, key) {
        let mut bytes = frame.to_vec();
        match open_stored(&mut opener, epoch, &binding, &mut bytes) {
            Ok(stored) => return Ok((header.data_type(), stored.body.to_vec())),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    let missing = Error::Behind { missing: state.orders, known: state.known };
    Err(refusal.map_or(missing, Error::from))
}

/// The epochs held that a key id may mean, the newest first: a renewal jumps far.
fn candidates(state: &GroupState, key: KeyId) -> Vec<Epoch> {
    let low = |epoch: Epoch| KeyId::new(key.slot, key.class, epoch) == key;
    let mut held: Vec<_> =
        state.epochs.held().map(|(epoch, _)| epoch).filter(|e| low(*e)).collect();
    held.reverse();
    held
}

fn certify(state: &mut GroupState, bytes: &[u8]) -> Result<Change, Error> {
    let certificate = Certificate::from_bytes(&state.charter, bytes)?;
    state.keep_certificate(bytes);
    Ok(Change::Certified(certificate.slot))
}

/// The one-way step of `spec/seal.md`, taken by order only.
pub(super) fn advance(state: &mut GroupState, to: Epoch) -> Result<Change, Error> {
    let newest = state.epochs.newest();
    let is_near = to > newest && to.0 - newest.0 <= MAX_EPOCHS_AHEAD;
    if !is_near {
        return Err(Error::Malformed(Document::Order));
    }
    for next in newest.0 + 1..=to.0 {
        let last = state.epochs.secret(state.epochs.newest()).ok_or(Error::Cipher)?;
        let secret = last.next(state.id(), Epoch(next))?;
        state.epochs.insert(Epoch(next), secret)?;
    }
    state.awaited = to;
    Ok(Change::Advanced(to))
}

fn admit(
    state: &mut GroupState,
    slot: Slot,
    hash: [u8; 32],
    replaces: Option<Slot>,
) -> Result<Change, Error> {
    let found = state.certificates.iter().position(|one| *blake3::hash(one).as_bytes() == hash);
    let bytes = state.certificates.remove(found.ok_or(Error::CertificateMissing)?);
    let certificate = Certificate::from_bytes(&state.charter, &bytes)?;
    let free = state.roster.free_slot(state.charter.is_pair)?;
    let fits = (certificate.slot, certificate.replaces) == (slot, replaces) && slot >= free;
    if !fits {
        return Err(Error::Malformed(Document::Order));
    }
    state.roster.admit(certificate.entry());
    Ok(Change::Admitted { slot, replaces })
}

fn rekey(state: &mut GroupState, order: &Rekey) -> Result<Option<Change>, Error> {
    let newest = state.epochs.newest();
    if order.epoch < newest {
        return Err(Error::Malformed(Document::Order));
    }
    // The parts of a fresh secret follow each other; the first changes the roster.
    let is_first = order.epoch > state.awaited.max(newest);
    if is_first {
        state.awaited = order.epoch;
        order.removed.iter().for_each(|slot| state.roster.remove(*slot, order.epoch));
        if !order.removed.is_empty() {
            state.live_from = order.epoch;
        }
    }
    if order.removed.contains(&state.slot) {
        state.is_removed = true;
        return Ok(Some(Change::Removed));
    }
    if !order.wraps.covers(state.slot) {
        return Ok(None);
    }
    let whose = WrapId { group: state.id(), epoch: order.epoch, slot: state.slot };
    let Some(secret) = order.wraps.unwrap(whose, &state.wrap_key) else {
        state.is_removed = true;
        return Ok(Some(Change::Removed));
    };
    state.epochs.insert(order.epoch, secret)?;
    Ok(Some(Change::Rekeyed { epoch: order.epoch, removed: order.removed.clone() }))
}

fn renew(
    state: &mut GroupState,
    keys: &IdentityKeys,
    lock: &Lock,
    renewal: &Renewal<'_>,
) -> Result<Option<Change>, Error> {
    if renewal.epoch <= state.epochs.newest() || renewal.number < state.orders {
        return Ok(None);
    }
    let opened = renewal.open(state, keys, lock)?;
    let own = state.roster.entry(state.slot).map(|entry| entry.verifying);
    let opened = opened.filter(|opened| {
        let listed = opened.roster.entry(state.slot).filter(|entry| entry.removed.is_none());
        listed.map(|entry| entry.verifying) == own
    });
    state.orders = renewal.number + 1;
    state.known = state.known.max(state.orders);
    let Some(opened) = opened else {
        state.is_removed = true;
        return Ok(Some(Change::Removed));
    };
    let removed = gone(state, &opened.roster);
    state.epochs.insert(renewal.epoch, opened.secret)?;
    state.awaited = renewal.epoch;
    if let Some(key) = opened.wrap_key {
        state.wrap_key = key;
    }
    if renewal.is_anew || !removed.is_empty() {
        state.live_from = renewal.epoch;
    }
    state.roster = opened.roster;
    Ok(Some(Change::Rekeyed { epoch: renewal.epoch, removed }))
}

/// Who was a member and is none in another roster.
fn gone(state: &GroupState, roster: &crate::Roster) -> Vec<Slot> {
    let stays = |slot| roster.entry(slot).is_some_and(|entry| entry.removed.is_none());
    state.roster.members().map(|entry| entry.slot).filter(|slot| !stays(*slot)).collect()
}

/// Milliseconds since 1970-01-01 UTC, by this machine's clock.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
