//! A message opens where it was made to be read, and nowhere else.

use crate::shared::world::*;
use sealane_seal::*;

/// Every kind of place, by names that could be taken for each other.
fn places() -> Vec<(&'static str, Binding)> {
    let zeros = GroupId([b'0'; 32]);
    vec![
        ("the link", Binding::link()),
        ("stream a", Binding::stream("fleet/7")),
        ("stream b", Binding::stream("fleet/8")),
        ("a longer topic", Binding::stream("fleet/7/")),
        ("a stream without a name", Binding::stream("")),
        ("a stream named like a conversation", Binding::stream(&"0".repeat(32))),
        ("the conversation", Binding::conversation(zeros)),
        ("the conversation of another group", Binding::conversation(GroupId([8; 32]))),
    ]
}

/// Opens it from a store and live; the two must agree.
fn open(message: &Sealed, reader: &mut Opener, what: &str) -> Result<Vec<u8>, Error> {
    let stored = message.stored(reader, 0);
    let mut bytes = message.bytes.clone();
    let live = reader.open_live(message.form, &message.attached(), &mut bytes, message.clear);
    let live = live.map(|pending| pending.opened().body()).map(|body| bytes[body].to_vec());
    let stored = stored.map(|(_, body)| body);
    assert_eq!(live, stored, "{what}");
    stored
}

#[test]
fn each_class_and_form_in_each_place() {
    for suite in Suite::ALL {
        for class in Class::ALL {
            let group = group_of(suite, class);
            let epochs = epochs(group);
            let (mut sender, mut reader) =
                (sealer(group, slot(1), &epochs), opener(group, &epochs));
            introduce(&mut sender, &mut reader);
            for form in [Form::Full, Form::Compact] {
                for (made_for, binding) in places() {
                    let message = seal_for(&mut sender, &binding, class, form, META, BODY);
                    for (read_from, binding) in places() {
                        let what =
                            format!("{class:?}, {form:?}: {made_for}, read from {read_from}");
                        let message = Sealed { binding, ..message.clone() };
                        let opened = open(&message, &mut reader, &what);
                        let is_there = made_for == read_from;
                        let expected = is_there.then(|| BODY.to_vec()).ok_or(Error::NotAuthentic);
                        assert_eq!(opened, expected, "{what}");
                    }
                }
            }
        }
    }
}

/// Two groups can share only their secret, by mistake or by malice of one of them.
#[test]
fn another_group_with_the_same_secret() {
    for class in Class::ALL {
        let home = group_of(Suite::Aes256Gcm, class);
        let make = if home.is_pair() { Group::pair } else { Group::new };
        let other = make(GroupId([6; 32]), Suite::Aes256Gcm);
        let mut sender = sealer(home, slot(1), &epochs(home));
        let mut reader = opener(other, &epochs(other));
        expect(&mut reader, 1, CONTEXT);
        for (_, binding) in places() {
            let message = seal_for(&mut sender, &binding, class, Form::Full, META, BODY);
            assert_eq!(open(&message, &mut reader, "another group"), Err(Error::NotAuthentic));
        }
    }
}

/// An announcement that was kept in a stream is none, and a message of a stream announces nobody.
#[test]
fn announcements_belong_to_the_link() {
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let (mut sender, mut reader) = (sealer(group, slot(1), &epochs), opener(group, &epochs));
    let body = Announcement { start: 7, orders: 0 }.to_bytes();
    let (class, form) = (Class::Signed, Form::Full);
    let elsewhere = seal(&mut sender, class, form, META, &body);
    let turned = Sealed { binding: Binding::link(), ..elsewhere };
    assert_eq!(turned.announce(&mut reader).unwrap_err(), Error::NotAuthentic);
    let announced = announcement(&mut sender, 7);
    let turned = Sealed { binding: Binding::stream(TOPIC), ..announced.clone() };
    assert_eq!(turned.stored(&mut reader, 0).unwrap_err(), Error::NotAuthentic);
    assert_eq!(reader.announced(slot(1)), None);
    announced.announce(&mut reader).unwrap();
}
