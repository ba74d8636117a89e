//! A second kind of group through the same client: members leave and come back in a slot that
//! somebody else has used, and epoch secrets come from outside.

use sealane::{DataType, StartPosition};
use sealane_group::{AgreedMember, AgreedPresence, EpochSource};
use sealane_seal::{Epoch, EpochSecret, GroupId, Slot};

use crate::members::refusals;
use crate::{next, node, number, numbered};

const ID: GroupId = GroupId([0xa9; 32]);

fn secret(epoch: u64) -> EpochSecret {
    EpochSecret::new([epoch as u8 + 1; 32])
}

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

/// A member of the slot with that number, with a seed of its own.
fn person(number: u16, seed: u8) -> AgreedMember {
    AgreedMember::new(ID, slot(number), [seed; 32], secret(0))
}

fn present(number: u16, name: &str, seed: u8) -> AgreedPresence<'_> {
    let verifying_key = AgreedMember::verifying_key(&[seed; 32]).unwrap();
    AgreedPresence { slot: slot(number), name, verifying_key }
}

#[tokio::test]
async fn members_come_back_in_a_used_slot_and_each_is_read_under_its_own_name() {
    let (_folder, _node, client) = node().await;
    let (mut ada, mut bob, mut eve) = (person(0, 1), person(1, 2), person(1, 3));
    let with_bob = [present(0, "ada", 1), present(1, "bob", 2)];
    for member in [&mut ada, &mut bob, &mut eve] {
        member.agree(Epoch(0), secret(0), &with_bob).unwrap();
    }
    let say = |member: &AgreedMember, n: u64| {
        let (client, member) = (client.clone(), member.clone());
        async move {
            let group = client.group(member).await.unwrap();
            group.publish("talk", DataType::CHAT, &numbered(n)).await.map(|_| ())
        }
    };
    say(&bob, 0).await.unwrap();
    // Bob leaves, and eve is given his slot. Then she leaves, and bob comes back to it.
    for (epoch, name, seed) in [(1, "eve", 3), (2, "bob", 2)] {
        let changed = [present(0, "ada", 1), present(1, name, seed)];
        for member in [&mut ada, &mut bob, &mut eve] {
            member.agree(Epoch(epoch), secret(epoch), &changed).unwrap();
        }
        let (now, gone) = if seed == 3 { (&eve, &bob) } else { (&bob, &eve) };
        say(now, epoch).await.unwrap();
        let refused = say(gone, 9).await.unwrap_err();
        assert_eq!(refused.code(), "SL-GROUP-24", "{refused}");
    }
    // Eve signs as slot 1 in an epoch that was bob's, with the secret that she has of it.
    let mut back = person(1, 3);
    back.agree(Epoch(0), secret(0), &[present(0, "ada", 1), present(1, "eve", 3)]).unwrap();
    say(&back, 666).await.unwrap();

    let reader = client.group(ada.clone()).await.unwrap();
    let mut talk = reader.subscribe("talk").from(StartPosition::First).await.unwrap();
    let mut events = talk.events();
    let mut names = Vec::new();
    for n in 0..3 {
        let message = next(&mut talk).await;
        assert_eq!(number(&message), n);
        names.push(message.seal.unwrap().sender);
    }
    assert_eq!(names, ["bob", "eve", "bob"]);
    assert_eq!(refusals(&mut events, 1).await, ["SignatureInvalid"]);
    assert_eq!(ada.terms().len(), 4, "each time in a slot is a term of its own");
    // Nobody gives orders there.
    assert_eq!(reader.publish_orders().await.unwrap_err().code(), "SL-GROUP-20");
}
