//! The effect of a notice on a member's state.

use std::collections::BTreeMap;

use sealane_frame::{FrameKind, FrameView, open_stored};
use sealane_seal::limits::MAX_EPOCHS_AHEAD;
use sealane_seal::{Binding, Class, Epoch, KeyId, Opener, Slot};

use super::control_topic;
use crate::certificate::MemberCertificate;
use crate::folder::{IdentityKeys, KeyFolderLock};
use crate::limits::MAX_ORDERS_HELD;
use crate::notice::{GroupHeartbeat, ParsedNotice};
use crate::order::{GroupOrder, NumberedOrder, REKEY, RekeyOrder, WrapId};
use crate::removal::RemovalNotice;
use crate::renewal::VerifiedRenewal;
use crate::state::{GroupState, NewestHeartbeat};
use crate::{Error, GroupChange, GroupDocument, GroupNotice, now_ms};

/// A notice that the authority, or its beater, has signed.
pub(super) enum VerifiedNotice<'a> {
    Order { number: u64, notice: &'a GroupNotice },
    Renewal { renewal: VerifiedRenewal<'a>, notice: &'a GroupNotice },
    Heartbeat { heartbeat: GroupHeartbeat, is_authoritys: bool },
    Removal(RemovalNotice),
}

/// The folder that a member obeys in.
pub(super) struct MemberFolder<'a> {
    pub(super) keys: &'a IdentityKeys,
    /// The name of the group there.
    pub(super) name: &'a str,
    pub(super) lock: &'a KeyFolderLock,
    /// Orders and renewals that came before others that they follow.
    pub(super) held: &'a mut BTreeMap<u64, GroupNotice>,
    /// The cards that renewals have answered: to be used up once the state is kept.
    pub(super) answered: Vec<[u8; 32]>,
}

impl MemberFolder<'_> {
    /// Other processes of the folder, or a renewal, may have gone on without what is held here.
    fn forget_before(&mut self, number: u64) {
        *self.held = self.held.split_off(&number);
    }
}

/// Checks who signed a notice. Gives nothing for one that cannot change anything.
pub(super) fn verify<'a>(
    state: &GroupState,
    is_authority: bool,
    notice: &'a GroupNotice,
) -> Result<Option<VerifiedNotice<'a>>, Error> {
    if state.is_removed {
        return Err(Error::Removed);
    }
    let (group, authority) = (state.id(), &state.charter.authority.curve);
    match notice.parse()? {
        ParsedNotice::Order { number, frame } => {
            if FrameView::parse(frame)?.header().group() != state.tag() {
                return Err(Error::OtherGroup(GroupDocument::Order));
            }
            if number < state.orders && !is_authority {
                return Ok(None);
            }
            notice.verified(group, authority)?;
            Ok(Some(VerifiedNotice::Order { number, notice }))
        }
        ParsedNotice::Renewal(bytes) => {
            let renewal = VerifiedRenewal::read(&state.charter, bytes)?;
            Ok(Some(VerifiedNotice::Renewal { renewal, notice }))
        }
        // An authority knows whom it removes; an order that was obeyed has said more.
        ParsedNotice::Removal(removal) if is_authority || removal.order < state.orders => Ok(None),
        ParsedNotice::Removal(removal) => {
            notice.verified(group, authority)?;
            let entry = state.roster.entry(removal.slot);
            if entry.is_some_and(|entry| entry.verifying == *authority) {
                return Err(Error::Malformed(GroupDocument::Order));
            }
            Ok(Some(VerifiedNotice::Removal(removal)))
        }
        ParsedNotice::Heartbeat(heartbeat) => {
            let is_newer = heartbeat.time_ms > state.beat.time_ms;
            if !is_newer && heartbeat.orders <= state.known {
                return Ok(None);
            }
            let by_authority = notice.verified(group, authority).map(|_| ());
            let is_authoritys = by_authority.is_ok();
            let is_by = |key: &[u8; 32]| notice.verified(group, key).is_ok();
            if !is_authoritys && !state.beater.as_ref().is_some_and(is_by) {
                by_authority?;
            }
            Ok(Some(VerifiedNotice::Heartbeat { heartbeat, is_authoritys }))
        }
    }
}

