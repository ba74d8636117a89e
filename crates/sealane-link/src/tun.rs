//! The interface of an end: what programs send comes out of it as packets, and back in.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::LinkError;
use crate::bundle::SegmentBundle;
use crate::burst::PacketBurst;
use crate::link::{LinkReady, wait};
use crate::mesh_config::{InterfaceKind, MeshConfig};
use crate::offload::MARK_BYTES;
use crate::tap::{ETHERNET_BYTES, TapDelivery, TapFrame, TapSide};

/// An interface of packets (TUN), or of the frames of a network card (TAP). It is there as long as
/// this is.
///
/// With offload the kernel gives many segments as one packet, and takes them so: it is what makes
/// an interface fast. One of frames goes without.
pub struct TunInterface {
    device: SyncDevice,
    mtu: usize,
    has_offload: bool,
    tap: Option<Mutex<TapSide>>,
    started: Instant,
}

impl TunInterface {
    /// Makes the interface, which needs the right to administer the network.
    ///
    /// # Errors
    ///
    /// [`LinkError::Interface`].
    pub fn open(config: &MeshConfig, mtu: u16) -> Result<Self, LinkError> {
        let mut builder = DeviceBuilder::new().name(config.interface.as_str()).mtu(mtu);
        let is_tap = config.kind == InterfaceKind::Tap;
        builder = builder.layer(if is_tap { Layer::L2 } else { Layer::L3 });
        builder = builder.offload(config.offload && !is_tap);
        for prefix in &config.addresses {
            builder = match prefix.address {
                IpAddr::V4(address) => builder.ipv4(address, prefix.bits, None),
                IpAddr::V6(address) => builder.ipv6(address, prefix.bits),
            };
        }
        let made = builder.build_sync().and_then(|device| {
            device.set_nonblocking(true)?;
            let tap = if is_tap { Some(tap(&device, config)?) } else { None };
            Ok((device, tap))
        });
        let interface = config.interface.clone();
        let (device, tap) = made.map_err(|cause| LinkError::Interface { interface, cause })?;
        let has_offload = device.tcp_gso();
        Ok(Self { device, mtu: usize::from(mtu), has_offload, tap, started: Instant::now() })
    }

    /// The largest packet.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Room for what it is given, joined as its kernel takes it.
    pub fn bundle(&self) -> SegmentBundle {
        SegmentBundle::new(self.device.udp_gso())
    }

    /// Reads a packet of a program; gives whether it is to travel. Nothing is in `burst` if the
    /// packet is for nobody. A machine beside an interface of frames may ask for an address of
    /// which `is_beyond` says so. That question is answered at once.
    ///
    /// # Errors
    ///
    /// The system's error; [`io::ErrorKind::WouldBlock`] where there is nothing.
    pub fn receive(
        &self,
        burst: &mut PacketBurst,
        is_beyond: impl Fn(IpAddr) -> bool,
    ) -> io::Result<bool> {
        if let Some(tap) = &self.tap {
            return self.receive_frame(&mut tap.lock(), burst, is_beyond);
        }
        if self.has_offload {
            let bytes = self.device.recv(burst.room_with_mark())?;
            burst.filled_with_mark(bytes);
        } else {
            let bytes = self.device.recv(burst.room())?;
            burst.filled(bytes, 0);
        }
        Ok(true)
    }

    fn receive_frame(
        &self,
        tap: &mut TapSide,
        burst: &mut PacketBurst,
        is_beyond: impl Fn(IpAddr) -> bool,
    ) -> io::Result<bool> {
        let bytes = self.device.recv(burst.room())?;
        let frame = burst.room().get(..bytes).unwrap_or_default();
        let packet_and_header = match tap.see(frame, self.now_us(), is_beyond) {
            TapFrame::Packet => bytes,
            // The answer leaves at once and is no packet. `false` tells the caller that nothing
            // travels.
            TapFrame::Asked(answer) => return self.device.send(answer).map(|_| false),
            TapFrame::Nothing => 0,
        };
        burst.filled(packet_and_header, ETHERNET_BYTES);
        Ok(true)
    }

    /// Gives the machine a packet, at the latest with [`TunInterface::flush`].
    ///
    /// # Errors
    ///
    /// The system's error for this packet or for those before it, and
    /// [`io::ErrorKind::HostUnreachable`] if nobody knows yet where its machine is.
    pub fn send(&self, bundle: &mut SegmentBundle, packet: &[u8]) -> io::Result<()> {
        if let Some(tap) = &self.tap {
            return self.send_frame(&mut tap.lock(), packet);
        }
        if !self.has_offload {
            return self.device.send(packet).map(|_| ());
        }
        if bundle.push(packet) {
            return Ok(());
        }
        // The gathered packets leave first, so that packets of one connection keep their order.
        let sent = self.flush(bundle);
        if bundle.push(packet) { sent } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    fn send_frame(&self, tap: &mut TapSide, packet: &[u8]) -> io::Result<()> {
        match tap.dress(packet, self.now_us()) {
            TapDelivery::Frame(frame) => return self.device.send(frame).map(|_| ()),
            TapDelivery::Unknown(question) => self.device.send(question).map(|_| ())?,
            TapDelivery::Nothing => {}
        }
        Err(io::ErrorKind::HostUnreachable.into())
    }

    /// Gives the machine the packets that have gathered.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn flush(&self, bundle: &mut SegmentBundle) -> io::Result<()> {
        if bundle.is_empty() {
            return Ok(());
        }
        let packet = bundle.take();
        debug_assert!(packet.len() > MARK_BYTES, "there is something in it");
        self.device.send(packet).map(|_| ())
    }

    /// Whether what the system said of it means that somebody has deleted the interface.
    pub fn is_gone(error: &io::Error) -> bool {
        let gone = [Errno::BADFD, Errno::NODEV];
        gone.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
    }

    /// Takes nothing more of programs. The packets that they have sent can still be received.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn close(&self) -> io::Result<()> {
        self.device.enabled(false)
    }

    /// Waits until a packet has come, or for so long.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn wait(&self, patience: Duration) -> io::Result<bool> {
        wait(self.device.as_fd(), LinkReady::ToReceive, patience)
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// The addresses that an interface of frames knows at its start.
fn tap(device: &SyncDevice, config: &MeshConfig) -> io::Result<Mutex<TapSide>> {
    let addresses = config.addresses.iter().map(|prefix| prefix.address).collect();
    Ok(Mutex::new(TapSide::new(device.mac_address()?, addresses, 0)))
}

impl std::fmt::Debug for TunInterface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tun").field("mtu", &self.mtu).finish_non_exhaustive()
    }
}
