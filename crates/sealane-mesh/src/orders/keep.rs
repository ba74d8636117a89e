//! The orders of one group that a machine holds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sealane_seal::Slot;

use super::{HeldOf, OrderGiver, OrderRange};
use crate::KeptGroup;
use crate::limits::{
    MAX_EARLY_ORDERS, MAX_KEPT_ORDER_BYTES, MAX_KEPT_ORDERS, MAX_KEPT_REMOVALS, MAX_ORDER_GIVERS,
};
use crate::notice::NoticeContent;

/// An order that the authority has signed.
#[derive(Debug, Clone)]
struct KeptOrder {
    notice: Arc<[u8]>,
    /// There is no order between it and the one before it here.
    is_anew: bool,
}

/// The notices held of one group, all of them signed by its authority.
#[derive(Debug)]
pub(crate) struct OrderKeeper {
    pub(crate) of: KeptGroup,
    /// The first order that is lacking.
    wants: u64,
    /// From this one on all below that are held.
    first: u64,
    orders: BTreeMap<u64, KeptOrder>,
    bytes: usize,
    /// Orders whose turn has not come.
    early: BTreeMap<u64, KeptOrder>,
    /// By order and slot.
    removals: BTreeMap<(u64, Slot), Arc<[u8]>>,
    /// The ranges that neighbours have told last.
    holders: VecDeque<OrderGiver>,
    /// The lowest order that a neighbour lacks.
    needed: Option<u64>,
    /// A later order that was asked for, since nobody holds the one that is lacking.
    later: Option<u64>,
    /// An order had to leave, or found no room: earlier ones would not stay either.
    is_full: bool,
}

impl OrderKeeper {
    pub(crate) fn new(of: KeptGroup) -> Self {
        Self {
            of,
            wants: of.orders,
            first: of.orders,
            orders: BTreeMap::new(),
            bytes: 0,
            early: BTreeMap::new(),
            removals: BTreeMap::new(),
            holders: VecDeque::new(),
            needed: None,
            later: None,
            is_full: false,
        }
    }

    /// The order to ask a neighbour for that says what it holds. That is the order that is lacking
    /// here. Else it is the one before all that are held, where another neighbour lacks it. If no
    /// member waits for those between, a later one will do.
    pub(crate) fn lacks_of(&self, held: OrderRange) -> Option<u64> {
        let is_ahead = held.wants > self.wants;
        let next = match is_ahead {
            true if held.first <= self.wants => Some(self.wants),
            true if !self.of.has_member => Some(held.first),
            _ => None,
        };
        next.or_else(|| self.below().filter(|below| held.has(*below)))
    }

    /// Notes what a neighbour holds and lacks. Gives who can be asked for something now: that one,
    /// and others where it is the first that lacks what they hold.
    pub(crate) fn note(&mut self, holder: OrderGiver) -> Vec<OrderGiver> {
        let wants = holder.holds.wants;
        self.holders.retain(|known| known.link != holder.link);
        if self.holders.len() == MAX_ORDER_GIVERS {
            self.holders.pop_front();
        }
        self.holders.push_back(holder);
        let was_needed = self.below().is_some();
        if wants < self.first {
            self.needed = Some(self.needed.map_or(wants, |needed| needed.min(wants)));
        }
        let is_first = !was_needed && self.below().is_some();
        let asked = self.holders.iter().filter(|one| is_first || one.link == holder.link);
        asked.filter(|one| self.lacks_of(one.holds).is_some()).copied().collect()
    }

    /// Notes that an order was asked for.
    pub(crate) fn asked(&mut self, number: u64) {
        self.later = Some(number).filter(|number| *number > self.wants && !self.of.has_member);
    }

    /// The order before all that are held, if somebody lacks it and there is room for it.
    pub(crate) fn below(&self) -> Option<u64> {
        let is_needed = self.needed.is_some_and(|needed| needed < self.first);
        let has_room = !self.is_full && self.orders.len() < MAX_KEPT_ORDERS;
        self.first.checked_sub(1).filter(|_| is_needed && has_room)
    }

    /// The first order that is of use here.
    pub(crate) fn least(&self) -> u64 {
        self.below().unwrap_or(self.wants)
    }

    /// The bytes of the orders that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first order that is lacking.
    pub(crate) fn wants(&self) -> u64 {
        self.wants
    }

    /// Takes a notice. Gives those whose turn it is then, the first first.
    pub(crate) fn take(&mut self, told: NoticeContent, notice: Arc<[u8]>) -> Vec<Arc<[u8]>> {
        match told {
            NoticeContent::Removal { order, slot } => self.take_removal(order, slot, notice),
            NoticeContent::Order { number, is_anew } => {
                let kept = KeptOrder { notice, is_anew };
                if self.later == Some(number) && number > self.wants {
                    self.begin_at(number);
                }
                if number >= self.wants {
                    self.early.insert(number, kept);
                } else if number.checked_add(1) == Some(self.first) {
                    self.keep_before(number, kept);
                }
                let turned = self.turn();
                while self.early.len() > MAX_EARLY_ORDERS {
                    self.early.pop_last();
                }
                turned
            }
        }
    }