/// Changes the state by a notice that was verified. On an error what it has shown stays.
pub(super) fn apply(
    state: &mut GroupState,
    folder: &mut MemberFolder<'_>,
    verified: &VerifiedNotice<'_>,
) -> Result<Vec<GroupChange>, Error> {
    let own = folder.keys.identity().public().verifying_key();
    let is_authority = state.charter.authority.curve == *own;
    match verified {
        VerifiedNotice::Heartbeat { heartbeat, is_authoritys } => {
            if is_authority && *is_authoritys && heartbeat.orders > state.orders {
                return Err(elsewhere(state, folder.keys));
            }
            Ok(beat(state, is_authority, *is_authoritys, *heartbeat))
        }
        // It changes no state of the group: `Member::leave` keeps it.
        VerifiedNotice::Removal(_) => Ok(Vec::new()),
        VerifiedNotice::Renewal { renewal, notice } if is_authority => {
            known_here(state, folder, renewal.number, notice)
        }
        VerifiedNotice::Order { number, notice } if is_authority => {
            known_here(state, folder, *number, notice)
        }
        VerifiedNotice::Renewal { renewal, .. } if renewal.number < state.orders => Ok(Vec::new()),
        VerifiedNotice::Renewal { renewal, .. } if renewal.epoch <= state.epochs.newest() => {
            // The authority has begun anew, and not far enough: nobody knows what it gives now.
            state.known = state.known.max(renewal.number.saturating_add(1));
            Ok(vec![GroupChange::Held { missing: state.orders }])
        }
        VerifiedNotice::Renewal { renewal, .. } if renewal.is_anew => {
            begin_anew(state, folder, renewal)
        }
        VerifiedNotice::Renewal { renewal, notice } => {
            in_turn(state, folder, renewal.number, notice)
        }
        VerifiedNotice::Order { number, notice } => in_turn(state, folder, *number, notice),
    }
}

/// Whether two states are the same but for what no order changes.
pub(super) fn is_same(one: &GroupState, other: &GroupState) -> bool {
    let known = |of: &GroupState| (of.orders, of.known, of.claimed, of.awaited, of.beat);
    let flags = |of: &GroupState| (of.is_removed, of.is_copied);
    (known(one), flags(one)) == (known(other), flags(other))
}

/// An authority hears what it has given itself. Another order of its own key, beyond those or with
/// the number of one of them, shows that a copy of its folder is at work.
fn known_here(
    state: &mut GroupState,
    folder: &MemberFolder<'_>,
    number: u64,
    notice: &GroupNotice,
) -> Result<Vec<GroupChange>, Error> {
    let is_given = number < state.orders
        && folder.keys.notice(folder.name, number)?.is_none_or(|given| given == *notice);
    if is_given { Ok(Vec::new()) } else { Err(elsewhere(state, folder.keys)) }
}

/// Marks an authority whose key gives orders elsewhere, too.
fn elsewhere(state: &mut GroupState, keys: &IdentityKeys) -> Error {
    state.is_copied = true;
    Error::Elsewhere(keys.path().to_owned())
}

fn beat(
    state: &mut GroupState,
    is_authority: bool,
    is_authoritys: bool,
    heartbeat: GroupHeartbeat,
) -> Vec<GroupChange> {
    if is_authoritys {
        state.known = state.known.max(heartbeat.orders);
    } else if !is_authority {
        state.claimed = state.claimed.max(heartbeat.orders);
    }
    if heartbeat.time_ms > state.beat.time_ms {
        state.beat = NewestHeartbeat { time_ms: heartbeat.time_ms, came_ms: now_ms() };
    }
    vec![GroupChange::Heartbeat(heartbeat)]
}

/// Obeys an order or a renewal if it is its turn, and then those that were held for it.
fn in_turn(
    state: &mut GroupState,
    folder: &mut MemberFolder<'_>,
    number: u64,
    notice: &GroupNotice,
) -> Result<Vec<GroupChange>, Error> {
    // From here on it is known that the order exists, whatever becomes of it.
    state.known = state.known.max(number.saturating_add(1));
    if number < state.orders {
        return Ok(Vec::new());
    }
    folder.forget_before(state.orders);
    folder.held.insert(number, notice.clone());
    while folder.held.len() > MAX_ORDERS_HELD {
        folder.held.pop_last();
    }
    let mut changes = Vec::new();
    if let Some(next) = folder.held.remove(&state.orders) {
        changes.extend(obey(state, folder, &next)?);
        go_on(state, folder, &mut changes);
    }
    if !state.is_removed && state.known > state.orders {
        changes.push(GroupChange::Held { missing: state.orders });
    }
    Ok(changes)
}

