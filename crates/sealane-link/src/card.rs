//! What a relay may know of a group.

use std::collections::BTreeMap;
use std::fmt::Write;

use sealane_frame::{GroupTag, PeerTag};
use sealane_seal::{Epoch, Slot};
use serde::Deserialize;

use crate::LinkError;
use crate::limits::MAX_RELAY_CARD_BYTES;
use crate::tag::{self, TagText};

/// All that a relay may know of a group: its tag, its epoch, and the tags of its members by slot.
/// It holds no secret and no name. It is text that people can read: `spec/link.md`, *Relay card*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayCard {
    group: GroupTag,
    epoch: Epoch,
    members: BTreeMap<Slot, PeerTag>,
}

/// The text, as TOML has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    version: u8,
    group: String,
    epoch: u64,
    #[serde(default)]
    members: BTreeMap<String, TagText>,
}

const VERSION: u8 = 1;

impl RelayCard {
    /// A card of a group.
    pub fn new(
        group: GroupTag,
        epoch: Epoch,
        members: impl IntoIterator<Item = (Slot, PeerTag)>,
    ) -> Self {
        Self { group, epoch, members: members.into_iter().collect() }
    }

    /// Reads a card.
    ///
    /// # Errors
    ///
    /// [`LinkError::Card`].
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        if text.len() > MAX_RELAY_CARD_BYTES {
            return Err(LinkError::Card(format!("it is longer than {MAX_RELAY_CARD_BYTES} bytes")));
        }
        let text: Text =
            toml::from_str(text).map_err(|error| LinkError::Card(tag::said(text, &error)))?;
        if text.version != VERSION {
            return Err(LinkError::Card(format!("version {} is not {VERSION}", text.version)));
        }
        let group = GroupTag::from_hex(&text.group);
        let group = group.ok_or_else(|| LinkError::Card("the group's tag".to_owned()))?;
        let mut members = BTreeMap::new();
        for (number, TagText(tag)) in text.members {
            let slot = number.parse().ok().filter(|slot: &u16| slot.to_string() == number);
            let slot = slot.and_then(Slot::new);
            members.insert(slot.ok_or_else(|| LinkError::Card(format!("slot `{number}`")))?, tag);
        }
        Ok(Self { group, epoch: Epoch(text.epoch), members })
    }

    /// The card as text.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "# What a relay may know of a group: no secret, no name.\n\
             version = {VERSION}\ngroup = \"{}\"\nepoch = {}\n\n[members]\n",
            self.group, self.epoch.0
        );
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

    /// The tags of its members.
    pub fn members(&self) -> impl Iterator<Item = (Slot, PeerTag)> + '_ {
        self.members.iter().map(|(slot, tag)| (*slot, *tag))
    }

    /// The tag of a slot.
    pub fn tag(&self, slot: Slot) -> Option<PeerTag> {
        self.members.get(&slot).copied()
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

    #[test]
    fn a_card_reads_back() {
        assert_eq!(RelayCard::parse(&card().to_text()).unwrap(), card());
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
