//! Orders of groups: told of, asked for and given between neighbours, and kept for those who come.

use std::collections::BTreeSet;
use std::sync::Arc;

use sealane_frame::GroupTag;
use sealane_seal::{Epoch, Form, Slot};

use super::Mesh;
use crate::interface::{COMPACT_BYTES, FULL_BYTES};
use crate::limits::{MAX_KEPT_GROUPS, MAX_MESH_NEIGHBOURS, MAX_REMOVAL_REPEATS};
use crate::messages::MessageType;
use crate::neighbour::LinkId;
use crate::notice::NoticeContent;
use crate::orders::{
    EpochBehind, HeldOf, OrderAsk, OrderGiver, OrderKeeper, OrderPieces, OrderRange, OrderTrickle,
    OrdersHeld, PIECE_BYTES, PieceToSend, PiecesAsked, RemovalMessage, RemovalRepeat,
};
use crate::voice::{HopMessage, MemberLeaves};
use crate::{
    InterfaceId, KeptGroup, MeshError, MeshEvent, MeshOutput, MeshSpan, SendUrgency, UnitReceiver,
};

mod state;

pub(super) use state::MeshOrders;

impl Mesh {
    /// Keeps a group's orders.
    pub(super) fn keep_orders(&mut self, of: KeptGroup) {
        if let Some(keeper) = self.orders.groups.get_mut(&of.tag) {
            if keeper.of.is_same_group(&of) {
                let turned = keeper.go_on(of.orders);
                return self.turned(of.tag, turned);
            }
            self.orders.forget(of.tag);
        }
        if self.orders.groups.len() == MAX_KEPT_GROUPS {
            self.counters.no_room += 1;
            return;
        }
        self.orders.groups.insert(of.tag, OrderKeeper::new(of));
        self.tell_orders_soon();
    }

    /// Keeps a group's orders no longer, unless it is the mesh's own.
    pub(super) fn forget_orders(&mut self, group: GroupTag) {
        if group != self.voice.group() {
            self.orders.forget(group);
        }
    }

    /// The machine's own member has obeyed so many orders of the mesh's group.
    pub(super) fn obeyed(&mut self, orders: u64, stays: Vec<MemberLeaves>) {
        let group = self.voice.group();
        if let Some(keeper) = self.orders.groups.get_mut(&group) {
            let turned = keeper.go_on(orders);
            self.turned(group, turned);
        }
        // Until they are heard in the new epoch, the neighbours have not come to it.
        let epochs = self.neighbours.values().map(|one| (one.id, one.hop.sender().epoch));
        for (link, epoch) in epochs.collect::<Vec<_>>() {
            self.note_epoch(link, epoch);
        }
        for MemberLeaves { slot, order } in stays {
            self.event(MeshEvent::Stays { slot, order });
        }
    }

    /// Takes a notice, whoever brought it: its authority has signed it, or it does nothing.
    pub(super) fn take_notice(&mut self, group: GroupTag, notice: &[u8]) -> Result<(), MeshError> {
        let keeper = self.orders.groups.get_mut(&group).ok_or(MeshError::NotOurs)?;
        if keeper.has_removal(notice) {
            return Ok(());
        }
        let told = NoticeContent::verify(&keeper.of, notice)
            .inspect_err(|_| self.counters.unsigned += 1)?;
        let first = keeper.held().first;
        let turned = keeper.take(told, notice.into());
        let is_lower = keeper.held().first < first;
        if let NoticeContent::Removal { order, slot } = told
            && !turned.is_empty()
        {
            self.removal_came(group, MemberLeaves { slot, order });
        }
        self.turned(group, turned);
        if is_lower {
            // A neighbour that lacks it is to know that it is here.
            self.tell_orders_soon();
        }
        Ok(())
    }

    /// Gives the member here what its turn is, and tells the neighbours.
    fn turned(&mut self, group: GroupTag, turned: Vec<Arc<[u8]>>) {
        self.orders.bound();
        let Some(keeper) = self.orders.groups.get(&group) else { return };
        self.orders.collections.forget(group, keeper.least());
        if turned.is_empty() {
            return;
        }
        self.counters.notices += turned.len() as u64;
        let notices = turned.into_iter().map(|notice| MeshOutput::Notice { group, notice });
        self.outputs.extend(notices);
        self.tell_orders_soon();
    }

