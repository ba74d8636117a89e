use std::fmt;
use std::str::FromStr;

/// When an enqueue is answered and its message delivered.
///
/// The order is that of strength: `Memory < Os < Disk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
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

    pub(crate) fn from_id(id: u8) -> Option<Level> {
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
