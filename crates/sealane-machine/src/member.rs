//! A member: packets of programs to the other members, commands of the hub, and its group's orders.

mod commands;
mod end;

use std::sync::Arc;
use std::thread::JoinHandle;

use sealane_frame::PeerTag;
use sealane_group::{EpochSource, GroupMembership, GroupSender, KeyFolder};
use sealane_link::{LinkError, LinkRelay, PrefixTable, RelayArrival, RelayCard, TunInterface};
use tokio::sync::Notify;
use tracing::{info, warn};

use crate::config::{MachineConfig, MachinePlan};
use crate::documents::DocumentService;
use crate::orders::{CardOrders, ObeyingMember};
use crate::status::EndStatus;
use crate::{MachineError, Result};
use end::TunEnd;

/// The keys of a member.
pub struct MemberKeys {
    /// Its key folder, which the machine reads again as orders come.
    pub folder: KeyFolder,
    /// The name of its group there.
    pub group: String,
}

impl MemberKeys {
    pub(crate) fn member(&self) -> Result<GroupMembership> {
        Ok(self.folder.group(&self.group)?.into())
    }
}

/// A member that is there before its relay has links.
pub(crate) struct MemberBeside {
    keys: MemberKeys,
    interface: Option<InterfaceBeside>,
}

/// An interface that nobody carries packets of yet.
struct InterfaceBeside {
    own: PeerTag,
    sender: GroupSender,
    watch: Arc<EndWatch>,
}

impl MemberBeside {
    /// The card of the own group becomes the last one of the plan.
    pub(crate) fn begin(
        keys: MemberKeys,
        plan: &mut MachinePlan,
        has_interface: bool,
    ) -> Result<MemberBeside> {
        let member = keys.member()?;
        put_own_card(plan, own_card(&member));
        let make = || InterfaceBeside::make(member, &keys.group, plan);
        let interface = has_interface.then(make).transpose()?;
        Ok(MemberBeside { keys, interface })
    }

    /// The taker of the links' frames.
    pub(crate) fn end(&self) -> Option<sealane_link::RelayEnd> {
        let InterfaceBeside { own, watch, .. } = self.interface.as_ref()?;
        let taker = Arc::clone(&watch.end);
        let take = Box::new(move |arrival: RelayArrival<'_>| taker.take(arrival));
        Some(sealane_link::RelayEnd { tag: *own, take })
    }

    /// The member again, for a thread of its own.
    pub(crate) fn member(&self) -> Result<GroupMembership> {
        self.keys.member()
    }

    /// Goes on beside a relay that runs.
    pub(crate) fn join(
        self,
        plan: &MachinePlan,
        relay: &LinkRelay,
        documents: Option<&DocumentService>,
    ) -> Result<RunningMember> {
        let MemberBeside { keys, interface } = self;
        let orders = GroupOrders::begin(&keys, plan, relay)?;
        let interface = interface.map(|one| one.carry(relay, documents)).transpose()?;
        Ok(RunningMember { keys, interface, orders })
    }
}

impl InterfaceBeside {
    fn make(member: GroupMembership, group: &str, plan: &MachinePlan) -> Result<InterfaceBeside> {
        let mesh = plan.config.mesh()?;
        let wrong = |cause| plan.config.refused(cause);
        let own = member.source()?;
        let behind = behind(plan)?;
        let mtu = plan.config.links.packet_bytes().map_err(wrong)?;
        tell_awaited(&behind);
        let tun = TunInterface::open(mesh, mtu).map_err(wrong)?;
        let (sender, slot) = (member.sender()?, member.slot().number());
        let end = Arc::new(TunEnd::new(member, tun, behind)?);
        let (group, interface) = (group.to_owned(), mesh.interface.clone());
        let watch = Arc::new(EndWatch { end, group, slot, interface });
        Ok(InterfaceBeside { own, sender, watch })
    }

    fn carry(
        self,
        relay: &LinkRelay,
        documents: Option<&DocumentService>,
    ) -> Result<RunningInterface> {
        let InterfaceBeside { sender, watch, .. } = self;
        if let Some(documents) = documents {
            watch.end.hand_commands_to(Box::new(documents.teller()));
        }
        let (port, end) = (relay.port(), Arc::clone(&watch.end));
        let thread = std::thread::Builder::new().name("interface".to_owned());
        let carrier = thread.spawn(move || end.carry(sender, port));
        let carrier = Some(carrier.map_err(MachineError::NoResource)?);
        Ok(RunningInterface { watch, carrier })
    }
}

/// A member whose relay runs.
pub(crate) struct RunningMember {
    keys: MemberKeys,
    interface: Option<RunningInterface>,
    orders: GroupOrders,
}

/// An interface, and the thread that carries what programs send there.
struct RunningInterface {
    watch: Arc<EndWatch>,
    carrier: Option<JoinHandle<()>>,
}

impl RunningMember {
    pub(crate) fn watch(&self) -> Option<Arc<EndWatch>> {
        self.interface.as_ref().map(|interface| Arc::clone(&interface.watch))
    }

    fn end(&self) -> Option<&TunEnd> {
        self.interface.as_ref().map(|interface| &*interface.watch.end)
    }

    /// Tells when an order has come over the mesh.
    pub(crate) fn came(&self) -> Arc<Notify> {
        self.orders.own.came()
    }