    /// Somebody is about to be removed: all are told at once.
    fn removal_came(&mut self, group: GroupTag, leaves: MemberLeaves) {
        let which = (leaves.order, leaves.slot);
        for id in self.interfaces.keys().copied().collect::<Vec<_>>() {
            self.repeat(id, group, which, MAX_REMOVAL_REPEATS);
        }
        if group == self.voice.group() && self.voice.leave(leaves) {
            self.event(MeshEvent::Leaving { slot: leaves.slot, order: leaves.order });
            self.sweep_members();
        }
    }

    /// Has a notice of removal told on an interface.
    fn repeat(&mut self, id: InterfaceId, group: GroupTag, which: (u64, Slot), left: u8) {
        let air =
            self.interfaces.get(&id).map(|one| one.air(COMPACT_BYTES + RemovalMessage::BYTES));
        let others = self.neighbours.keys().filter(|link| link.interface == id).count() as u64;
        // Those who hear each other find different moments.
        let window = air.unwrap_or_default().times(2 * others.min(16)).max(MeshSpan::millis(5));
        let at = self.now + self.random.within(window);
        let is_it =
            |one: &&mut RemovalRepeat| (one.interface, one.group, one.which) == (id, group, which);
        if let Some(known) = self.orders.repeats.iter_mut().find(is_it) {
            known.left = known.left.max(left);
            return;
        }
        let [shown, tellers, lacks] = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        let fresh = RemovalRepeat { interface: id, group, which, at, left, shown, tellers, lacks };
        self.orders.repeats.push(fresh);
    }

    /// Tells all neighbours soon which orders are held.
    fn tell_orders_soon(&mut self) {
        for id in self.interfaces.keys().copied().collect::<Vec<_>>() {
            self.hasten_held(id);
        }
    }

    /// Tells the neighbours of an interface soon which orders are held.
    pub(super) fn hasten_held(&mut self, id: InterfaceId) {
        let Some(interface) = self.interfaces.get(&id) else { return };
        let (least, now) = (interface.hello.interval, self.now);
        let chance = MeshSpan(self.random.word() >> 1);
        let trickles = &mut self.orders.trickles;
        let fresh = || OrderTrickle::new(now, least, chance);
        trickles.entry(id).or_insert_with(fresh).reset(now, least, chance);
    }

    /// Looks at the epoch in which a neighbour has said something.
    pub(super) fn note_epoch(&mut self, link: LinkId, epoch: Epoch) {
        if epoch >= self.voice.epochs().newest() {
            self.orders.behind.remove(&link);
            return;
        }
        let interval = self.interfaces.get(&link.interface).map(|one| one.hello.interval);
        let until = self.now + interval.unwrap_or_default().times(BEHIND_INTERVALS);
        let known = self.orders.behind.get(&link).map(|behind| behind.epoch);
        if known.is_none() && self.orders.behind.len() >= MAX_MESH_NEIGHBOURS {
            return;
        }
        self.orders.behind.insert(link, EpochBehind { epoch, until });
        if known != Some(epoch) {
            self.hasten_held(link.interface);
        }
    }

    /// Takes a frame of an epoch before the last one.
    pub(super) fn hear_behind(&mut self, id: InterfaceId, frame: &[u8]) -> Result<(), MeshError> {
        let behind = self.voice.hear_behind(frame)?;
        let link = LinkId { interface: id, slot: behind.slot };
        self.note_epoch(link, behind.epoch);
        match behind.said {
            Some(said) => self.hear_orders(link, &said),
            None => Ok(()),
        }
    }

