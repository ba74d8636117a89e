//! Wires: a closed set of links with one interface. Each takes and gives batches: one buffer of
//! segments of one length, of which the last may be shorter.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::LinkError;
use crate::address::Address;
use crate::config::{LinkConfig, Wire};
use crate::ethernet::EthernetLink;
use crate::inbox::Inbox;
use crate::memory::{MemoryLink, MemoryNet};
use crate::udp::UdpLink;

/// A link that is open. All of its operations return at once; [`Link::wait`] waits.
#[derive(Debug)]
#[non_exhaustive]
pub enum Link {
    /// Datagrams over UDP.
    Udp(UdpLink),
    /// Frames of a network card.
    Ethernet(EthernetLink),
    /// Buffers that change hands within a process.
    Memory(MemoryLink),
}

/// The event that a link is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// Something came.
    ToReceive,
    /// There is room again.
    ToSend,
}

/// How far a batch was sent.
#[derive(Debug)]
#[must_use = "what was not sent is lost"]
pub struct Sent {
    /// The bytes of the segments that the link has taken.
    pub bytes: usize,
    /// The system's error for the next segment; [`io::ErrorKind::WouldBlock`] where the link is
    /// full.
    pub stopped: Option<io::Error>,
}

impl Link {
    /// Opens a link. Links in memory lead to those of the same `net`.
    ///
    /// # Errors
    ///
    /// [`LinkError::Open`].
    pub fn open(config: &LinkConfig, net: Option<&MemoryNet>) -> Result<Self, LinkError> {
        let unit_bytes = config.unit_bytes();
        let link = match &config.wire {
            Wire::Udp(address) => {
                let multicast = config.discovery.and_then(|discovery| discovery.multicast);
                UdpLink::open(*address, unit_bytes, multicast).map(Link::Udp)
            }
            Wire::Ethernet(interface) => {
                let discovers = config.discovery.is_some();
                EthernetLink::open(interface, unit_bytes, discovers).map(Link::Ethernet)
            }
            Wire::Memory(port) => match net {
                Some(net) => net.open(*port, unit_bytes).map(Link::Memory),
                None => Err(io::Error::other("links in memory are for programs, not for files")),
            },
        };
        link.map_err(|cause| LinkError::Open { link: config.name.clone(), cause })
    }

    /// Takes the units that have come, and gives how many batches of `inbox` they fill.
    ///
    /// # Errors
    ///
    /// The system's error; [`io::ErrorKind::WouldBlock`] where nothing has come.
    #[inline]
    pub fn receive(&self, inbox: &mut Inbox) -> io::Result<usize> {
        match self {
            Link::Udp(link) => link.receive(inbox),
            Link::Ethernet(link) => link.receive(inbox),
            Link::Memory(link) => link.receive(inbox),
        }
    }

    /// Sends segments of one length, of which the last may be shorter, to one machine.
    #[inline]
    pub fn send(&self, to: Address, segments: &[u8], segment_bytes: usize) -> Sent {
        match (self, to) {
            (Link::Udp(link), Address::Udp(to)) => link.send(to, segments, segment_bytes),
            (Link::Ethernet(link), Address::Ethernet(to)) => link.send(to, segments, segment_bytes),
            (Link::Memory(link), Address::Memory(to)) => link.send(to, segments, segment_bytes),
            _ => Sent { bytes: 0, stopped: Some(io::ErrorKind::AddrNotAvailable.into()) },
        }
    }

    /// Sends a unit to all machines of the link.
    pub(crate) fn send_all(&self, unit: &[u8]) -> Sent {
        match self {
            Link::Udp(link) => link.send_all(unit),
            Link::Ethernet(link) => link.send(EthernetLink::EVERYBODY, unit, unit.len()),
            Link::Memory(link) => link.send_all(unit),
        }
    }

    /// The bytes that it carries at once.
    #[inline]
    pub fn unit_bytes(&self) -> usize {
        match self {
            Link::Udp(link) => link.unit_bytes(),
            Link::Ethernet(link) => link.unit_bytes(),
            Link::Memory(link) => link.unit_bytes(),
        }
    }

    /// Its own address.
    pub fn address(&self) -> Address {
        match self {
            Link::Udp(link) => Address::Udp(link.address()),
            Link::Ethernet(link) => Address::Ethernet(link.address()),
            Link::Memory(link) => Address::Memory(link.number()),
        }
    }

    /// The address of all machines of the link; its own where it has none.
    pub(crate) fn everybody(&self) -> Address {
        match self {
            Link::Udp(link) => Address::Udp(link.everybody().unwrap_or(link.address())),
            Link::Ethernet(_) => Address::Ethernet(EthernetLink::EVERYBODY),
            Link::Memory(link) => Address::Memory(link.number()),
        }
    }

    /// The bytes below which a unit may come with zeros behind it.
    pub(crate) fn least_bytes(&self) -> usize {
        match self {
            Link::Ethernet(_) => EthernetLink::LEAST_BYTES,
            Link::Udp(_) | Link::Memory(_) => 0,
        }
    }

    /// Waits until it is ready, or for so long; gives whether it is.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn wait(&self, ready: Ready, patience: Duration) -> io::Result<bool> {
        use std::os::fd::AsFd;
        match self {
            Link::Udp(link) => wait(link.as_fd(), ready, patience),
            Link::Ethernet(link) => link.wait(ready, patience),
            Link::Memory(link) => Ok(link.wait(ready, patience)),
        }
    }
}

/// Waits until a file is ready, or for so long; gives whether it is.
///
/// # Errors
///
/// The system's error.
pub(crate) fn wait(file: BorrowedFd<'_>, ready: Ready, patience: Duration) -> io::Result<bool> {
    let flags = match ready {
        Ready::ToReceive => PollFlags::IN,
        Ready::ToSend => PollFlags::OUT,
    };
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(&mut [PollFd::from_borrowed_fd(file, flags)], Some(&patience)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
