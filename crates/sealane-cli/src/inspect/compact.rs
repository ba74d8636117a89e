//! The compact form, as far as the link's dictionary and roster are known.

use sealane::{DataType, Value};
use sealane_frame::{
    CompactView, DictionaryEntry, FrameError, FrameKind, GroupTag, LinkContext, to_full,
};
use sealane_seal::limits::{SIGNATURE_BYTES, TAG_BYTES};
use sealane_seal::{Class, Epoch};

use super::account::{InspectAccount, InspectOrigin, InspectedKind, SealCoverage};
use super::body::{self, InspectBody};
use super::dictionary::LinkKnowledge;
use super::form::FrameForm;
use super::walk::{FrameWalk, count};
use super::{hex, seal, words};

/// Explains a frame of the compact form, and gives its full form if it has one.
pub(super) fn explain(
    frame: &[u8],
    origin: &InspectOrigin,
    known: Option<&LinkKnowledge>,
) -> (InspectAccount, Option<Vec<u8>>) {
    let mut account = InspectAccount::new(InspectedKind::Frame, origin, frame.len());
    account.form = Some(FrameForm::Compact);
    account.summary = "compact form".into();
    let mut walk = FrameWalk::new(frame);
    let Some(byte) = prefix(&mut walk) else {
        account.rows = walk.rows;
        account.refusal = Some(fault(frame, known).into());
        return (account, None);
    };
    let Some((known, entry)) = known.and_then(|known| Some((known, known.dictionary.entry(byte)?)))
    else {
        let meaning = "SFrame header, ciphertext and tag, in class P a group tag before them";
        walk.remainder(SealCoverage::Unknown, "the rest", meaning.into());
        account.rows = walk.rows;
        match fault(frame, known) {
            FrameError::UnknownEntry if known.is_none() => {
                account.missing = Some(format!(
                    "what dictionary byte {byte} stands for: class, codec, group, destination; \
                     give the link's dictionary with --dictionary"
                ));
            }
            error => account.refusal = Some(error.into()),
        }
        return (account, None);
    };
    behind_prefix(&mut walk, entry, known);
    account.rows = walk.rows;
    let full = judge(frame, known, &mut account);
    (account, full)
}

/// First byte, dictionary byte, low byte of the context, data type. Gives the dictionary byte.
fn prefix(walk: &mut FrameWalk<'_>) -> Option<u8> {
    let first = walk.rest().first().copied()?;
    let limit = words::hop_limit(u64::from(first & 0x0f));
    let meaning = format!("bits 3 to 0: {}", limit.1);
    walk.take(SealCoverage::Relay, 1, "hop limit", |_| (limit.0, meaning))?;
    let kind = FrameKind::from_id(first >> 4 & 3).map_or("unknown", words::kind_name);
    let is_wide = first & 0x40 != 0;
    let width = if is_wide { "two bytes" } else { "one byte" };
    let mark = if first & 0x80 == 0 { "; bit 7 must be 1 and is not" } else { "" };
    let meaning = format!("bits 7 to 4: compact, kind {kind}, data type of {width}{mark}");
    walk.again(SealCoverage::Authenticated, 1, "kind", kind.into(), meaning);
    let byte = walk.number::<1>(SealCoverage::Relay, "dictionary byte", |byte| {
        (byte.into(), "each link has its own; what it stands for is authenticated".into())
    })?;
    walk.number::<1>(SealCoverage::Authenticated, "context", |low| {
        (low.into(), "the last byte of the sender context that the slot announced".into())
    })?;
    if is_wide {
        walk.number::<2>(SealCoverage::Authenticated, "data type", words::data_type)?;
    } else {
        walk.number::<1>(SealCoverage::Authenticated, "data type", words::data_type)?;
    }
    u8::try_from(byte).ok()
}

