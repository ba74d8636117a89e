//! The orders of groups, between relay cards, key folders and the mesh's machine.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use sealane_frame::GroupTag;
use sealane_group::{EpochSource, Error, GroupChange, GroupMembership, GroupNotice};
use sealane_link::{LinkRelay, RelayCard, RoutingHandle};
use sealane_mesh::{KeptGroup, MeshInput, MeshOutput};
use tokio::sync::Notify;
use tracing::{info, warn};

use crate::limits::MAX_NOTICES_HEARD;

/// The groups whose orders a machine keeps that is no member of them.
pub(crate) struct CardOrders {
    router: Option<RoutingHandle>,
    groups: Vec<GroupTag>,
}

impl CardOrders {
    /// Of a relay that runs; without a machine that routes nothing is kept.
    pub(crate) fn new(relay: &LinkRelay) -> CardOrders {
        CardOrders { router: relay.router(), groups: vec![] }
    }

    /// Has the machine keep the orders of these groups, and of no others. Gives those that it
    /// keeps, and tells which cards do not say whose orders they are.
    pub(crate) fn keep(&mut self, cards: &[RelayCard]) -> Vec<KeptGroup> {
        let Some(router) = &self.router else { return vec![] };
        let kept: Vec<_> = cards.iter().filter_map(RelayCard::kept).collect();
        let stays = |group: &GroupTag| kept.iter().any(|one| one.tag == *group);
        let gone = self.groups.iter().filter(|group| !stays(group)).copied();
        // Groups are forgotten before others are kept, so that the machine's bound has room for the
        // new ones.
        let inputs = gone.map(MeshInput::Forget).chain(kept.iter().copied().map(MeshInput::Keep));
        if inputs.map(|input| router.push(input)).any(|pushed| pushed.is_err()) {
            warn!("the mesh's machine has too much to do: send SIGHUP again");
        }
        for card in cards.iter().filter(|card| card.kept().is_none()) {
            warn!(
                "the relay card of {} is of version 1, and does not say who gives the group's \
                 orders: none are kept or passed on. Write it again: sealane group relay-card \
                 GROUP > FILE",
                card.group()
            );
        }
        self.groups = kept.iter().map(|one| one.tag).collect();
        kept
    }
}

/// A member of a group on a machine of the mesh. What comes over the mesh is obeyed in its folder,
/// and what its authority orders here is given to the mesh.
pub(crate) struct ObeyingMember {
    pub(crate) member: GroupMembership,
    router: Option<RoutingHandle>,
    heard: Arc<NoticeQueue>,
    /// Where this folder is the authority's: how many of its orders the mesh was given.
    fed: Option<u64>,
    /// How many obeyed orders the machine was told of.
    kept: Option<u64>,
    /// How the group is called to people.
    name: String,
}

/// Notices that came over the mesh, and were not obeyed yet.
#[derive(Default)]
struct NoticeQueue {
    notices: Mutex<VecDeque<Arc<[u8]>>>,
    came: Arc<Notify>,
}

impl ObeyingMember {
    pub(crate) fn new(member: GroupMembership, name: &str) -> ObeyingMember {
        let (router, heard, name) = (None, Arc::default(), name.to_owned());
        ObeyingMember { member, router, heard, fed: None, kept: None, name }
    }

    /// Goes on beside a machine that runs.
    pub(crate) fn follow_with(&mut self, relay: &LinkRelay) {
        self.router = relay.router();
        if let Some(router) = &self.router {
            let (heard, own) = (Arc::clone(&self.heard), self.member.tag());
            router.listen(Box::new(move |output| heard.note(own, output)));
        }
    }

    /// Tells when something has come over the mesh.
    pub(crate) fn came(&self) -> Arc<Notify> {
        Arc::clone(&self.heard.came)
    }

    /// Obeys the notices that have come, and has the machine keep the group's orders from there on.
    /// To be called when something has come, and once a second, since others change the folder,
    /// too.
    ///
    /// # Errors
    /// The refusal of the key folder.
    pub(crate) fn follow(&mut self) -> Result<(), Error> {
        self.obey();
        self.member.reload()?;
        // The machine has to know the group before it is given orders of it.
        if self.kept.is_none() {
            self.keep();
        }
        self.feed()?;
        self.keep();
        Ok(())
    }

