//! Wires: a closed set of links, each of which takes and gives segments.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::LinkError;
use crate::config::LinkConfig;
use crate::inbox::Inbox;
use crate::udp::UdpLink;

/// A link that is open. All of its operations return at once; [`Link::wait`] waits.
#[derive(Debug)]
pub(crate) enum Link {
    /// Datagrams over UDP.
    Udp(UdpLink),
}

/// What a link is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// Something came.
    ToReceive,
    /// There is room again.
    ToSend,
}

impl Link {
    /// Opens a link.
    ///
    /// # Errors
    ///
    /// [`LinkError::Open`].
    pub(crate) fn open(config: &LinkConfig) -> Result<Self, LinkError> {
        let link = UdpLink::open(config.udp, config.unit_bytes()).map(Link::Udp);
        link.map_err(|cause| LinkError::Open { link: config.name.clone(), cause })
    }

    /// Takes what has come, and gives how many batches of `inbox` it fills.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::WouldBlock`] where nothing has come.
    pub(crate) fn receive(&self, inbox: &mut Inbox) -> io::Result<usize> {
        match self {
            Link::Udp(link) => link.receive(inbox),
        }
    }

    /// Sends segments of one length, of which the last may be shorter, to one neighbour.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::WouldBlock`] where the link is full. The first
    /// segments may have been sent then.
    pub(crate) fn send(
        &self,
        to: SocketAddr,
        segments: &[u8],
        segment_bytes: usize,
    ) -> io::Result<()> {
        match self {
            Link::Udp(link) => link.send(to, segments, segment_bytes),
        }
    }

    /// What it carries at once.
    pub(crate) fn unit_bytes(&self) -> usize {
        match self {
            Link::Udp(link) => link.unit_bytes(),
        }
    }

    /// Waits until it is ready, or for so long; gives whether it is.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn wait(&self, ready: Ready, patience: Duration) -> io::Result<bool> {
        wait(self.as_fd(), ready, patience)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Link::Udp(link) => link.as_fd(),
        }
    }
}

/// Waits until a file is ready, or for so long; gives whether it is.
///
/// # Errors
///
/// What the system says.
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
