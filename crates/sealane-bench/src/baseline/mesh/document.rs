//! The report's document: all that a node tells a neighbour, built anew each time. A header, a
//! counter of each node, what nodes say of themselves, and lines of chat; little-endian, a vector
//! for each section.

use std::collections::BTreeMap;

const PERIPHERAL: u8 = 0xab;
const CHAT: u8 = 0xad;
const CALLSIGN_BYTES: usize = 12;
/// Lines that the report's program sends in one document.
pub(crate) const CHATS_SENT: usize = 8;
/// Lines that it keeps.
const CHATS_KEPT: usize = 32;
/// A sender of five letters, and a text that makes a line 72 bytes, and from the tenth on 73.
const SENDER: &[u8] = b"ALPHA";
const TEXT: &str = "ridge line is clear, we are moving on,";

/// The state of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GossipDocument {
    version: u32,
    node: u32,
    counters: BTreeMap<u32, u64>,
    peripherals: BTreeMap<u32, GossipPeripheral>,
    /// By time and origin. The report sorts by origin first, so that lines of low nodes never leave
    /// a node that holds eight others; here the newest ones are sent.
    chats: BTreeMap<(u64, u32), GossipChat>,
}

/// The status that a node reports of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GossipPeripheral {
    callsign: [u8; CALLSIGN_BYTES],
    health: [u8; 4],
    time: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct GossipChat {
    sender: Vec<u8>,
    text: Vec<u8>,
}

impl GossipDocument {
    /// The state of a node that reports its status.
    pub(crate) fn new(node: u32) -> Self {
        let mut document = Self { node, ..Self::default() };
        document.say(1);
        document
    }

    /// The document of one of the report's rows.
    pub(crate) fn with_chats(chats: u64) -> Self {
        let mut document = Self::new(7);
        (0..chats).for_each(|number| document.chat(number + 1));
        document
    }

    /// It says how it is, at that time.
    pub(crate) fn say(&mut self, time: u64) {
        self.version += 1;
        let own =
            GossipPeripheral { callsign: *b"ALPHA-1\0\0\0\0\0", health: [80, 2, 0, 71], time };
        self.peripherals.insert(self.node, own);
    }

    /// It counts on.
    pub(crate) fn count(&mut self) {
        self.version += 1;
        *self.counters.entry(self.node).or_default() += 1;
    }

    /// It says a line, at that time.
    pub(crate) fn chat(&mut self, time: u64) {
        self.version += 1;
        let text = format!("{TEXT} {}", time.saturating_sub(1) % 100).into_bytes();
        let chat = GossipChat { sender: SENDER.to_vec(), text };
        self.chats.insert((time, self.node), chat);
        self.prune();
    }

    /// Whether it holds a line of a node.
    pub(crate) fn has_chat(&self, time: u64, node: u32) -> bool {
        self.chats.contains_key(&(time, node))
    }

    fn prune(&mut self) {
        while self.chats.len() > CHATS_KEPT {
            self.chats.pop_first();
        }
    }