/// Steps over all orders that were given elsewhere, and obeys those behind the new beginning.
fn begin_anew(
    state: &mut GroupState,
    folder: &mut MemberFolder<'_>,
    renewal: &VerifiedRenewal<'_>,
) -> Result<Vec<GroupChange>, Error> {
    state.known = state.known.max(renewal.number.saturating_add(1));
    let mut after = state.clone();
    let mut changes = vec![renew(&mut after, folder, renewal)?];
    go_over(state, after);
    folder.forget_before(state.orders);
    go_on(state, folder, &mut changes);
    if !state.is_removed && state.known > state.orders {
        changes.push(GroupChange::Held { missing: state.orders });
    }
    Ok(changes)
}

/// Obeys what was held and has its turn now. One that cannot be obeyed leaves the member behind,
/// and what was obeyed before it stands.
fn go_on(state: &mut GroupState, folder: &mut MemberFolder<'_>, changes: &mut Vec<GroupChange>) {
    while !state.is_removed
        && let Some(next) = folder.held.remove(&state.orders)
    {
        match obey(state, folder, &next) {
            Ok(change) => changes.extend(change),
            Err(_) => return,
        }
    }
}

/// Obeys the order or the renewal whose turn it is. On an error the state is as before.
fn obey(
    state: &mut GroupState,
    folder: &mut MemberFolder<'_>,
    notice: &GroupNotice,
) -> Result<Option<GroupChange>, Error> {
    let mut after = state.clone();
    let change = match notice.parse()? {
        ParsedNotice::Order { frame, .. } => obey_order(&mut after, frame)?,
        ParsedNotice::Renewal(bytes) => {
            let renewal = VerifiedRenewal::read(&state.charter, bytes)?;
            if renewal.epoch <= state.epochs.newest() {
                return Err(Error::Malformed(GroupDocument::Renewal));
            }
            Some(renew(&mut after, folder, &renewal)?)
        }
        ParsedNotice::Heartbeat(_) | ParsedNotice::Removal(_) => {
            return Err(Error::Malformed(GroupDocument::Order));
        }
    };
    after.orders = state.orders + 1;
    after.known = after.known.max(after.orders);
    go_over(state, after);
    Ok(change)
}

/// Takes the state behind an order: from here on no order is obeyed twice, and none is forgotten.
fn go_over(state: &mut GroupState, after: GroupState) {
    debug_assert!(after.orders > state.orders, "orders are obeyed once");
    debug_assert!(after.known >= after.orders, "what was obeyed is known");
    debug_assert!(after.epochs.newest() >= state.epochs.newest(), "epochs only rise");
    *state = after;
}

fn obey_order(state: &mut GroupState, frame: &[u8]) -> Result<Option<GroupChange>, Error> {
    if is_erased_part(state, frame)? {
        return Ok(None);
    }
    let (data_type, body) = open(state, frame)?;
    let NumberedOrder { number, order } = GroupOrder::from_bytes(data_type, &body)?;
    if number != state.orders {
        return Err(Error::Malformed(GroupDocument::Order));
    }
    match order {
        GroupOrder::Certify(certificate) => certify(state, &certificate).map(Some),
        GroupOrder::Advance(to) => advance(state, to).map(Some),
        GroupOrder::Admit { slot, certificate, replaces } => {
            admit(state, slot, certificate, replaces).map(Some)
        }
        GroupOrder::Rekey(order) => rekey(state, &order),
        GroupOrder::Mark { epoch, marks } => {
            state.marks.add(epoch, &marks);
            Ok(Some(GroupChange::Marked(marks.len())))
        }
        GroupOrder::Beater(key) => {
            state.dismiss_beater();
            state.beater = key;
            Ok(Some(GroupChange::Beater(key)))
        }
    }
}

/// Whether an order whose turn it is can only be a further part of the re-key that has begun the
/// present epoch. Parts are sealed in the epoch that ends: a forward-secret member that has found
/// its secret in an earlier part may have erased that epoch's, and needs no other part.
fn is_erased_part(state: &GroupState, frame: &[u8]) -> Result<bool, Error> {
    let view = FrameView::parse(frame)?;
    let (key, newest) = (view.seal_header().key, state.epochs.newest());
    let before = Epoch(newest.0.wrapping_sub(1));
    let is_of_it = KeyId::new(key.slot, key.class, before) == key;
    let is_rekey = view.header().data_type() == REKEY;
    Ok(is_rekey && is_of_it && state.epochs.secret(before).is_none())
}

