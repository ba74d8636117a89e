//! The interface of an end: what programs send comes out of it as packets, and back in.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use tun_rs::{DeviceBuilder, SyncDevice};

use crate::LinkError;
use crate::link::{Ready, wait};
use crate::mesh_config::MeshConfig;

/// An interface of packets (TUN). It is there as long as this is.
pub struct Tun {
    device: SyncDevice,
    mtu: usize,
}

impl Tun {
    /// Makes the interface, which needs the right to administer the network.
    ///
    /// # Errors
    ///
    /// [`LinkError::Interface`].
    pub fn open(config: &MeshConfig, mtu: u16) -> Result<Self, LinkError> {
        let mut builder = DeviceBuilder::new().name(config.interface.as_str()).mtu(mtu);
        for prefix in &config.addresses {
            builder = match prefix.address {
                std::net::IpAddr::V4(address) => builder.ipv4(address, prefix.bits, None),
                std::net::IpAddr::V6(address) => builder.ipv6(address, prefix.bits),
            };
        }
        let device = builder.build_sync().and_then(|device| {
            device.set_nonblocking(true)?;
            Ok(device)
        });
        let interface = config.interface.clone();
        let device = device.map_err(|cause| LinkError::Interface { interface, cause })?;
        Ok(Self { device, mtu: usize::from(mtu) })
    }

    /// The largest packet.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Reads a packet that a program has sent, and gives its length.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::WouldBlock`] where there is none.
    pub fn receive(&self, packet: &mut [u8]) -> io::Result<usize> {
        self.device.recv(packet)
    }

    /// Gives the machine a packet.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).map(|_| ())
    }

    /// Waits until a packet has come, or for so long.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn wait(&self, patience: Duration) -> io::Result<bool> {
        wait(self.device.as_fd(), Ready::ToReceive, patience)
    }
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").field("mtu", &self.mtu).finish_non_exhaustive()
    }
}
