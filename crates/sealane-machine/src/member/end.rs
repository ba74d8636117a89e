//! Packets to sealed frames and back.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sealane_frame::{
    ANNOUNCEMENT_TYPE, FrameBuf, FrameCompression, FrameKind, FrameView, Header, HeaderFields,
    PeerTag,
};
use sealane_group::{GroupMembership, GroupSender, LiveReader, now_ms};
use sealane_link::limits::MAX_LAST_BATCHES;
use sealane_link::{
    DropReason, PacketAddresses, PacketBurst, PrefixTable, RelayArrival, RelayCard, RelayPort,
    SegmentBundle, TunInterface,
};
use sealane_message::DataType;
use sealane_seal::limits::MAX_CEILING_BLOCK;
use sealane_seal::{Binding, Class, SenderContext, Slot};
use tracing::{info, warn};

use super::commands::{CommandHandler, CommandOpener, is_command};
use super::own_card;
use crate::Result;
use crate::limits::{ANNOUNCE_INTERVAL_MS, END_TURN_MS};

/// A member with an interface. One thread carries what programs send; the threads of the links
/// bring what others have sent.
pub(super) struct TunEnd {
    tun: TunInterface,
    own: PeerTag,
    behind: Mutex<Arc<PrefixTable>>,
    /// Its group, as the key folder has it. What opens frames waits for no file.
    member: Mutex<GroupMembership>,
    reading: Mutex<EndReader>,
    /// Why nothing may be sealed at present.
    unsealed: Mutex<Option<String>>,
    is_asked: AtomicBool,
    /// The group may have changed just now.
    is_hasty: AtomicBool,
    has_newcomer: AtomicBool,
    /// Somebody has deleted the interface.
    is_gone: AtomicBool,
    ends: AtomicBool,
}

/// The opener of frames.
struct EndReader {
    reader: LiveReader,
    behind: Arc<PrefixTable>,
    /// Packets that go to the machine together.
    bundle: SegmentBundle,
    /// The start that each sender announced last.
    starts: HashMap<Slot, SenderContext>,
    commands: CommandOpener,
}

impl TunEnd {
    pub(super) fn new(
        member: GroupMembership,
        tun: TunInterface,
        behind: PrefixTable,
    ) -> Result<TunEnd> {
        let reader = member.as_provisioned()?.live_reader()?;
        let (behind, bundle) = (Arc::new(behind), tun.bundle());
        let (own, carried) = (member.source()?, Mutex::new(Arc::clone(&behind)));
        let commands = CommandOpener::new(&member, now_ms());
        let reading = EndReader { reader, behind, bundle, starts: HashMap::new(), commands };
        Ok(TunEnd {
            tun,
            own,
            behind: carried,
            member: Mutex::new(member),
            reading: Mutex::new(reading),
            unsealed: Mutex::new(None),
            is_asked: AtomicBool::new(false),
            is_hasty: AtomicBool::new(false),
            has_newcomer: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            ends: AtomicBool::new(false),
        })
    }

    pub(super) fn go_on_with(&self, behind: PrefixTable) {
        let behind = Arc::new(behind);
        // Arrivals change first: a new member's packets are accepted before this end sends it any.
        self.reading.lock().behind = Arc::clone(&behind);
        *self.behind.lock() = behind;
    }

    /// Hands commands there from now on.
    pub(super) fn hand_commands_to(&self, hand: CommandHandler) {
        self.reading.lock().commands.hand_to(hand);
    }

    /// The facts that a relay may know of the group as it is now.
    pub(super) fn card(&self) -> RelayCard {
        own_card(&self.member.lock())
    }

    /// The slots that the configuration names and that are no members.
    pub(super) fn awaited(&self) -> Vec<u16> {
        self.behind.lock().awaited().to_vec()
    }

    pub(super) fn mtu(&self) -> usize {
        self.tun.mtu()
    }

    /// Why nothing may be sealed at present, if that is so.
    pub(super) fn unsealed(&self) -> Option<String> {
        self.unsealed.lock().clone()
    }