/// Opens a control frame of the authority: its data type and body.
fn open(state: &GroupState, frame: &[u8]) -> Result<(u16, Vec<u8>), Error> {
    let view = FrameView::parse(frame)?;
    let (header, key) = (*view.header(), view.seal_header().key);
    if header.kind() != FrameKind::Control || key.class != Class::Signed {
        return Err(Error::Malformed(GroupDocument::Order));
    }
    let authority = state.charter.authority.curve;
    let is_authority = state.roster.entry(key.slot).is_some_and(|one| one.verifying == authority);
    if !is_authority {
        return Err(Error::Unauthorized(key.slot.number()));
    }
    let mut opener = Opener::new(state.charter.group(), None, state.epochs.clone())?;
    opener.set_terms(state.roster.entries().iter().map(crate::RosterEntry::term))?;
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

fn certify(state: &mut GroupState, bytes: &[u8]) -> Result<GroupChange, Error> {
    let certificate = MemberCertificate::from_bytes(&state.charter, bytes)?;
    state.keep_certificate(bytes);
    Ok(GroupChange::Certified(certificate.slot))
}

/// The one-way step of `spec/seal.md`, taken by order only.
pub(super) fn advance(state: &mut GroupState, to: Epoch) -> Result<GroupChange, Error> {
    let newest = state.epochs.newest();
    let is_near = to > newest && to.0 - newest.0 <= MAX_EPOCHS_AHEAD;
    if !is_near {
        return Err(Error::Malformed(GroupDocument::Order));
    }
    for next in newest.0 + 1..=to.0 {
        let last = state.epochs.secret(state.epochs.newest()).ok_or(Error::Cipher)?;
        let secret = last.next(state.id(), Epoch(next))?;
        state.epochs.insert(Epoch(next), secret)?;
    }
    state.awaited = to;
    Ok(GroupChange::Advanced(to))
}

fn admit(
    state: &mut GroupState,
    slot: Slot,
    hash: [u8; 32],
    replaces: Option<Slot>,
) -> Result<GroupChange, Error> {
    let found = state.certificates.iter().position(|one| *blake3::hash(one).as_bytes() == hash);
    let bytes = state.certificates.remove(found.ok_or(Error::CertificateMissing)?);
    let certificate = MemberCertificate::from_bytes(&state.charter, &bytes)?;
    let free = state.roster.free_slot(state.charter.is_pair)?;
    let fits = (certificate.slot, certificate.replaces) == (slot, replaces) && slot >= free;
    if !fits {
        return Err(Error::Malformed(GroupDocument::Order));
    }
    state.roster.admit(certificate.entry());
    Ok(GroupChange::Admitted { slot, replaces })
}

fn rekey(state: &mut GroupState, order: &RekeyOrder) -> Result<Option<GroupChange>, Error> {
    let newest = state.epochs.newest();
    if order.epoch < newest {
        return Err(Error::Malformed(GroupDocument::Order));
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
        return Ok(Some(GroupChange::Removed));
    }
    if !order.wraps.covers(state.slot) {
        return Ok(None);
    }
    let whose = WrapId { group: state.id(), epoch: order.epoch, slot: state.slot };
    let Some(secret) = order.wraps.unwrap(whose, &state.wrap_key) else {
        state.is_removed = true;
        return Ok(Some(GroupChange::Removed));
    };
    state.epochs.insert(order.epoch, secret)?;
    Ok(Some(GroupChange::Rekeyed { epoch: order.epoch, removed: order.removed.clone() }))
}

/// Takes a renewal of a later epoch. On an error the folder's cards are as before.
fn renew(
    state: &mut GroupState,
    folder: &mut MemberFolder<'_>,
    renewal: &VerifiedRenewal<'_>,
) -> Result<GroupChange, Error> {
    let opened = renewal.open(state, folder.keys, folder.lock)?;
    let own = state.roster.entry(state.slot).map(|entry| entry.verifying);
    let opened = opened.filter(|opened| {
        let listed = opened.roster.entry(state.slot).filter(|entry| entry.removed.is_none());
        listed.map(|entry| entry.verifying) == own
    });
    state.orders = renewal.number + 1;
    state.known = state.known.max(state.orders);
    let Some(opened) = opened else {
        state.is_removed = true;
        return Ok(GroupChange::Removed);
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
    folder.answered.extend(renewal.card(state.slot));
    Ok(GroupChange::Rekeyed { epoch: renewal.epoch, removed })
}

/// The members that are no members in another roster.
fn gone(state: &GroupState, roster: &crate::GroupRoster) -> Vec<Slot> {
    let stays = |slot| roster.entry(slot).is_some_and(|entry| entry.removed.is_none());
    state.roster.members().map(|entry| entry.slot).filter(|slot| !stays(*slot)).collect()
}
