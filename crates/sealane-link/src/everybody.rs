//! All machines of a link over UDP: a multicast group on one interface.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use parking_lot::RwLock;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// How long nothing is heard before a receiver looks whether it is to end.
const TURN: Duration = Duration::from_millis(100);

/// Who hears what is for everybody.
#[derive(Debug)]
pub(crate) struct Everybody {
    own: SocketAddr,
    group: SocketAddr,
    /// What was sent to the group is received here, and nothing else.
    socket: RwLock<UdpSocket>,
}

impl Everybody {
    pub(crate) fn open(own: SocketAddr, group: SocketAddr) -> io::Result<Self> {
        Ok(Self { own, group, socket: RwLock::new(receiver(on_interface(own, group))?) })
    }

    /// Where it is reached.
    pub(crate) fn address(&self) -> SocketAddr {
        on_interface(self.own, self.group)
    }

    /// Has the kernel bring what is for the group on the interface of the own address, and has
    /// `sender` send to the group there.
    pub(crate) fn join(&self, sender: &UdpSocket) -> io::Result<()> {
        match self.join_with(&self.socket.read(), sender) {
            // An interface that was made anew leaves what was joined before behind.
            Err(Errno::NOBUFS) => {
                let fresh = receiver(self.address())?;
                self.join_with(&fresh, sender)?;
                *self.socket.write() = fresh;
                Ok(())
            }
            other => Ok(other?),
        }
    }

    fn join_with(&self, socket: &UdpSocket, sender: &UdpSocket) -> Result<(), Errno> {
        let joined = match (self.own.ip(), self.group.ip()) {
            (IpAddr::V4(own), IpAddr::V4(group)) => {
                sockopt::set_ip_multicast_if(sender, &own)?;
                sockopt::set_ip_multicast_ttl(sender, HOPS)?;
                sockopt::set_ip_add_membership(socket, &group, &own)
            }
            (IpAddr::V6(own), IpAddr::V6(group)) => {
                let interface = interface_of(IpAddr::V6(own), self.own).ok_or(Errno::NODEV)?;
                sockopt::set_ipv6_multicast_if(sender, interface)?;
                sockopt::set_ipv6_multicast_hops(sender, HOPS)?;
                sockopt::set_ipv6_add_membership(socket, &group, interface)
            }
            _ => Err(Errno::AFNOSUPPORT),
        };
        match joined {
            Err(Errno::ADDRINUSE) => Ok(()),
            other => other,
        }
    }

    /// Receives a datagram; waits a while for one.
    pub(crate) fn receive(&self, unit: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.socket.read().recv_from(unit)
    }
}

/// A socket that receives what is for a group, beside others of this machine.
fn receiver(group: SocketAddr) -> io::Result<UdpSocket> {
    let family = if group.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(socket.as_fd(), &group)?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(TURN))?;
    Ok(socket)
}

/// A group's address on the interface that has the own address.
fn on_interface(own: SocketAddr, group: SocketAddr) -> SocketAddr {
    let mut at = group;
    if let SocketAddr::V6(at) = &mut at {
        at.set_scope_id(interface_of(own.ip(), own).unwrap_or_default());
    }
    at
}

/// The number of the interface that has an address.
fn interface_of(address: IpAddr, own: SocketAddr) -> Option<u32> {
    if let SocketAddr::V6(own) = own
        && own.scope_id() != 0
    {
        return Some(own.scope_id());
    }
    let mut all = getifaddrs().ok()?;
    let named = all.find(|one| {
        let storage = one.address.as_ref();
        let v6 = storage.and_then(|one| one.as_sockaddr_in6()).map(|one| IpAddr::V6(one.ip()));
        v6 == Some(address)
    })?;
    let name = named.interface_name.as_str();
    let probe = socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    rustix::net::netdevice::name_to_index(probe.ok()?, name).ok()
}

/// What is for everybody stays on its link.
const HOPS: u32 = 1;