    /// Whether somebody has deleted the interface.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Has it look at once what has changed in its group.
    pub(super) fn hasten(&self) {
        self.is_hasty.store(true, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    /// Opens what came for this machine: a packet, an announcement or a command.
    pub(super) fn take(&self, arrival: RelayArrival<'_>) -> Result<(), DropReason> {
        match arrival {
            RelayArrival::Frame(frame) => self.open(frame),
            RelayArrival::Asked => {
                self.is_asked.store(true, Ordering::Relaxed);
                Ok(())
            }
            RelayArrival::Pause => {
                // Segments that came together go to the kernel as one packet. After a pause there
                // are no more to wait for.
                let sent = self.tun.flush(&mut self.reading.lock().bundle);
                sent.map_err(|_| DropReason::LinkFault)
            }
        }
    }

    fn open(&self, frame: &mut [u8]) -> Result<(), DropReason> {
        let header = *FrameView::parse(frame).map_err(|_| DropReason::Malformed)?.header();
        let EndReader { reader, starts, behind, bundle, commands } = &mut *self.reading.lock();
        if (header.kind(), header.data_type()) == (FrameKind::Control, ANNOUNCEMENT_TYPE) {
            // Only an opened announcement tells truly which start its sender is in.
            let heard = reader.announced(frame, now_ms()).map_err(|_| DropReason::Unopened)?;
            let context = heard.announced.context;
            // A new start may have lost what it accepted, and refuses counters up to
            // `MAX_CEILING_BLOCK` ahead.
            if starts.insert(heard.slot, context) != Some(context) {
                self.has_newcomer.store(true, Ordering::Relaxed);
            }
            return Ok(());
        }
        if is_command(&header) {
            return commands.open(reader, frame, now_ms());
        }
        if !is_packet(&header) {
            return Err(DropReason::Unopened);
        }
        let message = reader.open(&Binding::link(), frame, now_ms());
        let packet = message.map_err(|_| DropReason::Unopened)?.body;
        // Nobody speaks for addresses that are behind another member.
        let source = PacketAddresses::parse(packet).ok_or(DropReason::FalseAddress)?.source;
        if behind.member(source) != Some(header.source()) {
            return Err(DropReason::FalseAddress);
        }
        self.tun.send(bundle, packet).map_err(|_| DropReason::LinkFault)
    }

    /// Seals what programs send until it is to end, and what waits then.
    pub(super) fn carry(&self, mut sender: GroupSender, mut port: RelayPort) {
        let (mut buf, mut burst) = (FrameBuf::new(), PacketBurst::new());
        let mut next_beat = Instant::now();
        let mut state = Ok(());
        while !self.ends.load(Ordering::Relaxed) {
            let now = Instant::now();
            let beats = now >= next_beat;
            if beats {
                next_beat = now + Duration::from_millis(ANNOUNCE_INTERVAL_MS);
            }
            // Both sides are evaluated, since a haste that stays set would cause a second look for
            // nothing.
            if beats | self.is_hasty.swap(false, Ordering::Relaxed) {
                // The folder is read on this thread, and not where frames are opened: links must
                // not wait for a file.
                let before = std::mem::replace(&mut state, self.follow(&mut sender));
                tell_change(&before, &state);
                *self.unsealed.lock() = state.as_ref().err().map(ToString::to_string);
            }
            if self.has_newcomer.swap(false, Ordering::Relaxed) {
                // One that crashed refuses what it may have taken before. Where no counters can be
                // reserved, it waits until this sender has come so far.
                let _ = sender.skip(MAX_CEILING_BLOCK);
            }
            let is_asked = self.is_asked.swap(false, Ordering::Relaxed);
            // An announcement is sealed too. While nothing may be sealed it would only be counted
            // as a drop each second.
            if state.is_ok() && (beats || is_asked) {
                announce(&mut sender, &mut port, &mut buf);
            }
            if !self.packets(&mut sender, &mut port, &mut burst, state.is_ok()) {
                let _ = self.tun.wait(Duration::from_millis(END_TURN_MS));
            }
        }
        // Programs have handed these packets to the kernel. Dropped without a word, they would look
        // sent.
        self.last_packets(|| self.packets(&mut sender, &mut port, &mut burst, state.is_ok()));
        port.flush();
    }

    /// Takes what programs have sent until now. The interface is closed to those that do not cease.
    fn last_packets(&self, mut take: impl FnMut() -> bool) {
        let mut take_all = || (0..MAX_LAST_BATCHES).all(|_| take());
        // If programs keep sending, the interface goes down first, so that the packets left in it
        // have an end.
        if take_all() && self.tun.close().is_ok() {
            take_all();
        }
    }

    /// Reads what the group has become, and says why nothing may be sealed.
    fn follow(&self, sender: &mut GroupSender) -> Result<(), sealane_group::Error> {
        let mut member = self.member.lock();
        // Announcements of unknown contexts may be tried again. Without a pace, forged ones would
        // cost a derivation each.
        self.reading.lock().reader.allow_trials();
        member.reload()?;
        // The lock is taken again only after the files were read, so that frames are opened
        // meanwhile.
        let mut reading = self.reading.lock();
        reading.reader.follow(&*member)?;
        reading.commands.follow(&member);
        drop(reading);
        // A strict member must not seal while it cannot hear its authority: it may have been
        // removed.
        if member.is_strict() {
            member.check_heartbeat(now_ms())?;
        }
        sender.follow()
    }

    /// Takes what a program has sent, and seals each packet of it where its frame leaves. Gives
    /// whether there was something.
    fn packets(
        &self,
        sender: &mut GroupSender,
        port: &mut RelayPort,
        burst: &mut PacketBurst,
        may_seal: bool,
    ) -> bool {
        let behind = Arc::clone(&self.behind.lock());
        let is_beyond = |address| behind.member(address).is_some_and(|member| member != self.own);
        match self.tun.receive(burst, is_beyond) {
            Ok(true) => seal_all(burst, &behind, may_seal.then_some(sender), port),
            Ok(false) => {}
            Err(error) => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    // The flag only rises. A later error of another kind must not hide it from the
                    // thread that ends the process.
                    self.is_gone.fetch_or(TunInterface::is_gone(&error), Ordering::Relaxed);
                    port.drop(DropReason::LinkFault);
                    std::thread::sleep(Duration::from_millis(END_TURN_MS));
                }
                port.flush();
                return false;
            }
        }
        true
    }
}

