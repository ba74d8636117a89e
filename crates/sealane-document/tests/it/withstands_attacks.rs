//! No attacker's frame is accepted, and each attack is counted by its name.

use sealane_document::agent::{DocumentLeaver, DocumentNeighbour, OriginDuty, OutboxScope};
use sealane_document::{
    DocumentAgent, DocumentCursor, DocumentQuota, DocumentStore, DocumentsStatus, PacerCounters,
    RegisterName, ShelfKeeper, TakeOutcome,
};
use sealane_frame::{FrameBuf, HeaderFields, seal_frame};
use sealane_message::DataType;
use sealane_seal::{Binding, Class, Epoch, Sealer, SenderContext, Slot};
use sealane_testing::SeededRandom;

use crate::field::net::{Team, class_of, seal, stranger};
use crate::team::{GROUP, group, peer};
use crate::victim::{BODY, Victim, as_class, message_of};

#[test]
fn a_marker_that_is_stripped_is_no_document() {
    let mut victim = Victim::new();
    let mut plain = seal(&mut victim.sealer(3, 0), 3, 4, BODY);
    plain.truncate(64);
    plain.extend(BODY);
    assert_eq!(victim.hear(&[&plain]), 0);
    victim.assert_refused([("no document", 1)]);
}

#[test]
fn a_class_that_is_rewritten_does_not_open() {
    let mut victim = Victim::new();
    let frame = seal(&mut victim.sealer(3, 0), 3, 4, BODY);
    for flags in 0..=255 {
        let mut other = frame.clone();
        if other[19] != flags {
            other[19] = flags;
            assert_eq!(victim.hear(&[&other]), 0, "{flags:x}");
        }
    }
    // Eleven flags say the same class and another priority or compression; the rest are no frame.
    victim.assert_refused([("forged", 11), ("no document", 244)]);
    assert_eq!(victim.hear(&[&frame]), 1, "the true one still does");
}

#[test]
fn an_epoch_that_is_over_is_not_written_in() {
    let mut victim = Victim::with(
        DocumentStore::in_memory(ShelfKeeper::Member, DocumentQuota::default()).unwrap(),
        vec![vec![5]],
    );
    // The removed member has the old secret, and writes in the name of another one.
    let frame = seal(&mut victim.sealer(3, 0), 3, 4, BODY);
    assert_eq!(victim.hear(&[&frame]), 0);
    victim.assert_refused([("stale epoch", 1)]);
    // Nobody else could have written a signed frame.
    let signed = seal(&mut victim.sealer(3, 0), 3, 7, &[0; 14]);
    assert_eq!(victim.hear(&[&signed]), 1);
}

#[test]
fn who_is_about_to_be_removed_is_not_heard_but_for_what_was_sealed_before() {
    let mut victim = Victim::new();
    let (mut thief, mut other) = (victim.sealer(3, 0), victim.sealer(4, 0));
    let frames: Vec<_> = (0..4).map(|_| seal(&mut thief, 3, 72, BODY)).collect();
    assert_eq!(victim.hear(&[&frames[0]]), 1);
    let leaver = DocumentLeaver { slot: Slot::new(3).unwrap(), epoch: Epoch(0), mark: 2 };
    victim.agent.set_leaving(GROUP, vec![leaver]);
    assert_eq!(victim.hear(&[&frames[1], &frames[2]]), 1, "one was sealed before");
    assert_eq!((victim.counters().leaving, victim.counters().opened), (1, 2));
    assert_eq!(victim.hear(&[&seal(&mut other, 4, 72, BODY)]), 1, "of others all is taken");
    // A later re-key in which it stays: it is heard again.
    victim.agent.set_leaving(GROUP, vec![]);
    assert_eq!(victim.hear(&[&frames[2]]), 1);
    // The notice counts also where it came before the keys did.
    victim.agent.set_leaving(GROUP, vec![leaver]);
    victim.agent.set_group(victim.team.keys(0, Epoch(0))).unwrap();
    assert_eq!(victim.hear(&[&frames[3]]), 0);
}

