//! A relay card: all that a relay may know of a group.

use std::collections::BTreeMap;
use std::fmt::Write;

use sealane_frame::{GroupTag, PeerTag};
use sealane_mesh::KeptGroup;
use sealane_message::hex;
use sealane_seal::{Epoch, GroupId, Slot};
use serde::Deserialize;

use crate::LinkError;
use crate::limits::MAX_RELAY_CARD_BYTES;
use crate::tag::{self, TagText};

/// All that a relay may know of a group: its tag, its epoch, who gives its orders, and the tags of
/// its members by slot. It holds no secret and no name. It is text that people can read:
/// `spec/link.md`, *Relay card*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayCard {
    group: GroupTag,
    epoch: Epoch,
    orders: Option<AuthorityOrders>,
    members: BTreeMap<Slot, PeerTag>,
}

/// The fields that tell the orders of a group's authority from all else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AuthorityOrders {
    id: GroupId,
    authority: [u8; 32],
    count: u64,
}

/// The text, as TOML has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardText {
    version: u8,
    group: String,
    epoch: u64,
    id: Option<String>,
    authority: Option<String>,
    orders: Option<u64>,
    #[serde(default)]
    members: BTreeMap<String, TagText>,
}

/// A card without orders is of the version before.
const VERSION: u8 = 2;
const VERSION_WITHOUT_ORDERS: u8 = 1;

impl RelayCard {
    /// A card of a group whose orders the relay does not keep.
    pub fn new(
        group: GroupTag,
        epoch: Epoch,
        members: impl IntoIterator<Item = (Slot, PeerTag)>,
    ) -> Self {
        Self { group, epoch, orders: None, members: members.into_iter().collect() }
    }

    /// The same card, by which the relay keeps the group's orders.
    #[must_use]
    pub fn with_orders(self, of: KeptGroup) -> Self {
        let KeptGroup { id, authority, orders: count, .. } = of;
        Self { orders: Some(AuthorityOrders { id, authority, count }), ..self }
    }

    /// Reads a card.
    ///
    /// # Errors
    ///
    /// [`LinkError::Card`].
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        // A card comes from elsewhere. Its length is bounded before the parser sees it.
        if text.len() > MAX_RELAY_CARD_BYTES {
            return Err(LinkError::Card(format!("it is longer than {MAX_RELAY_CARD_BYTES} bytes")));
        }
        let text: CardText =
            toml::from_str(text).map_err(|error| LinkError::Card(tag::said(text, &error)))?;
        let orders = orders(&text)?;
        let group = GroupTag::from_hex(&text.group);
        let group = group.ok_or_else(|| LinkError::Card("the group's tag".to_owned()))?;
        let mut members = BTreeMap::new();
        for (number, TagText(tag)) in text.members {
            // The number has one spelling. Otherwise `1` and `01` would be two keys of TOML for one
            // slot.
            let slot = number.parse().ok().filter(|slot: &u16| slot.to_string() == number);
            let slot = slot.and_then(Slot::new);
            members.insert(slot.ok_or_else(|| LinkError::Card(format!("slot `{number}`")))?, tag);
        }
        Ok(Self { group, epoch: Epoch(text.epoch), orders, members })
    }

    /// The card as text.
    pub fn to_text(&self) -> String {
        // A card without orders is written as version 1, which relays of the version before read
        // too.
        let version = if self.orders.is_some() { VERSION } else { VERSION_WITHOUT_ORDERS };
        let mut text = format!(
            "# What a relay may know of a group: no secret, no name.\n\
             version = {version}\ngroup = \"{}\"\nepoch = {}\n",
            self.group, self.epoch.0
        );
        if let Some(AuthorityOrders { id, authority, count }) = &self.orders {
            let (id, authority) = (hex::encode(&id.0), hex::encode(authority));
            let _ = writeln!(text, "id = \"{id}\"\nauthority = \"{authority}\"\norders = {count}");
        }
        text.push_str("\n[members]\n");
        for (slot, tag) in &self.members {
            let _ = writeln!(text, "{} = \"{}\"", slot.number(), tag);
        }
        text
    }

    /// The group's tag.
    pub fn group(&self) -> GroupTag {
        self.group
    }

    /// The group's epoch when the card was written.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The group as a machine keeps its orders that is no member of it; none by a card of an
    /// earlier version.
    pub fn kept(&self) -> Option<KeptGroup> {
        let AuthorityOrders { id, authority, count: orders } = self.orders?;
        Some(KeptGroup { tag: self.group, id, authority, orders, has_member: false })
    }

    /// The tags of its members.
    pub fn members(&self) -> impl Iterator<Item = (Slot, PeerTag)> + '_ {
        self.members.iter().map(|(slot, tag)| (*slot, *tag))
    }

    /// The tag of a slot.
    pub fn tag(&self, slot: Slot) -> Option<PeerTag> {
        self.members.get(&slot).copied()
    }
}

