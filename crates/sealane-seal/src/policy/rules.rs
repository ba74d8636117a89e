use sealane_message::DataType;

use super::{Battery, PolicyLink, Rate, ReaderTrust, SendPace, Sending};
use crate::{Class, Group, Suite};

/// Between which classes the messages of a type are sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The class that it starts at and never goes below.
    pub floor: Class,
    /// The floor in a group of more than two, whatever the ceiling: at least `floor`.
    pub group_floor: Class,
    /// The class that neither link nor trust raises it beyond.
    pub ceiling: Class,
    /// The floor that is built in.
    pub built_in_floor: Class,
    /// The floor that is built in for groups of more than two.
    pub built_in_group_floor: Class,
    /// Why a file lowered a floor, in its words.
    pub because: Option<String>,
}

/// The class that a kind of link, or a trust, asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkRule {
    pub(super) raise: Class,
    /// Whether a file gives the raise.
    pub(super) is_given: bool,
    pub(super) fragment_bytes: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrustRule {
    pub(super) raise: Class,
}

/// All rules of a policy, each of which exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rules {
    /// Registered types but `unknown`, and those of applications that a file names, in any order.
    types: Vec<(DataType, Bounds)>,
    unknown: Bounds,
    local: LinkRule,
    mesh: LinkRule,
    hub: LinkRule,
    foreign: LinkRule,
    verified: TrustRule,
    member: TrustRule,
    stranger: TrustRule,
    /// At or below it the pace is saving.
    pub(super) battery: Battery,
    /// Above it the pace is busy.
    pub(super) rate: Rate,
    normal: Sending,
    busy: Sending,
    saving: Sending,
}

/// The floor and ceiling of each type where no file says otherwise.
fn built_in(data_type: DataType) -> (Class, Class) {
    use Class::{Authenticated, Group, Peer, Signed};
    match data_type {
        DataType::COUNTER | DataType::HEARTBEAT => (Authenticated, Group),
        DataType::EMERGENCY | DataType::ACKNOWLEDGEMENT | DataType::CLEAR | DataType::CONTROL => {
            (Signed, Signed)
        }
        DataType::COMMAND | DataType::SENSITIVE_CHAT => (Peer, Peer),
        _ => (Group, Peer),
    }
}

/// The floor in groups of more than two, of types that have one beside their floor. All members of
/// such a group share the keys of class C, so that any of them could write in the name of another:
/// what people say to each other is signed. In a pair the other one alone can have written it.
fn built_in_group_floor(data_type: DataType) -> Option<Class> {
    (data_type == DataType::CHAT).then_some(Class::Signed)
}

/// Whether a file may go below the built-in floors of a type, with a reason. A type whose floor is
/// S or P harms people when it is forged or read, in a group of any size; what nobody knows cannot
/// be judged. What a type of applications is, whoever writes the file knows.
pub(super) fn may_be_lowered(data_type: DataType) -> bool {
    built_in(data_type).0 == Class::Group && data_type != DataType::UNKNOWN
}

impl Bounds {
    fn built_in(data_type: DataType) -> Bounds {
        let (floor, ceiling) = built_in(data_type);
        let group_floor = group_floor(data_type, floor);
        Bounds {
            floor,
            group_floor,
            ceiling,
            built_in_floor: floor,
            built_in_group_floor: group_floor,
            because: None,
        }
    }

    /// The floor of messages in this group.
    pub(super) fn floor_in(&self, group: &Group) -> Class {
        if group.is_pair() { self.floor } else { self.group_floor }
    }
}

/// The floor in groups of more than two that goes with a floor, where no file gives one: the one
/// that is built in, unless the floor asks for more. That may be P, which nothing meets there.
pub(super) fn group_floor(data_type: DataType, floor: Class) -> Class {
    built_in_group_floor(data_type).filter(|built_in| built_in.covers(floor)).unwrap_or(floor)
}

