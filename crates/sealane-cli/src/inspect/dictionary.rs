//! The knowledge of a link's ends: `--dictionary`.

use std::collections::BTreeMap;
use std::path::Path;

use sealane_frame::{
    DictionaryEntry, ENTRY_BYTES, FrameAnnouncement, FrameDictionary, FrameRoster, GroupTag,
    LinkContext, PeerTag,
};
use sealane_message::InputError;
use sealane_seal::{Epoch, SenderContext, Slot};

use super::hex;
use crate::CliFailure;

/// Dictionary and roster of one direction of a link.
#[derive(Debug, Default)]
pub(super) struct LinkKnowledge {
    pub(super) dictionary: FrameDictionary,
    pub(super) roster: FrameRoster,
    /// Near which epoch each group is.
    pub(super) epochs: BTreeMap<GroupTag, Epoch>,
}

impl LinkKnowledge {
    /// Reads a dictionary file.
    ///
    /// # Errors
    /// [`CliFailure::File`] with the line.
    pub(super) fn read(path: &Path) -> Result<LinkKnowledge, CliFailure> {
        let file = |cause: String| CliFailure::File { file: path.to_owned(), cause };
        let text = std::fs::read_to_string(path).map_err(|error| file(error.to_string()))?;
        LinkKnowledge::parse(&text).map_err(|cause| file(cause.to_string()))
    }

    fn parse(text: &str) -> Result<LinkKnowledge, InputError> {
        let mut known = LinkKnowledge::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            known.add(&words).map_err(|cause| format!("line {}: {cause}", index + 1))?;
        }
        for (group, epoch) in &known.epochs {
            known.roster.set_epoch(*group, *epoch);
        }
        Ok(known)
    }

    fn add(&mut self, words: &[&str]) -> Result<(), InputError> {
        match words {
            [] => Ok(()),
            ["slot", slot, group, tag] => {
                let slot = slot.parse().ok().and_then(Slot::new).ok_or("a slot is 0 to 1023")?;
                let group = hex::array(group).ok_or("a group tag has 4 bytes")?;
                let tag = hex::array(tag).ok_or("a member's tag has 8 bytes")?;
                let (group, tag) = (GroupTag::from_bytes(group), PeerTag::from_bytes(tag));
                self.roster.insert(group, slot, tag).map_err(|error| error.to_string().into())
            }
            ["context", slot, group, context, orders] => {
                let slot = slot.parse().ok().and_then(Slot::new).ok_or("a slot is 0 to 1023")?;
                let group = hex::array(group).ok_or("a group tag has 4 bytes")?;
                let context = hex::array(context).ok_or("a context has 8 bytes")?;
                let orders: u64 = orders.parse().map_err(|_| "the orders are a number")?;
                let [orders, ..] = orders.to_le_bytes();
                let announced = FrameAnnouncement { context: SenderContext(context), orders };
                let known = self.roster.announce(GroupTag::from_bytes(group), slot, announced);
                known.map_err(|_| "the slot's own line comes before its context".into())
            }
            ["epoch", group, epoch] => {
                let group = hex::array(group).ok_or("a group tag has 4 bytes")?;
                let epoch = epoch.parse().map_err(|_| "an epoch is a number")?;
                self.epochs.insert(GroupTag::from_bytes(group), Epoch(epoch));
                Ok(())
            }
            [word @ ("slot" | "epoch" | "context"), ..] => {
                Err(format!("`{word}` has other arguments: {LINES}").into())
            }
            [byte, entry @ ..] => {
                let [byte] = hex::array(byte).ok_or_else(|| format!("a line is {LINES}"))?;
                let entry: Option<[u8; ENTRY_BYTES]> = hex::array(&entry.concat());
                let entry = entry.ok_or_else(|| format!("an entry has {ENTRY_BYTES} bytes"))?;
                let entry =
                    DictionaryEntry::from_bytes(entry).map_err(|error| error.to_string())?;
                self.dictionary.define(byte, entry).map_err(|error| error.to_string().into())
            }
        }
    }

    /// The link, but for its ends, which no table asks for.
    pub(super) fn link(&self) -> LinkContext<'_> {
        LinkContext {
            dictionary: &self.dictionary,
            roster: &self.roster,
            next_hop: PeerTag::NOBODY,
            previous_hop: PeerTag::NOBODY,
        }
    }
}

const LINES: &str = "`BYTE ENTRY`, `slot N GROUP TAG`, `context N GROUP CONTEXT ORDERS` or `epoch \
                     GROUP N`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_or_named() {
        let entry = "04 a1a2a3a4 ffffffffffffffff 03 05";
        let text = format!(
            "# link\n{entry} # chat\nslot 7 a1a2a3a4 5151515151515151\n\n\
             context 7 a1a2a3a4 0102030405060708 300\nepoch a1a2a3a4 21\n"
        );
        let known = LinkKnowledge::parse(&text).unwrap();
        assert!(known.dictionary.entry(4).is_some() && known.dictionary.entry(3).is_none());
        let group = GroupTag::from_bytes([0xa1, 0xa2, 0xa3, 0xa4]);
        let slot = Slot::new(7).unwrap();
        assert!(known.roster.tag(group, slot).is_some());
        assert_eq!(known.roster.announced(group, slot).unwrap().orders, 44);
        let other = entry.replace("03 05", "01 05");
        for (text, cause) in [
            ("\nfoo", "line 2: a line is"),
            ("04 00", "line 1: an entry has 14 bytes"),
            ("slot 1024 a1a2a3a4 5151515151515151", "0 to 1023"),
            ("slot 1", "other arguments"),
            ("context 1", "other arguments"),
            ("context 1 a1a2a3a4 0102030405060708 3", "own line comes before"),
            ("epoch a1 1", "4 bytes"),
            (&entry.replace("05", "ff"), "must be zero"),
            (&format!("{entry}\n{other}"), "line 2: a dictionary byte was defined twice"),
        ] {
            let said = LinkKnowledge::parse(text).unwrap_err();
            assert!(said.to_string().contains(cause), "{text}: {said}");
        }
    }
}
