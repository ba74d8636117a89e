//! Documents: the facts that members in the field know about each other, `spec/document.md`.

use std::borrow::Cow;

use crate::DataType;

/// The body of one frame: what a member says about itself.
///
/// The member is not in it: the group and the slot of the seal say who speaks, and a body cannot
/// claim another. Text is borrowed from what was decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document<'a> {
    /// Its running totals.
    Counter(Vec<Count>),
    /// That it lives.
    Heartbeat(Heartbeat),
    /// How it is.
    Vitals(Vitals<'a>),
    /// Where it is.
    Location(Location),
    /// That it calls for help.
    Emergency(Emergency<'a>),
    /// That it has seen a call for help.
    Acknowledgement(EmergencyCall),
    /// That a call for help is over.
    Clear(EmergencyCall),
}

impl Document<'_> {
    /// The data type of the frame that carries it.
    pub fn data_type(&self) -> DataType {
        match self {
            Document::Counter(_) => DataType::COUNTER,
            Document::Heartbeat(_) => DataType::HEARTBEAT,
            Document::Vitals(_) => DataType::VITALS,
            Document::Location(_) => DataType::LOCATION,
            Document::Emergency(_) => DataType::EMERGENCY,
            Document::Acknowledgement(_) => DataType::ACKNOWLEDGEMENT,
            Document::Clear(_) => DataType::CLEAR,
        }
    }
}

/// One of a member's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Which of its counters. Counters of one id are added up over all members.
    pub id: u8,
    /// How much this member has counted in all, at most [`crate::limits::MAX_COUNT`].
    pub total: u64,
}

/// A sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// After how many seconds the next one comes; `None` where nobody knows.
    pub next_s: Option<u16>,
    /// Seconds since the member started.
    pub up_s: u32,
}

/// How a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vitals<'a> {
    /// When, in milliseconds since 1970-01-01 UTC, by its clock.
    pub time_ms: u64,
    /// The member's activity.
    pub activity: Activity,
    /// The member's warnings: bits of [`alert`].
    pub alerts: u8,
    /// Its battery, 0 to 100 percent.
    pub battery_percent: Option<u8>,
    /// Heart beats a minute, 20 to 250.
    pub heart_rate: Option<u8>,
    /// The last incident.
    pub last: Option<Incident>,
    /// How people call it on the radio, at most [`crate::limits::MAX_CALLSIGN_BYTES`].
    pub callsign: Option<Cow<'a, str>>,
}

/// Bits of [`Vitals::alerts`]. The upper four are the user's own.
pub mod alert {
    /// The battery is low.
    pub const BATTERY: u8 = 1;
    /// The heart beats too slowly or too fast.
    pub const HEART_RATE: u8 = 1 << 1;
    /// It is too hot or too cold.
    pub const TEMPERATURE: u8 = 1 << 2;
    /// The wearer fell.
    pub const FALL: u8 = 1 << 3;
    /// The bits that have a name, from the lowest on.
    pub const NAMES: [(u8, &str); 4] = [
        (BATTERY, "battery"),
        (HEART_RATE, "heart-rate"),
        (TEMPERATURE, "temperature"),
        (FALL, "fall"),
    ];
    /// The numbers of the user's own bits.
    pub const OWN_BITS: std::ops::Range<u64> = 4..8;
}

/// Numbers with names. A number that has none is kept as it is.
macro_rules! named {
    ($(#[$of_enum:meta])* $Name:ident {
        $($(#[doc = $doc:literal])+ $Variant:ident = $number:literal, $name:literal;)+
    }) => {
        $(#[$of_enum])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $Name {
            $($(#[doc = $doc])+ $Variant,)+
            /// One of a later version, by its number.
            Other(u8),
        }

        impl $Name {
            /// The one with this number.
            pub const fn from_number(number: u8) -> Self {
                match number {
                    $($number => Self::$Variant,)+
                    other => Self::Other(other),
                }
            }

            /// Its number in a body.
            pub const fn number(self) -> u8 {
                match self {
                    $(Self::$Variant => $number,)+
                    Self::Other(number) => number,
                }
            }

            /// The name that people read and write for it; a variant of a later version has none.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$Variant => Some($name),)+
                    Self::Other(_) => None,
                }
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$Variant),)+
                    _ => None,
                }
            }
        }
    };
}

