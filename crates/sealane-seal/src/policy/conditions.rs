use std::fmt;

/// Where a message travels first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyLink {
    /// Within one device: loopback, shared memory.
    Local,
    /// Between members, over radio or wire.
    Mesh,
    /// Through a hub, ours or one that was chosen.
    Hub,
    /// Over what others run: their relays, gateways and networks.
    Foreign,
}

impl PolicyLink {
    /// All kinds.
    pub const ALL: [PolicyLink; 4] =
        [PolicyLink::Local, PolicyLink::Mesh, PolicyLink::Hub, PolicyLink::Foreign];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyLink::Local => "local",
            PolicyLink::Mesh => "mesh",
            PolicyLink::Hub => "hub",
            PolicyLink::Foreign => "foreign",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<PolicyLink> {
        PolicyLink::ALL.into_iter().find(|link| link.name() == name)
    }
}

/// The trust in the readers of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReaderTrust {
    /// Members whose keys were compared by people.
    Verified,
    /// Members that the group's authority has certified.
    Member,
    /// Anybody else.
    Unknown,
}

impl ReaderTrust {
    /// All levels.
    pub const ALL: [ReaderTrust; 3] =
        [ReaderTrust::Verified, ReaderTrust::Member, ReaderTrust::Unknown];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            ReaderTrust::Verified => "verified",
            ReaderTrust::Member => "member",
            ReaderTrust::Unknown => "unknown",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<ReaderTrust> {
        ReaderTrust::ALL.into_iter().find(|trust| trust.name() == name)
    }
}

/// How full a battery is, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Battery(u8);

impl Battery {
    /// An empty one.
    pub const EMPTY: Battery = Battery(0);

    /// A battery of 0 to 100 percent.
    pub const fn new(percent: u8) -> Option<Battery> {
        if percent <= 100 { Some(Battery(percent)) } else { None }
    }

    /// 0 to 100.
    pub const fn percent(self) -> u8 {
        self.0
    }
}

/// Messages of one type per second, to a thousandth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Rate(u32);

impl Rate {
    /// The highest that can be said: more than 4 million a second.
    pub const MAX: Rate = Rate(u32::MAX);

    /// A rate in thousandths of a hertz.
    pub const fn from_millihertz(rate: u32) -> Rate {
        Rate(rate)
    }

    /// A rate in hertz. None for what is negative, no number, or beyond [`Rate::MAX`].
    pub fn from_hertz(rate: f64) -> Option<Rate> {
        let rate = (rate * 1000.0).round();
        // The bounds make the conversion exact.
        (0.0..=f64::from(u32::MAX)).contains(&rate).then_some(Rate(rate as u32))
    }

    /// In thousandths of a hertz.
    pub const fn millihertz(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1000.0)
    }
}

/// All that a decision depends on beside the data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conditions {
    /// Where the message travels first.
    pub link: PolicyLink,
    /// The trust in its readers.
    pub trust: ReaderTrust,
    /// The sender's battery; none if it has none, or does not know.
    pub battery: Option<Battery>,
    /// How often the sender has such messages.
    pub rate: Rate,
}

impl Default for Conditions {
    /// Through a hub, to members, on mains power, now and then.
    fn default() -> Self {
        Self {
            link: PolicyLink::Hub,
            trust: ReaderTrust::Member,
            battery: None,
            rate: Rate::default(),
        }
    }
}
