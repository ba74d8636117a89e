use std::io;
use std::ops::Range;

use sealane_frame::{HEAD_ROOM_BYTES, HEADER_BYTES};
use sealane_link::limits::MAX_UNIT_BYTES;
use sealane_link::{
    InterfaceKind, IpPrefix, LinkAddress, LinkError, LinkInbox, LinkReady, MeshConfig, PacketBurst,
    RelayLink, TunInterface,
};

use super::{TURN, link, send};

/// An end, and who is at the other.
#[derive(Debug, clap::Args)]
pub(crate) struct HopEnd {
    /// The name of the interface
    #[arg(long, default_value = "bare0")]
    interface: String,
    /// An address of it with the bits of its network
    #[arg(long = "address", value_name = "PREFIX", required = true, num_args = 1)]
    addresses: Vec<IpPrefix>,
    /// Its own address and port, or the interface of raw Ethernet
    #[arg(long)]
    link: String,
    /// The address of the other end
    #[arg(long)]
    neighbour: LinkAddress,
    /// The bytes that the wire carries at once
    #[arg(long, default_value_t = 1500)]
    mtu: u16,
    /// Packet by packet, without the offloads of the interface
    #[arg(long)]
    no_offload: bool,
}

/// The bytes before a packet in a sealed frame of a group with many messages behind it. They are
/// the frame's header, and an SFrame header with key id and counter of three bytes each.
const BEFORE_BYTES: usize = HEADER_BYTES + 7;
/// The tag behind it.
const BEHIND_BYTES: usize = 16;

/// An interface at one end of a bare chain.
#[derive(Debug)]
struct BareChainEnd {
    tun: TunInterface,
    link: RelayLink,
    neighbour: LinkAddress,
}

/// Gives this machine an interface whose packets go to one neighbour as they are, until the process
/// ends. It is as narrow as that of an end that seals.
pub(crate) fn end(args: &HopEnd, ready: impl FnOnce()) -> Result<(), LinkError> {
    let config = link(&args.link, args.mtu);
    let mtu = config.unit_bytes().saturating_sub(HEAD_ROOM_BYTES + BEHIND_BYTES);
    let mesh = MeshConfig {
        interface: args.interface.clone(),
        addresses: args.addresses.clone(),
        mtu: None,
        kind: InterfaceKind::Tun,
        offload: !args.no_offload,
        members: Vec::new(),
    };
    let link = RelayLink::open(&config, None)?;
    let tun = TunInterface::open(&mesh, u16::try_from(mtu).unwrap_or(u16::MAX))?;
    let end = BareChainEnd { tun, link, neighbour: args.neighbour };
    ready();
    std::thread::scope(|scope| {
        scope.spawn(|| end.bring());
        end.carry();
    });
    Ok(())
}

impl BareChainEnd {
    /// Takes what programs send.
    fn carry(&self) {
        let (mut burst, mut run) = (PacketBurst::new(), FrameRun::new());
        loop {
            match self.tun.receive(&mut burst, |_| true) {
                Ok(_) => {
                    for index in 0..burst.count() {
                        let body = run.frame(burst.bytes_of(index), |run| self.leave(run));
                        burst.write(index, body);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.leave(&mut run);
                    let _ = self.tun.wait(TURN);
                }
                Err(_) => std::thread::sleep(TURN),
            }
        }
    }

    fn leave(&self, run: &mut FrameRun) {
        let frames = run.bytes.get(..run.filled).unwrap_or_default();
        if !frames.is_empty() {
            send(&self.link, self.neighbour, frames, run.frame_bytes);
        }
        run.filled = 0;
    }

    /// Gives the machine what comes.
    fn bring(&self) {
        let (mut inbox, mut bundle) = (LinkInbox::new(), self.tun.bundle());
        loop {
            match self.link.receive(&mut inbox) {
                Ok(count) => {
                    for (arrived, segments) in inbox.batches(count) {
                        for frame in segments.chunks(arrived.segment_bytes) {
                            let packet = frame.get(body(frame.len())).unwrap_or_default();
                            if arrived.from == self.neighbour && !packet.is_empty() {
                                let _lost = self.tun.send(&mut bundle, packet);
                            }
                        }
                    }
                    let _lost = self.tun.flush(&mut bundle);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = self.link.wait(LinkReady::ToReceive, TURN);
                }
                Err(_) => std::thread::sleep(TURN),
            }
        }
    }
}

/// Where the packet stands in a frame.
fn body(frame_bytes: usize) -> Range<usize> {
    BEFORE_BYTES..frame_bytes.saturating_sub(BEHIND_BYTES).max(BEFORE_BYTES)
}

/// Frames that leave together, as those of an end that seals.
#[derive(Debug)]
struct FrameRun {
    bytes: Box<[u8]>,
    filled: usize,
    frame_bytes: usize,
    /// The last frame was shorter: nothing follows it.
    is_whole: bool,
}

impl FrameRun {
    fn new() -> Self {
        let bytes = vec![0x42; MAX_UNIT_BYTES + 256].into_boxed_slice();
        Self { bytes, filled: 0, frame_bytes: 0, is_whole: false }
    }

    /// The place of the next packet. What it does not go along with leaves first.
    fn frame(&mut self, packet_bytes: usize, leave: impl FnOnce(&mut Self)) -> &mut [u8] {
        let frame_bytes = BEFORE_BYTES + packet_bytes + BEHIND_BYTES;
        let goes_along = !self.is_whole && frame_bytes <= self.frame_bytes;
        if self.filled > 0 && (!goes_along || self.filled + frame_bytes > MAX_UNIT_BYTES) {
            leave(self);
        }
        if self.filled == 0 {
            self.frame_bytes = frame_bytes;
        }
        self.is_whole = frame_bytes < self.frame_bytes;
        let start = self.filled;
        self.filled += frame_bytes;
        let frame = self.bytes.get_mut(start..self.filled).unwrap_or_default();
        frame.get_mut(body(frame_bytes)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_one_length_and_a_shorter_one_leave_together() {
        let mut run = FrameRun::new();
        let mut left = Vec::new();
        for bytes in [100, 100, 60, 60, 100, 30, 1300] {
            let mut went = |run: &mut FrameRun| {
                left.push((run.filled, run.frame_bytes));
                run.filled = 0;
            };
            assert_eq!(run.frame(bytes, &mut went).len(), bytes);
        }
        let around = BEFORE_BYTES + BEHIND_BYTES;
        assert_eq!(
            left,
            [
                (260 + 3 * around, 100 + around),
                (60 + around, 60 + around),
                (130 + 2 * around, 100 + around)
            ]
        );
        // No more than goes at once.
        let mut most = 0;
        for _ in 0..200 {
            run.frame(1300, |run| {
                most = most.max(run.filled);
                run.filled = 0;
            });
        }
        assert!((60_000..=MAX_UNIT_BYTES).contains(&most), "{most}");
    }
}