impl Rules {
    pub(super) fn bounds(&self, data_type: DataType) -> &Bounds {
        let own = self.types.iter().find(|(known, _)| *known == data_type);
        own.map_or(&self.unknown, |(_, bounds)| bounds)
    }

    pub(super) fn bounds_mut(&mut self, data_type: DataType) -> &mut Bounds {
        let own = self.types.iter_mut().find(|(known, _)| *known == data_type);
        own.map_or(&mut self.unknown, |(_, bounds)| bounds)
    }

    /// Has a type of applications bounded by itself: at first as `unknown` is.
    pub(super) fn bound_alone(&mut self, data_type: DataType) {
        if !self.types.iter().any(|(known, _)| *known == data_type) {
            self.types.push((data_type, Bounds { because: None, ..self.unknown.clone() }));
        }
    }

    /// The types of applications that are bounded by themselves.
    pub(super) fn applications(&self) -> impl Iterator<Item = DataType> {
        self.types.iter().map(|(known, _)| *known).filter(|known| known.is_application())
    }

    pub(super) fn link(&self, link: PolicyLink) -> &LinkRule {
        match link {
            PolicyLink::Local => &self.local,
            PolicyLink::Mesh => &self.mesh,
            PolicyLink::Hub => &self.hub,
            PolicyLink::Foreign => &self.foreign,
        }
    }

    pub(super) fn link_mut(&mut self, link: PolicyLink) -> &mut LinkRule {
        match link {
            PolicyLink::Local => &mut self.local,
            PolicyLink::Mesh => &mut self.mesh,
            PolicyLink::Hub => &mut self.hub,
            PolicyLink::Foreign => &mut self.foreign,
        }
    }

    pub(super) fn trust(&self, trust: ReaderTrust) -> &TrustRule {
        match trust {
            ReaderTrust::Verified => &self.verified,
            ReaderTrust::Member => &self.member,
            ReaderTrust::Unknown => &self.stranger,
        }
    }

    pub(super) fn trust_mut(&mut self, trust: ReaderTrust) -> &mut TrustRule {
        match trust {
            ReaderTrust::Verified => &mut self.verified,
            ReaderTrust::Member => &mut self.member,
            ReaderTrust::Unknown => &mut self.stranger,
        }
    }

    pub(super) fn pace(&self, pace: SendPace) -> &Sending {
        match pace {
            SendPace::Normal => &self.normal,
            SendPace::Busy => &self.busy,
            SendPace::Saving => &self.saving,
        }
    }

    pub(super) fn pace_mut(&mut self, pace: SendPace) -> &mut Sending {
        match pace {
            SendPace::Normal => &mut self.normal,
            SendPace::Busy => &mut self.busy,
            SendPace::Saving => &mut self.saving,
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        let known = DataType::ALL.iter().filter(|known| **known != DataType::UNKNOWN);
        let link = |raise, fragment_bytes| LinkRule { raise, is_given: false, fragment_bytes };
        let stays = TrustRule { raise: Class::Authenticated };
        let normal = Sending {
            rate_max: None,
            batch_ms: 0,
            delta: false,
            fragment_bytes: u16::MAX,
            suite: Suite::Aes256Gcm,
        };
        Self {
            types: known.map(|known| (*known, Bounds::built_in(*known))).collect(),
            unknown: Bounds::built_in(DataType::UNKNOWN),
            local: link(Class::Authenticated, u16::MAX),
            mesh: link(Class::Authenticated, 244),
            hub: link(Class::Group, u16::MAX),
            foreign: link(Class::Group, 1200),
            verified: stays,
            member: stays,
            stranger: TrustRule { raise: Class::Peer },
            battery: Battery::new(20).unwrap_or(Battery::EMPTY),
            rate: Rate::from_millihertz(10_000),
            normal,
            busy: Sending { batch_ms: 100, delta: true, ..normal },
            saving: Sending {
                rate_max: Some(Rate::from_millihertz(1000)),
                batch_ms: 2000,
                delta: true,
                fragment_bytes: 200,
                ..normal
            },
        }
    }
}