    /// The interface was deleted, if it was.
    pub(crate) fn fault(&self, config: &MachineConfig) -> Option<MachineError> {
        let watch = &self.interface.as_ref()?.watch;
        let interface = watch.interface.clone();
        let is_gone = watch.end.is_gone();
        is_gone.then(|| config.refused(LinkError::InterfaceGone { interface }))
    }

    /// Has the end look at once what an order has changed.
    pub(crate) fn hasten(&self) {
        self.end().into_iter().for_each(TunEnd::hasten);
    }

    /// Goes on with what the group has become.
    pub(crate) fn follow(&mut self, plan: &mut MachinePlan, relay: &LinkRelay) {
        self.orders.follow();
        let card = self.end().map_or_else(|| own_card(&self.orders.own.member), TunEnd::card);
        if plan.cards.last() == Some(&card) {
            return;
        }
        // Told once: what is refused now would be refused again.
        plan.cards.pop();
        plan.cards.push(card);
        match self.go_on_with(plan, relay) {
            Ok(()) => info!("the group has changed: its members are known"),
            Err(error) => {
                warn!("the group has changed: {error}; it is as it was");
                relay.refuse_reload(error.to_string());
            }
        }
    }

    /// Goes on with another configuration.
    pub(crate) fn reload(
        &mut self,
        plan: &MachinePlan,
        mut next: MachinePlan,
        relay: &LinkRelay,
    ) -> Result<MachinePlan> {
        put_own_card(&mut next, own_card(&self.keys.member()?));
        if self.interface.is_some() && !next.config.mesh()?.has_interface_of(plan.config.mesh()?) {
            return Err(next.config.refused(LinkError::LinksChanged));
        }
        self.go_on_with(&next, relay)?;
        self.orders.keep(&next);
        Ok(next)
    }

    fn go_on_with(&self, plan: &MachinePlan, relay: &LinkRelay) -> Result<()> {
        let behind = self.end().map(|_| behind(plan)).transpose()?;
        behind.iter().for_each(tell_awaited);
        let taken = relay.reload(&plan.config.links, &plan.cards);
        taken.map_err(|cause| plan.config.refused(cause))?;
        if let Some((end, behind)) = self.end().zip(behind) {
            end.go_on_with(behind);
        }
        Ok(())
    }

    /// Carries what programs have sent, and ends. It waits for that.
    pub(crate) fn stop(self) {
        drop(self.interface);
    }
}

impl Drop for RunningInterface {
    /// A machine that did not start whole leaves no thread behind.
    fn drop(&mut self) {
        self.watch.end.stop();
        if let Some(carrier) = self.carrier.take() {
            // A thread that has panicked has said so on standard error.
            let _ = carrier.join();
        }
    }
}

/// Gives the status of an end whenever it is asked for.
pub(crate) struct EndWatch {
    end: Arc<TunEnd>,
    group: String,
    slot: u16,
    interface: String,
}

impl EndWatch {
    pub(crate) fn status(&self) -> EndStatus {
        EndStatus {
            group: self.group.clone(),
            slot: self.slot,
            epoch: self.end.card().epoch().0,
            interface: self.interface.clone(),
            mtu: u16::try_from(self.end.mtu()).unwrap_or(u16::MAX),
            unsealed: self.end.unsealed(),
            awaited: self.end.awaited(),
        }
    }
}

/// The orders of groups here: of the own one, which are obeyed, and of those on cards, which are
/// kept for others.
struct GroupOrders {
    own: ObeyingMember,
    others: CardOrders,
    /// The last message about the own group.
    said: Option<String>,
}

impl GroupOrders {
    fn begin(keys: &MemberKeys, plan: &MachinePlan, relay: &LinkRelay) -> Result<GroupOrders> {
        let mut own = ObeyingMember::new(keys.member()?, &format!("group {}", keys.group));
        own.follow_with(relay);
        let mut orders = GroupOrders { own, others: CardOrders::new(relay), said: None };
        orders.keep(plan);
        Ok(orders)
    }

    /// Has those of the cards kept. The card of the own group is the last one.
    fn keep(&mut self, plan: &MachinePlan) {
        if let Some((_, others)) = plan.cards.split_last() {
            self.others.keep(others);
        }
    }

    fn follow(&mut self) {
        let error = self.own.follow().err().map(|error| error.to_string());
        if let Some(error) = error.as_ref().filter(|error| self.said.as_ref() != Some(error)) {
            warn!("the group's orders: {error}; they are tried again");
        }
        self.said = error;
    }
}

fn tell_awaited(behind: &PrefixTable) {
    for slot in behind.awaited() {
        warn!("slot {slot} is no member now: its addresses wait for it");
    }
}

/// The card of the own group is the last one.
fn put_own_card(plan: &mut MachinePlan, card: RelayCard) {
    // A card of the own group from a file may be older than the key folder, which decides.
    plan.cards.retain(|other| other.group() != card.group());
    plan.cards.push(card);
}

/// The facts of the own group that a relay may know.
fn own_card(member: &GroupMembership) -> RelayCard {
    RelayCard::new(member.tag(), member.epochs().newest(), member.addresses())
}

fn behind(plan: &MachinePlan) -> Result<PrefixTable> {
    let card = plan.cards.last().ok_or_else(|| plan.config.value("there is no card"))?;
    Ok(PrefixTable::new(plan.config.mesh()?, card))
}