    /// As it is sent, with so many lines at most.
    pub(crate) fn build(&self, chats_max: usize) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.version.to_le_bytes());
        out.extend(self.node.to_le_bytes());
        out.extend((self.counters.len() as u32).to_le_bytes());
        for (node, value) in &self.counters {
            out.extend(node.to_le_bytes());
            out.extend(value.to_le_bytes());
        }
        for (node, peripheral) in &self.peripherals {
            put_section(PERIPHERAL, &peripheral.section(*node), &mut out);
        }
        let sent = self.chats.len().min(chats_max);
        if sent > 0 {
            let mut section = (sent as u16).to_le_bytes().to_vec();
            for ((time, origin), chat) in self.chats.iter().skip(self.chats.len() - sent) {
                section.extend(chat.bytes(*time, *origin));
            }
            put_section(CHAT, &section, &mut out);
        }
        out
    }

    /// Reads the bytes that another node sent.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut input = GossipCursor(bytes);
        let (version, node) = (input.u32()?, input.u32()?);
        let mut document = Self { version, node, ..Self::default() };
        for _ in 0..input.u32()? {
            document.counters.insert(input.u32()?, input.u64()?);
        }
        while !input.0.is_empty() {
            let (marker, _) = (input.u8()?, input.u8()?);
            let length = input.u16()?;
            let mut section = GossipCursor(input.take(length.into())?);
            match marker {
                PERIPHERAL => document.read_peripheral(&mut section)?,
                CHAT => {
                    for _ in 0..section.u16()? {
                        document.read_chat(&mut section)?;
                    }
                }
                _ => break,
            }
        }
        Some(document)
    }

    fn read_peripheral(&mut self, input: &mut GossipCursor<'_>) -> Option<()> {
        let (node, _parent, _kind) = (input.u32()?, input.u32()?, input.u8()?);
        let (callsign, health) = (input.array()?, input.array()?);
        let (_has_event, time) = (input.u8()?, input.u64()?);
        self.peripherals.insert(node, GossipPeripheral { callsign, health, time });
        Some(())
    }

    fn read_chat(&mut self, input: &mut GossipCursor<'_>) -> Option<()> {
        let (origin, time) = (input.u32()?, input.u64()?);
        let length = input.u8()?;
        let sender = input.take(length.into())?.to_vec();
        let length = input.u8()?;
        let text = input.take(length.into())?.to_vec();
        let (_flags, _reply_node, _reply_time) = (input.u8()?, input.u32()?, input.u64()?);
        self.chats.insert((time, origin), GossipChat { sender, text });
        Some(())
    }

    /// Takes over what another node holds.
    pub(crate) fn merge(&mut self, other: GossipDocument) {
        for (node, value) in other.counters {
            let own = self.counters.entry(node).or_default();
            *own = value.max(*own);
        }
        for (node, peripheral) in other.peripherals {
            let own = self.peripherals.get(&node);
            if own.is_none_or(|own| own.time < peripheral.time) {
                self.peripherals.insert(node, peripheral);
            }
        }
        self.chats.extend(other.chats);
        self.prune();
    }
}

impl GossipPeripheral {
    /// 34 bytes, without an event: identity, parent, type, callsign, health, time.
    fn section(&self, node: u32) -> Vec<u8> {
        let mut section = node.to_le_bytes().to_vec();
        section.extend([0; 4]);
        section.push(1);
        section.extend(self.callsign);
        section.extend(self.health);
        section.push(0);
        section.extend(self.time.to_le_bytes());
        section
    }
}

impl GossipChat {
    /// 27 bytes, and two texts.
    fn bytes(&self, time: u64, origin: u32) -> Vec<u8> {
        let mut bytes = origin.to_le_bytes().to_vec();
        bytes.extend(time.to_le_bytes());
        bytes.push(self.sender.len() as u8);
        bytes.extend(&self.sender);
        bytes.push(self.text.len() as u8);
        bytes.extend(&self.text);
        bytes.extend([1; 13]);
        bytes
    }
}

fn put_section(marker: u8, section: &[u8], out: &mut Vec<u8>) {
    out.extend([marker, 0]);
    out.extend((section.len() as u16).to_le_bytes());
    out.extend(section);
}

/// Bytes that are read from their beginning.
struct GossipCursor<'a>(&'a [u8]);

impl<'a> GossipCursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_the_sizes_of_the_report_and_all_lines_make_a_larger_one() {
        let sizes =
            [0, 1, 5, 10].map(|chats| GossipDocument::with_chats(chats).build(CHATS_SENT).len());
        assert_eq!(sizes, [50, 128, 416, 632]);
        assert_eq!(GossipDocument::with_chats(20).build(usize::MAX).len(), 1506);
    }

    #[test]
    fn what_is_read_is_what_was_built_and_merging_it_twice_changes_nothing() {
        let mut document = GossipDocument::with_chats(20);
        document.count();
        let read = GossipDocument::read(&document.build(usize::MAX)).unwrap();
        assert_eq!(read, document);
        let mut other = GossipDocument::new(8);
        other.merge(read.clone());
        let once = other.clone();
        other.merge(read);
        assert_eq!(other, once);
        assert!(other.has_chat(20, 7) && !other.has_chat(20, 8));
        assert_eq!(GossipDocument::read(&document.build(3)[..100]), None);
    }
}
