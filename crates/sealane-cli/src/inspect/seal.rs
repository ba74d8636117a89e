//! The sealed part of a frame: SFrame header, ciphertext, tag.

use sealane::{Codec, Value};
use sealane_seal::limits::{SIGNATURE_BYTES, TAG_BYTES};
use sealane_seal::{Class, Epoch, Form, SframeHeader};

use super::account::SealCoverage;
use super::walk::{FrameWalk, count};
use super::words::{self, FieldMeaning};

/// The SFrame header that was read.
pub(super) struct InspectedSeal {
    pub(super) header: SframeHeader,
}

/// Explains the SFrame header, byte by byte. `near` completes the epoch of the compact form.
pub(super) fn header(walk: &mut FrameWalk<'_>, form: Form, near: Epoch) -> Option<InspectedSeal> {
    let parsed = SframeHeader::parse(walk.rest(), form, near);
    let at = Some(walk.at());
    let config = walk.take(SealCoverage::SealHeader, 1, "config byte", config)?;
    let config = config.first().copied()?;
    let parsed = match parsed {
        Ok((header, _)) => header,
        Err(error) => {
            for (field, bits) in [("key id", config >> 4), ("counter", config)] {
                if let Some(len) = own_bytes(bits) {
                    walk.take(SealCoverage::SealHeader, len, field, |_| {
                        (Value::Null, error.to_string())
                    })?;
                }
            }
            walk.remainder(
                SealCoverage::Unknown,
                "the rest",
                "behind an SFrame header in disorder".into(),
            );
            return None;
        }
    };
    let key = key_id(&parsed, form);
    match own_bytes(config >> 4) {
        Some(len) => drop(walk.take(SealCoverage::SealHeader, len, "key id", |_| key)?),
        None => walk.note(SealCoverage::SealHeader, at, "key id", key.0, key.1),
    }
    let counter: FieldMeaning =
        (parsed.counter.into(), format!("{}: the sender's counter", parsed.counter));
    match own_bytes(config) {
        Some(len) => drop(walk.take(SealCoverage::SealHeader, len, "counter", |_| counter)?),
        None => walk.note(SealCoverage::SealHeader, at, "counter", counter.0, counter.1),
    }
    Some(InspectedSeal { header: parsed })
}

/// Explains all behind the SFrame header, but for the body of class A.
pub(super) fn behind(walk: &mut FrameWalk<'_>, class: Class) {
    let Some(text_bytes) = walk.rest().len().checked_sub(TAG_BYTES) else {
        let _ = walk.take(SealCoverage::Tag, TAG_BYTES, "tag", |_| (Value::Null, String::new()));
        return;
    };
    let signature_bytes = if class == Class::Signed { SIGNATURE_BYTES } else { 0 };
    let body_bytes = text_bytes.saturating_sub(signature_bytes);
    let length = |bytes| count(bytes, "byte", "bytes");
    if class == Class::Authenticated && text_bytes > 0 {
        let meaning = "class A has nothing between SFrame header and tag".to_owned();
        let _ = walk.take(SealCoverage::Unknown, text_bytes, "surplus", |_| (Value::Null, meaning));
    } else if body_bytes > 0 {
        let meaning = format!("{}: the body, encrypted", length(body_bytes));
        let _ = walk.take(SealCoverage::Body, body_bytes, "ciphertext", |_| {
            (body_bytes_of(body_bytes), meaning)
        });
    }
    if signature_bytes > 0 {
        let bytes = signature_bytes.min(text_bytes);
        let meaning = if bytes == signature_bytes {
            "Ed25519, by the sender, encrypted with the body".to_owned()
        } else {
            format!("cut off: {bytes} of {signature_bytes} bytes")
        };
        let _ = walk.take(SealCoverage::Body, bytes, "signature", |_| (Value::Null, meaning));
    }
    let meaning = "16 bytes of authentication".to_owned();
    let _ = walk.take(SealCoverage::Tag, TAG_BYTES, "tag", |_| (Value::Null, meaning));
}

/// The meaning of a body in clear.
pub(super) fn clear(codec: u8) -> FieldMeaning {
    let codec = Codec::from_id(codec).map_or("bytes", Codec::name);
    (Value::Null, format!("in clear ({codec}): whoever hears it can read it"))
}

/// Sender and counter, for the summary.
pub(super) fn summary(header: &SframeHeader) -> String {
    format!(", slot {}, counter {}", header.key.slot.number(), header.counter)
}

fn body_bytes_of(bytes: usize) -> Value {
    Value::from(bytes as u64)
}

fn config(byte: &[u8]) -> FieldMeaning {
    let byte = byte.first().copied().unwrap_or_default();
    let [x, k, y, c] = [byte >> 7, byte >> 4 & 7, byte >> 3 & 1, byte & 7];
    let own = |name: &str, bits: u8, low: u8| match own_bytes(bits) {
        Some(len) => format!("{name} in {}", count(len, "byte", "bytes")),
        None => format!("{name} is {low}"),
    };
    let meaning = format!("{}, {}", own("key id", byte >> 4, k), own("counter", byte, c));
    let number = |n: u8| Value::from(u64::from(n));
    let value = Value::Map(vec![
        ("x".into(), number(x)),
        ("k".into(), number(k)),
        ("y".into(), number(y)),
        ("c".into(), number(c)),
    ]);
    (value, meaning)
}

/// How many bytes of its own a value has, of which these are the four bits in the config byte.
fn own_bytes(bits: u8) -> Option<usize> {
    (bits & 8 != 0).then(|| usize::from(bits & 7) + 1)
}

fn key_id(header: &SframeHeader, form: Form) -> FieldMeaning {
    let key = header.key;
    let (slot, class) = (key.slot.number(), key.class);
    let (span, low) = match form {
        Form::Full => (256, key.epoch_low),
        Form::Compact => (16, key.epoch_low & 15),
    };
    let class_name = words::class_name(class);
    let letter = class.letter();
    let meaning = format!("slot {slot}, class {letter} ({class_name}), epoch {low} mod {span}");
    let value = Value::Map(vec![
        ("slot".into(), u64::from(slot).into()),
        ("class".into(), letter.to_string().into()),
        ("epochLow".into(), u64::from(low).into()),
        ("epochSpan".into(), Value::from(span as u64)),
    ]);
    (value, meaning)
}
