//! All machines of a link over UDP: a multicast group on one interface.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::BindToDevice;
use parking_lot::RwLock;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use crate::limits::MULTICAST_TURN_MS;

/// A unit to everybody stays on its link.
const HOPS: u32 = 1;

/// The receiver of units to everybody.
#[derive(Debug)]
pub(crate) struct MulticastLink {
    own: SocketAddr,
    group: SocketAddr,
    joined: RwLock<MulticastSocket>,
}

/// A socket that receives what was sent to the group on one interface, and nothing else.
#[derive(Debug)]
struct MulticastSocket {
    socket: UdpSocket,
    interface: u32,
}

/// The interface that has the own address.
#[derive(Debug)]
struct MulticastInterface {
    name: String,
    number: u32,
}

impl MulticastLink {
    /// Joins the group on the interface of an address, to which `sender` is bound.
    pub(crate) fn open(own: SocketAddr, group: SocketAddr, sender: &UdpSocket) -> io::Result<Self> {
        let interface = MulticastInterface::of(own)?;
        let joined = RwLock::new(join(own, group, &interface, sender)?);
        Ok(Self { own, group, joined })
    }

    /// Where it is reached.
    pub(crate) fn address(&self) -> SocketAddr {
        on_interface(self.group, self.joined.read().interface)
    }

    /// Joins again, if the interface was made anew.
    pub(crate) fn rejoin(&self, sender: &UdpSocket) -> io::Result<()> {
        let interface = MulticastInterface::of(self.own)?;
        // An interface of the same name that was made anew has another number, and the kernel has
        // dropped the membership with the old one.
        if interface.number != self.joined.read().interface {
            // The new socket is joined before the old one goes, so that a failure leaves the old
            // one in place.
            let fresh = join(self.own, self.group, &interface, sender)?;
            *self.joined.write() = fresh;
        }
        Ok(())
    }

    /// Receives a datagram; waits a while for one.
    pub(crate) fn receive(&self, unit: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.joined.read().socket.recv_from(unit)
    }
}

impl MulticastInterface {
    fn of(own: SocketAddr) -> io::Result<Self> {
        let has_it = |one: &nix::ifaddrs::InterfaceAddress| {
            let at = one.address.as_ref();
            let v4 = at.and_then(|at| at.as_sockaddr_in()).map(|at| IpAddr::V4(at.ip()));
            let v6 = at.and_then(|at| at.as_sockaddr_in6()).map(|at| IpAddr::V6(at.ip()));
            v4.or(v6) == Some(own.ip())
        };
        // The configuration names an address, and multicast needs the interface that has it.
        let name = getifaddrs()?.find(has_it).map(|one| one.interface_name);
        let name = name.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let number = name_to_index(any, &name)?;
        Ok(Self { name, number })
    }
}

/// Has the kernel bring what is for a group on an interface, and has `sender` send to it there.
fn join(
    own: SocketAddr,
    group: SocketAddr,
    interface: &MulticastInterface,
    sender: &UdpSocket,
) -> io::Result<MulticastSocket> {
    let family = if group.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // Several machines of one host may listen to the same group and port.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // Else what was sent to the group on other interfaces would come too.
    setsockopt(&socket, BindToDevice, &interface.name.clone().into())?;
    bind(socket.as_fd(), &on_interface(group, interface.number))?;
    match (own.ip(), group.ip()) {
        (IpAddr::V4(own), IpAddr::V4(group)) => {
            sockopt::set_ip_multicast_if(sender, &own)?;
            sockopt::set_ip_multicast_ttl(sender, HOPS)?;
            sockopt::set_ip_add_membership(&socket, &group, &own)?;
        }
        (IpAddr::V6(_), IpAddr::V6(group)) => {
            sockopt::set_ipv6_multicast_if(sender, interface.number)?;
            sockopt::set_ipv6_multicast_hops(sender, HOPS)?;
            sockopt::set_ipv6_add_membership(&socket, &group, interface.number)?;
        }
        _ => return Err(Errno::AFNOSUPPORT.into()),
    }
    let socket = UdpSocket::from(socket);
    // The thread has to look from time to time whether the relay ends.
    socket.set_read_timeout(Some(Duration::from_millis(MULTICAST_TURN_MS)))?;
    Ok(MulticastSocket { socket, interface: interface.number })
}

/// A group's address on an interface.
fn on_interface(group: SocketAddr, interface: u32) -> SocketAddr {
    let mut at = group;
    if let SocketAddr::V6(at) = &mut at {
        at.set_scope_id(interface);
    }
    at
}
