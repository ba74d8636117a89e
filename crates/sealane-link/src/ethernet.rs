//! Frames of a network card, without IP: EtherType 0x88B5, one of two that IEEE 802 leaves to
//! experiments.

use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{LinkAddr, SockaddrStorage, bind};
use parking_lot::RwLock;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags,
    SocketFlags, SocketType, recvmsg, sendmsg, socket_with,
};

use crate::address::LinkAddress;
use crate::inbox::{ArrivedBatch, BATCHES, LinkInbox};
use crate::limits::MAX_ETHERNET_UNITS;
use crate::link::{LinkReady, SentBytes, wait};
use crate::note::LinkNote;
use crate::udp::enlarge;

/// The EtherType of units: `spec/link.md`, section *Raw Ethernet*.
pub const ETHER_TYPE: u16 = 0x88b5;
/// Addresses of target and source, and the EtherType (IEEE 802.3 §3.1.1).
pub const ETHERNET_HEADER_BYTES: usize = 14;

/// A raw Ethernet link.
#[derive(Debug)]
pub struct EthernetLink {
    interface: String,
    unit_bytes: usize,
    /// Frames to everybody are taken too.
    discovers: bool,
    card: RwLock<EthernetCard>,
}

/// A socket, and the address of the card that it is bound to.
#[derive(Debug)]
struct EthernetCard {
    socket: OwnedFd,
    address: [u8; 6],
    /// The interface has vanished, and with it all that the socket was bound to.
    is_lost: bool,
}

impl EthernetLink {
    /// The least payload that a card sends (IEEE 802.3 §3.2.8): shorter units come with zeros
    /// behind them.
    pub(crate) const LEAST_BYTES: usize = 46;

    /// The address of all cards of a wire (IEEE 802 §8.2.2).
    pub(crate) const EVERYBODY: [u8; 6] = [0xff; 6];

    pub(crate) fn open(interface: &str, unit_bytes: usize, discovers: bool) -> io::Result<Self> {
        let card = RwLock::new(EthernetCard::open(interface)?);
        Ok(Self { interface: interface.to_owned(), unit_bytes, discovers, card })
    }

