use sealane_message::DataType;

use super::rules::Rules;
use super::{Conditions, PolicyLink, Rate, ReaderTrust};
use crate::{Class, Suite};

/// How a message is sealed and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The class: at least the floor, at most the ceiling.
    pub class: Class,
    /// The rule that decided the class.
    pub rule: Rule,
    /// The class that a link or a trust asked for beyond the ceiling, if one did.
    pub capped: Option<Class>,
    /// The pace that battery and rate lead to.
    pub pace: SendPace,
    /// How to send: what battery and rate may change.
    pub sending: Sending,
}

/// The rule that decided a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The floor of the type; nothing raised it.
    Floor,
    /// The link raised it.
    Link(PolicyLink),
    /// The trust in the readers raised it, beyond what the link did.
    Trust(ReaderTrust),
}

/// How thrifty the sender is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SendPace {
    /// Neither of the others.
    Normal,
    /// The rate is above its threshold.
    Busy,
    /// The battery is at or below its threshold, whatever the rate.
    Saving,
}

impl SendPace {
    /// All paces.
    pub const ALL: [SendPace; 3] = [SendPace::Normal, SendPace::Busy, SendPace::Saving];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            SendPace::Normal => "normal",
            SendPace::Busy => "busy",
            SendPace::Saving => "saving",
        }
    }
}

/// The properties that battery and rate may change. None of them changes the protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sending {
    /// Messages of the type per second, at most; none: as many as there are.
    pub rate_max: Option<Rate>,
    /// How long messages may be gathered before they are sent, in milliseconds; 0: not at all.
    pub batch_ms: u32,
    /// Whether a change may be sent in place of the whole.
    pub delta: bool,
    /// The largest piece to hand to the link at once, in bytes.
    pub fragment_bytes: u16,
    /// The cipher for a group that is made now. One that exists keeps its own.
    pub suite: Suite,
}

pub(super) fn decide(rules: &Rules, data_type: DataType, conditions: &Conditions) -> Decision {
    let bounds = rules.bounds(data_type);
    let asked = [
        (rules.link(conditions.link).raise, Rule::Link(conditions.link)),
        (rules.trust(conditions.trust).raise, Rule::Trust(conditions.trust)),
    ];
    let (mut class, mut rule, mut capped) = (bounds.floor, Rule::Floor, None);
    for (wanted, by) in asked {
        // Below one ceiling the classes are a chain, so that the greater of two always exists.
        let raised = wanted.meet(bounds.ceiling);
        if !class.covers(raised) {
            (class, rule) = (raised, by);
        }
        if raised != wanted {
            capped = Some(wanted);
        }
    }
    let pace = pace(rules, conditions);
    Decision { class, rule, capped, pace, sending: sending(rules, data_type, conditions, pace) }
}

fn pace(rules: &Rules, conditions: &Conditions) -> SendPace {
    if conditions.battery.is_some_and(|battery| battery <= rules.battery) {
        SendPace::Saving
    } else if conditions.rate > rules.rate {
        SendPace::Busy
    } else {
        SendPace::Normal
    }
}

fn sending(rules: &Rules, data_type: DataType, conditions: &Conditions, pace: SendPace) -> Sending {
    let sending = *rules.pace(pace);
    let link = rules.link(conditions.link).fragment_bytes;
    let sending = Sending { fragment_bytes: sending.fragment_bytes.min(link), ..sending };
    if data_type.is_urgent() {
        return Sending { rate_max: None, batch_ms: 0, delta: false, ..sending };
    }
    sending
}
