//! Wires: a closed set of links with one interface. Each takes and gives batches: one buffer of
//! segments of one length, of which the last may be shorter.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::LinkError;
use crate::address::LinkAddress;
use crate::config::{LinkConfig, LinkWire};
use crate::ethernet::EthernetLink;
use crate::inbox::LinkInbox;
use crate::memory::{MemoryLink, MemoryNet};
use crate::udp::UdpLink;

/// A link that is open. All of its operations return at once; [`RelayLink::wait`] waits.
#[derive(Debug)]
#[non_exhaustive]
pub enum RelayLink {
    /// Datagrams over UDP.
    Udp(UdpLink),
    /// Frames of a network card.
    Ethernet(EthernetLink),
    /// Buffers that change hands within a process.
    Memory(MemoryLink),
}

/// The event that a link is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkReady {
    /// Something came.
    ToReceive,
    /// There is room again.
    ToSend,
}

/// How far a batch was sent.
#[derive(Debug)]
#[must_use = "what was not sent is lost"]
pub struct SentBytes {
    /// The bytes of the segments that the link has taken.
    pub bytes: usize,
    /// The system's error for the next segment; [`io::ErrorKind::WouldBlock`] where the link is
    /// full.
    pub stopped: Option<io::Error>,
}

impl RelayLink {
    /// Opens a link. Links in memory lead to those of the same `net`.
    ///
    /// # Errors
    ///
    /// [`LinkError::Open`].
    pub fn open(config: &LinkConfig, net: Option<&MemoryNet>) -> Result<Self, LinkError> {
        let unit_bytes = config.unit_bytes();
        let link = match &config.wire {
            LinkWire::Udp(address) => {
                let multicast = config.discovery.and_then(|discovery| discovery.multicast);
                UdpLink::open(*address, unit_bytes, multicast).map(RelayLink::Udp)
            }
            LinkWire::Ethernet(interface) => {
                let discovers = config.discovery.is_some();
                EthernetLink::open(interface, unit_bytes, discovers).map(RelayLink::Ethernet)
            }
            LinkWire::Memory(port) => match net {
                Some(net) => net.open(*port, unit_bytes).map(RelayLink::Memory),
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
    pub fn receive(&self, inbox: &mut LinkInbox) -> io::Result<usize> {
        match self {
            RelayLink::Udp(link) => link.receive(inbox),
            RelayLink::Ethernet(link) => link.receive(inbox),
            RelayLink::Memory(link) => link.receive(inbox),
        }
    }

    /// Sends segments of one length, of which the last may be shorter, to one machine.
    #[inline]
    pub fn send(&self, to: LinkAddress, segments: &[u8], segment_bytes: usize) -> SentBytes {
        match (self, to) {
            (RelayLink::Udp(link), LinkAddress::Udp(to)) => link.send(to, segments, segment_bytes),
            (RelayLink::Ethernet(link), LinkAddress::Ethernet(to)) => {
                link.send(to, segments, segment_bytes)
            }
            (RelayLink::Memory(link), LinkAddress::Memory(to)) => {
                link.send(to, segments, segment_bytes)
            }
            _ => SentBytes { bytes: 0, stopped: Some(io::ErrorKind::AddrNotAvailable.into()) },
        }
    }

    /// Sends a unit to all machines of the link.
    pub(crate) fn send_all(&self, unit: &[u8]) -> SentBytes {
        match self {
            RelayLink::Udp(link) => link.send_all(unit),
            RelayLink::Ethernet(link) => link.send(EthernetLink::EVERYBODY, unit, unit.len()),
            RelayLink::Memory(link) => link.send_all(unit),
        }
    }

    /// The bytes that it carries at once.
    #[inline]
    pub fn unit_bytes(&self) -> usize {
        match self {
            RelayLink::Udp(link) => link.unit_bytes(),
            RelayLink::Ethernet(link) => link.unit_bytes(),
            RelayLink::Memory(link) => link.unit_bytes(),
        }
    }

    /// Its own address.
    pub fn address(&self) -> LinkAddress {
        match self {
            RelayLink::Udp(link) => LinkAddress::Udp(link.address()),
            RelayLink::Ethernet(link) => LinkAddress::Ethernet(link.address()),
            RelayLink::Memory(link) => LinkAddress::Memory(link.number()),
        }
    }

    /// The address of all machines of the link; its own where it has none.
    pub(crate) fn everybody(&self) -> LinkAddress {
        match self {
            RelayLink::Udp(link) => LinkAddress::Udp(link.everybody().unwrap_or(link.address())),
            RelayLink::Ethernet(_) => LinkAddress::Ethernet(EthernetLink::EVERYBODY),
            RelayLink::Memory(link) => LinkAddress::Memory(link.number()),
        }
    }

    /// The bytes below which a unit may come with zeros behind it.
    pub(crate) fn least_bytes(&self) -> usize {
        match self {
            RelayLink::Ethernet(_) => EthernetLink::LEAST_BYTES,
            RelayLink::Udp(_) | RelayLink::Memory(_) => 0,
        }
    }

    /// Waits until it is ready, or for so long; gives whether it is.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn wait(&self, ready: LinkReady, patience: Duration) -> io::Result<bool> {
        use std::os::fd::AsFd;
        match self {
            RelayLink::Udp(link) => wait(link.as_fd(), ready, patience),
            RelayLink::Ethernet(link) => link.wait(ready, patience),
            RelayLink::Memory(link) => Ok(link.wait(ready, patience)),
        }
    }
}

/// Waits until a file is ready, or for so long; gives whether it is.
///
/// # Errors
///
/// The system's error.
pub(crate) fn wait(file: BorrowedFd<'_>, ready: LinkReady, patience: Duration) -> io::Result<bool> {
    let flags = match ready {
        LinkReady::ToReceive => PollFlags::IN,
        LinkReady::ToSend => PollFlags::OUT,
    };
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(&mut [PollFd::from_borrowed_fd(file, flags)], Some(&patience)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
