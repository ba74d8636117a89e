//! What a notice does to a member's state.

use sealane_frame::{FrameView, Kind, open_stored};
use sealane_seal::{Class, Epoch, Epochs, KeyId, Opener, Slot};

use crate::certificate::Certificate;
use crate::folder::IdentityKeys;
use crate::order::{Order, Rekey, WrapId};
use crate::renewal::Renewal;
use crate::state::GroupState;
use crate::{Change, Document, Error, Notice};

/// The data type of a control frame whose body is a certificate.
pub(super) const CERTIFICATE_TYPE: u16 = 1;
/// The data type of a control frame whose body is an order.
pub(super) const ORDER_TYPE: u16 = 2;

/// Changes the state by a notice. On an error the state must not be kept.
pub(super) fn apply(
    state: &mut GroupState,
    keys: &IdentityKeys,
    notice: &Notice,
) -> Result<Change, Error> {
    if state.is_removed {
        return Err(Error::Removed);
    }
    let own = keys.identity().public().verifying_key();
    let is_authority = state.charter.authority.curve == *own;
    let change = match (notice.renewal(), notice.frame()) {
        (Some(renewal), _) => renew(state, renewal)?,
        (None, Some(frame)) => match open(state, frame)? {
            Some((CERTIFICATE_TYPE, body)) => certify(state, &body)?,
            Some((_, body)) => obey(state, &body)?,
            None => Change::Nothing,
        },
        (None, None) => return Err(Error::Malformed(Document::Order)),
    };
    if is_authority && change != Change::Nothing {
        // It has the authority's name and did not come from here: a copy of the folder acts.
        return Err(Error::Elsewhere(keys.path().to_owned()));
    }
    Ok(change)
}

