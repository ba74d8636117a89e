//! Commands that come down from a hub for this machine: `spec/gateway.md`, *Commands*.

use std::collections::{BTreeMap, BTreeSet};

use sealane::Value;
use sealane::limits::MAX_URGENT_AGE_MS;
use sealane_codec::Codec;
use sealane_document::stream_name;
use sealane_frame::{FrameCompression, FrameKind, GroupTag, Header, PeerTag};
use sealane_group::{EpochSource, GroupMembership, LiveReader};
use sealane_link::DropReason;
use sealane_message::DataType;
use sealane_seal::policy::Policy;
use sealane_seal::{Binding, Group, OpenedMessage, Slot};

use crate::json::map;
use crate::limits::MAX_COMMANDS_OPENED;

/// Hands a command to those who watch; `false` if there was no room.
pub(super) type CommandHandler = Box<dyn Fn(Value) -> bool + Send>;

/// Opens commands, and knows the commands that it has opened.
pub(super) struct CommandOpener {
    group: Group,
    tag: GroupTag,
    /// How many orders the group had when its members were looked at.
    orders: Option<u64>,
    /// The present members.
    members: BTreeMap<Slot, (PeerTag, String)>,
    /// Those that were opened, by the time at which they were given.
    opened: BTreeSet<(u64, CommandName)>,
    /// A command that was given before this time is old: it may have been opened before.
    floor_ms: u64,
    hand: Option<CommandHandler>,
}

/// Epoch, slot, context and counter: they name a message of a group.
type CommandName = (u64, u16, [u8; 8], u64);

/// Whether a frame says that it is a command, as gateways bring them.
pub(super) fn is_command(header: &Header) -> bool {
    let kind = (header.kind(), header.compression(), header.destination());
    kind == (FrameKind::Message, FrameCompression::None, PeerTag::BROADCAST)
        && header.data_type() == DataType::COMMAND.number()
}

impl CommandOpener {
    /// The opener of a member from now on. It cannot know which commands the member opened before
    /// it was started.
    pub(super) fn new(member: &GroupMembership, now_ms: u64) -> CommandOpener {
        let (members, opened) = (BTreeMap::new(), BTreeSet::new());
        let (group, tag) = (member.group(), member.tag());
        // An earlier process may have acted on all that was given before now. That cannot be known,
        // so it is old.
        let (orders, hand, floor_ms) = (None, None, now_ms);
        let mut commands = CommandOpener { group, tag, orders, members, opened, floor_ms, hand };
        commands.follow(member);
        commands
    }

    /// Goes on with the members that the group has now.
    pub(super) fn follow(&mut self, member: &GroupMembership) {
        if self.orders.replace(member.orders()) == Some(member.orders()) {
            return;
        }
        let newest = member.epochs().newest();
        let name = |slot| member.name_of(slot, newest).unwrap_or_default().to_owned();
        let addresses = member.addresses().into_iter();
        self.members = addresses.map(|(slot, tag)| (slot, (tag, name(slot)))).collect();
    }

    /// Hands commands there from now on.
    pub(super) fn hand_to(&mut self, hand: CommandHandler) {
        self.hand = Some(hand);
    }

    /// Opens a command, and hands it on with its age.
    pub(super) fn open(
        &mut self,
        reader: &mut LiveReader,
        frame: &mut [u8],
        now_ms: u64,
    ) -> Result<(), DropReason> {
        // Without a program that watches, nothing is opened. The frame stays unread and is counted.
        let hand = self.hand.as_ref().ok_or(DropReason::NoEnd)?;
        let binding = Binding::stream(&stream_name(self.tag, DataType::COMMAND));
        let message = reader.open_kept(&binding, frame).map_err(|_| DropReason::Unopened)?;
        let opened = message.opened;
        // The floor comes from the standard policy. A local file could lower it and let unsigned
        // commands in.
        let admitted = Policy::default().admits(DataType::COMMAND, opened.class(), &self.group);
        let (tag, sender) = self.members.get(&opened.slot()).ok_or(DropReason::Unopened)?;
        // A member may sign correctly and still name another source. Both must be the same slot.
        if admitted.is_err() || *tag != message.header.source() {
            return Err(DropReason::Unopened);
        }
        let (time, body) = message.body.split_first_chunk().ok_or(DropReason::Unopened)?;
        let given_ms = u64::from_le_bytes(*time);
        let name = (given_ms, name_of(&opened));
        // The name has the time first, so that the set is ordered by it and the earliest can go.
        if self.opened.contains(&name) {
            return Err(DropReason::Repeat);
        }
        // A clock that is far ahead tells no age, and what it says would be new for as long.
        let is_old = given_ms < self.floor_ms || given_ms.abs_diff(now_ms) > MAX_URGENT_AGE_MS;
        let command = map(vec![
            ("slot", u64::from(opened.slot().number()).into()),
            ("name", sender.as_str().into()),
            ("type", DataType::COMMAND.to_string().into()),
            ("epoch", opened.epoch().0.into()),
            ("counter", opened.counter().into()),
            ("timeMs", given_ms.into()),
            ("isOld", is_old.into()),
            ("value", said(message.header.codec(), body)),
        ]);
        // A command that could not be handed on is not remembered, so that its next copy gets
        // another chance.
        if !hand(command) {
            return Err(DropReason::MeshFull);
        }
        self.remember(name);
        Ok(())
    }

