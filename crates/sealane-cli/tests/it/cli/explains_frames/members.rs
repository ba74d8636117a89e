//! Members of a group who send to each other, with fixed keys, and the files that say so.

use std::path::{Path, PathBuf};

use sealane_frame::{
    DictionaryEntry, FrameAnnouncement, FrameBuf, FrameDictionary, FrameRoster, GroupTag,
    HeaderFields, LinkContext, PeerTag, seal_compact, seal_frame,
};
use sealane_seal::{
    Binding, Class, Epoch, EpochSecret, Epochs, Group, GroupId, History, Sealer, SenderContext,
    SigningKey, Slot, Suite,
};

pub(crate) const SECRET: &str = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7";
pub(crate) const TAG: [u8; 4] = [0xa1, 0xa2, 0xa3, 0xa4];
const SENDER: PeerTag = PeerTag::from_hash([0x51; 8]);
const RELAY: PeerTag = PeerTag::from_hash([0x52; 8]);
const READER: PeerTag = PeerTag::from_hash([0x53; 8]);
const SIGNING_SEED: [u8; 32] = [3; 32];
const CONTEXT: SenderContext = SenderContext(*b"a start!");
/// How many orders the sender has obeyed.
pub(crate) const ORDERS: u8 = 7;
pub(crate) const BYTE: u8 = 4;

/// A sender of one class.
pub(crate) struct Sender {
    sealer: Sealer,
    slot: Slot,
    pub(crate) fields: HeaderFields,
    /// The binding that its frames are sealed for.
    pub(crate) binding: Binding,
}

impl Sender {
    /// In epoch 300, so that the key id has its low bits only.
    pub(crate) fn new(class: Class) -> Self {
        let is_pair = class == Class::Peer;
        let make = if is_pair { Group::pair } else { Group::new };
        let group = make(GroupId([7; 32]), Suite::Aes256Gcm);
        let slot = Slot::new(if is_pair { 1 } else { 700 }).unwrap();
        let epochs = Epochs::new(group.id(), History::Kept, Epoch(300), secret());
        let mut sealer = Sealer::new(group, slot, CONTEXT, &epochs, 0).unwrap();
        sealer.set_signing_key(SigningKey::from_seed(&SIGNING_SEED).unwrap());
        let tag = GroupTag::from_bytes(TAG);
        let fields = HeaderFields {
            next_hop: RELAY,
            destination: READER,
            class,
            codec: 1,
            orders: ORDERS,
            ..HeaderFields::new(tag, SENDER, 0x21)
        };
        Self { sealer, slot, fields, binding: Binding::link() }
    }

    pub(crate) fn full(&mut self, body: &[u8]) -> Vec<u8> {
        let mut buf = FrameBuf::new();
        let frame = seal_frame(&mut self.sealer, &self.fields, &self.binding, body, &mut buf);
        frame.unwrap().to_vec()
    }

    pub(crate) fn compact(&mut self, body: &[u8]) -> Vec<u8> {
        let (mut dictionary, mut roster) = (FrameDictionary::new(), FrameRoster::new());
        dictionary.define(BYTE, DictionaryEntry::of(&self.fields)).unwrap();
        roster.insert(self.fields.group, self.slot, SENDER).unwrap();
        let announced = FrameAnnouncement { context: CONTEXT, orders: ORDERS };
        roster.announce(self.fields.group, self.slot, announced).unwrap();
        roster.set_epoch(self.fields.group, Epoch(300));
        let link = LinkContext {
            dictionary: &dictionary,
            roster: &roster,
            next_hop: RELAY,
            previous_hop: SENDER,
        };
        let mut buf = FrameBuf::new();
        let (sealer, fields) = (&mut self.sealer, &self.fields);
        let frame = seal_compact(sealer, fields, &self.binding, body, &link, &mut buf);
        frame.unwrap().to_vec()
    }

    /// The file of `--dictionary` for its compact frames.
    pub(crate) fn dictionary(&self, folder: &Path) -> PathBuf {
        let entry = hex(&DictionaryEntry::of(&self.fields).to_bytes());
        let [group, tag, context] = [hex(&TAG), hex(&SENDER.to_bytes()), hex(&CONTEXT.0)];
        let slot = self.slot.number();
        let text = format!(
            "# what the link knows\n{BYTE:02x} {entry}\nslot {slot} {group} {tag}\n\
             context {slot} {group} {context} {ORDERS}\nepoch {group} 301\n"
        );
        write(folder, "link.txt", text.as_bytes())
    }

    /// The file of `--group-keys` for its frames.
    pub(crate) fn keys(&self, folder: &Path, secret: &str) -> PathBuf {
        let verifying = SigningKey::from_seed(&SIGNING_SEED).unwrap().verifying_key();
        let text = format!(
            "[[group]]\ntag = \"{}\"\nid = \"{}\"\npair = {}\nsecret = \"{secret}\"\nepoch = 300\n\
             signers = {{ 700 = \"{}\" }}\n",
            hex(&TAG),
            hex(&[7; 32]),
            self.fields.class == Class::Peer,
            hex(&verifying),
        );
        write(folder, "keys.toml", text.as_bytes())
    }
}

fn secret() -> EpochSecret {
    let digits = |at: usize| u8::from_str_radix(&SECRET[2 * at..2 * at + 2], 16).unwrap();
    EpochSecret::new(std::array::from_fn(digits))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}