/// Seals all packets that a program has sent at once, unless there is no sender that may.
fn seal_all(
    burst: &PacketBurst,
    behind: &PrefixTable,
    sender: Option<&mut GroupSender>,
    port: &mut RelayPort,
) {
    let count = burst.count();
    // A burst that cannot be read stands for no packet and still counts as one loss.
    let mut drop_all = |why| (0..count.max(1)).for_each(|_| port.drop(why));
    let addresses = PacketAddresses::parse(burst.packet());
    let to = addresses.and_then(|addresses| behind.member(addresses.destination));
    let Some(to) = to else { return drop_all(DropReason::NoMember) };
    let Some(sender) = sender else { return drop_all(DropReason::Unsealed) };
    let fields = HeaderFields {
        destination: to,
        codec: 0,
        ..sender.fields(Class::Group, DataType::PACKET.number())
    };
    // One run serves the whole burst, so that the group's state is checked once and not for each
    // packet.
    let (link, Ok(mut run)) = (Binding::link(), sender.run()) else {
        return drop_all(DropReason::Unsealed);
    };
    for index in 0..count {
        let Ok(room) = run.room(fields.class) else {
            port.drop(DropReason::Unsealed);
            continue;
        };
        let bytes = burst.bytes_of(index);
        port.frame(to, room.frame_bytes(bytes), |frame| {
            let body = frame.get_mut(room.before..room.before + bytes);
            burst.write(index, body.ok_or(DropReason::Unsealed)?);
            run.seal(&fields, &link, frame).map_err(|_| DropReason::Unsealed)
        });
    }
}

fn announce(sender: &mut GroupSender, port: &mut RelayPort, buf: &mut FrameBuf) {
    match sender.announce(buf) {
        Ok(frame) => port.push(frame),
        Err(_) => port.drop(DropReason::Unsealed),
    }
    port.flush();
}

/// Whether a frame says that it is a packet, as ends seal them.
fn is_packet(header: &Header) -> bool {
    let kind = (header.kind(), header.class(), header.compression(), header.codec());
    kind == (FrameKind::Message, Class::Group, FrameCompression::None, 0)
        && header.data_type() == DataType::PACKET.number()
}

fn tell_change(
    before: &Result<(), sealane_group::Error>,
    after: &Result<(), sealane_group::Error>,
) {
    match (before, after) {
        (Ok(()), Err(error)) => warn!("nothing is sent: {error}"),
        (Err(_), Ok(())) => info!("packets are sent again"),
        _ => {}
    }
}
