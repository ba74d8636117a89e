//! The settings that a driver gives a machine, for itself and for its interfaces.

use sealane_frame::{PeerTag, SHORT_FRAGMENT_HEADER_BYTES};
use sealane_seal::Form;

use crate::limits::{
    MAX_ATTACHED, MAX_DOCUMENTS_MESSAGE_BYTES, MIN_COMPACT_MTU_BYTES, MIN_FULL_MTU_BYTES,
    MIN_HELLO_MS,
};
use crate::{MeshError, MeshSpan};

/// An interface, as its driver numbers it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(pub u8);

/// A neighbour's address on an interface, as its driver numbers it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeshAddress(pub u64);

/// The role of a machine for the others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MachineRole {
    /// A way out: it stands in hellos, and reports what came to it.
    Gateway,
    /// Others find routes to it.
    #[default]
    Member,
    /// Nobody has a route to it. What is sent to everybody reaches it.
    Quiet,
}

/// A machine.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The machine's role for the others.
    pub role: MachineRole,
    /// Addresses of other groups that live on it, at most [`MAX_ATTACHED`]. Its address in the
    /// mesh is always one.
    pub attached: Vec<PeerTag>,
    /// It sleeps between its hellos: neighbours keep its frames until then.
    pub sleeps: bool,
    /// The seed of all its chance: another one for each start.
    pub seed: [u8; 32],
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), MeshError> {
        if self.attached.len() > MAX_ATTACHED {
            return Err(MeshError::Config("more addresses than MAX_ATTACHED"));
        }
        if self.attached.iter().any(|tag| [PeerTag::BROADCAST, PeerTag::NOBODY].contains(tag)) {
            return Err(MeshError::Config("an address that no member has"));
        }
        Ok(())
    }
}

/// The properties of an interface that a machine has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeshMedium {
    /// The bytes of a unit: what one transmission carries.
    pub mtu: usize,
    /// The form of frames there.
    pub form: Form,
    /// The air time of a transmission beside its bytes: preamble and headers of the radio.
    pub fixed: MeshSpan,
    /// How fast its bytes are.
    pub bytes_per_second: u32,
    /// The share of time in which the machine may send, in millionths: a million is always.
    pub duty_ppm: u32,
    /// How often hellos are wished. They come less often where the duty cycle asks for it.
    pub hello: MeshSpan,
    /// Whether frames travel within hop seals: everywhere but on wires.
    pub hop_seal: bool,
}

/// The most bytes that the compact form adds to the body of a message of the mesh.
pub(crate) const COMPACT_BYTES: usize = 27;
/// The most bytes that the full form adds to it.
pub(crate) const FULL_BYTES: usize = 89;
/// The head of a message about documents.
const DOCUMENTS_HEAD_BYTES: usize = 3;
/// A message about documents is worth a unit of its own that holds as much.
const DOCUMENTS_BYTES_WHOLE: usize = 120;
/// One that does not go in a unit holds as much where air time is scarce, at least, and elsewhere.
const DOCUMENTS_BYTES_LEAST: usize = 64;
const DOCUMENTS_BYTES_IN_PARTS: usize = 180;
/// The share of time, in millionths, that is all of it.
pub(crate) const ALWAYS_PPM: u32 = 1_000_000;

impl MeshMedium {
    /// A wire of 100 Mbit/s, or a path of UDP.
    pub const fn wire(mtu: usize) -> Self {
        Self {
            mtu,
            form: Form::Full,
            fixed: MeshSpan(10),
            bytes_per_second: 12_500_000,
            duty_ppm: ALWAYS_PPM,
            hello: MeshSpan::seconds(1),
            hop_seal: false,
        }
    }

    /// IEEE 802.11p at 6 Mbit/s in a channel of 10 MHz: preamble and signal field of 40 µs, 36
    /// bytes of headers and check sequence, a gap and a mean back-off of 58 and 98 µs. Vehicles
    /// meet and part within seconds: hellos come twice a second.
    pub const fn dot11p() -> Self {
        Self {
            mtu: 1500,
            fixed: MeshSpan(40 + 48 + 58 + 98),
            bytes_per_second: 750_000,
            hello: MeshSpan::millis(500),
            form: Form::Compact,
            hop_seal: true,
            ..Self::wire(1500)
        }
    }

    /// LoRa at spreading factor 7 in 125 kHz, 222 bytes, 1 % of the time.
    pub const fn lora_sf7() -> Self {
        Self {
            mtu: 222,
            fixed: MeshSpan(26_000),
            bytes_per_second: 683,
            duty_ppm: 10_000,
            hello: MeshSpan::seconds(60),
            form: Form::Compact,
            hop_seal: true,
        }
    }

    /// A connection of Bluetooth LE at 1 Mbit/s of so many usable bytes.
    pub const fn ble(mtu: usize) -> Self {
        Self {
            mtu,
            fixed: MeshSpan(300),
            bytes_per_second: 125_000,
            duty_ppm: ALWAYS_PPM,
            hello: MeshSpan::seconds(1),
            form: Form::Compact,
            hop_seal: true,
        }
    }

    /// How long a unit takes.
    pub fn air(&self, bytes: usize) -> MeshSpan {
        let bytes = bytes as u64 * 1_000_000;
        MeshSpan(self.fixed.0 + bytes.div_ceil(u64::from(self.bytes_per_second.max(1))))
    }

    /// The bytes of a message about documents that goes in one unit. Where units are short it goes
    /// in parts: in two where air time is scarce, since of more parts seldom all arrive.
    pub fn documents_bytes(&self) -> usize {
        let around = self.around() + DOCUMENTS_HEAD_BYTES;
        let whole = self.mtu.saturating_sub(around);
        let halves =
            (2 * self.mtu.saturating_sub(SHORT_FRAGMENT_HEADER_BYTES)).saturating_sub(around);
        match self.has_duty() && halves >= DOCUMENTS_BYTES_LEAST {
            _ if whole >= DOCUMENTS_BYTES_WHOLE => whole.min(MAX_DOCUMENTS_MESSAGE_BYTES),
            true => halves,
            false => DOCUMENTS_BYTES_IN_PARTS,
        }
    }

    /// The bytes that a message of the mesh has around its body, at most.
    pub(crate) fn around(&self) -> usize {
        match self.form {
            Form::Full => FULL_BYTES,
            Form::Compact => COMPACT_BYTES,
        }
    }

    /// Whether the law, or the battery, says how much may be sent.
    pub fn has_duty(&self) -> bool {
        self.duty_ppm < ALWAYS_PPM
    }

    pub(crate) fn check(&self) -> Result<(), MeshError> {
        let mtu_min = match self.form {
            Form::Full => MIN_FULL_MTU_BYTES,
            Form::Compact => MIN_COMPACT_MTU_BYTES,
        };
        let is_sound = self.mtu >= mtu_min
            && self.bytes_per_second > 0
            && (1..=ALWAYS_PPM).contains(&self.duty_ppm)
            && self.hello >= MeshSpan::millis(MIN_HELLO_MS);
        if is_sound { Ok(()) } else { Err(MeshError::Config("an interface that cannot be")) }
    }
}
