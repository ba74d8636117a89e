use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// When an enqueue is answered and its message delivered.
///
/// The order is that of strength: `Memory < Os < Disk`.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Level {
    /// Accepted by the writer; a crash of the process loses what was not committed yet.
    Memory = 0,
    /// Committed without fsync; a crash of the process loses nothing, a power cut may.
    Os = 1,
    /// Committed and fsynced; neither loses anything.
    #[default]
    Disk = 2,
}

impl Level {
    /// All levels, weakest first.
    pub const ALL: [Level; 3] = [Level::Memory, Level::Os, Level::Disk];

    /// The level's name on the wire and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Memory => "memory",
            Level::Os => "os",
            Level::Disk => "disk",
        }
    }

    /// The level of a number at rest (spec/store.md).
    pub fn from_id(id: u8) -> Option<Level> {
        Level::ALL.into_iter().find(|level| *level as u8 == id)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is none of `memory`, `os`, `disk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a level is `memory`, `os` or `disk`")]
pub struct UnknownLevel;

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        Level::ALL.into_iter().find(|level| level.name() == name).ok_or(UnknownLevel)
    }
}

/// A level as a hub names it. A newer hub may have levels that are not known here; they are kept as
/// text.
///
/// ```
/// use sealane_protocol::{HubLevel, Level};
///
/// let level = HubLevel::Known(Level::Disk);
/// assert!(level == Level::Disk && level.name() == "disk");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubLevel {
    /// One of those that are known here.
    Known(Level),
    /// The name of another; empty of a stream that is not there yet.
    Other(String),
}

impl HubLevel {
    /// The level of this name.
    pub fn from_name(name: &str) -> Self {
        name.parse().map_or_else(|_| Self::Other(name.to_owned()), Self::Known)
    }

    /// Its name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(level) => level.name(),
            Self::Other(name) => name,
        }
    }

    /// The level, where it is known here.
    pub fn known(&self) -> Option<Level> {
        match self {
            Self::Known(level) => Some(*level),
            Self::Other(_) => None,
        }
    }
}

impl FromStr for HubLevel {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(Self::from_name(name))
    }
}

impl From<Level> for HubLevel {
    fn from(level: Level) -> Self {
        Self::Known(level)
    }
}

impl PartialEq<Level> for HubLevel {
    fn eq(&self, level: &Level) -> bool {
        self.known() == Some(*level)
    }
}

impl fmt::Display for HubLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