named! {
    /// The activity of a member.
    Activity {
        /// Nobody said.
        Unknown = 0, "unknown";
        /// It rests.
        Rest = 1, "rest";
        /// It moves.
        Moving = 2, "moving";
        /// It works hard.
        Exertion = 3, "exertion";
    }
}

named! {
    /// The kind of an incident.
    IncidentKind {
        /// It shows that it is there.
        Ping = 1, "ping";
        /// It wants somebody to come.
        NeedAssist = 2, "need-assist";
        /// It called for help.
        Emergency = 3, "emergency";
        /// It set out.
        Moving = 4, "moving";
        /// It arrived.
        InPosition = 5, "in-position";
        /// It has seen what it was told.
        Acknowledged = 6, "acknowledged";
    }
}

named! {
    /// Why a member calls for help.
    EmergencyKind {
        /// Nobody said.
        Unsaid = 0, "unsaid";
        /// Somebody is ill or hurt.
        Medical = 1, "medical";
        /// Something burns.
        Fire = 2, "fire";
        /// Somebody attacks.
        Attack = 3, "attack";
        /// Somebody does not know the way.
        Lost = 4, "lost";
        /// Somebody cannot get out.
        Trapped = 5, "trapped";
    }
}

/// An incident of a member, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incident {
    /// The kind of the incident.
    pub kind: IncidentKind,
    /// When, in milliseconds since 1970-01-01 UTC, by its clock.
    pub time_ms: u64,
}

/// A place on Earth, in 10^-7 degrees: 11 mm at the equator. No value is "not a number".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    latitude_e7: i32,
    longitude_e7: i32,
}

impl Position {
    const LATITUDE_MAX_E7: i32 = 900_000_000;
    const LONGITUDE_MAX_E7: i32 = 1_800_000_000;

    /// `None` beyond 90 degrees of latitude or 180 of longitude.
    pub const fn from_e7(latitude_e7: i32, longitude_e7: i32) -> Option<Self> {
        if latitude_e7.unsigned_abs() > Self::LATITUDE_MAX_E7.unsigned_abs()
            || longitude_e7.unsigned_abs() > Self::LONGITUDE_MAX_E7.unsigned_abs()
        {
            return None;
        }
        Some(Self { latitude_e7, longitude_e7 })
    }

    /// The nearest place of that grid; `None` where a number is none or out of range.
    pub fn from_degrees(latitude: f64, longitude: f64) -> Option<Self> {
        if !(-90.0..=90.0).contains(&latitude) || !(-180.0..=180.0).contains(&longitude) {
            return None;
        }
        // Within the bounds just checked, both fit.
        Self::from_e7((latitude * 1e7).round() as i32, (longitude * 1e7).round() as i32)
    }

    /// North of the equator, in 10^-7 degrees.
    pub const fn latitude_e7(self) -> i32 {
        self.latitude_e7
    }

    /// East of Greenwich, in 10^-7 degrees.
    pub const fn longitude_e7(self) -> i32 {
        self.longitude_e7
    }
}

/// Where a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// When, in milliseconds since 1970-01-01 UTC, by its clock.
    pub time_ms: u64,
    /// Where.
    pub position: Position,
    /// Decimetres above the ellipsoid, within 2^23 either way.
    pub altitude_dm: Option<i32>,
    /// The radius in decimetres in which it believes to be; 65,535 is that or more.
    pub accuracy_dm: Option<u16>,
}

/// A call for help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emergency<'a> {
    /// Above that of every earlier call of the same member.
    pub number: u32,
    /// Why.
    pub kind: EmergencyKind,
    /// Where.
    pub position: Option<Position>,
    /// Text that helpers should read before they come, at most
    /// [`crate::limits::MAX_EMERGENCY_TEXT_BYTES`].
    pub text: Option<Cow<'a, str>>,
}

/// A call for help, named by whoever answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EmergencyCall {
    /// The slot of the member that called.
    pub slot: u16,
    /// The number that it gave to the call.
    pub number: u32,
}