    /// Takes what a neighbour says of orders.
    pub(super) fn hear_orders(&mut self, link: LinkId, said: &HopMessage) -> Result<(), MeshError> {
        match said.what {
            MessageType::Held => {
                OrdersHeld::parse(&said.body).map(|held| self.hear_held(link, &held))
            }
            MessageType::Asked => {
                PiecesAsked::parse(&said.body).map(|asked| self.hear_asked(link, said, asked))
            }
            MessageType::Pieces => {
                OrderPieces::parse(&said.body).map(|pieces| self.hear_pieces(link, &pieces))
            }
            MessageType::Removal => {
                RemovalMessage::parse(&said.body).map(|told| self.hear_removal(link, &told))
            }
            _ => Err(MeshError::NotOurs),
        }
    }

    fn hear_held(&mut self, link: LinkId, held: &OrdersHeld) {
        let mut is_of_use = false;
        for told in &held.groups {
            is_of_use |= self.hear_held_of(link, *told);
        }
        if is_of_use {
            self.hasten_held(link.interface);
        } else if self.orders.is_same(held)
            && let Some(trickle) = self.orders.trickles.get_mut(&link.interface)
        {
            trickle.heard_same();
        }
    }

    /// Compares what a neighbour holds of a group. Whether one of the two can give the other
    /// something.
    fn hear_held_of(&mut self, link: LinkId, told: HeldOf) -> bool {
        let Some(keeper) = self.orders.groups.get_mut(&told.group) else { return false };
        let holds = OrderRange { first: told.first, wants: told.wants };
        let givers = keeper.note(OrderGiver { link, holds });
        let takes = givers.iter().any(|giver| giver.link == link);
        let is_shown = keeper.hash_of_removals(told.wants) == told.removals;
        let known: Vec<_> = keeper.removals(told.wants).map(|(which, _)| *which).collect();
        let gives = keeper.order(told.wants).is_some();
        if !givers.is_empty() {
            let soon = self.soon(link.interface, 8);
            let ask = self.orders.asks.entry(told.group).or_insert_with(|| OrderAsk::new(soon));
            givers.into_iter().for_each(|giver| ask.note(giver));
        }
        for which in known {
            if !is_shown {
                self.repeat(link.interface, told.group, which, 2);
            }
            self.note_shown(link, told.group, which, is_shown);
        }
        gives || takes || !is_shown
    }

    /// Notes whether a neighbour has a notice of removal.
    fn note_shown(&mut self, link: LinkId, group: GroupTag, which: (u64, Slot), has: bool) {
        for one in &mut self.orders.repeats {
            let is_it = (one.interface, one.group, one.which) == (link.interface, group, which);
            if is_it {
                one.note(link.slot, has);
            }
        }
    }

    fn hear_removal(&mut self, link: LinkId, told: &RemovalMessage) {
        let is_kept = self.orders.groups.contains_key(&told.group);
        if is_kept && !self.may_verify(link) {
            return;
        }
        if is_kept && self.take_notice(told.group, &told.notice).is_err() {
            self.did_not_verify(link);
            self.event(MeshEvent::Faulty { slot: link.slot });
            return;
        }
        let Some(keeper) = self.orders.groups.get(&told.group) else { return };
        let its = keeper.removals(0).find(|(_, notice)| ***notice == told.notice);
        if let Some(which) = its.map(|(which, _)| *which) {
            self.note_shown(link, told.group, which, true);
            let is_it = |one: &&mut RemovalRepeat| {
                (one.interface, one.group, one.which) == (link.interface, told.group, which)
            };
            if let Some(one) = self.orders.repeats.iter_mut().find(is_it) {
                one.tellers.insert(link.slot);
            }
        }
    }

    /// Gives pieces of an order to a neighbour that asks for them.
    fn hear_asked(&mut self, link: LinkId, said: &HopMessage, asked: PiecesAsked) {
        let Some(interface) = self.interfaces.get(&link.interface) else { return };
        let keeper = self.orders.groups.get(&asked.group);
        let held = keeper.and_then(|keeper| keeper.order(asked.number));
        let Some((number, notice)) = held.filter(|_| asked.to == self.voice.slot()) else { return };
        let count = notice.len().div_ceil(PIECE_BYTES);
        let pause = pause(interface).part(2);
        let epoch = match said.is_before(self.voice.epochs().newest()) {
            true => said.by.epoch,
            false => self.voice.epochs().newest(),
        };
        // Of a new beginning in place of what was asked for, the first pieces are sent.
        let first = if number == asked.number { asked.first } else { 0 };
        let giving = self.orders.giving.entry(link.interface).or_default();
        let wanted = (0..64_u16).filter(|bit| asked.pieces >> bit & 1 == 1);
        for piece in wanted.filter_map(|bit| first.checked_add(bit)) {
            if usize::from(piece) < count {
                let give = PieceToSend { epoch, group: asked.group, number, piece };
                giving.want(self.now, give, pause);
            }
        }
    }