/// The order fields of a card: all of them or, in the version before, none.
fn orders(text: &CardText) -> Result<Option<AuthorityOrders>, LinkError> {
    let wrong = |what: String| Err(LinkError::Card(what));
    let key = |name: &str, digits: &str| {
        let key = hex::decode(digits);
        key.ok_or_else(|| LinkError::Card(format!("{name}: it is no 64 hexadecimal digits")))
    };
    // All order fields come together. A card with half of them would leave orders unchecked in
    // silence.
    match (text.version, &text.id, &text.authority, text.orders) {
        (VERSION_WITHOUT_ORDERS, None, None, None) => Ok(None),
        (VERSION, Some(id), Some(authority), Some(count)) => {
            let (id, authority) = (GroupId(key("id", id)?), key("authority", authority)?);
            Ok(Some(AuthorityOrders { id, authority, count }))
        }
        (VERSION_WITHOUT_ORDERS, ..) => {
            wrong("version 1 has no `id`, no `authority` and no `orders`".to_owned())
        }
        (VERSION, ..) => wrong("version 2 has `id`, `authority` and `orders`".to_owned()),
        (other, ..) => wrong(format!("version {other} is neither 1 nor {VERSION}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> RelayCard {
        let member = |slot| {
            (Slot::new(slot).unwrap(), PeerTag::from_hash([(slot as u8).wrapping_add(7); 8]))
        };
        RelayCard::new(GroupTag::from_bytes([0xab; 4]), Epoch(3), [0, 1, 9, 1023].map(member))
    }

    fn card_with_orders() -> RelayCard {
        card().with_orders(KeptGroup {
            tag: GroupTag::from_bytes([0xab; 4]),
            id: GroupId([0xc1; 32]),
            authority: [0x0d; 32],
            orders: 7,
            has_member: true,
        })
    }

    #[test]
    fn a_card_reads_back() {
        for card in [card(), card_with_orders()] {
            assert_eq!(RelayCard::parse(&card.to_text()).unwrap(), card);
        }
        let kept = card_with_orders().kept().unwrap();
        assert_eq!((kept.tag, kept.orders, kept.has_member), (card().group(), 7, false));
    }

    #[test]
    fn a_card_of_the_version_before_tells_of_no_orders() {
        let text = card().to_text();
        assert!(text.contains("version = 1\n"), "{text}");
        assert_eq!(RelayCard::parse(&text).unwrap().kept(), None);
    }

    #[test]
    fn a_card_tells_all_of_orders_or_nothing() {
        let text = card_with_orders().to_text();
        let key = "0d".repeat(32);
        for (from, to, what) in [
            ("version = 2", "version = 1", "version 1 has no"),
            ("version = 2", "version = 3", "version 3 is neither"),
            ("orders = 7\n", "", "version 2 has"),
            ("orders = 7", "orders = -7", "line 7"),
            (&format!("authority = \"{key}\"\n"), "", "version 2 has"),
            (&key, &key[1..], "authority"),
            (&key, &key.to_uppercase(), "authority"),
            ("\"c1c1", "\"g1c1", "id"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = RelayCard::parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(what), "{what}: {error}");
        }
    }

    #[test]
    fn what_is_no_card_is_refused() {
        let text = card().to_text();
        for (from, to) in [
            ("version = 1", "version = 2"),
            ("version = 1", ""),
            ("abababab", "abababax"),
            ("\n9 =", "\n09 ="),
            ("\n9 =", "\n1024 ="),
            ("\n9 =", "\n1 ="),
            ("epoch = 3", "epoch = -3"),
            ("epoch = 3", "epoch = 3\nname = 'fleet'"),
            ("1010101010101010", "0010101010101010"),
            ("1010101010101010", "ff10101010101010"),
            ("1010101010101010", "101010101010101"),
            ("1010101010101010", "10101010101010GG"),
        ] {
            assert!(text.contains(from), "{from}");
            let changed = text.replacen(from, to, 1);
            assert!(matches!(RelayCard::parse(&changed), Err(LinkError::Card(_))), "{changed}");
        }
        let long = format!("{text}{}", "#\n".repeat(MAX_RELAY_CARD_BYTES / 2));
        assert!(RelayCard::parse(&long).is_err());
    }
}
