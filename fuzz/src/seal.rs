//! Sealed messages from anyone, against readers of fixed keys.

use sealane_seal::{
    Announcement, Attached, Binding, Class, Epoch, EpochSecret, Epochs, Error, Form, Group,
    GroupId, History, Opener, Sealer, SenderContext, SessionState, SframeHeader, SigningKey, Slot,
    Suite, Term,
};

const META: [u8; 4] = *b"meta";
const BODY: &[u8] = b"a body of some length";
/// The start of the one sender that readers know.
const CONTEXT: SenderContext = SenderContext([5; 8]);

/// The first byte chooses group, form and class, the second the length of a body in clear. What
/// follows is taken for a sealed message, for the difference from a real one, and for states at
/// rest.
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
    if !group.allows(class) {
        return;
    }
    opens_untouched_only(group, form, class, bytes);
    if class == Class::Signed {
        announces_untouched_only(group, bytes);
    }
}

/// A header that is read is written in the same bytes.
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
    if let Ok(state) = SessionState::from_bytes(bytes) {
        assert_eq!(state.to_bytes()[..], *bytes);
        let mut reader = opener(Group::new(GroupId([3; 32]), Suite::Aes256Gcm));
        reader.restore(&state);
        assert_eq!(reader.announced(state.slot()), Some(state.context()));
    }
    if let Ok(announcement) = Announcement::from_bytes(bytes) {
        assert_eq!(announcement.to_bytes()[..], *bytes);
    }
}

/// Nobody guesses a tag: every message is refused, of a known context or another, and moves
/// nothing.
fn never_opens(group: Group, form: Form, clear: usize, bytes: &[u8]) {
    let mut reader = opener(group);
    let binding = Binding::stream("fleet/7");
    for context in [CONTEXT, SenderContext([6; 8])] {
        let attached = Attached { context, binding: &binding, meta: &META };
        let live = reader.open_live(form, &attached, &mut bytes.to_vec(), clear).map(|_| ());
        refused(live.expect_err("a guess opens live"));
        let stored = reader.open_stored(Epoch(0), form, &attached, &mut bytes.to_vec(), clear);
        refused(stored.expect_err("a guess opens from a store"));
        let announced = reader.open_announcement(&attached, &mut bytes.to_vec()).map(|_| ());
        refused(announced.expect_err("a guess announces"));
    }
    is_unmoved(&reader);
}

fn refused(error: Error) {
    assert!(error.info().code.starts_with("SL-SEAL-"));
}

fn is_unmoved(reader: &Opener) {
    assert_eq!((reader.epochs().newest(), reader.epochs().held().count()), (Epoch(0), 1));
    assert_eq!((reader.announced(slot(0)), reader.announced(slot(1))), (None, Some(CONTEXT)));
}

/// A real message, its context and its meta, with `difference` applied to all three, opens if that
/// changes nothing, and only then.
fn opens_untouched_only(group: Group, form: Form, class: Class, difference: &[u8]) {
    let (binding, mut sealed) = (Binding::stream("fleet/7"), Vec::new());
    let mut sealer = sealer(group, 1, CONTEXT);
    sealer.append(class, form, &binding, &META, BODY, &mut sealed).expect("sealed");
    let clear = if class == Class::Authenticated { BODY.len() } else { 0 };
    let (context, meta, is_untouched) = changed(CONTEXT, &mut sealed, difference);
    let attached = Attached { context, binding: &binding, meta: &meta };
    let (mut reader, mut again) = (opener(group), sealed.clone());
    let stored = reader.open_stored(Epoch(0), form, &attached, &mut again, clear);
    assert_eq!(stored.is_ok(), is_untouched);
    let opened = reader.open_live(form, &attached, &mut sealed, clear);
    let opened = opened.map(|pending| pending.accept());
    assert_eq!(opened.is_ok(), is_untouched);
    if let Ok(opened) = opened {
        assert_eq!(&sealed[opened.body()], BODY);
    }
    is_unmoved(&reader);
}

/// The same of an announcement, of a start that the reader does not know.
fn announces_untouched_only(group: Group, difference: &[u8]) {
    let (binding, mut sealed, form) = (Binding::link(), Vec::new(), Form::Full);
    let fresh = SenderContext([7; 8]);
    let body = Announcement { start: 8, orders: 9 }.to_bytes();
    let mut sealer = sealer(group, 1, fresh);
    sealer.append(Class::Signed, form, &binding, &META, &body, &mut sealed).expect("sealed");
    let (context, meta, is_untouched) = changed(fresh, &mut sealed, difference);
    let attached = Attached { context, binding: &binding, meta: &meta };
    let mut reader = opener(group);
    let opened = reader.open_announcement(&attached, &mut sealed).map(|opened| opened.accept());
    assert_eq!(opened.is_ok(), is_untouched);
    if is_untouched {
        assert_eq!(reader.announced(slot(1)), Some(fresh));
    } else {
        is_unmoved(&reader);
    }
}

/// Applies the difference to the sealed bytes, then the context, then the meta.
fn changed(
    mut context: SenderContext,
    sealed: &mut [u8],
    difference: &[u8],
) -> (SenderContext, [u8; 4], bool) {
    let mut meta = META;
    let all = sealed.iter_mut().chain(&mut context.0).chain(&mut meta);
    let mut is_untouched = true;
    for (byte, difference) in all.zip(difference) {
        *byte ^= difference;
        is_untouched &= *difference == 0;
    }
    (context, meta, is_untouched)
}

fn slot(number: u16) -> Slot {
    Slot::new(number).expect("a slot")
}

fn epochs(group: Group) -> Epochs {
    Epochs::new(group.id(), History::Kept, Epoch(0), EpochSecret::new([1; 32]))
}

fn signing_key() -> SigningKey {
    SigningKey::from_seed(&[2; 32]).expect("a key")
}

/// Knows the members of slots 0 and 1, and one start of slot 1.
fn opener(group: Group) -> Opener {
    let mut opener = Opener::new(group, None, epochs(group)).expect("an opener");
    let (since, until, verifying_key) = (Epoch(0), None, signing_key().verifying_key());
    let terms = [0, 1].map(|number| Term { slot: slot(number), since, until, verifying_key });
    opener.set_terms(terms).expect("terms");
    let mut state = [0; SessionState::BYTES];
    state[..3].copy_from_slice(&[1, 0, 1]);
    state[11..19].copy_from_slice(&CONTEXT.0);
    opener.restore(&SessionState::from_bytes(&state).expect("a session"));
    opener
}

fn sealer(group: Group, number: u16, context: SenderContext) -> Sealer {
    let sealer = Sealer::new(group, slot(number), context, &epochs(group), 0);
    let mut sealer = sealer.expect("a sealer");
    sealer.set_signing_key(signing_key());
    sealer
}
