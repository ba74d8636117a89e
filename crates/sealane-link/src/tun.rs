//! The interface of an end: what programs send comes out of it as packets, and back in.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use tun_rs::{DeviceBuilder, SyncDevice};

use crate::LinkError;
use crate::bundle::Bundle;
use crate::burst::Burst;
use crate::link::{Ready, wait};
use crate::mesh_config::MeshConfig;
use crate::offload::MARK_BYTES;

/// An interface of packets (TUN). It is there as long as this is.
///
/// With offload the kernel gives many segments as one packet, and takes them so: it is what makes
/// an interface fast.
pub struct Tun {
    device: SyncDevice,
    mtu: usize,
    has_offload: bool,
}

impl Tun {
    /// Makes the interface, which needs the right to administer the network.
    ///
    /// # Errors
    ///
    /// [`LinkError::Interface`].
    pub fn open(config: &MeshConfig, mtu: u16) -> Result<Self, LinkError> {
        let mut builder = DeviceBuilder::new().name(config.interface.as_str()).mtu(mtu);
        builder = builder.offload(config.offload);
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
        let has_offload = device.tcp_gso();
        Ok(Self { device, mtu: usize::from(mtu), has_offload })
    }

    /// The largest packet.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Room for what it is given, joined as its kernel takes it.
    pub fn bundle(&self) -> Bundle {
        Bundle::new(self.device.udp_gso())
    }

    /// Reads what a program has sent.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::WouldBlock`] where there is nothing.
    pub fn receive(&self, burst: &mut Burst) -> io::Result<()> {
        if self.has_offload {
            let bytes = self.device.recv(burst.room_with_mark())?;
            burst.filled_with_mark(bytes);
        } else {
            let bytes = self.device.recv(burst.room())?;
            burst.filled(bytes);
        }
        Ok(())
    }

    /// Gives the machine a packet, at the latest with [`Tun::flush`].
    ///
    /// # Errors
    ///
    /// What the system says of this packet or of those before it.
    pub fn send(&self, bundle: &mut Bundle, packet: &[u8]) -> io::Result<()> {
        if !self.has_offload {
            return self.device.send(packet).map(|_| ());
        }
        if bundle.push(packet) {
            return Ok(());
        }
        let sent = self.flush(bundle);
        if bundle.push(packet) { sent } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Gives the machine what has gathered.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn flush(&self, bundle: &mut Bundle) -> io::Result<()> {
        if bundle.is_empty() {
            return Ok(());
        }
        let packet = bundle.take();
        debug_assert!(packet.len() > MARK_BYTES, "there is something in it");
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
