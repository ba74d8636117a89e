//! The full form, as far as it goes.

use sealane_frame::{CompactUnit, FrameView, PeerTag, VERSION};
use sealane_mesh::HOP_SEAL_BYTES;
use sealane_seal::{Class, Epoch};

use super::account::{InspectAccount, InspectOrigin, InspectedKind, SealCoverage};
use super::body::{self, InspectBody};
use super::form::FrameForm;
use super::seal::{self, InspectedSeal};
use super::walk::{FrameWalk, count};
use super::words;

/// The header's fields about the bytes behind it.
struct FullHeaderSummary {
    kind: String,
    flags: u8,
    codec: u8,
    body_bytes: usize,
}

/// Explains a frame of the full form.
pub(super) fn explain(frame: &[u8], origin: &InspectOrigin) -> InspectAccount {
    let mut account = InspectAccount::new(InspectedKind::Frame, origin, frame.len());
    let mut walk = FrameWalk::new(frame);
    account.summary = "full form".into();
    if hops(&mut walk).is_some() {
        explain_rest(&mut walk, &mut account);
    }
    account.rows = walk.rows;
    judge(frame, &mut account);
    account
}

/// Explains a frame of the full form as a compact link carries it: without its hops, and perhaps
/// within a hop seal (`spec/frame.md`, *Units of compact links*; `spec/mesh.md`, *Hop seals*).
/// Gives its full form, if it is a frame.
pub(super) fn explain_long(
    unit: &[u8],
    origin: &InspectOrigin,
) -> (InspectAccount, Option<Vec<u8>>) {
    let mut account = InspectAccount::new(InspectedKind::Frame, origin, unit.len());
    let (long, hop_seal) = split_hop_seal(unit);
    let mut walk = FrameWalk::new(long);
    account.summary = "full form".into();
    let mark = |mark: u64| (mark.into(), "2: of the full form, without its hops".to_owned());
    let _ = walk.number::<1>(SealCoverage::Unit, "mark", mark);
    let _ = walk.number::<1>(SealCoverage::Relay, "hop limit", words::hop_limit);
    explain_rest(&mut walk, &mut account);
    if !hop_seal.is_empty() {
        let low = |low: u64| (low.into(), format!("{low}: low bytes of the hop's counter"));
        let mut behind = FrameWalk::behind(unit, long.len());
        let _ = behind.number::<2>(SealCoverage::Unit, "hop counter", low);
        behind.remainder(SealCoverage::Unit, "hop tag", "checked by the next neighbour".into());
        walk.rows.extend(behind.rows);
    }
    account.rows = walk.rows;
    let full = expand(long).unwrap_or_default();
    judge(&full, &mut account);
    let full = account.refusal.is_none().then_some(full);
    (account, full)
}

/// Whether a unit was meant to be a frame of the full form without its hops.
pub(super) fn is_long(unit: &[u8]) -> bool {
    expand(unit).is_some_and(|full| is_likely(&full))
}

/// The full form of such a unit, with hops that nobody has.
fn expand(unit: &[u8]) -> Option<Vec<u8>> {
    let Ok(CompactUnit::Long(long)) = CompactUnit::parse(unit) else { return None };
    let mut full = vec![];
    long.expand(PeerTag::NOBODY, PeerTag::NOBODY, &mut full);
    Some(full)
}

/// A unit and the hop seal behind it: only with one of the two lengths it is a frame.
fn split_hop_seal(unit: &[u8]) -> (&[u8], &[u8]) {
    let is_frame = |unit| expand(unit).is_some_and(|full| FrameView::parse(&full).is_ok());
    let at = unit.len().saturating_sub(HOP_SEAL_BYTES);
    match unit.split_at_checked(at) {
        Some((long, hop_seal)) if !is_frame(unit) && is_frame(long) => (long, hop_seal),
        _ => (unit, &[]),
    }
}

/// Explains what is behind the hops.
fn explain_rest(walk: &mut FrameWalk<'_>, account: &mut InspectAccount) {
    account.form = Some(FrameForm::Full);
    if let Some(head) = header(walk) {
        let class = Class::from_bits(head.flags);
        let sealed = behind_header(walk, &head, class);
        let body = count(head.body_bytes, "byte", "bytes");
        account.summary = format!(
            "full form, class {} ({}), {}, body of {body}{}",
            class.letter(),
            words::class_name(class),
            head.kind,
            sealed.as_ref().map_or_else(String::new, |sealed| seal::summary(&sealed.header)),
        );
    }
}

/// Whether it is a frame, and what its body is then.
fn judge(frame: &[u8], account: &mut InspectAccount) {
    account.form = Some(FrameForm::Full);
    match FrameView::parse(frame) {
        Ok(view) => {
            let head = body::BodyHeader::of(view.header());
            account.body = view.clear_body().map(|clear| InspectBody::read(head, clear));
        }
        Err(error) => account.refusal = Some(error.into()),
    }
}

/// Whether bytes that are no frame were meant to be one of the full form.
pub(super) fn is_likely(bytes: &[u8]) -> bool {
    let at = |at: usize| bytes.get(at).copied();
    at(17).is_some_and(|version| (1..=VERSION).contains(&version))
        && at(18).is_some_and(|kind| kind < 4)
}

fn hops(walk: &mut FrameWalk<'_>) -> Option<u64> {
    use SealCoverage::Relay;
    walk.take(Relay, 8, "next hop", words::next_hop)?;
    walk.take(Relay, 8, "previous hop", |tag| words::told(tag, "who put it on this link"))?;
    walk.number::<1>(Relay, "hop limit", words::hop_limit)
}

fn header(walk: &mut FrameWalk<'_>) -> Option<FullHeaderSummary> {
    use SealCoverage::Authenticated;
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
    Some(FullHeaderSummary { kind, flags: byte(flags), codec: byte(codec), body_bytes })
}

fn behind_header(
    walk: &mut FrameWalk<'_>,
    head: &FullHeaderSummary,
    class: Class,
) -> Option<InspectedSeal> {
    if class == Class::Authenticated && head.body_bytes > 0 {
        walk.take(SealCoverage::Body, head.body_bytes, "body", |_| seal::clear(head.codec))?;
    }
    let sealed = seal::header(walk, sealane_seal::Form::Full, Epoch(0))?;
    // Were the class of the key id another, the lengths of neither would be right.
    seal::behind(walk, class);
    Some(sealed)
}

fn byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}
