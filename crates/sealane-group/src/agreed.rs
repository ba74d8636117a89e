//! A kind of group for tests: members come, leave and come back in slots that were used before, and
//! epoch secrets come from outside, as they will in conversations.

use sealane_frame::{GroupTag, PeerTag};
use sealane_seal::{
    Epoch, EpochSecret, Epochs, Group, GroupId, History, SigningKey, Slot, Suite, Term,
};
use zeroize::Zeroizing;

use crate::sender::{MemberStanding, SenderSource};
use crate::{AnnouncedRemoval, EpochSource, Error, GroupChange, GroupNotice, GroupSender};

/// A member of such a group. It keeps nothing on disk.
#[derive(Debug, Clone)]
pub struct AgreedMember {
    group: Group,
    slot: Slot,
    seed: Zeroizing<[u8; 32]>,
    epochs: Epochs,
    people: Vec<SlotTenure>,
    orders: u64,
}

/// Somebody who is a member from an epoch on.
#[derive(Debug, Clone, Copy)]
pub struct AgreedPresence<'a> {
    /// The slot, which others may have had before.
    pub slot: Slot,
    /// The name that people use for the member.
    pub name: &'a str,
    /// The key that verifies its class S.
    pub verifying_key: [u8; 32],
}

/// Somebody's time in a slot.
#[derive(Debug, Clone)]
struct SlotTenure {
    name: String,
    term: Term,
}

impl AgreedMember {
    /// A member in that slot, whose class S is signed by the key of that seed.
    pub fn new(id: GroupId, slot: Slot, seed: [u8; 32], first: EpochSecret) -> AgreedMember {
        let group = Group::new(id, Suite::Aes256Gcm);
        let epochs = Epochs::new(id, History::Kept, Epoch(0), first);
        AgreedMember {
            group,
            slot,
            seed: Zeroizing::new(seed),
            epochs,
            people: Vec::new(),
            orders: 0,
        }
    }

    /// The key that verifies what a member with that seed signs.
    ///
    /// # Errors
    ///
    /// [`Error::Seal`].
    pub fn verifying_key(seed: &[u8; 32]) -> Result<[u8; 32], Error> {
        Ok(SigningKey::from_seed(seed)?.verifying_key())
    }

    /// Takes the members' agreement: a later epoch's secret, and the members by slot from it on. A
    /// member that has a slot now and is not named leaves it.
    ///
    /// # Errors
    ///
    /// [`Error::Seal`] for an epoch that has another secret.
    pub fn agree(
        &mut self,
        epoch: Epoch,
        secret: EpochSecret,
        present: &[AgreedPresence<'_>],
    ) -> Result<(), Error> {
        self.epochs.insert(epoch, secret)?;
        for person in self.people.iter_mut().filter(|person| person.term.until.is_none()) {
            let stays = present.iter().any(|one| {
                let known = (person.term.slot, &*person.name, person.term.verifying_key);
                (one.slot, one.name, one.verifying_key) == known
            });
            if !stays {
                person.term.until = Some(epoch);
            }
        }
        for AgreedPresence { slot, name, verifying_key } in present.iter().copied() {
            let is_new = !self.people.iter().any(|p| p.term.slot == slot && p.term.holds(epoch));
            if is_new {
                let term = Term { slot, since: epoch, until: None, verifying_key };
                self.people.push(SlotTenure { name: name.to_owned(), term });
            }
        }
        self.orders += 1;
        Ok(())
    }

    /// The group's address in frames.
    pub fn tag(&self) -> GroupTag {
        let [a, b, c, d, ..] = self.group.id().0;
        GroupTag::from_bytes([a, b, c, d])
    }

    /// The own address in frames.
    ///
    /// # Errors
    ///
    /// None: it is the enum's to have some.
    pub fn source(&self) -> Result<PeerTag, Error> {
        Ok(AgreedMember::address(self.slot))
    }

    fn address(slot: Slot) -> PeerTag {
        let [high, low] = slot.number().to_be_bytes();
        PeerTag::from_hash([2, high, low, 0, 0, 0, 0, 0])
    }

    /// See [`crate::GroupMembership::addresses`].
    pub fn addresses(&self) -> impl Iterator<Item = (Slot, PeerTag)> + '_ {
        let newest = self.epochs.newest();
        let present = self.people.iter().filter(move |person| person.term.holds(newest));
        present.map(|person| (person.term.slot, AgreedMember::address(person.term.slot)))
    }

    /// See [`crate::GroupMembership::name_of`].
    pub fn name_of(&self, slot: Slot, epoch: Epoch) -> Option<&str> {
        let had = |person: &&SlotTenure| person.term.slot == slot && person.term.holds(epoch);
        self.people.iter().find(had).map(|person| person.name.as_str())
    }

    /// How many changes were agreed on.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    /// Whether the own key has the own slot no more.
    pub fn is_removed(&self) -> bool {
        let newest = self.epochs.newest();
        let own = AgreedMember::verifying_key(&self.seed).ok();
        !self.people.iter().any(|person| {
            let Term { slot, verifying_key, .. } = person.term;
            slot == self.slot && Some(verifying_key) == own && person.term.holds(newest)
        })
    }

    /// Whether it may seal.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`].
    pub fn check_sealing(&self) -> Result<(), Error> {
        if self.is_removed() { Err(Error::Removed) } else { Ok(()) }
    }

    /// A sender in the own slot.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`].
    pub fn sender(&self) -> Result<GroupSender, Error> {
        GroupSender::open(SenderSource::Agreed(Box::new(self.clone())))
    }

    /// The standing that a sender starts with. Nothing is kept, so that its counters begin anew
    /// each time.
    pub(crate) fn standing(&self) -> Result<MemberStanding, Error> {
        self.check_sealing()?;
        let epoch = self.epochs.newest();
        Ok(MemberStanding {
            group: self.group,
            history: History::Kept,
            slot: self.slot,
            epoch,
            secret: self.epochs.secret(epoch).ok_or(Error::Cipher)?.clone(),
            tag: self.tag(),
            source: self.source()?,
            orders: self.orders,
            signing: SigningKey::from_seed(&self.seed)?,
        })
    }
}

impl EpochSource for AgreedMember {
    fn group(&self) -> Group {
        self.group
    }

    fn slot(&self) -> Slot {
        self.slot
    }

    fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    fn terms(&self) -> Vec<Term> {
        self.people.iter().map(|person| person.term).collect()
    }

    fn live_from(&self) -> Epoch {
        Epoch(0)
    }

    fn leaving(&self) -> &[AnnouncedRemoval] {
        &[]
    }

    fn apply(&mut self, _: &GroupNotice) -> Result<Vec<GroupChange>, Error> {
        Ok(Vec::new())
    }

    fn passed(&mut self, epoch: Epoch) -> Result<(), Error> {
        self.epochs.passed(epoch);
        Ok(())
    }
}
