use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The type of a body: the number in a frame's header by which the policy chooses a class.
///
/// The registry is closed (`spec/policy.md`). A number that it does not have is kept as it is and
/// judged like [`DataType::UNKNOWN`]. So a relay or an older reader loses nothing.
///
/// ```
/// use sealane_message::DataType;
///
/// assert_eq!("location".parse(), Ok(DataType::LOCATION));
/// assert_eq!(DataType::from_number(4711).to_string(), "4711");
/// assert_eq!(DataType::from_number(4711).registered(), DataType::UNKNOWN);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataType(u16);

macro_rules! registry {
    ($($(#[doc = $doc:literal])+ $constant:ident = $number:literal, $name:literal;)+) => {
        impl DataType {
            $($(#[doc = $doc])+ pub const $constant: DataType = DataType($number);)+

            /// Every registered type, by its number.
            pub const ALL: &[DataType] = &[$(DataType::$constant),+];

            /// The name of a registered type.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)+
                    _ => None,
                }
            }
        }
    };
}

registry! {
    /// Nobody said what it is.
    UNKNOWN = 0, "unknown";
    /// A count that only grows, or is added up.
    COUNTER = 1, "counter";
    /// A sign of life without health or position.
    HEARTBEAT = 2, "heartbeat";
    /// A sign of life with health or position.
    VITALS = 3, "vitals";
    /// Where somebody or something is.
    LOCATION = 4, "location";
    /// Messages that people write to each other.
    CHAT = 5, "chat";
    /// That a message was stored, delivered or read.
    RECEIPT = 6, "receipt";
    /// A call for help.
    EMERGENCY = 7, "emergency";
    /// That somebody has seen a call for help.
    ACKNOWLEDGEMENT = 8, "acknowledgement";
    /// That a call for help is over.
    CLEAR = 9, "clear";
    /// An order of a group's authority.
    CONTROL = 10, "control";
    /// An instruction to a machine.
    COMMAND = 11, "command";
    /// Chat that is for one reader only.
    SENSITIVE_CHAT = 12, "sensitive-chat";
    /// An IP packet on its way between members.
    PACKET = 13, "packet";
}

/// A text that names no data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownDataType;

impl DataType {
    /// The type with that number, registered or not.
    pub const fn from_number(number: u16) -> DataType {
        DataType(number)
    }

    /// The numbers that applications give a meaning to.
    pub const APPLICATIONS: RangeInclusive<u16> = 64..=79;

    /// Whether an application says what it is.
    pub fn is_application(self) -> bool {
        Self::APPLICATIONS.contains(&self.0)
    }

    /// The number in a frame's header.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Whether a message of that type is sent at once and whole, says when it was made, and loses
    /// its force with age.
    pub fn is_urgent(self) -> bool {
        matches!(
            self,
            DataType::EMERGENCY
                | DataType::ACKNOWLEDGEMENT
                | DataType::CLEAR
                | DataType::CONTROL
                | DataType::COMMAND
        )
    }

    /// The type that it is judged as: itself, or [`DataType::UNKNOWN`] if it has no name.
    pub const fn registered(self) -> DataType {
        if self.name().is_some() { self } else { DataType::UNKNOWN }
    }
}

impl Default for DataType {
    fn default() -> Self {
        DataType::UNKNOWN
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&self.0.to_string()),
        }
    }
}

impl FromStr for DataType {
    type Err = UnknownDataType;

    /// Reads a name, or any number from 0 to 65535.
    fn from_str(text: &str) -> Result<Self, UnknownDataType> {
        let named = DataType::ALL.iter().find(|known| known.name() == Some(text));
        let numbered = || text.parse().ok().map(DataType);
        named.copied().or_else(numbered).ok_or(UnknownDataType)
    }
}

impl fmt::Display for UnknownDataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = DataType::ALL.iter().filter_map(|known| known.name()).collect();
        write!(f, "a type is {}, or a number up to 65535", names.join(", "))
    }
}

impl std::error::Error for UnknownDataType {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_unique_and_read_back() {
        for (index, known) in DataType::ALL.iter().enumerate() {
            assert_eq!(usize::from(known.number()), index, "the registry has no holes");
            assert_eq!(known.to_string().parse(), Ok(*known));
            assert_eq!(known.registered(), *known);
        }
        let names: std::collections::BTreeSet<_> = DataType::ALL.iter().map(|t| t.name()).collect();
        assert_eq!(names.len(), DataType::ALL.len());
    }

    #[test]
    fn numbers_without_a_name_are_kept() {
        for number in 14..=u16::MAX {
            let data_type = DataType::from_number(number);
            assert_eq!(data_type.number(), number);
            assert_eq!(data_type.registered(), DataType::UNKNOWN);
        }
        assert_eq!("65535".parse(), Ok(DataType::from_number(65535)));
        for text in ["", "Location", "65536", "-1", "plain"] {
            assert_eq!(text.parse::<DataType>(), Err(UnknownDataType), "{text}");
        }
    }
}