    fn hear_pieces(&mut self, link: LinkId, told: &OrderPieces) {
        let Some(keeper) = self.orders.groups.get(&told.group) else { return };
        if told.number < keeper.wants() && Some(told.number) != keeper.below() {
            return;
        }
        let added = self.orders.collections.add(link.slot, told);
        let Some(interface) = self.interfaces.get(&link.interface) else { return };
        let later = self.now + pause(interface);
        if let Some(ask) = self.orders.asks.get_mut(&told.group).filter(|_| added.is_new) {
            ask.came(later);
        }
        let Some(whole) = added.whole else { return };
        let soon = self.soon(link.interface, 32);
        if !self.may_verify(link) {
            return;
        }
        if self.take_notice(told.group, &whole.notice).is_err() {
            self.did_not_verify(link);
            // Somebody has told junk, in its own name or in that of a neighbour.
            self.event(MeshEvent::Faulty { slot: link.slot });
            if let Some(ask) = self.orders.asks.get_mut(&told.group) {
                ask.pass_over();
            }
        }
        if let Some(ask) = self.orders.asks.get_mut(&told.group) {
            ask.at = soon;
        }
    }

    /// Does what is due.
    pub(super) fn tick_orders(&mut self) {
        let now = self.now;
        if !self.orders.behind.is_empty() {
            self.orders.behind.retain(|_, behind| behind.until > now);
        }
        let mut at = 0;
        while let Some(id) = self.interfaces.keys().nth(at).copied() {
            if self.orders.is_silent() {
                break;
            }
            at += 1;
            let chance = MeshSpan(self.random.word() >> 1);
            if !self.orders.trickles.contains_key(&id) {
                self.hasten_held(id);
            }
            let trickle = self.orders.trickles.get_mut(&id).filter(|one| one.due() <= now);
            if trickle.is_some_and(|trickle| trickle.tick(now, chance)) {
                self.tell_held(id);
            }
            self.give_pieces(id);
        }
        let due = |ask: &OrderAsk| ask.at <= now;
        let asks = self.orders.asks.iter().filter(|(_, ask)| due(ask)).map(|(group, _)| *group);
        asks.collect::<Vec<_>>().into_iter().for_each(|group| self.ask_order(group));
        self.repeat_removals();
    }

    fn tell_held(&mut self, id: InterfaceId) {
        let body = self.orders.held().to_bytes();
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        if let Err(ready) = interface.may_say(self.now, COMPACT_BYTES + body.len()) {
            if let Some(trickle) = self.orders.trickles.get_mut(&id) {
                trickle.say_at = Some(ready);
                trickle.ends = trickle.ends.max(ready + MeshSpan(1));
            }
            return;
        }
        self.say(id, MessageType::Held, &body, UnitReceiver::Everybody);
        for epoch in self.orders.epochs_behind(id) {
            self.announce_in(id, epoch);
            self.say_behind(id, epoch, MessageType::Held, &body, SendUrgency::Control);
        }
    }

    /// Announces the machine to those who hold an earlier epoch, but not again and again.
    fn announce_in(&mut self, id: InterfaceId, epoch: Epoch) {
        let Some(interface) = self.interfaces.get(&id) else { return };
        let (form, pause) = (interface.medium.form, interface.hello.interval.part(2));
        let last = self.orders.announced.get(&(id, epoch));
        if last.is_some_and(|at| self.now.since(*at) < pause) {
            return;
        }
        let Ok(unit) = self.voice.announcement_in(epoch, form) else { return };
        self.orders.announced.retain(|(_, known), _| *known >= epoch);
        self.orders.announced.insert((id, epoch), self.now);
        self.counters.control_bytes += unit.len() as u64;
        self.send(id, UnitReceiver::Everybody, unit, SendUrgency::Control);
    }

