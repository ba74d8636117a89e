//! The class in which a document is sealed.

use sealane_message::DataType;
use sealane_seal::policy::{Conditions, Policy, PolicyLink, PolicyRefusal};
use sealane_seal::{Class, Group};

/// The class of a document in a group: `spec/document.md`, *Class*.
///
/// A document is sealed once, and travels between members and through a hub as it is. So its class
/// is the strongest that the policy asks for on either; if a file says what a foreign link asks
/// for, on that one too. The link of the conditions is not looked at, and battery and rate do not
/// reach the class.
///
/// # Errors
///
/// [`PolicyRefusal::NeedsPair`]: it is not sealed in a weaker class instead.
pub fn class_of(
    policy: &Policy,
    group: &Group,
    data_type: DataType,
    conditions: &Conditions,
) -> Result<Class, PolicyRefusal> {
    let conditions = Conditions { link: PolicyLink::Mesh, ..*conditions };
    let others: &[PolicyLink] = match policy.is_raise_given(PolicyLink::Foreign) {
        true => &[PolicyLink::Hub, PolicyLink::Foreign],
        false => &[PolicyLink::Hub],
    };
    let decision = policy.decide_for_all(data_type, &conditions, others);
    policy.class_in(group, data_type, &decision)
}