/// All that the dictionary gives a place to.
fn behind_prefix(
    walk: &mut FrameWalk<'_>,
    entry: &DictionaryEntry,
    known: &LinkKnowledge,
) -> Option<()> {
    let mut group = entry.group();
    if entry.class() == Class::Peer {
        let tag = walk.take(SealCoverage::Authenticated, 4, "group tag", |tag| {
            words::told(tag, "whose keys seal it; in class P it travels")
        })?;
        group = GroupTag::from_bytes(tag.try_into().ok()?);
    }
    let near = known.epochs.get(&group).copied().unwrap_or(Epoch(0));
    let sealed = seal::header(walk, sealane_seal::Form::Compact, near);
    let clear_bytes = walk.rest().len().saturating_sub(TAG_BYTES);
    let [.., codec, flags] = entry.to_bytes();
    if sealed.is_some() && entry.class() == Class::Authenticated && clear_bytes > 0 {
        walk.take(SealCoverage::Body, clear_bytes, "body", |_| seal::clear(codec))?;
    }
    if sealed.is_some() {
        seal::behind(walk, entry.class());
    }
    let mut link = |field, (value, meaning): words::FieldMeaning| {
        walk.note(SealCoverage::Link, None, field, value, meaning);
    };
    if entry.class() != Class::Peer {
        let tag = group.to_bytes();
        link("group tag", words::told(&tag, &format!("{}: whose keys", hex::spaced(&tag))));
    }
    let tag = entry.destination().to_bytes();
    let (value, meaning) = words::destination(&tag);
    link("destination", (value, format!("{}: {meaning}", hex::spaced(&tag))));
    link("flags", words::flags(flags));
    link("codec", words::codec(codec.into()));
    let slot = sealed?.header.key.slot;
    match known.roster.announced(group, slot) {
        Some(announced) => {
            link("context", words::context(&announced.context.0));
            link("orders", words::orders(announced.orders.into()));
        }
        None => link("context", (Value::Null, format!("slot {} announced none", slot.number()))),
    }
    match known.roster.tag(group, slot) {
        Some(source) => {
            let tag = source.to_bytes();
            let meaning = format!("{}: who has slot {}", hex::spaced(&tag), slot.number());
            link("source", words::told(&tag, &meaning));
        }
        None => link("source", (Value::Null, format!("unknown: who has slot {}", slot.number()))),
    }
    Some(())
}

/// Whether it is a frame, and what it is then.
fn judge(frame: &[u8], known: &LinkKnowledge, account: &mut InspectAccount) -> Option<Vec<u8>> {
    let link = known.link();
    let view = match CompactView::parse(frame, &link) {
        Ok(view) => view,
        Err(error) => {
            account.refusal = Some(error.into());
            return None;
        }
    };
    let (class, seal) = (view.entry().class(), view.seal_header());
    let [.., codec, flags] = view.entry().to_bytes();
    let (_, rest) = frame.split_at_checked(view.header_bytes())?;
    let signature_bytes = if class == Class::Signed { SIGNATURE_BYTES } else { 0 };
    let body_bytes = rest.len().saturating_sub(signature_bytes + TAG_BYTES);
    account.summary = format!(
        "compact form, class {} ({}), body of {}{}",
        class.letter(),
        words::class_name(class),
        count(body_bytes, "byte", "bytes"),
        seal::summary(&seal),
    );
    if class == Class::Authenticated {
        let clear = rest.get(..body_bytes).unwrap_or_default();
        let compression = words::compression(flags);
        account.body = kind_and_type(frame).map(|(kind, data_type)| {
            InspectBody::read(body::BodyHeader { codec, compression, kind, data_type }, clear)
        });
    }
    let mut full = Vec::new();
    match to_full(frame, &link, &mut full) {
        Ok(()) => Some(full),
        Err(FrameError::UnknownSource) => {
            account.missing = Some(format!(
                "the source: give the dictionary file a line `slot {} GROUP TAG`",
                seal.key.slot.number()
            ));
            None
        }
        Err(FrameError::Unannounced) => {
            account.missing = Some(format!(
                "the context: give the dictionary file a line `context {} GROUP CONTEXT ORDERS`",
                seal.key.slot.number()
            ));
            None
        }
        Err(error) => {
            account.refusal = Some(error.into());
            None
        }
    }
}

/// Kind and data type of a prefix.
fn kind_and_type(frame: &[u8]) -> Option<(FrameKind, DataType)> {
    let [first, _, _, low, rest @ ..] = frame else { return None };
    let is_wide = first & 0x40 != 0;
    let high = rest.first().copied().filter(|_| is_wide).unwrap_or_default();
    let data_type = DataType::from_number(u16::from_le_bytes([*low, high]));
    Some((FrameKind::from_id(first >> 4 & 3)?, data_type))
}

/// Why a prefix is none.
fn fault(frame: &[u8], known: Option<&LinkKnowledge>) -> FrameError {
    let nothing = LinkKnowledge::default();
    let link: LinkContext<'_> = known.unwrap_or(&nothing).link();
    CompactView::parse(frame, &link).err().unwrap_or(FrameError::TooShort)
}
