//! Two members of a group, and the link between them, with fixed secrets: what is measured is work,
//! and nothing here is secret. The sender's context is random, as that of every sender.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use sealane_frame::{
    ANNOUNCEMENT_TYPE, DictionaryEntry, FrameAnnouncement, FrameBuf, FrameCompression,
    FrameDictionary, FrameError, FrameKind, FrameRoster, GroupTag, HeaderFields, LinkContext,
    PeerTag, ReceivedFrame, open_announcement, seal_frame,
};
use sealane_seal::{
    Announcement, Binding, Class, Epoch, EpochSecret, Epochs, Group, GroupId, History, Opener,
    Sealer, SenderContext, SessionState, SigningKey, Slot, Suite, Term,
};

use crate::failure::{BenchFailure, Result};

/// The identity of the group in every frame that the bench makes.
pub(crate) const GROUP_ID: GroupId = GroupId([7; 32]);
/// Its tag there.
pub(crate) const GROUP: GroupTag = GroupTag::from_bytes([9; 4]);
pub(crate) const SENDER: PeerTag = PeerTag::from_hash([0x51; 8]);
pub(crate) const RELAY: PeerTag = PeerTag::from_hash([0x52; 8]);
pub(crate) const READER: PeerTag = PeerTag::from_hash([0x53; 8]);
/// The data type of the bodies.
const DATA_TYPE: u16 = 0x21;
/// The seeds of the sender's and the reader's keys of class S.
const SEEDS: [[u8; 32]; 2] = [[3; 32], [4; 32]];

/// A sender and a reader of one class. The sender has announced itself to the reader.
#[derive(Debug)]
pub(crate) struct BenchMembers {
    group: Group,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    pub(crate) fields: HeaderFields,
    /// Where the messages are made to be read from.
    pub(crate) binding: Binding,
    pub(crate) dictionary: FrameDictionary,
    pub(crate) roster: FrameRoster,
    /// The sessions that the reader keeps of its live sender.
    pub(crate) sessions: BenchSessionFile,
    /// How often the sender has started.
    starts: u64,
    /// The process that drew the sender's context.
    process: u32,
}

/// Where a document of the bench is read, however many links it travels: `spec/seal.md`, section
/// *Binding*.
pub(crate) fn documents() -> Binding {
    Binding::stream(&format!("mesh/{GROUP}/{DATA_TYPE}"))
}

/// The card that relays have of the group.
pub(crate) fn relay_card() -> String {
    format!(
        "version = 1\ngroup = \"{GROUP}\"\nepoch = 0\n\
         [members]\n0 = \"{READER}\"\n1 = \"{SENDER}\"\n"
    )
}

/// The context that tells one start of a sender from every other.
pub(crate) fn draw_context() -> Result<SenderContext> {
    let mut context = SenderContext([0; SenderContext::BYTES]);
    getrandom::fill(&mut context.0).map_err(BenchFailure::of)?;
    Ok(context)
}

impl BenchMembers {
    pub(crate) fn new(class: Class, suite: Suite, codec: u8, binding: Binding) -> Result<Self> {
        let make = if class == Class::Peer { Group::pair } else { Group::new };
        let group = make(GROUP_ID, suite);
        let no_slot = FrameError::UnknownSource;
        let slots = [Slot::new(1).ok_or(no_slot)?, Slot::new(0).ok_or(no_slot)?];
        let [own, other] = slots;
        let secret = EpochSecret::new([1; 32]);
        let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
        let mut terms = Vec::new();
        for (slot, seed) in slots.into_iter().zip(SEEDS) {
            let verifying_key = SigningKey::from_seed(&seed)?.verifying_key();
            terms.push(Term { slot, since: Epoch(0), until: None, verifying_key });
        }
        let mut opener = Opener::new(group, Some(other), epochs)?;
        opener.set_terms(terms)?;
        let fields = HeaderFields {
            next_hop: RELAY,
            destination: READER,
            class,
            codec,
            ..HeaderFields::new(GROUP, SENDER, DATA_TYPE)
        };
        let (mut dictionary, mut roster) = (FrameDictionary::new(), FrameRoster::new());
        for (byte, compression) in
            (0..).zip([FrameCompression::None, FrameCompression::Lz4, FrameCompression::Zstd])
        {
            dictionary
                .define(byte, DictionaryEntry::of(&HeaderFields { compression, ..fields }))?;
        }
        roster.insert(GROUP, own, SENDER)?;
        let sealer = start(group, own, opener.epochs())?;
        let (sessions, process) = (BenchSessionFile::new()?, std::process::id());
        let mut members = Self {
            group,
            sealer,
            opener,
            fields,
            binding,
            dictionary,
            roster,
            sessions,
            starts: 0,
            process,
        };
        members.announce()?;
        Ok(members)
    }

    /// The work of a sender of the product before each message. It checks that this process drew
    /// its context, and that a counter is left. The product also stores a bound of its counters,
    /// once in 2^20 messages. Here there is no folder to store it in.
    #[inline]
    pub(crate) fn ready(&mut self) -> Result<()> {
        if std::process::id() == self.process && self.sealer.next_counter().is_ok() {
            return Ok(());
        }
        self.restart()
    }

    #[cold]
    fn restart(&mut self) -> Result<()> {
        self.sealer = start(self.group, self.sealer.slot(), self.opener.epochs())?;
        self.process = std::process::id();
        self.announce()
    }

