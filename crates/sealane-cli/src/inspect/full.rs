//! The full form, as far as it goes.

use sealane_frame::{FrameView, VERSION};
use sealane_seal::{Class, Epoch};

use super::account::{Account, Origin, Part, What};
use super::body::{self, Body};
use super::form::FrameForm;
use super::seal::{self, Sealed};
use super::walk::{Walk, count};
use super::words;

/// What the header says about that which is behind it.
struct Head {
    kind: String,
    flags: u8,
    codec: u8,
    body_bytes: usize,
}

/// Explains a frame of the full form.
pub(super) fn explain(frame: &[u8], origin: &Origin) -> Account {
    let mut account = Account::new(What::Frame, origin, frame.len());
    account.form = Some(FrameForm::Full);
    let mut walk = Walk::new(frame);
    account.summary = "full form".into();
    if let Some(head) = header(&mut walk) {
        let class = Class::from_bits(head.flags);
        let sealed = behind_header(&mut walk, &head, class);
        let body = count(head.body_bytes, "byte", "bytes");
        account.summary = format!(
            "full form, class {} ({}), {}, body of {body}{}",
            class.letter(),
            words::class_name(class),
            head.kind,
            sealed.as_ref().map_or_else(String::new, |sealed| seal::summary(&sealed.header)),
        );
    }
    account.rows = walk.rows;
    match FrameView::parse(frame) {
        Ok(view) => {
            let head = body::Head::of(view.header());
            account.body = view.clear_body().map(|clear| Body::read(head, clear));
        }
        Err(error) => account.refusal = Some(error.into()),
    }
    account
}

/// Whether bytes that are no frame were meant to be one of the full form.
pub(super) fn is_likely(bytes: &[u8]) -> bool {
    let at = |at: usize| bytes.get(at).copied();
    at(17).is_some_and(|version| (1..=VERSION).contains(&version))
        && at(18).is_some_and(|kind| kind < 4)
}

fn header(walk: &mut Walk<'_>) -> Option<Head> {
    use Part::{Authenticated, Relay};
    walk.take(Relay, 8, "next hop", words::next_hop)?;
    walk.take(Relay, 8, "previous hop", |tag| words::told(tag, "who put it on this link"))?;
    walk.number::<1>(Relay, "hop limit", words::hop_limit)?;
    walk.number::<1>(Authenticated, "version", words::version)?;
    let mut kind = String::new();
    walk.number::<1>(Authenticated, "kind", |id| {
        let meaning = words::kind(id);
        kind = format!("kind {}", meaning.1);
        meaning
    })?;
    let flags = walk.number::<1>(Authenticated, "flags", |bits| words::flags(byte(bits)))?;
    let codec = walk.number::<1>(Authenticated, "codec", words::codec)?;
    walk.number::<2>(Authenticated, "data type", words::data_type)?;
    walk.take(Authenticated, 4, "group tag", |tag| words::told(tag, "whose keys seal it"))?;
    walk.take(Authenticated, 8, "source", |tag| words::told(tag, "who made it"))?;
    walk.take(Authenticated, 8, "destination", words::destination)?;
    let body_bytes = walk.number::<4>(Authenticated, "body length", words::body_length)?;
    walk.number::<8>(Authenticated, "sequence", |n| {
        (n.into(), format!("{n}: the counter of the SFrame header"))
    })?;
    walk.take(Authenticated, 8, "context", words::context)?;
    walk.number::<1>(Authenticated, "orders", words::orders)?;
    let body_bytes = usize::try_from(body_bytes).ok()?;
    Some(Head { kind, flags: byte(flags), codec: byte(codec), body_bytes })
}

fn behind_header(walk: &mut Walk<'_>, head: &Head, class: Class) -> Option<Sealed> {
    if class == Class::Authenticated && head.body_bytes > 0 {
        walk.take(Part::Body, head.body_bytes, "body", |_| seal::clear(head.codec))?;
    }
    let sealed = seal::header(walk, sealane_seal::Form::Full, Epoch(0))?;
    // Were the class of the key id another, the lengths of neither would be right.
    seal::behind(walk, class);
    Some(sealed)
}

fn byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}