#[test]
fn no_byte_of_a_frame_can_be_changed() {
    let mut victim = Victim::new();
    let frame = seal(&mut victim.sealer(3, 0), 3, 4, BODY);
    for at in 17..frame.len() {
        for bit in 0..8 {
            let mut other = frame.clone();
            other[at] ^= 1 << bit;
            assert_eq!(victim.hear(&[&other]), 0, "bit {bit} of byte {at}");
        }
    }
    let refused = victim.refused();
    assert_eq!(refused.values().sum::<u64>(), 8 * (frame.len() as u64 - 17), "each once");
    for (name, least) in [("forged", 100), ("strange group", 32), ("no document", 50)] {
        assert!(refused[name] >= least, "{name}: {refused:?}");
    }
    assert!(victim.agent.store().is_empty());
}

#[test]
fn what_is_replayed_is_no_news_in_this_epoch_the_next_or_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.db");
    let open =
        || DocumentStore::open(&path, ShelfKeeper::Member, DocumentQuota::default()).unwrap();
    let mut victim = Victim::with(open(), vec![]);
    let mut origin = victim.sealer(3, 0);
    let old = seal(&mut origin, 3, 7, &[0; 14]);
    let new = seal(&mut origin, 3, 7, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(victim.hear(&[&old, &new]), 2);
    assert_eq!(victim.hear(&[&old, &new]), 0);
    victim.assert_refused([("older", 1), ("repeats", 1)]);
    let mut next = Victim { team: Team { members: 20, removed: vec![vec![5]] }, ..victim };
    next.agent.set_group(next.team.keys(0, Epoch(1))).unwrap();
    assert_eq!(next.hear(&[&old, &new]), 0);
    next.assert_refused([("older", 2), ("repeats", 2)]);
    drop(next);
    let mut again = Victim::with(open(), vec![vec![5]]);
    assert_eq!(again.hear(&[&old, &new]), 0);
    again.assert_refused([("older", 1), ("repeats", 1)]);
    assert_eq!(again.agent.store().len(), 1);
}

#[test]
fn an_old_call_that_is_replayed_after_its_clear_wakes_nothing() {
    let mut victim = Victim::new();
    let (mut caller, mut other) = (victim.sealer(3, 0), victim.sealer(4, 0));
    let call = |number: u8| [0, 0, 0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0, 0];
    let of_call = |number: u8| [0, 0, 0, 0, 0, 0, 0, 0, 3, 0, number, 0, 0, 0];
    let first = seal(&mut caller, 3, 7, &call(1));
    let clear = seal(&mut other, 4, 9, &of_call(1));
    let second = seal(&mut caller, 3, 7, &call(2));
    assert_eq!(victim.hear(&[&first, &clear]), 2);
    // While it is the newest call, it is a repeat; the clear stays with it.
    assert_eq!(victim.hear(&[&first]), 0);
    victim.assert_refused([("repeats", 1)]);
    assert_eq!(victim.hear(&[&second]), 1);
    assert_eq!(victim.hear(&[&first, &clear]), 0);
    victim.assert_refused([("older", 1), ("repeats", 2)]);
    assert_eq!(victim.agent.store().len(), 2, "the later call, and the clear of the earlier one");
}

#[test]
fn what_is_repeated_of_a_neighbour_that_is_not_there_begins_no_exchange() {
    let mut victim = Victim::new();
    let frame = seal(&mut victim.sealer(3, 0), 3, 4, BODY);
    victim.hear(&[&frame]);
    while victim.agent.next_telling(0, OutboxScope::All).is_some() {}
    let by = DocumentNeighbour { slot: Slot::new(9).unwrap(), tag: peer(9), is_proven: false };
    for words in [&[9, 9, 9, 9, 1, 7, 0, 0, 0xff, 3][..], &[9, 9, 9, 9, 2, 3, 0, 0]] {
        victim.agent.hear(by, words).unwrap();
        assert_eq!(victim.agent.next_telling(0, OutboxScope::All), None);
    }
    victim.assert_refused([("unproven", 2)]);
    // A member opens a frame, whoever brings it; a machine without keys cannot.
    let other = message_of(&[&seal(&mut victim.sealer(4, 0), 4, 4, BODY)]);
    let relay = DocumentStore::in_memory(ShelfKeeper::Relay, DocumentQuota::default()).unwrap();
    let mut relay = DocumentAgent::new(Slot::new(1).unwrap(), relay, 400);
    for agent in [&mut victim.agent, &mut relay] {
        agent.hear(by, &other).unwrap();
    }
    assert_eq!((victim.counters().taken, relay.counters().taken), (2, 0));
    assert_eq!(relay.counters().unproven, 1);
}