    /// The frame by which the sender makes itself known.
    pub(crate) fn announcement(&mut self) -> Result<Vec<u8>> {
        self.starts += 1;
        let fields = HeaderFields {
            kind: FrameKind::Control,
            class: Class::Signed,
            codec: 0,
            ..HeaderFields::new(GROUP, SENDER, ANNOUNCEMENT_TYPE)
        };
        let body = Announcement { start: self.starts, orders: 0 }.to_bytes();
        let mut buf = FrameBuf::new();
        let frame = seal_frame(&mut self.sealer, &fields, &Binding::link(), &body, &mut buf)?;
        Ok(frame.to_vec())
    }

    /// The sender makes itself known on the link, and the reader takes it.
    fn announce(&mut self) -> Result<()> {
        let mut frame = self.announcement()?;
        let mut announced = open_announcement(&mut self.opener, &mut frame)?;
        if let Some(state) = announced.to_store(self.sessions.now_ms()) {
            self.sessions.store(&state)?;
        }
        let [orders, ..] = announced.announcement().orders.to_le_bytes();
        let opened = announced.accept();
        let announced = FrameAnnouncement { context: opened.context(), orders };
        Ok(self.roster.announce(GROUP, opened.slot(), announced)?)
    }

    pub(crate) fn link(&self) -> LinkContext<'_> {
        LinkContext {
            dictionary: &self.dictionary,
            roster: &self.roster,
            next_hop: RELAY,
            previous_hop: SENDER,
        }
    }
}

/// A sender under a context of its own.
fn start(group: Group, slot: Slot, epochs: &Epochs) -> Result<Sealer> {
    let [seed, _] = &SEEDS;
    let mut sealer = Sealer::new(group, slot, draw_context()?, epochs, 0)?;
    sealer.set_signing_key(SigningKey::from_seed(seed)?);
    Ok(sealer)
}

/// Where a live reader keeps the sessions of its senders: a file of the system's temporary folder,
/// each slot at its own place. A session is on the disk before the message that asked for it is
/// accepted, as a reader must have it.
#[derive(Debug)]
pub(crate) struct BenchSessionFile {
    file: File,
    began: Instant,
}

impl BenchSessionFile {
    fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, began: Instant::now() })
    }

    /// Accepts a live message. What has to be stored before is stored.
    #[inline]
    pub(crate) fn accept(&self, mut received: ReceivedFrame<'_, '_>) -> Result<()> {
        if let Some(state) = received.pending.to_store(self.now_ms()) {
            self.store(&state)?;
        }
        received.accept();
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    #[cold]
    fn store(&self, state: &SessionState) -> io::Result<()> {
        let at = u64::from(state.slot().number()) * SessionState::BYTES as u64;
        self.file.write_all_at(&state.to_bytes(), at)?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use sealane_frame::{open_frame, open_stored};

    use super::*;

    fn members(binding: Binding) -> BenchMembers {
        BenchMembers::new(Class::Group, Suite::Aes256Gcm, 3, binding).unwrap()
    }

    fn sealed(members: &mut BenchMembers) -> Vec<u8> {
        members.ready().unwrap();
        let BenchMembers { sealer, fields, binding, .. } = members;
        seal_frame(sealer, fields, binding, b"a body", &mut FrameBuf::new()).unwrap().to_vec()
    }

    fn stored(members: &BenchMembers) -> SessionState {
        let mut bytes = [0; SessionState::BYTES];
        let at = u64::from(members.sealer.slot().number()) * SessionState::BYTES as u64;
        members.sessions.file.read_exact_at(&mut bytes, at).unwrap();
        SessionState::from_bytes(&bytes).unwrap()
    }

    /// A reader that restarts has nothing but what was stored.
    #[test]
    fn nothing_is_accepted_before_its_session_is_stored() {
        let mut members = members(documents());
        let group = members.group;
        for number in 0..3000 {
            let mut frame = sealed(&mut members);
            let mut again = frame.clone();
            let received = open_frame(&mut members.opener, &members.binding, &mut frame).unwrap();
            members.sessions.accept(received).unwrap();
            let mut reader = Opener::new(group, None, members.opener.epochs().clone()).unwrap();
            reader.restore(&stored(&members));
            assert!(open_frame(&mut reader, &members.binding, &mut again).is_err(), "{number}");
        }
    }

    #[test]
    fn a_sender_in_another_process_starts_anew_and_is_heard() {
        let mut members = members(documents());
        let (first, mut before) = (members.sealer.context(), sealed(&mut members));
        members.process = members.process.wrapping_add(1);
        let mut frame = sealed(&mut members);
        assert_ne!(members.sealer.context(), first);
        let BenchMembers { opener, binding, sessions, .. } = &mut members;
        let received = open_frame(opener, binding, &mut frame).unwrap();
        sessions.accept(received).unwrap();
        assert!(open_frame(opener, binding, &mut before).is_err(), "of the start before");
    }

    #[test]
    fn messages_open_where_they_belong() {
        let mut members = members(documents());
        let mut frame = sealed(&mut members);
        let mut copy = frame.clone();
        let other = Binding::stream("elsewhere");
        assert!(open_stored(&mut members.opener, Epoch(0), &other, &mut copy).is_err());
        assert!(open_stored(&mut members.opener, Epoch(0), &members.binding, &mut frame).is_ok());
    }
}