    /// Tells the machine how many orders were obeyed. It keeps none that it has not been given by
    /// then, so that the authority's own come first.
    fn keep(&mut self) {
        let (orders, Some(router)) = (self.member.orders(), &self.router) else { return };
        // Told a count too early, the machine would take the authority's own next orders for old
        // ones.
        let is_fed = self.fed.is_none_or(|fed| fed == orders);
        if self.kept != Some(orders) && is_fed {
            // A group without an authority has no orders that a machine could keep.
            let Ok(member) = self.member.as_provisioned() else { return };
            let pushed = router.push(MeshInput::Keep(member.kept_group()));
            self.kept = pushed.is_ok().then_some(orders);
        }
    }

    /// Obeys what came over the mesh. What cannot be obeyed leaves the folder as it was; what could
    /// not be written is tried again.
    pub(crate) fn obey(&mut self) {
        loop {
            let Some(bytes) = self.heard.notices.lock().front().cloned() else { return };
            let applied =
                GroupNotice::from_bytes(&bytes).and_then(|notice| self.member.apply(&notice));
            match applied {
                Ok(changes) => changes.iter().for_each(|change| say_change(&self.name, change)),
                Err(error) => {
                    warn!("{}: an order: {error}", self.name);
                    // A notice that is wrong is dropped. One that could not be written waits, and
                    // those behind it too.
                    if matches!(error, Error::Io { .. }) {
                        return;
                    }
                }
            }
            self.heard.notices.lock().pop_front();
        }
    }

    /// Gives the mesh the orders of the authority whose folder this is: the last ones at the start,
    /// the newest first, for those who have missed them, and each later one behind its notices of
    /// removal.
    pub(crate) fn feed(&mut self) -> Result<(), Error> {
        let (Some(router), Ok(member)) = (&self.router, self.member.as_provisioned()) else {
            return Ok(());
        };
        if !member.is_authority() {
            return Ok(());
        }
        let (group, orders) = (member.tag(), member.orders());
        let notices = match self.fed {
            None => {
                let first = orders.saturating_sub(sealane_mesh::limits::MAX_KEPT_ORDERS as u64);
                let mut notices = member.notices(first)?;
                // The newest goes first: a neighbour that missed much can act on a removal before
                // it has the rest.
                notices.reverse();
                notices
            }
            Some(fed) if fed < orders => {
                // A removal is short and signed in the open. It reaches machines that lack the
                // epoch of the order behind it.
                let mut notices = member.removals(fed)?;
                notices.extend(member.notices(fed)?);
                notices
            }
            Some(_) => return Ok(()),
        };
        for notice in notices {
            let notice = notice.as_bytes().to_vec();
            // `fed` has not moved, so that all of them come again. The machine drops those that it
            // has.
            if router.push(MeshInput::Notice { group, notice: notice.into() }).is_err() {
                // It has too much to do: all of them again a second later.
                return Ok(());
            }
        }
        // The count moves only when the machine has taken every notice.
        self.fed = Some(orders);
        Ok(())
    }
}

impl NoticeQueue {
    /// Keeps a notice of the own group until it is obeyed.
    fn note(&self, own: GroupTag, output: &MeshOutput) {
        let MeshOutput::Notice { group, notice } = output else { return };
        let mut notices = self.notices.lock();
        if *group == own && notices.len() < MAX_NOTICES_HEARD {
            notices.push_back(Arc::clone(notice));
            self.came.notify_one();
        }
    }
}

fn say_change(of: &str, change: &GroupChange) {
    match change {
        GroupChange::Leaving(removal) => warn!(
            "{of}: slot {} is about to be removed by order {}, and is shut out",
            removal.slot.number(),
            removal.order
        ),
        GroupChange::Stays { slot, order } => {
            info!("{of}: slot {} stays: order {order} has not removed it", slot.number());
        }
        GroupChange::Removed => warn!("{of}: this machine was removed from the group"),
        _ => {}
    }
}