/// Opens a control frame of the authority: its data type and body. Of an epoch whose secret is
/// erased there is nothing to open and nothing left to do.
fn open(state: &GroupState, frame: &[u8]) -> Result<Option<(u16, Vec<u8>)>, Error> {
    let view = FrameView::parse(frame)?;
    let (header, key) = (*view.header(), view.seal_header().key);
    if header.group() != state.tag() {
        return Err(Error::OtherGroup(Document::Order));
    }
    let data_type = header.data_type();
    let is_control = header.kind() == Kind::Control
        && key.class == Class::Signed
        && (CERTIFICATE_TYPE..=ORDER_TYPE).contains(&data_type);
    if !is_control {
        return Err(Error::Malformed(Document::Order));
    }
    let authority = state.charter.authority.curve;
    let is_authority = state.roster.entry(key.slot).is_some_and(|one| one.verifying == authority);
    if !is_authority {
        return Err(Error::Unauthorized(key.slot.number()));
    }
    let mut opener = Opener::new(state.charter.group(), None, state.epochs.clone())?;
    opener.set_signer(key.slot, &authority)?;
    let mut refusal = None;
    for epoch in candidates(state, key) {
        let mut bytes = frame.to_vec();
        match open_stored(&mut opener, epoch, &mut bytes) {
            Ok(stored) => return Ok(Some((data_type, stored.body.to_vec()))),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    let newest = state.epochs.newest();
    match refusal {
        Some(error) => Err(error.into()),
        None if key.epoch(newest) < newest => Ok(None),
        None => Err(Error::OrderMissing),
    }
}

/// The epochs held that a key id may mean, the newest first: orders are read again from their
/// beginning, and a renewal jumps far.
fn candidates(state: &GroupState, key: KeyId) -> Vec<Epoch> {
    let low = |epoch: Epoch| KeyId::new(key.slot, key.class, epoch) == key;
    let mut held: Vec<_> =
        state.epochs.held().map(|(epoch, _)| epoch).filter(|e| low(*e)).collect();
    held.reverse();
    held
}

fn certify(state: &mut GroupState, bytes: &[u8]) -> Result<Change, Error> {
    let certificate = Certificate::from_bytes(&state.charter, bytes)?;
    let is_known = state.roster.entry(certificate.slot).is_some()
        || state.certificates.iter().any(|kept| kept == bytes);
    if is_known {
        return Ok(Change::Nothing);
    }
    state.keep_certificate(bytes);
    Ok(Change::Certified(certificate.slot))
}

fn obey(state: &mut GroupState, body: &[u8]) -> Result<Change, Error> {
    match Order::from_bytes(body)? {
        Order::Advance(order) => advance(state, order.to),
        Order::Admit { number, slot, certificate, replaces } => {
            if !is_next(state, number)? {
                return Ok(Change::Nothing);
            }
            admit(state, number, slot, certificate, replaces)
        }
        Order::Rekey(order) => rekey(state, &order),
    }
}

/// Whether an order changes the roster to the number after the present one. Earlier ones were
/// obeyed before.
fn is_next(state: &GroupState, number: u64) -> Result<bool, Error> {
    let present = state.roster.number();
    if number > present.saturating_add(1) {
        return Err(Error::OrderMissing);
    }
    Ok(number > present)
}

/// The one-way step of `spec/seal.md`, taken by order only.
pub(super) fn advance(state: &mut GroupState, to: Epoch) -> Result<Change, Error> {
    let newest = state.epochs.newest();
    if to <= newest {
        return Ok(Change::Nothing);
    }
    let secret = state.epochs.secret(newest).ok_or(Error::OrderMissing)?.clone();
    let mut ladder = Epochs::ratcheting(state.id(), state.charter.history, newest, secret);
    ladder.advance(to)?;
    for (epoch, secret) in ladder.held().skip(1) {
        state.epochs.insert(epoch, secret.clone())?;
    }
    Ok(Change::Advanced(to))
}

fn admit(
    state: &mut GroupState,
    number: u64,
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
    if let Some(old) = replaces {
        state.roster.remove(old, state.epochs.newest());
    }
    state.roster.admit(number, certificate.entry());
    if replaces == Some(state.slot) {
        // This identity goes on elsewhere; what is left here is the slot that was retired.
        state.is_removed = true;
        return Ok(Change::Removed);
    }
    Ok(Change::Admitted { slot, replaces })
}

fn rekey(state: &mut GroupState, order: &Rekey) -> Result<Change, Error> {
    if order.epoch <= state.epochs.newest() || order.number < state.roster.number() {
        return Ok(Change::Nothing);
    }
    // The parts of one order have one number; the first that comes changes the roster.
    let is_first = is_next(state, order.number)?;
    if is_first {
        state.roster.set_number(order.number);
        order.removed.iter().for_each(|slot| state.roster.remove(*slot, order.epoch));
        if !order.removed.is_empty() {
            state.live_from = order.epoch;
        }
    }
    let whose = WrapId { group: state.id(), epoch: order.epoch, slot: state.slot };
    let is_removed = order.removed.contains(&state.slot);
    if !is_removed && !order.wraps.covers(state.slot) {
        let told = Change::Rekeyed { epoch: state.epochs.newest(), removed: order.removed.clone() };
        return Ok(if is_first { told } else { Change::Nothing });
    }
    match order.wraps.unwrap(whose, &state.wrap_key) {
        Some(secret) if !is_removed => {
            state.epochs.insert(order.epoch, secret)?;
            Ok(Change::Rekeyed { epoch: order.epoch, removed: order.removed.clone() })
        }
        _ => {
            state.is_removed = true;
            Ok(Change::Removed)
        }
    }
}

fn renew(state: &mut GroupState, bytes: &[u8]) -> Result<Change, Error> {
    let renewal = Renewal::read(&state.charter, bytes)?;
    if renewal.epoch <= state.epochs.newest() {
        return Ok(Change::Nothing);
    }
    let opened = renewal.open(state.slot, &state.wrap_key)?;
    let own = state.roster.entry(state.slot).map(|entry| entry.verifying);
    let opened = opened.filter(|(_, roster)| {
        let listed = roster.entry(state.slot).filter(|entry| entry.removed.is_none());
        listed.map(|entry| entry.verifying) == own
    });
    let Some((secret, roster)) = opened else {
        state.is_removed = true;
        return Ok(Change::Removed);
    };
    let removed = gone(state, &roster);
    state.epochs.insert(renewal.epoch, secret)?;
    state.roster = roster;
    state.live_from = renewal.epoch;
    Ok(Change::Rekeyed { epoch: renewal.epoch, removed })
}

/// Who was a member and is none in another roster.
fn gone(state: &GroupState, roster: &crate::Roster) -> Vec<Slot> {
    let stays = |slot| roster.entry(slot).is_some_and(|entry| entry.removed.is_none());
    state.roster.members().map(|entry| entry.slot).filter(|slot| !stays(*slot)).collect()
}