    /// Fills each batch with units of one sender and length, the last of which may be shorter.
    pub(crate) fn receive(&self, inbox: &mut LinkInbox) -> io::Result<usize> {
        let card = self.card.read();
        // A lost card is opened again by the receiver alone, which comes by at a bounded pace.
        if card.is_lost {
            drop(card);
            return self.reopen();
        }
        let mut filling = SendFill { batch: 0, at: 0, is_whole: false };
        for taken in 0..MAX_ETHERNET_UNITS {
            match filling.unit(self, &card, inbox) {
                Ok(true) => {}
                Ok(false) => break,
                // The units that came before are taken first.
                Err(_) if taken > 0 => break,
                // A socket of a deleted interface never receives again, though one of the same name
                // may come: only a new socket helps.
                Err(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => {
                    drop(card);
                    self.card.write().is_lost = true;
                    return Err(io::ErrorKind::NetworkDown.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        match filling.count() {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    /// Looks for the interface again: one of the same name may be there by now.
    #[cold]
    fn reopen(&self) -> io::Result<usize> {
        // The name is looked up again, since the new interface has another number and perhaps
        // another address.
        *self.card.write() = EthernetCard::open(&self.interface)?;
        Err(io::ErrorKind::WouldBlock.into())
    }

    pub(crate) fn send(&self, to: [u8; 6], segments: &[u8], segment_bytes: usize) -> SentBytes {
        let card = self.card.read();
        let mut header = [0; ETHERNET_HEADER_BYTES];
        let ether_type = ETHER_TYPE.to_be_bytes();
        let parts = to.iter().chain(&card.address).chain(&ether_type).copied();
        header.iter_mut().zip(parts).for_each(|(target, byte)| *target = byte);
        let mut bytes = 0;
        for unit in segments.chunks(segment_bytes.max(1)) {
            // Header and unit are gathered by the kernel, so that the unit is not copied behind a
            // header.
            let parts = [IoSlice::new(&header), IoSlice::new(unit)];
            // One call a unit: a raw socket has no offload that would cut a run.
            let mut control = SendAncillaryBuffer::default();
            match sendmsg(&card.socket, &parts, &mut control, SendFlags::DONTWAIT) {
                Ok(_) => bytes += unit.len(),
                Err(error) => return SentBytes { bytes, stopped: Some(as_full(error)) },
            }
        }
        SentBytes { bytes, stopped: None }
    }

    pub(crate) fn unit_bytes(&self) -> usize {
        self.unit_bytes
    }

    /// The address of the card.
    pub(crate) fn address(&self) -> [u8; 6] {
        self.card.read().address
    }

    pub(crate) fn wait(&self, ready: LinkReady, patience: Duration) -> io::Result<bool> {
        wait(self.card.read().socket.as_fd(), ready, patience)
    }
}

impl EthernetCard {
    fn open(interface: &str) -> io::Result<Self> {
        let card = find(interface)?;
        let no_card = || io::Error::other(format!("{interface} is no network card"));
        // Loopback and tunnels have hardware addresses of other lengths, and carry no Ethernet.
        let address = card.addr().filter(|_| card.halen() == 6).ok_or_else(no_card)?;
        let protocol = NonZeroU32::new(u32::from(ETHER_TYPE.to_be())).map(Protocol::from_raw);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, protocol)?;
        // The address tells no protocol: the one of the socket stays.
        bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &card)?;
        enlarge(&socket);
        Ok(Self { socket, address, is_lost: false })
    }
}

/// The card of that name, as the kernel addresses it.
fn find(interface: &str) -> io::Result<LinkAddr> {
    let of_name = getifaddrs()?.filter(|one| one.interface_name == interface);
    let mut cards = of_name.filter_map(|one| one.address).filter_map(card);
    cards.next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn card(address: SockaddrStorage) -> Option<LinkAddr> {
    address.as_link_addr().copied()
}

/// A queue of the card that is full is one that is waited for.
fn as_full(error: Errno) -> io::Error {
    match error {
        Errno::NOBUFS => io::ErrorKind::WouldBlock.into(),
        other => other.into(),
    }
}

/// Where the next unit goes.
#[derive(Debug)]
struct SendFill {
    batch: usize,
    /// The bytes of the batch so far.
    at: usize,
    /// Its last segment was shorter, or the buffer is full: nothing follows in it.
    is_whole: bool,
}

impl SendFill {
    /// Takes a unit; gives whether there may be room for another.
    fn unit(
        &mut self,
        link: &EthernetLink,
        card: &EthernetCard,
        inbox: &mut LinkInbox,
    ) -> Result<bool, Errno> {
        let (before, spare) = inbox.buffers.split_at_mut(self.batch + 1);
        let Some(buffer) = before.last_mut() else { return Ok(false) };
        // The buffer must hold a whole unit before the call, since the kernel cuts what does not
        // fit.
        if self.is_whole || buffer.len() - self.at < link.unit_bytes {
            self.next();
            return Ok(self.batch + 1 < BATCHES);
        }
        let room = buffer.get_mut(self.at..).unwrap_or_default();
        let Some(came) = receive(link, card, room)? else { return Ok(true) };
        let arrived = inbox.batches.get_mut(self.batch);
        let Some(arrived) = arrived else { return Ok(false) };
        let is_first = self.at == 0;
        // Units of one sender and length become one batch, as the kernel does for UDP.
        if is_first || (came.from == arrived.from && came.bytes <= arrived.segment_bytes) {
            if is_first {
                let segment_bytes = came.bytes.max(1);
                *arrived = ArrivedBatch { from: came.from, bytes: 0, segment_bytes };
            }
            self.at += came.bytes;
            arrived.bytes = self.at;
            self.is_whole = came.bytes < arrived.segment_bytes;
            return Ok(true);
        }
        // Another sender or a longer unit: it begins the next batch.
        let unit = buffer.get(self.at..self.at + came.bytes).unwrap_or_default();
        if let Some(target) = spare.first_mut().and_then(|next| next.get_mut(..came.bytes)) {
            target.copy_from_slice(unit);
        }
        self.next();
        self.at = came.bytes;
        let segment_bytes = came.bytes.max(1);
        inbox.fill(self.batch, ArrivedBatch { from: came.from, bytes: came.bytes, segment_bytes });
        Ok(self.batch + 1 < BATCHES)
    }

    fn next(&mut self) {
        self.batch += 1;
        self.at = 0;
        self.is_whole = false;
    }

    /// How many batches have something in them.
    fn count(&self) -> usize {
        self.batch + usize::from(self.at > 0)
    }
}

/// A unit that came.
#[derive(Debug)]
struct ReceivedUnit {
    from: LinkAddress,
    bytes: usize,
}

/// Receives a unit; none if what came is for another machine or has nothing in it.
fn receive(
    link: &EthernetLink,
    card: &EthernetCard,
    room: &mut [u8],
) -> Result<Option<ReceivedUnit>, Errno> {
    let mut header = [0; ETHERNET_HEADER_BYTES];
    let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(room)];
    let mut control = RecvAncillaryBuffer::default();
    let received = recvmsg(&card.socket, &mut parts, &mut control, RecvFlags::DONTWAIT)?;
    let bytes = received.bytes.saturating_sub(ETHERNET_HEADER_BYTES).min(room.len());
    let (Some((to, rest)), true) = (header.split_first_chunk::<6>(), bytes > 0) else {
        return Ok(None);
    };
    let Some((from, _)) = rest.split_first_chunk::<6>() else { return Ok(None) };
    if *to != card.address && !(link.discovers && *to == EthernetLink::EVERYBODY) {
        return Ok(None);
    }
    let unit = room.get(..bytes).unwrap_or_default();
    Ok(Some(ReceivedUnit { from: LinkAddress::Ethernet(*from), bytes: unpadded_bytes(unit) }))
}

/// The bytes of a unit without the zeros that a card put behind it. Only notes are so short.
fn unpadded_bytes(unit: &[u8]) -> usize {
    let note = LinkNote::Ask.to_bytes();
    // IEEE 802.3 pads to 46 bytes. A frame of exactly that length does not begin as a note.
    let is_padded = unit.len() == EthernetLink::LEAST_BYTES
        && unit.starts_with(&note)
        && unit.iter().skip(note.len()).all(|byte| *byte == 0);
    if is_padded { note.len() } else { unit.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_behind_a_note_are_taken_off() {
        let mut padded = [0; EthernetLink::LEAST_BYTES];
        padded[..3].copy_from_slice(&LinkNote::Ask.to_bytes());
        assert_eq!(unpadded_bytes(&padded), 3);
        padded[45] = 1;
        assert_eq!(unpadded_bytes(&padded), 46);
        assert_eq!(unpadded_bytes(&[0; 46]), 46);
        assert_eq!(unpadded_bytes(&[1, 0, 1, 0]), 4);
    }
}