    /// Says something to those who hold an earlier epoch.
    fn say_behind(
        &mut self,
        id: InterfaceId,
        epoch: Epoch,
        what: MessageType,
        body: &[u8],
        urgency: SendUrgency,
    ) {
        let Some(form) = self.interfaces.get(&id).map(|one| one.medium.form) else { return };
        if let Ok(unit) = self.voice.say_in(epoch, form, what, body) {
            self.counters.control_bytes += unit.len() as u64;
            self.send(id, UnitReceiver::Everybody, unit, urgency);
        }
    }

    /// Asks a neighbour for the order that is lacking.
    fn ask_order(&mut self, group: GroupTag) {
        let Some(keeper) = self.orders.groups.get_mut(&group) else { return };
        let whom = self.orders.asks.get_mut(&group).and_then(|ask| ask.whom(keeper));
        let whom = whom.filter(|(link, _)| self.interfaces.contains_key(&link.interface));
        let Some((link, wanted)) = whom else {
            self.orders.asks.remove(&group);
            return;
        };
        keeper.asked(wanted);
        let lack = self.orders.collections.lack(link.slot, group, wanted);
        let (number, first, pieces) = (lack.number, lack.first, lack.pieces);
        let asked = PiecesAsked { to: link.slot, group, number, first, pieces };
        let body = asked.to_bytes();
        let Some(interface) = self.interfaces.get_mut(&link.interface) else { return };
        let again = self.now + pause(interface);
        let ready = interface.may_say(self.now, FULL_BYTES + body.len());
        if let Some(ask) = self.orders.asks.get_mut(&group) {
            ask.at = ready.err().unwrap_or(again);
        }
        if ready.is_ok() {
            self.counters.requests += 1;
            // In the full form, so that a neighbour can open it that is epochs ahead.
            let epoch = self.voice.epochs().newest();
            self.say_behind(link.interface, epoch, MessageType::Asked, &body, SendUrgency::Control);
        }
    }

    /// Sends pieces that were asked for, as far as there is air time.
    fn give_pieces(&mut self, id: InterfaceId) {
        while let Some(interface) = self.interfaces.get_mut(&id) {
            let Some(giving) = self.orders.giving.get_mut(&id) else { return };
            let most = pieces_at_once(interface.room());
            let Some((give, count)) = giving.next(most).filter(|_| giving.at <= self.now) else {
                return;
            };
            let keeper = self.orders.groups.get(&give.group);
            let held = keeper.and_then(|keeper| keeper.order(give.number));
            let Some((_, notice)) = held.filter(|(number, _)| *number == give.number) else {
                giving.done(self.now, count);
                continue;
            };
            let from = usize::from(give.piece) * PIECE_BYTES;
            let end = notice.len().min(from + count * PIECE_BYTES);
            let bytes = notice.get(from..end).unwrap_or_default().to_vec();
            let length = u16::try_from(notice.len()).unwrap_or(u16::MAX);
            let PieceToSend { group, number, piece: first, epoch } = give;
            let body = OrderPieces { group, number, length, first, bytes }.to_bytes();
            let is_behind = epoch < self.voice.epochs().newest();
            let around = if is_behind { FULL_BYTES } else { COMPACT_BYTES };
            if let Err(ready) = interface.may_give(self.now, around + body.len()) {
                giving.at = ready;
                return;
            }
            giving.done(self.now, count);
            self.counters.pieces += count as u64;
            if is_behind {
                self.announce_in(id, epoch);
                self.say_behind(id, epoch, MessageType::Pieces, &body, SendUrgency::Urgent);
            } else {
                self.say_urgently(id, MessageType::Pieces, &body);
            }
        }
    }

    fn say_urgently(&mut self, id: InterfaceId, what: MessageType, body: &[u8]) {
        let Some(form) = self.interfaces.get(&id).map(|one| one.medium.form) else { return };
        if let Ok(unit) = self.voice.say(form, what, body) {
            self.counters.control_bytes += unit.len() as u64;
            self.send(id, UnitReceiver::Everybody, unit, SendUrgency::Urgent);
        }
    }

