//! Datagrams over UDP. The kernel joins those of one sender and length to one buffer, and splits
//! one buffer into datagrams: that is what makes it fast, not fewer system calls.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

use crate::address::LinkAddress;
use crate::everybody::MulticastLink;
use crate::inbox::{ArrivedBatch, BATCHES, LinkInbox};
use crate::limits::{MAX_SOCKET_QUEUE_BYTES, MAX_UNIT_BYTES};
use crate::link::SentBytes;

/// A UDP link.
#[derive(Debug)]
pub struct UdpLink {
    socket: UdpSocket,
    state: UdpSocketState,
    address: SocketAddr,
    unit_bytes: usize,
    /// Where all machines of the link are reached, and what they send there is received.
    everybody: Option<MulticastLink>,
}

impl UdpLink {
    pub(crate) fn open(
        address: SocketAddr,
        unit_bytes: usize,
        multicast: Option<SocketAddr>,
    ) -> io::Result<Self> {
        // The link binds before it joins the group. Port 0 gets its number here, and units to the
        // group leave from it.
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        // Fragments of IP fail together, and a stranger can spoil one with a forged part.
        keep_whole(&socket, &address)?;
        // The link must open even where this user may not enlarge the queues. A small queue only
        // loses datagrams under load.
        enlarge(&socket);
        let address = socket.local_addr()?;
        let join = |group| MulticastLink::open(address, group, &socket);
        let everybody = multicast.map(join).transpose()?;
        Ok(Self { socket, state, address, unit_bytes, everybody })
    }

    /// Sends a unit to all machines of the link.
    pub(crate) fn send_all(&self, unit: &[u8]) -> SentBytes {
        match &self.everybody {
            Some(everybody) => self.send(everybody.address(), unit, unit.len()),
            None => SentBytes { bytes: 0, stopped: Some(io::ErrorKind::AddrNotAvailable.into()) },
        }
    }

    /// Where all machines of the link are reached.
    pub(crate) fn everybody(&self) -> Option<SocketAddr> {
        self.everybody.as_ref().map(MulticastLink::address)
    }

    /// Receives a unit that was sent to all machines of the link; waits a while for it.
    pub(crate) fn receive_all(&self, unit: &mut [u8]) -> io::Result<Option<(SocketAddr, usize)>> {
        let Some(everybody) = &self.everybody else { return Ok(None) };
        let (bytes, from) = everybody.receive(unit)?;
        // The own units come back, since other machines of this host are to have them too.
        Ok((from != self.address).then_some((from, bytes)))
    }

    /// Joins those who hear what is for everybody again, if the interface was made anew.
    pub(crate) fn rejoin(&self) -> io::Result<()> {
        match &self.everybody {
            Some(everybody) => everybody.rejoin(&self.socket),
            None => Ok(()),
        }
    }

    pub(crate) fn receive(&self, inbox: &mut LinkInbox) -> io::Result<usize> {
        let mut metas = [RecvMeta::default(); BATCHES];
        let count = self.state.recv((&self.socket).into(), &mut inbox.slices(), &mut metas)?;
        for (index, meta) in metas.iter().enumerate().take(count) {
            // An empty datagram has no stride.
            let (bytes, segment_bytes) = (meta.len, meta.stride.max(1));
            inbox.fill(
                index,
                ArrivedBatch { from: LinkAddress::Udp(meta.addr), bytes, segment_bytes },
            );
        }
        Ok(count)
    }

    pub(crate) fn send(&self, to: SocketAddr, segments: &[u8], segment_bytes: usize) -> SentBytes {
        // Kernels differ in how many segments they cut, and old ones cut none.
        let at_once = self.state.max_gso_segments().min(MAX_UNIT_BYTES / segment_bytes.max(1));
        let mut bytes = 0;
        for contents in segments.chunks(segment_bytes.max(1) * at_once.max(1)) {
            // Without the option, a lone datagram also leaves where kernel or card cannot split.
            let segment_size = (contents.len() > segment_bytes).then_some(segment_bytes);
            let transmit =
                Transmit { destination: to, ecn: None, contents, segment_size, src_ip: None };
            // Earlier chunks are on the wire by now. The caller gets their bytes, so that it sends
            // only the rest again.
            if let Err(error) = self.state.try_send((&self.socket).into(), &transmit) {
                return SentBytes { bytes, stopped: Some(error) };
            }
            bytes += contents.len();
        }
        SentBytes { bytes, stopped: None }
    }

    pub(crate) fn unit_bytes(&self) -> usize {
        self.unit_bytes
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl AsFd for UdpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Has datagrams that a path does not take at once refused (RFC 1191), so that frames go in parts
/// of ours: IP splits none, and loses none unsaid once it knows the path.
fn keep_whole(socket: &UdpSocket, address: &SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(_) => sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)?,
    }
    Ok(())
}

/// Lets more wait in the kernel, beyond what is allowed to all where this user may do so. What the
/// system does not give is missed only under load.
pub(crate) fn enlarge(socket: &impl AsFd) {
    let receive = sockopt::set_socket_recv_buffer_size_force(socket, MAX_SOCKET_QUEUE_BYTES);
    let send = sockopt::set_socket_send_buffer_size_force(socket, MAX_SOCKET_QUEUE_BYTES);
    // Only an administrator may go beyond the system's limit. Other users get as much as the limit
    // allows.
    if receive.is_err() || send.is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, MAX_SOCKET_QUEUE_BYTES);
        let _ = sockopt::set_socket_send_buffer_size(socket, MAX_SOCKET_QUEUE_BYTES);
    }
}
