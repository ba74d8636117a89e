//! Which class a message is sealed in, and what is taken from others.
//!
//! ```text
//!  type ──► floor ─┐
//!  link ──► raise ─┼─► class, never below the floor, never beyond the ceiling
//!  trust ─► raise ─┘       │
//!  group ─► floor of groups of more than two ─► class in that group
//!  battery, rate ────► pace: how often, how much at once, deltas, fragments, cipher
//! ```
//!
//! [`Policy::decide`] is total and pure: every input has an answer, and the same input the same.
//! Battery and rate do not reach the class, so that nobody who drains the one or drives the other
//! changes what is protected. Plaintext is not a class. `spec/policy.md` is the specification.
//!
//! ```
//! use sealane_message::DataType;
//! use sealane_seal::{Class, policy::*};
//!
//! let policy = Policy::from_toml("version = 1\ntype.location.floor = 'S'")?;
//! let (battery, link) = (Battery::new(1), PolicyLink::Mesh);
//! let worst = Conditions { battery, link, ..Conditions::default() };
//! assert_eq!(policy.decide(DataType::LOCATION, &worst).class, Class::Signed);
//! assert_eq!(policy.decide(DataType::COUNTER, &worst).class, Class::Authenticated);
//! # Ok::<(), PolicyError>(())
//! ```

mod conditions;
mod decision;
mod error;
mod file;
mod rules;

pub use conditions::{Battery, Conditions, PolicyLink, Rate, ReaderTrust};
pub use decision::{Decision, Rule, SendPace, Sending};
pub use error::{ERRORS, PolicyError, PolicyFault, PolicyRefusal};
pub use rules::Bounds;

use sealane_message::DataType;

use crate::{Class, Group};
use rules::Rules;

/// The rules of one node: what is built in, and what its file changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    rules: Rules,
}

impl Policy {
    /// The version of the file that is read. Every other is refused.
    pub const VERSION: i64 = 1;

    /// The rules of a file, on top of those that are built in.
    ///
    /// # Errors
    /// The first fault of the file, and its line. There is no half-read policy.
    pub fn from_toml(text: &str) -> Result<Policy, PolicyError> {
        file::read(text).map(|rules| Policy { rules })
    }

    /// Takes the rules of a file instead of these.
    ///
    /// # Errors
    /// As [`Policy::from_toml`]; the rules are as before then.
    pub fn reload(&mut self, text: &str) -> Result<(), PolicyError> {
        *self = Policy::from_toml(text)?;
        Ok(())
    }

    /// How a message is sealed and sent.
    pub fn decide(&self, data_type: DataType, conditions: &Conditions) -> Decision {
        decision::decide(&self.rules, data_type, conditions)
    }

    /// How a message is sealed that is sealed once and then travels over several links: as for that
    /// link which leads to the strongest class. Below one ceiling, of any two classes one covers
    /// the other. The link of the conditions is one of them.
    pub fn decide_for_all(
        &self,
        data_type: DataType,
        conditions: &Conditions,
        others: &[PolicyLink],
    ) -> Decision {
        let first = self.decide(data_type, conditions);
        let others = others.iter().map(|link| Conditions { link: *link, ..*conditions });
        let others = others.map(|conditions| self.decide(data_type, &conditions));
        others.fold(
            first,
            |strongest, other| {
                if strongest.class.covers(other.class) { strongest } else { other }
            },
        )
    }

    /// Whether a file says what a link asks for.
    pub fn is_raise_given(&self, link: PolicyLink) -> bool {
        self.rules.link(link).is_given
    }

    /// The types of applications that the file bounds by themselves.
    pub fn applications(&self) -> Vec<DataType> {
        let mut all: Vec<DataType> = self.rules.applications().collect();
        all.sort_unstable();
        all
    }

    /// The bounds of a message's class.
    pub fn bounds(&self, data_type: DataType) -> &Bounds {
        self.rules.bounds(data_type)
    }

    /// Whether a message of that class may be read: what does not meet its type's floor in the
    /// group is dropped.
    ///
    /// # Errors
    /// [`PolicyRefusal::BelowFloor`].
    pub fn admits(
        &self,
        data_type: DataType,
        class: Class,
        group: &Group,
    ) -> Result<(), PolicyRefusal> {
        let floor = self.bounds(data_type).floor_in(group);
        if group.meets(class, floor) {
            Ok(())
        } else {
            Err(PolicyRefusal::BelowFloor { data_type, class, floor })
        }
    }

    /// The class by which a decision's message is sealed in `group`: what was decided, raised to
    /// the floor of groups of more than two in such a group.
    ///
    /// # Errors
    /// [`PolicyRefusal::NeedsPair`] where either is P in a group of more than two.
    pub fn class_in(
        &self,
        group: &Group,
        data_type: DataType,
        decision: &Decision,
    ) -> Result<Class, PolicyRefusal> {
        let needs_pair = PolicyRefusal::NeedsPair { data_type };
        let decided = group.class_for(decision.class).ok_or(needs_pair)?;
        let floor = self.bounds(data_type).floor_in(group);
        let class = if group.meets(decided, floor) {
            decided
        } else {
            group.class_for(floor).ok_or(needs_pair)?
        };
        // Both ways lead to a class that meets the floor; that it is so is checked, not assumed.
        self.admits(data_type, class, group).map(|()| class)
    }

    /// Every class that some condition leads to, from the floor upwards.
    pub fn reachable(&self, data_type: DataType) -> Vec<Class> {
        let mut classes = Vec::new();
        for link in PolicyLink::ALL {
            for trust in ReaderTrust::ALL {
                let conditions = Conditions { link, trust, ..Conditions::default() };
                let class = self.decide(data_type, &conditions).class;
                if !classes.contains(&class) {
                    classes.push(class);
                }
            }
        }
        classes.sort_by_key(|class| class.number());
        classes
    }
}
