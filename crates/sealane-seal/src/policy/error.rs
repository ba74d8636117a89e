use crate::limits::{MAX_POLICY_BYTES, MAX_REASON_BYTES};
use sealane_message::{DataType, ErrorInfo};

use crate::Class;

/// The first fault of a policy file, and its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
#[non_exhaustive]
pub struct PolicyError {
    /// The line, from 1.
    pub line: usize,
    /// The fault in that line.
    pub fault: PolicyFault,
}

sealane_message::errors! {
    /// The meaning of every code of the policy.
    pub const ERRORS;

    /// A fault of a policy file.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum PolicyFault {
        /// The text is no TOML, or too long.
        #[error("{0}")]
        #[code("SL-POLICY-01", "PolicySyntax", exit = Usage)]
        #[cause("a policy file is no TOML, or too long")]
        #[hint("Correct the line that is named; the rules in effect stay as they are.")]
        Syntax(String),
        /// The file does not say that it is of the version that is read.
        #[error("{}", version(.found))]
        #[code("SL-POLICY-02", "PolicyVersion", exit = Usage)]
        #[cause("a policy file is of another version, or does not say of which")]
        #[hint("Compare its rules with spec/policy.md, and then write `version = 1` in its first \
                line.")]
        Version {
            /// The version that it names.
            found: Option<String>,
        },
        /// A key that is not known here.
        #[error("`{key}` is no key of {section}; they are {known}")]
        #[code("SL-POLICY-03", "PolicyUnknownKey", exit = Usage)]
        #[cause("a policy file has an unknown key")]
        #[hint("Correct or remove it: a rule that is not understood would not protect.")]
        UnknownKey {
            /// The key.
            key: String,
            /// The table.
            section: String,
            /// The keys there are.
            known: String,
        },
        /// A value that the key cannot have.
        #[error("`{key}` {cause}")]
        #[code("SL-POLICY-04", "PolicyValue", exit = Usage)]
        #[cause("a key of a policy file has a value that it cannot have")]
        #[hint("Classes are A, C, S and P in quotes; spec/policy.md tells each key's values.")]
        Value {
            /// The key.
            key: String,
            /// The description of a right value.
            cause: String,
        },
        /// A floor below the built-in one, where that is not allowed at all.
        #[error("the floor of `{data_type}` is {} and a file may not lower it to {}",
            .built_in.letter(), .floor.letter())]
        #[code("SL-POLICY-05", "LowersFloor", exit = Usage)]
        #[cause("a policy file lowers a floor that may not be lowered")]
        #[hint("Remove the floor; those of `unknown`, and of types whose built-in floor is S or P, \
                only go up.")]
        LowersFloor {
            /// The type.
            data_type: DataType,
            /// The floor that is built in.
            built_in: Class,
            /// The floor that the file asks for.
            floor: Class,
        },
        /// A rule weaker than the built-in one, without a reason.
        #[error("`{key}` = \"{}\" is weaker than the built-in {} and says no `because`",
            .asked.letter(), .built_in.letter())]
        #[code("SL-POLICY-06", "NoReason", exit = Usage)]
        #[cause("a policy file weakens a rule and does not say why")]
        #[hint("Write `because = \"…\"` beside it, so that whoever reads the policy finds it.")]
        NoReason {
            /// The key.
            key: String,
            /// The class that is built in.
            built_in: Class,
            /// The class that the file asks for.
            asked: Class,
        },
        /// A ceiling that does not meet the floor.
        #[error("the ceiling {} of `{data_type}` does not meet its floor {}",
            .ceiling.letter(), .floor.letter())]
        #[code("SL-POLICY-07", "CeilingBelowFloor", exit = Usage)]
        #[cause("the ceiling of a type does not meet its floor")]
        #[hint("Raise the ceiling, or leave it out; S and P do not meet each other.")]
        CeilingBelowFloor {
            /// The type.
            data_type: DataType,
            /// Its floor.
            floor: Class,
            /// Its ceiling.
            ceiling: Class,
        },
    }

    /// Why a message is not sent, or not taken.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum PolicyRefusal {
        /// Peer's fault: sealed in a class that does not meet the floor of its type.
        #[error("a message of type `{data_type}` came in class {}, its floor is {}",
            .class.letter(), .floor.letter())]
        #[code("SL-POLICY-08", "BelowFloor")]
        #[cause("a message was sealed in a class below the floor of its type, and dropped")]
        #[hint("Look at the sender's policy: it is older or weaker, or the sender tries whether a \
                weaker class is accepted.")]
        BelowFloor {
            /// The type in the message's header.
            data_type: DataType,
            /// Its class.
            class: Class,
            /// The floor in its group.
            floor: Class,
        },
        /// Caller's fault: what needs class P was to be sent to a group of more than two.
        #[error("a message of type `{data_type}` needs class P, and the group has more than two")]
        #[code("SL-POLICY-09", "NeedsPair")]
        #[cause("a message that needs class P was to be sent to a group of more than two")]
        #[hint("Make a group of two for it with `sealane group new NAME --pair`.")]
        NeedsPair {
            /// The type.
            data_type: DataType,
        },
    }
}

fn version(found: &Option<String>) -> String {
    match found {
        Some(found) => format!("version {found} of a policy is not read here, only version 1"),
        None => "a policy begins with `version = 1`, and this one does not say its version".into(),
    }
}

impl PolicyError {
    /// The stable code, cause and hint.
    pub fn info(&self) -> &'static ErrorInfo {
        self.fault.info()
    }
}

impl PolicyFault {
    pub(super) fn too_long() -> PolicyFault {
        PolicyFault::Syntax(format!("the file is longer than {MAX_POLICY_BYTES} bytes"))
    }

    pub(super) fn bad_reason() -> PolicyFault {
        let cause = format!("is a sentence of at most {MAX_REASON_BYTES} bytes");
        PolicyFault::Value { key: "because".into(), cause }
    }
}
