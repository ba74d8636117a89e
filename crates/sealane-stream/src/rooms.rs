//! How many streams there may be: each system's topics have room of their own, so that who may make
//! any others takes no group its control stream, and no message its dead letter.

use sealane_message::{System, Topic};

use crate::limits::{MAX_AUDIT_STREAMS, MAX_DEAD_STREAMS, MAX_GROUP_STREAMS, MAX_STREAMS};

/// Streams by whose they are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamRooms {
    others: usize,
    dead: usize,
    groups: usize,
    audit: usize,
}

/// A room that a stream takes a place of.
pub(crate) struct StreamRoom {
    pub(crate) what: &'static str,
    pub(crate) limit: usize,
}

impl StreamRoom {
    pub(crate) fn of(topic: &Topic) -> StreamRoom {
        match topic.system() {
            // Systems have rooms of their own: a client that makes streams without end takes no
            // dead letter its place.
            None => StreamRoom { what: "streams", limit: MAX_STREAMS },
            Some(System::Dead) => {
                StreamRoom { what: "streams below `dead/`", limit: MAX_DEAD_STREAMS }
            }
            Some(System::Groups) => {
                StreamRoom { what: "streams below `groups/`", limit: MAX_GROUP_STREAMS }
            }
            Some(System::Audit) => {
                StreamRoom { what: "streams below `audit/`", limit: MAX_AUDIT_STREAMS }
            }
        }
    }
}

impl StreamRooms {
    /// How many there are in the room of this topic.
    pub(crate) fn taken(&self, topic: &Topic) -> usize {
        match topic.system() {
            None => self.others,
            Some(System::Dead) => self.dead,
            Some(System::Groups) => self.groups,
            Some(System::Audit) => self.audit,
        }
    }

    pub(crate) fn add(&mut self, topic: &Topic) {
        *self.room(topic) += 1;
    }

    pub(crate) fn remove(&mut self, topic: &Topic) {
        let taken = self.room(topic);
        debug_assert!(*taken > 0, "a stream that was never counted");
        *taken = taken.saturating_sub(1);
    }

    fn room(&mut self, topic: &Topic) -> &mut usize {
        match topic.system() {
            None => &mut self.others,
            Some(System::Dead) => &mut self.dead,
            Some(System::Groups) => &mut self.groups,
            Some(System::Audit) => &mut self.audit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_room_of_its_own() {
        let topics =
            ["a", "a/dead", "dead/a", "groups/0a1b2c3d", "audit/node"].map(|t| t.parse().unwrap());
        let mut rooms = StreamRooms::default();
        topics.iter().for_each(|topic| rooms.add(topic));
        assert_eq!(rooms, StreamRooms { others: 2, dead: 1, groups: 1, audit: 1 });
        assert_eq!(topics.each_ref().map(|topic| rooms.taken(topic)), [2, 2, 1, 1, 1]);
        let limits = topics.each_ref().map(|topic| StreamRoom::of(topic).limit);
        let of_systems = [MAX_DEAD_STREAMS, MAX_GROUP_STREAMS, MAX_AUDIT_STREAMS];
        assert_eq!(limits[..2], [MAX_STREAMS; 2]);
        assert_eq!(limits[2..], of_systems);
        rooms.remove(&topics[2]);
        assert_eq!(rooms, StreamRooms { others: 2, dead: 0, groups: 1, audit: 1 });
    }
}