    /// Tells notices of removal again where somebody has not shown that it has them.
    fn repeat_removals(&mut self) {
        let now = self.now;
        let mut repeats = std::mem::take(&mut self.orders.repeats);
        repeats.retain_mut(|one| one.at > now || self.repeat_removal(one));
        // The notices that came up meanwhile stand behind.
        repeats.append(&mut self.orders.repeats);
        self.orders.repeats = repeats;
    }

    /// Tells a notice of removal, and whether it may have to be told again.
    fn repeat_removal(&mut self, one: &mut RemovalRepeat) -> bool {
        let Some(keeper) = self.orders.groups.get(&one.group) else { return false };
        let notice = keeper.removal(&one.which).and_then(|notice| (**notice).try_into().ok());
        let Some(notice) = notice else { return false };
        let body = RemovalMessage { group: one.group, notice }.to_bytes();
        let here = |link: &LinkId| link.interface == one.interface;
        let has = |slot: Slot| one.shown.contains(&slot);
        let near = |slot: Slot| !one.lacks.contains(&slot) && self.is_near(one, slot);
        let mut others = self.neighbours.keys().filter(|link| here(link));
        let behind = self.orders.epochs_behind(one.interface);
        if one.left == 0
            || others.all(|link| has(link.slot) || near(link.slot)) && behind.is_empty()
        {
            return false;
        }
        let Some(interface) = self.interfaces.get_mut(&one.interface) else { return false };
        let air = interface.air(COMPACT_BYTES + body.len());
        if !interface.budget.may(self.now, SendUrgency::Urgent, UnitReceiver::Everybody, air) {
            let ready = interface.budget.ready(self.now, SendUrgency::Urgent, air);
            one.at = ready.max(self.now + MeshSpan::millis(1));
            return true;
        }
        // The first few are told soon after each other: a third of them may be lost.
        let is_fresh = one.left > MAX_REMOVAL_REPEATS / 2;
        one.at = self.now + interface.hello.interval.part(if is_fresh { 4 } else { 1 });
        one.left -= 1;
        self.say_urgently(one.interface, MessageType::Removal, &body);
        for epoch in behind {
            self.announce_in(one.interface, epoch);
            let what = MessageType::Removal;
            self.say_behind(one.interface, epoch, what, &body, SendUrgency::Urgent);
        }
        true
    }

    /// Whether a neighbour is heard by some who have told a removal, where many hear each other.
    fn is_near(&self, one: &RemovalRepeat, slot: Slot) -> bool {
        let link = LinkId { interface: one.interface, slot };
        let here = self.neighbours.keys().filter(|link| link.interface == one.interface);
        let neighbour = self.neighbours.get(&link).filter(|_| here.count() > FEW_NEIGHBOURS);
        let near = |other: &crate::neighbour::MeshNeighbour| {
            one.tellers.iter().filter(|slot| other.hello.is_near(**slot)).count()
        };
        neighbour.is_some_and(|other| near(other) >= NEAR_TELLERS)
    }
}

/// How many pieces one message carries.
fn pieces_at_once(room: usize) -> usize {
    (room.saturating_sub(OrderPieces::HEAD_BYTES) / PIECE_BYTES).clamp(1, 8)
}

/// How long the neighbour that was asked may take for the next piece.
fn pause(interface: &crate::interface::MeshInterface) -> MeshSpan {
    let body = OrderPieces::HEAD_BYTES + PIECE_BYTES;
    let around = if interface.medium.form == Form::Full { FULL_BYTES } else { COMPACT_BYTES };
    let air = interface.air(around + body);
    interface.budget.paced(SendUrgency::Urgent, air).times(2) + MeshSpan::millis(200)
}

/// Where no more are in reach, each has to show itself that it has a notice of removal.
const FEW_NEIGHBOURS: usize = 8;
/// Else it is enough that it is heard by so many who have told it.
const NEAR_TELLERS: usize = 3;
/// Hello intervals for which a neighbour counts as behind that has said so.
const BEHIND_INTERVALS: u64 = 12;