    /// Keeps the order before all that are held, for those who have missed it, if there is room.
    fn keep_before(&mut self, number: u64, kept: KeptOrder) {
        let bytes = self.bytes + kept.notice.len();
        if self.orders.len() < MAX_KEPT_ORDERS && bytes <= MAX_KEPT_ORDER_BYTES {
            self.orders.insert(number, kept);
            (self.bytes, self.first) = (bytes, number);
        } else {
            self.is_full = true;
        }
    }

    /// Whether a notice of removal is held already.
    pub(crate) fn has_removal(&self, notice: &[u8]) -> bool {
        self.removals.values().any(|known| **known == *notice)
    }

    fn take_removal(&mut self, order: u64, slot: Slot, notice: Arc<[u8]>) -> Vec<Arc<[u8]>> {
        let known = self.removals.insert((order, slot), Arc::clone(&notice));
        if self.removals.len() > MAX_KEPT_REMOVALS {
            self.removals.pop_first();
        }
        let is_news = known.is_none_or(|known| known != notice) && order >= self.wants;
        if is_news && self.removals.contains_key(&(order, slot)) { vec![notice] } else { vec![] }
    }

    /// The member here has obeyed so many orders, wherever they came from.
    pub(crate) fn go_on(&mut self, orders: u64) -> Vec<Arc<[u8]>> {
        if orders > self.wants {
            self.begin_at(orders);
        }
        self.turn()
    }

    /// Goes on with that order. Those between are not held: nobody can be given them.
    fn begin_at(&mut self, number: u64) {
        (self.wants, self.first) = (number, number);
        self.orders.clear();
        (self.bytes, self.is_full) = (0, false);
        self.early = self.early.split_off(&number);
    }

    /// Takes the orders whose turn it is.
    fn turn(&mut self) -> Vec<Arc<[u8]>> {
        let mut turned = vec![];
        loop {
            let anew = self.early.iter().rev().find(|(_, kept)| kept.is_anew);
            let number = anew.map_or(self.wants, |(number, _)| *number);
            let Some(kept) = self.early.remove(&number) else { break };
            self.early = self.early.split_off(&number);
            turned.push(Arc::clone(&kept.notice));
            self.bytes += kept.notice.len();
            self.orders.insert(number, kept);
            self.wants = number.saturating_add(1);
        }
        self.bound();
        debug_assert!(self.first <= self.wants, "what is held lies below what is lacking");
        turned
    }

    /// Gives up the oldest orders beyond the bounds.
    fn bound(&mut self) {
        while self.orders.len() > MAX_KEPT_ORDERS || self.bytes > MAX_KEPT_ORDER_BYTES {
            self.drop_oldest();
        }
    }

    /// Gives up the oldest order.
    pub(crate) fn drop_oldest(&mut self) {
        let Some((_, kept)) = self.orders.pop_first() else { return };
        self.bytes -= kept.notice.len();
        self.first = self.orders.keys().next().copied().unwrap_or(self.wants);
        self.is_full = true;
    }

    /// The order of that number, or the new beginning that stands in its place.
    pub(crate) fn order(&self, number: u64) -> Option<(u64, &Arc<[u8]>)> {
        let (at, kept) = self.orders.range(number..).next()?;
        let is_its = *at == number || kept.is_anew && number >= self.first;
        is_its.then_some((*at, &kept.notice))
    }

    /// The notices of removal for orders from that one on.
    pub(crate) fn removals(&self, from: u64) -> impl Iterator<Item = (&(u64, Slot), &Arc<[u8]>)> {
        self.removals.iter().filter(move |((order, _), _)| *order >= from)
    }

    pub(crate) fn removal(&self, which: &(u64, Slot)) -> Option<&Arc<[u8]>> {
        self.removals.get(which)
    }

    /// A hash of the notices of removal for orders from that one on.
    pub(crate) fn hash_of_removals(&self, from: u64) -> u32 {
        let mut hasher = blake3::Hasher::new();
        for (_, notice) in self.removals(from) {
            hasher.update(notice);
        }
        let is_empty = hasher.count() == 0;
        let hash = hasher.finalize();
        let first = hash.as_bytes().first_chunk().copied().unwrap_or_default();
        if is_empty { 0 } else { u32::from_le_bytes(first).max(1) }
    }

    /// The range that neighbours are told.
    pub(crate) fn held(&self) -> HeldOf {
        let removals = self.hash_of_removals(self.wants);
        HeldOf { group: self.of.tag, wants: self.wants, first: self.first, removals }
    }

    /// Whether there is anything to tell of.
    pub(crate) fn is_silent(&self) -> bool {
        self.wants == 0 && self.removals.is_empty()
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.orders.len() <= MAX_KEPT_ORDERS
            && self.bytes <= MAX_KEPT_ORDER_BYTES
            && self.early.len() <= MAX_EARLY_ORDERS
            && self.removals.len() <= MAX_KEPT_REMOVALS
    }
}

#[cfg(test)]
mod tests;