    fn remember(&mut self, name: (u64, CommandName)) {
        self.opened.insert(name);
        if self.opened.len() > MAX_COMMANDS_OPENED
            && let Some((given_ms, _)) = self.opened.pop_first()
        {
            self.floor_ms = self.floor_ms.max(given_ms.saturating_add(1));
        }
    }
}

fn name_of(opened: &OpenedMessage) -> CommandName {
    (opened.epoch().0, opened.slot().number(), opened.context().0, opened.counter())
}

/// The value of a body in its codec; text or bytes where it has none.
fn said(codec: u8, body: &[u8]) -> Value {
    let read = Codec::from_id(codec).and_then(|codec| sealane_codec::decode(codec, body).ok());
    read.unwrap_or_else(|| match std::str::from_utf8(body) {
        Ok(text) => text.into(),
        Err(_) => Value::Bytes(body.to_vec()),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use sealane_frame::FrameBuf;
    use sealane_group::{
        AgreedMember, AgreedPresence, GroupMember, GroupSender, IdentityCard, KeyFolder, NewGroup,
        PastSecrets,
    };
    use sealane_seal::{Class, Epoch, EpochSecret, GroupId};

    use super::*;

    const NOW_MS: u64 = 1_795_000_000_000;

    /// The two of a pair, and what was handed on.
    struct Pair {
        _folder: tempfile::TempDir,
        base: GroupMember,
        sender: GroupSender,
        reader: LiveReader,
        commands: CommandOpener,
        handed: Arc<Mutex<Vec<Value>>>,
    }

    impl Pair {
        fn new() -> Pair {
            let folder = tempfile::tempdir().unwrap();
            let keys = |name: &str| KeyFolder::create(&folder.path().join(name), name, None);
            let (base, car) = (keys("base").unwrap(), keys("car").unwrap());
            let options = NewGroup { is_pair: true, ..NewGroup::default() };
            let mut base = base.new_group("fleet", options).unwrap();
            let card = IdentityCard::from_bytes(&car.card().unwrap()).unwrap();
            let invited = base.invite(&card, PastSecrets::All).unwrap();
            let car = car.join(&invited.invitation, None, None).unwrap();
            let reader = car.live_reader().unwrap();
            let handed = Arc::<Mutex<Vec<Value>>>::default();
            let into = Arc::clone(&handed);
            let mut commands = CommandOpener::new(&car.into(), NOW_MS);
            commands.hand_to(Box::new(move |command| {
                into.lock().push(command);
                true
            }));
            let sender = base.sender().unwrap();
            Pair { _folder: folder, base, sender, reader, commands, handed }
        }

        fn seal(&mut self, class: Class, of: DataType, given_ms: u64) -> Vec<u8> {
            let mut fields = self.sender.fields(class, of.number());
            fields.codec = Codec::Json as u8;
            let body = [&given_ms.to_le_bytes()[..], b"{\"go\":\"home\"}"].concat();
            let binding = Binding::stream(&stream_name(self.base.tag(), DataType::COMMAND));
            let mut buf = FrameBuf::new();
            self.sender.seal(&fields, &binding, &body, &mut buf).unwrap().to_vec()
        }

        fn open(&mut self, frame: &[u8]) -> Result<(), DropReason> {
            self.commands.open(&mut self.reader, &mut frame.to_vec(), NOW_MS)
        }

        /// Whether the last one handed on is old.
        fn is_old(&self) -> bool {
            self.handed.lock().last().unwrap().field("isOld") == Some(&Value::Bool(true))
        }
    }

    #[test]
    fn members_are_followed_whatever_decides_who_they_are() {
        let (slot, seed) = (Slot::new(4).unwrap(), [4; 32]);
        let verifying_key = AgreedMember::verifying_key(&seed).unwrap();
        let secret = |epoch| EpochSecret::new([epoch; 32]);
        let mut agreed = AgreedMember::new(GroupId([9; 32]), slot, seed, secret(0));
        let mut present = [AgreedPresence { slot, name: "drei", verifying_key }];
        agreed.agree(Epoch(1), secret(1), &present).unwrap();
        let mut commands = CommandOpener::new(&agreed.clone().into(), NOW_MS);
        let names = |commands: &CommandOpener| -> Vec<String> {
            commands.members.values().map(|(_, name)| name.clone()).collect()
        };
        assert_eq!(names(&commands), ["drei"]);
        present[0].name = "vier";
        agreed.agree(Epoch(2), secret(2), &present).unwrap();
        commands.follow(&agreed.into());
        assert_eq!(names(&commands), ["vier"]);
    }

    #[test]
    fn a_command_is_opened_once_and_shown_with_what_it_says() {
        let mut pair = Pair::new();
        let frame = pair.seal(Class::Peer, DataType::COMMAND, NOW_MS);
        assert_eq!(pair.open(&frame), Ok(()));
        assert_eq!(pair.open(&frame), Err(DropReason::Repeat));
        let handed = pair.handed.lock();
        let field = |key: &str| handed[0].field(key).cloned().unwrap();
        assert_eq!(handed.len(), 1);
        assert_eq!(field("value").field("go"), Some(&"home".into()));
        assert_eq!(
            ["type", "name", "isOld"].map(field),
            ["command".into(), "base".into(), false.into()]
        );
    }

    #[test]
    fn what_is_too_old_or_was_given_before_the_start_is_marked_old() {
        let mut pair = Pair::new();
        for (given_ms, is_old) in [
            (NOW_MS, false),
            (NOW_MS + 1000, false),
            (NOW_MS - 1, true),
            (NOW_MS - MAX_URGENT_AGE_MS - 1, true),
            (NOW_MS + MAX_URGENT_AGE_MS + 1, true),
            (0, true),
            (u64::MAX, true),
        ] {
            let frame = pair.seal(Class::Peer, DataType::COMMAND, given_ms);
            assert_eq!(pair.open(&frame), Ok(()));
            assert_eq!(pair.is_old(), is_old, "{given_ms}");
        }
    }

    #[test]
    fn what_is_no_command_of_a_member_is_not_opened() {
        let mut pair = Pair::new();
        let weak = pair.seal(Class::Authenticated, DataType::COMMAND, NOW_MS);
        let chat = pair.seal(Class::Peer, DataType::CHAT, NOW_MS);
        let mut forged = pair.seal(Class::Peer, DataType::COMMAND, NOW_MS);
        *forged.last_mut().unwrap() ^= 1;
        let true_one = pair.seal(Class::Peer, DataType::COMMAND, NOW_MS);
        for frame in [&weak, &forged] {
            assert_eq!(pair.open(frame), Err(DropReason::Unopened));
        }
        assert!(!is_command(sealane_frame::FrameView::parse(&chat).unwrap().header()));
        pair.commands.members.clear();
        assert_eq!(pair.open(&true_one), Err(DropReason::Unopened), "its sender was removed");
        pair.commands.hand = None;
        assert_eq!(pair.open(&true_one), Err(DropReason::NoEnd), "nobody is there to be told");
        assert!(pair.handed.lock().is_empty());
    }

    #[test]
    fn what_was_forgotten_for_want_of_room_is_not_new_again() {
        let mut pair = Pair::new();
        let first = pair.seal(Class::Peer, DataType::COMMAND, NOW_MS);
        assert_eq!(pair.open(&first), Ok(()));
        for number in 0..MAX_COMMANDS_OPENED as u64 {
            pair.commands.remember((NOW_MS + 1 + number, (0, 0, [0; 8], number)));
        }
        assert_eq!(pair.open(&first), Ok(()));
        assert!(pair.is_old());
    }
}
