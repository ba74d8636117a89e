use std::fmt;

use sealane_stream::Level;

use crate::Error;
use crate::reply::Reply;

/// A level as the hub names it. A newer hub may have levels that this library does not know; they
/// are kept as text.
///
/// ```
/// use sealane::{HubLevel, Level};
///
/// let level = HubLevel::Known(Level::Disk);
/// assert!(level == Level::Disk && level.name() == "disk");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubLevel {
    /// One of those that this library knows.
    Known(Level),
    /// The name of another.
    Other(String),
}

impl HubLevel {
    pub(crate) fn read(reply: &Reply<'_>) -> Result<Self, Error> {
        let name = reply.text("level")?;
        Ok(name.parse().map_or_else(|_| Self::Other(name.into_owned()), Self::Known))
    }

    /// Its name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(level) => level.name(),
            Self::Other(name) => name,
        }
    }

    /// The level, where this library knows it.
    pub fn known(&self) -> Option<Level> {
        match self {
            Self::Known(level) => Some(*level),
            Self::Other(_) => None,
        }
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
