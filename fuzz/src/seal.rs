//! Sealed messages from anyone, against readers of fixed keys.

use sealane_seal::{
    Advance, Class, CounterState, Epoch, EpochSecret, Epochs, Error, Form, Group, GroupId, History,
    Opener, Sealer, SframeHeader, Slot, Suite, WindowState, Witness,
};

const META: &[u8] = b"meta";

/// The first byte chooses group and form, the second the length of a body in clear. What follows is
/// taken for a sealed message, for the difference from a real one, and for states at rest.
pub fn seal(bytes: &[u8]) {
    let [choice, clear, bytes @ ..] = bytes else { return };
    let suite = Suite::ALL[usize::from(choice & 1)];
    let id = GroupId([3; 32]);
    let group = if choice & 2 == 0 { Group::new(id, suite) } else { Group::pair(id, suite) };
    let form = if choice & 4 == 0 { Form::Full } else { Form::Compact };
    let class = Class::from_bits(choice >> 3);
    header(form, bytes);
    states(bytes);
    never_opens(group, form, usize::from(*clear), bytes);
    opens_untouched_only(group, form, class, bytes);
}

/// What is read as a header is written in the same bytes.
fn header(form: Form, bytes: &[u8]) {
    if let Ok((header, len)) = SframeHeader::parse(bytes, form, Epoch(1000)) {
        assert_eq!(header.encode(form)[..], bytes[..len]);
        let other = if form == Form::Full { Form::Compact } else { Form::Full };
        let near = header.key.epoch(Epoch(1000));
        let encoded = header.encode(other);
        assert_eq!(SframeHeader::parse(&encoded, other, near), Ok((header, encoded.len())));
    }
}

fn states(bytes: &[u8]) {
    if let Ok(state) = WindowState::from_bytes(bytes) {
        assert_eq!(state.to_bytes()[..], *bytes);
    }
    if let Ok(state) = CounterState::from_bytes(bytes) {
        assert_eq!(state.to_bytes()[..], *bytes);
    }
    if let Ok(order) = Advance::from_bytes(bytes) {
        assert_eq!(order.to_bytes()[..], *bytes);
    }
}

/// Nobody guesses a tag: every message is refused, and moves nothing.
fn never_opens(group: Group, form: Form, clear: usize, bytes: &[u8]) {
    let mut reader = opener(group);
    let live = reader.open_live(form, META, &mut bytes.to_vec(), clear).map(|_| ());
    refused(live.expect_err("a guess opens live"));
    let stored = reader.open_stored(Epoch(0), form, META, &mut bytes.to_vec(), clear);
    refused(stored.expect_err("a guess opens from a store"));
    assert_eq!((reader.epochs().newest(), reader.windows().count()), (Epoch(0), 0));
}

fn refused(error: Error) {
    assert!(error.info().code.starts_with("SL-SEAL-"));
}

/// A real message with `difference` applied to it opens if that changes nothing, and only then.
fn opens_untouched_only(group: Group, form: Form, class: Class, difference: &[u8]) {
    if !group.allows(class) || class == Class::Signed {
        return;
    }
    let (mut sealer, mut reader) = (sealer(group), opener(group));
    let mut sealed = Vec::new();
    sealer.append(class, form, META, b"a body of some length", &mut sealed).expect("sealed");
    let clear = if class == Class::Authenticated { 21 } else { 0 };
    let is_untouched = difference.iter().take(sealed.len()).all(|byte| *byte == 0);
    sealed.iter_mut().zip(difference).for_each(|(byte, difference)| *byte ^= difference);
    let opened = reader.open_live(form, META, &mut sealed, clear).map(|pending| pending.accept());
    assert_eq!(opened.is_ok(), is_untouched);
    if let Ok(opened) = opened {
        assert_eq!(&sealed[opened.body()], b"a body of some length");
    }
}

fn epochs(group: Group) -> Epochs {
    let secret = EpochSecret::new([1; 32]);
    Epochs::provisioned(group.id(), History::Kept, &secret).expect("a ratchet")
}

fn opener(group: Group) -> Opener {
    Opener::new(group, None, epochs(group)).expect("an opener")
}

fn sealer(group: Group) -> Sealer {
    let slot = Slot::new(1).expect("a slot");
    let mut sealer =
        Sealer::fresh(group, slot, &epochs(group), Witness([0; 32])).expect("a sealer");
    let block = sealer.reserve(1).expect("a block");
    sealer.confirm(block).expect("the block is confirmed");
    sealer
}