#[test]
fn a_reflected_frame_is_no_news_and_one_of_a_lost_state_is_gone_behind() {
    let mut victim = Victim::new();
    let mut own = victim.sealer(0, 0);
    let frame = seal(&mut own, 0, 4, BODY);
    victim.agent.write(&frame, peer(0)).unwrap();
    assert_eq!(victim.hear(&[&frame]), 0);
    victim.assert_refused([("repeats", 1)]);
    own.go_on_at(500);
    let lost = seal(&mut own, 0, 4, BODY);
    assert_eq!(victim.hear(&[&lost]), 1);
    assert_eq!(victim.agent.next_duty(), Some(OriginDuty::GoOn { group: GROUP, counter: 500 }));
    own.go_on_at(501 + (1 << 20) + 1);
    let far = seal(&mut own, 0, 4, BODY);
    assert_eq!(victim.hear(&[&far]), 0);
    victim.assert_refused([("repeats", 1), ("too far ahead", 1)]);
}

#[test]
fn who_counts_for_another_cannot_sign_for_it_and_in_class_c_the_conflict_is_counted() {
    let mut victim = Victim::new();
    // Slot 5 knows the group's secret, and signs with the only key that it has.
    let mut bad = victim.sealer(3, 0);
    bad.set_signing_key(sealane_seal::SigningKey::from_seed(&[5; 32]).unwrap());
    let lifted = as_class(&mut bad, 3, 1, Class::Signed, &[1, 99]);
    assert_eq!(victim.hear(&[&lifted]), 0);
    victim.assert_refused([("forged", 1)]);
    let true_one = seal(&mut victim.sealer(3, 0), 3, 1, &[1, 5]);
    let mut bad = victim.team.sealer(3, Epoch(0), 666);
    let other = seal(&mut bad, 3, 1, &[1, 99]);
    victim.hear(&[&true_one, &other]);
    victim.assert_refused([("conflicts", 1), ("forged", 1)]);
    // It is told which register that was, and what else was refused.
    let mut status = DocumentsStatus::default();
    status.update(&victim.agent, PacerCounters::default());
    let told: Vec<_> = status.conflicting.iter().map(|one| (one.register, one.frames)).collect();
    let (origin, data_type) = (Slot::new(3).unwrap(), DataType::COUNTER);
    assert_eq!(told, [(RegisterName { group: GROUP, origin, data_type }, 1)]);
    let registers = victim.agent.store().registers(GROUP).unwrap();
    assert_eq!(registers.conflicts_of(origin, data_type), 1);
    assert_eq!(registers.conflicts_of(origin, DataType::VITALS), 0);
    let metrics = status.metrics();
    for line in [
        "sealane_document_conflicts_total 1\n",
        "sealane_document_refused_total{reason=\"forged\"} 1\n",
        "sealane_document_frames 1\n",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[test]
fn a_count_that_is_lifted_ahead_of_its_origin_is_gone_behind_and_counted_by_it() {
    let mut victim = Victim::new();
    let mut own = victim.sealer(0, 0);
    victim.agent.write(&seal(&mut own, 0, 1, &[1, 5]), peer(0)).unwrap();
    let mut bad = victim.team.sealer(0, Epoch(0), 666);
    for times in 1..=2 {
        bad.go_on_at(own.next_counter().unwrap() + 100);
        let lifted = seal(&mut bad, 0, 1, &[1, 99]);
        assert_eq!(victim.hear(&[&lifted]), 1, "it is news, though another member wrote it");
        assert_eq!(victim.hear(&[&lifted]), 0);
        assert_eq!(victim.counters().ahead, times, "once, however often it comes");
        let Some(OriginDuty::GoOn { counter, .. }) = victim.agent.next_duty() else {
            panic!("it is to go on behind");
        };
        own.go_on_at(counter + 1);
        let true_one = seal(&mut own, 0, 1, &[1, 5 + times as u8]);
        assert_eq!(victim.agent.write(&true_one, peer(0)).unwrap(), TakeOutcome::New);
        let held = victim.agent.store().registers(GROUP).unwrap().iter().next().unwrap().clone();
        assert_eq!(victim.agent.body(GROUP, &held).unwrap(), [1, 5 + times as u8]);
    }
    victim.assert_refused([("repeats", 2)]);
    // A frame that the victim has sealed itself, and others give back, overtakes nothing.
    let earlier = seal(&mut victim.sealer(0, 0), 0, 4, BODY);
    assert_eq!(victim.hear(&[&earlier]), 1);
    assert_eq!(victim.counters().ahead, 2);
}

#[test]
fn a_call_and_an_answer_count_whatever_the_clock_of_their_member_says() {
    const NOW_MS: u64 = 1_795_000_000_000;
    const TEN_YEARS_MS: u64 = 10 * 365 * 86_400_000;
    let mut victim = Victim::new();
    for (data_type, body) in [(7, &[0, 1, 0, 0, 0, 0][..]), (8, &[3, 0, 1, 0, 0, 0])] {
        let mut origin = victim.sealer(3 + data_type, 0);
        let mut last = vec![];
        for time in [NOW_MS + TEN_YEARS_MS, NOW_MS - TEN_YEARS_MS, NOW_MS] {
            last = [&time.to_le_bytes()[..], body].concat();
            let frame = seal(&mut origin, 3 + data_type, data_type, &last);
            assert_eq!(victim.hear(&[&frame]), 1, "{data_type} at {time}");
        }
        let held = victim.agent.store().since(DocumentCursor::START, 9).pop().unwrap().entry;
        assert_eq!(victim.agent.body(GROUP, &held).unwrap(), last, "the later message counts");
    }
    victim.assert_refused([]);
}

#[test]
fn a_failed_seal_is_an_error_and_never_plaintext() {
    let team = Team { members: 20, removed: vec![] };
    let (body, slot) = ([171; 30], Slot::new(3).unwrap());
    let epochs = team.epochs(&group(), Epoch(0));
    let keyless = Sealer::new(group(), slot, SenderContext([1; 8]), &epochs, 0).unwrap();
    let mut used_up = team.sealer(3, Epoch(0), 1);
    used_up.go_on_at(u64::MAX);
    for (why, mut sealer, class) in [
        ("there is no key to sign with", keyless, Class::Signed),
        ("class P is for two", team.sealer(3, Epoch(0), 1), Class::Peer),
        ("no counter is left", used_up, Class::Group),
    ] {
        let fields = HeaderFields { class, ..HeaderFields::new(GROUP, peer(3), 72) };
        let (binding, mut buf) = (Binding::stream("mesh/09090909/72"), FrameBuf::new());
        let sealed = seal_frame(&mut sealer, &fields, &binding, &body, &mut buf);
        assert!(sealed.is_err(), "{why}");
        assert!(!format!("{buf:?}").contains("171, 171"), "{why}: the body stays in the buffer");
    }
    // And what somebody sends as it is, without any seal, is taken by nobody.
    let mut victim = Victim::new();
    assert_eq!(victim.hear(&[&[171; 80], &[0; 80]]), 0);
    victim.assert_refused([("no document", 2)]);
}

#[test]
fn a_flood_of_reset_hops_is_one_frame() {
    let mut victim = Victim::new();
    let frame = seal(&mut victim.sealer(3, 0), 3, 4, BODY);
    let mut relay = DocumentStore::in_memory(ShelfKeeper::Relay, DocumentQuota::default()).unwrap();
    for hops in 0..=255 {
        let mut other = frame.clone();
        (other[0], other[16]) = (7, hops);
        victim.hear(&[&other]);
        relay.take(&other, peer(1)).ok();
    }
    assert_eq!((victim.counters().taken, victim.counters().opened), (1, 1));
    victim.assert_refused([("repeats", 255)]);
    assert_eq!(relay.counters().known, 255);
    assert!(relay.len() <= 1);
}

#[test]
fn groups_and_members_that_a_neighbour_makes_up_take_no_room_of_a_relay() {
    let store = DocumentStore::in_memory(ShelfKeeper::Relay, DocumentQuota::default()).unwrap();
    let mut relay =
        Victim { agent: DocumentAgent::new(Slot::new(1).unwrap(), store, 400), ..Victim::new() };
    relay.agent.set_strangers(vec![stranger(20, Epoch(0))]);
    let frame = seal(&mut relay.sealer(3, 0), 3, 4, BODY);
    let group_at = frame.windows(4).position(|four| four == GROUP.to_bytes()).unwrap();
    for number in 0..40 {
        let mut other = frame.clone();
        other[group_at] = 100 + number;
        assert_eq!(relay.hear(&[&other]), 0, "group {number}");
    }
    // Nor does a member of another address, or a slot that nobody has.
    let as_another = seal(&mut relay.sealer(3, 0), 4, 4, BODY);
    let beyond = seal(&mut relay.sealer(900, 0), 900, 4, BODY);
    assert_eq!(relay.hear(&[&as_another, &beyond]), 0);
    assert_eq!((relay.counters().strange_group, relay.counters().no_member), (40, 2));
    assert_eq!(relay.hear(&[&frame]), 1, "there is room for those on the card");
    assert_eq!(relay.agent.store().len(), 1);
    // Nor does a hub that went bad.
    let others = [&as_another, &beyond].map(|other| relay.agent.write(other, peer(1)).unwrap());
    assert_eq!(others, [TakeOutcome::Refused; 2]);
    // A later card names one more.
    relay.agent.set_strangers(vec![stranger(1000, Epoch(0))]);
    assert_eq!(relay.hear(&[&beyond]), 1);
}

#[test]
fn nobody_acknowledges_or_clears_for_another() {
    let mut victim = Victim::new();
    for data_type in [8, 9] {
        let mut bad = victim.sealer(3, 0);
        bad.set_signing_key(sealane_seal::SigningKey::from_seed(&[5; 32]).unwrap());
        let signed = as_class(&mut bad, 3, data_type, Class::Signed, &[0; 14]);
        let unsigned = as_class(&mut bad, 3, data_type, Class::Group, &[0; 14]);
        let clear = as_class(&mut bad, 3, data_type, Class::Authenticated, &[0; 14]);
        assert_eq!(victim.hear(&[&signed, &unsigned, &clear]), 0);
    }
    victim.assert_refused([("below floor", 4), ("forged", 2)]);
}

#[test]
fn a_removed_member_is_shown_to_nobody() {
    let mut victim = Victim::new();
    let before = seal(&mut victim.sealer(5, 0), 5, 7, &[0; 14]);
    assert_eq!(victim.hear(&[&before]), 1);
    victim.team.removed.push(vec![5]);
    victim.agent.set_group(victim.team.keys(0, Epoch(1))).unwrap();
    assert!(victim.agent.store().is_empty(), "what it said before goes with it");
    let after = seal(&mut victim.sealer(5, 0), 5, 7, &[1; 14]);
    assert_eq!(victim.hear(&[&before, &after]), 0);
    victim.assert_refused([("no member", 2)]);
}

#[test]
fn parts_of_two_frames_make_no_third() {
    let mut victim = Victim::new();
    let mut origin = victim.sealer(3, 0);
    let (one, other) = (seal(&mut origin, 3, 4, BODY), seal(&mut origin, 3, 4, &[9; 15]));
    for at in 18..one.len() {
        let mixed = [&one[..at], &other[at..]].concat();
        assert!(mixed == one || mixed == other || victim.hear(&[&mixed]) == 0, "mixed at {at}");
    }
    // A message that ends within a frame is refused as a whole.
    let by = DocumentNeighbour { slot: Slot::new(9).unwrap(), tag: peer(9), is_proven: true };
    victim.agent.hear(by, &[0, 0, 0, 0, 4, 101, 1, 2, 3]).unwrap();
    let mut refused = victim.refused();
    assert_eq!(refused.remove("malformed"), Some(1));
    let others = refused.remove("forged").unwrap_or(0) + refused.remove("no document").unwrap_or(0);
    assert!(others > 10 && refused.keys().all(|name| *name == "repeats"), "{refused:?}");
}

#[test]
fn clocks_decide_nothing_and_positions_that_cannot_be_are_refused() {
    let mut victim = Victim::new();
    let mut origin = victim.sealer(3, 0);
    let mut future = BODY.to_vec();
    future[1..7].fill(0xff);
    let (ahead, behind) = (seal(&mut origin, 3, 4, &future), seal(&mut origin, 3, 4, BODY));
    assert_eq!(victim.hear(&[&ahead, &behind]), 2);
    let shown = victim.agent.store().since(DocumentCursor::START, 9);
    assert_eq!(shown.len(), 1, "the later message counts, whatever its clock said");
    assert_eq!(shown[0].entry.stamp.counter, 1);
    let mut nowhere = BODY.to_vec();
    nowhere[7..15].fill(0x7f);
    let nowhere = seal(&mut origin, 3, 4, &nowhere);
    assert_eq!(victim.hear(&[&nowhere]), 0);
    victim.assert_refused([("malformed body", 1)]);
}

#[test]
fn a_relay_that_hands_out_old_registers_moves_nothing_back() {
    let mut victim = Victim::new();
    let mut origin = victim.sealer(3, 0);
    let all: Vec<_> = (0..20).map(|_| seal(&mut origin, 3, 4, BODY)).collect();
    assert_eq!(victim.hear(&[&all[19]]), 1);
    for old in &all {
        assert_eq!(victim.hear(&[old]), 0);
    }
    assert_eq!(victim.agent.store().since(DocumentCursor::START, 9)[0].entry.stamp.counter, 19);
    victim.assert_refused([("older", 19), ("repeats", 1)]);
}

#[test]
fn the_tests_seal_in_the_classes_that_the_policy_asks_for() {
    let mut victim = Victim::new();
    for (data_type, body) in [(1, &[1, 5][..]), (7, &[0; 14]), (72, &[1]), (4, BODY)] {
        let frame = seal(&mut victim.sealer(3, 0), 3, data_type, body);
        assert_eq!(victim.hear(&[&frame]), 1, "{data_type} in {:?}", class_of(data_type));
    }
}

#[test]
fn what_a_neighbour_makes_up_never_panics_and_stays_within_the_quotas() {
    let quota = DocumentQuota { origin_bytes: 4_000, total_bytes: 20_000 };
    let mut victim =
        Victim::with(DocumentStore::in_memory(ShelfKeeper::Member, quota).unwrap(), vec![vec![5]]);
    let relay = DocumentStore::in_memory(ShelfKeeper::Relay, quota).unwrap();
    let mut relay = DocumentAgent::new(Slot::new(1).unwrap(), relay, 200);
    relay.set_strangers(vec![stranger(20, Epoch(1))]);
    let mut random = SeededRandom::new(7);
    let by = |slot: u64| DocumentNeighbour {
        slot: Slot::new(slot as u16 % 20).unwrap(),
        tag: peer(9),
        is_proven: true,
    };
    let mut messages: Vec<Vec<u8>> = vec![vec![0, 0, 0, 0, 1, 0, 0, 255, 3]];
    for origin in 0..20 {
        let frame = seal(&mut victim.sealer(origin, 1), origin, 72, BODY);
        messages.push(message_of(&[&frame]));
    }
    for _ in 0..5_000 {
        let at = random.below(messages.len() as u64) as usize;
        let mut message = messages[at].clone();
        for _ in 0..random.below(4) {
            let place = random.below(message.len() as u64) as usize;
            message[place] = random.next() as u8;
        }
        message.truncate(message.len() - random.below(3) as usize);
        for agent in [&mut victim.agent, &mut relay] {
            agent.hear(by(random.next()), &message).unwrap();
            agent.hear_digest(by(random.next()).slot, Some(random.next().to_le_bytes()));
            while let Some(telling) = agent.next_telling(0, OutboxScope::All) {
                if messages.len() < 500 && random.below(20) == 0 {
                    messages.push(telling.message);
                }
            }
            assert!(agent.store().total_bytes() <= quota.total_bytes);
        }
    }
}
