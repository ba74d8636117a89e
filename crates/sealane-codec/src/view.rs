//! Raw views: the top level of a datum, its nested values as verbatim spans.

mod beside;
mod spans;

use std::borrow::Cow;
use std::fmt;

use crate::limits::{MAX_DEPTH, MAX_VALUES};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::binary::{more, plausible, skip, take, text_key};
use crate::cbor::{self, Cbor};
use crate::head::{BinaryFormat, ItemHead, ItemLength};
use crate::input::DatumInput;
use crate::msgpack::{self, MsgPack};
use crate::records::NoRecords;
use crate::{Codec, CodecError, DatumKind, json};

pub use beside::fields_beside;
pub use spans::Maps;

/// One field of a map: its key, and its value as the verbatim bytes.
pub type MapField<'a> = (Cow<'a, str>, &'a [u8]);

/// A map's fields in order: keys, and values as the verbatim bytes of each.
///
/// The values are whole and not too deep, and no key comes twice. What their text says is not
/// checked: a value from a stranger goes through [`crate::Transcoder::validate`] before it is
/// passed on. Records have no fixed meaning outside their connection: rewrite them with
/// [`crate::records::Decoder::to_plain`] first.
///
/// # Errors
/// [`CodecError`] where `bytes` is not one map, malformed, too deep, followed by anything, or has
/// more than [`MAX_VALUES`] fields.
pub fn fields(codec: Codec, bytes: &[u8]) -> Result<Vec<MapField<'_>>, CodecError> {
    let mut fields = Vec::new();
    match codec {
        Codec::Json => {
            json_top(bytes, MapFieldsSeed(&mut fields), DatumKind::Map)?;
            refuse_deep_json(bytes, fields.iter().map(|(_, value)| *value), 1)?;
        }
        Codec::MsgPack => binary_fields(&mut MsgPack, bytes, &mut fields)?,
        Codec::Cbor => binary_fields(&mut Cbor, bytes, &mut fields)?,
        Codec::MsgPackRecords => binary_fields(&mut NoRecords, bytes, &mut fields)?,
    }
    refuse_twice(&fields, bytes)?;
    Ok(fields)
}

/// The fields of every map of an array, found in one pass. What holds for [`fields`] holds here.
///
/// # Errors
/// As [`fields`], where `bytes` is not one array of nothing but maps.
pub fn maps(codec: Codec, bytes: &[u8]) -> Result<Maps<'_>, CodecError> {
    let mut maps = Maps::default();
    match codec {
        Codec::Json => json_maps(bytes, &mut maps)?,
        Codec::MsgPack => binary_maps(&mut MsgPack, bytes, &mut maps)?,
        Codec::Cbor => binary_maps(&mut Cbor, bytes, &mut maps)?,
        Codec::MsgPackRecords => binary_maps(&mut NoRecords, bytes, &mut maps)?,
    }
    maps.iter().try_for_each(|map| refuse_twice(map, bytes))?;
    Ok(maps)
}

/// Keys that are compared each with each, which takes no memory.
const FEW_KEYS: usize = 8;

fn refuse_twice(fields: &[MapField<'_>], bytes: &[u8]) -> Result<(), CodecError> {
    let is_twice = if fields.len() <= FEW_KEYS {
        let rest = |at: usize| fields.iter().skip(at + 1);
        fields.iter().enumerate().any(|(at, (key, _))| rest(at).any(|(other, _)| other == key))
    } else {
        let mut keys: Vec<&str> = fields.iter().map(|(key, _)| key.as_ref()).collect();
        keys.sort_unstable();
        keys.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
    };
    if is_twice { Err(CodecError::DuplicateKey { at: bytes.len() }) } else { Ok(()) }
}

/// An array's elements in order, as the verbatim bytes of each. What holds for [`fields`] holds
/// here.
///
/// # Errors
/// As [`fields`], where `bytes` is not one array.
pub fn elements(codec: Codec, bytes: &[u8]) -> Result<Vec<&[u8]>, CodecError> {
    match codec {
        Codec::Json => {
            let elements = json_top(bytes, ArrayVisitor, DatumKind::Array)?;
            refuse_deep_json(bytes, elements.iter().copied(), 1)?;
            Ok(elements)
        }
        Codec::MsgPack => binary_elements(&mut MsgPack, bytes),
        Codec::Cbor => binary_elements(&mut Cbor, bytes),
        Codec::MsgPackRecords => binary_elements(&mut NoRecords, bytes),
    }
}

/// The kind of a datum, told by its head alone. `None` where it begins like no datum.
pub fn kind(codec: Codec, bytes: &[u8]) -> Option<DatumKind> {
    let head = match codec {
        Codec::Json => return json_kind(bytes),
        _ => head(codec, &mut DatumInput::new(bytes)).ok()?,
    };
    Some(match head {
        ItemHead::Null => DatumKind::Null,
        ItemHead::Bool(_) => DatumKind::Bool,
        ItemHead::I64(_) | ItemHead::U64(_) => DatumKind::Int,
        ItemHead::F64(_) => DatumKind::Float,
        ItemHead::Text(_) => DatumKind::Text,
        ItemHead::Bytes(_) => DatumKind::Bytes,
        ItemHead::Array(_) => DatumKind::Array,
        ItemHead::Map(_) | ItemHead::Record(_) => DatumKind::Map,
        ItemHead::Break => return None,
    })
}

/// A datum that is text.
///
/// # Errors
/// [`CodecError`] where `bytes` is not one text.
pub fn read_text(codec: Codec, bytes: &[u8]) -> Result<Cow<'_, str>, CodecError> {
    if codec == Codec::Json {
        return json_top(bytes, TextSeed, DatumKind::Text);
    }
    let mut input = DatumInput::new(bytes);
    let ItemHead::Text(len) = head(codec, &mut input)? else {
        return Err(CodecError::WrongKind { expected: DatumKind::Text });
    };
    let text = match codec {
        Codec::Cbor => string(&mut Cbor, &mut input, len, 0)?,
        Codec::Json | Codec::MsgPack | Codec::MsgPackRecords => {
            string(&mut MsgPack, &mut input, len, 0)?
        }
    };
    input.finish()?;
    Ok(text)
}

/// A datum that is bytes. JSON, which has none, carries them as base64url text without padding
/// (RFC 4648 §5); a last character whose unused bits are not zero is refused.
///
/// # Errors
/// [`CodecError`] where `bytes` is not one such datum.
pub fn read_bytes(codec: Codec, bytes: &[u8]) -> Result<Cow<'_, [u8]>, CodecError> {
    let wrong = CodecError::WrongKind { expected: DatumKind::Bytes };
    if codec == Codec::Json {
        let text = read_text(codec, bytes).map_err(|_| wrong.clone())?;
        let decoded = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(text.as_bytes());
        return decoded.map(Cow::Owned).map_err(|_| wrong);
    }
    let mut input = DatumInput::new(bytes);
    let ItemHead::Bytes(len) = head(codec, &mut input)? else { return Err(wrong) };
    let content = match codec {
        Codec::Cbor => string_bytes(&mut Cbor, &mut input, len)?,
        Codec::Json | Codec::MsgPack | Codec::MsgPackRecords => {
            string_bytes(&mut MsgPack, &mut input, len)?
        }
    };
    input.finish()?;
    Ok(content)
}

/// A datum that is an integer from 0 up. A float of the same value up to 2^53 will do: the
/// encoders of JavaScript, which has no integers, write large ones so.
///
/// # Errors
/// [`CodecError`] where `bytes` is not one such number.
pub fn read_u64(codec: Codec, bytes: &[u8]) -> Result<u64, CodecError> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if codec == Codec::Json
        && let Some(number) = json::plain_number(bytes)
    {
        return Ok(number);
    }
    let wrong = CodecError::WrongKind { expected: DatumKind::Int };
    match scalar(codec, bytes, DatumKind::Int)? {
        ItemHead::I64(n) => u64::try_from(n).map_err(|_| wrong),
        ItemHead::U64(n) => Ok(n),
        ItemHead::F64(n) if n.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&n) => Ok(n as u64),
        _ => Err(wrong),
    }
}

/// A datum that is true or false.
///
/// # Errors
/// [`CodecError`] where `bytes` is neither.
pub fn read_bool(codec: Codec, bytes: &[u8]) -> Result<bool, CodecError> {
    match scalar(codec, bytes, DatumKind::Bool)? {
        ItemHead::Bool(bool) => Ok(bool),
        _ => Err(CodecError::WrongKind { expected: DatumKind::Bool }),
    }
}

fn head(codec: Codec, input: &mut DatumInput<'_>) -> Result<ItemHead, CodecError> {
    match codec {
        Codec::Cbor => cbor::head(input),
        Codec::MsgPackRecords => NoRecords.head(input),
        Codec::Json | Codec::MsgPack => msgpack::head(input),
    }
}

pub(crate) fn scalar(
    codec: Codec,
    bytes: &[u8],
    expected: DatumKind,
) -> Result<ItemHead, CodecError> {
    if codec == Codec::Json {
        return json_top(bytes, Scalar, expected);
    }
    let mut input = DatumInput::new(bytes);
    let head = head(codec, &mut input)?;
    if matches!(head, ItemHead::Bool(_) | ItemHead::I64(_) | ItemHead::U64(_) | ItemHead::F64(_)) {
        input.finish()?;
    }
    Ok(head)
}

fn binary_fields<'a, F: BinaryFormat>(
    format: &mut F,
    bytes: &'a [u8],
    fields: &mut Vec<MapField<'a>>,
) -> Result<(), CodecError> {
    let mut input = DatumInput::new(bytes);
    binary_map(format, &mut input, 0, fields)?;
    input.finish()
}

/// Reads the fields of a map that stands inside `level` containers.
fn binary_map<'a, F: BinaryFormat>(
    format: &mut F,
    input: &mut DatumInput<'a>,
    level: usize,
    fields: &mut Vec<MapField<'a>>,
) -> Result<(), CodecError> {
    let (start, before) = (input.at(), fields.len());
    let ItemHead::Map(len) = format.head(input)? else {
        return Err(CodecError::WrongKind { expected: DatumKind::Map });
    };
    plausible(input, len, 2, start)?;
    while more(input, len, (fields.len() - before) as u64) {
        let at = input.at();
        let len = text_key(format, input)?;
        let key = string(format, input, len, at)?;
        let start = input.at();
        skip(format, input, level + 1)?;
        fields.push((key, input.since(start)));
        bounded(fields.len(), input)?;
    }
    Ok(())
}

fn binary_maps<'a, F: BinaryFormat>(
    format: &mut F,
    bytes: &'a [u8],
    maps: &mut Maps<'a>,
) -> Result<(), CodecError> {
    let mut input = DatumInput::new(bytes);
    let ItemHead::Array(len) = format.head(&mut input)? else {
        return Err(CodecError::WrongKind { expected: DatumKind::Array });
    };
    plausible(&input, len, 1, 0)?;
    while more(&mut input, len, maps.ends.len() as u64) {
        let start = input.at();
        binary_map(format, &mut input, 1, &mut maps.fields)?;
        maps.lengths.push(input.at() - start);
        maps.close();
        if maps.is_too_large() {
            return Err(CodecError::TooLarge { at: input.at() });
        }
    }
    input.finish()
}

fn binary_elements<'a, F: BinaryFormat>(
    format: &mut F,
    bytes: &'a [u8],
) -> Result<Vec<&'a [u8]>, CodecError> {
    let mut input = DatumInput::new(bytes);
    let ItemHead::Array(len) = format.head(&mut input)? else {
        return Err(CodecError::WrongKind { expected: DatumKind::Array });
    };
    plausible(&input, len, 1, 0)?;
    let mut elements = Vec::new();
    while more(&mut input, len, elements.len() as u64) {
        let start = input.at();
        skip(format, &mut input, 1)?;
        elements.push(input.since(start));
        bounded(elements.len(), &input)?;
    }
    input.finish()?;
    Ok(elements)
}

/// Refuses more values than one datum may have: a list of spans is larger than small values are.
fn bounded(values: usize, input: &DatumInput<'_>) -> Result<(), CodecError> {
    if values > MAX_VALUES { Err(CodecError::TooLarge { at: input.at() }) } else { Ok(()) }
}

/// The text whose head stood `at`, borrowed unless it comes in chunks.
fn string<'a, F: BinaryFormat>(
    format: &mut F,
    input: &mut DatumInput<'a>,
    len: ItemLength,
    at: usize,
) -> Result<Cow<'a, str>, CodecError> {
    let utf8 = |part| simdutf8::basic::from_utf8(part).map_err(|_| CodecError::NotUnicode { at });
    if let Some(len) = len {
        return Ok(Cow::Borrowed(utf8(take(input, len, at)?)?));
    }
    let mut text = String::new();
    while !input.eat(0xff) {
        let ItemHead::Text(Some(len)) = format.head(input)? else {
            return Err(CodecError::Malformed { codec: F::CODEC, at });
        };
        text.push_str(utf8(take(input, len, at)?)?);
    }
    Ok(Cow::Owned(text))
}

/// The bytes behind their head, borrowed unless they come in chunks.
fn string_bytes<'a, F: BinaryFormat>(
    format: &mut F,
    input: &mut DatumInput<'a>,
    len: ItemLength,
) -> Result<Cow<'a, [u8]>, CodecError> {
    if let Some(len) = len {
        return Ok(Cow::Borrowed(take(input, len, 0)?));
    }
    let mut bytes = Vec::new();
    while !input.eat(0xff) {
        let ItemHead::Bytes(Some(len)) = format.head(input)? else {
            return Err(CodecError::Malformed { codec: F::CODEC, at: 0 });
        };
        bytes.extend_from_slice(take(input, len, 0)?);
    }
    Ok(Cow::Owned(bytes))
}

/// By which the parser's error tells that there are more values than there may be.
const TOO_MANY: &str = "too many values";

fn json_maps<'a>(bytes: &'a [u8], maps: &mut Maps<'a>) -> Result<(), CodecError> {
    let is_array = json_kind(bytes) == Some(DatumKind::Array);
    let expected = if is_array { DatumKind::Map } else { DatumKind::Array };
    json_top(bytes, MapsOf(maps), expected)?;
    maps.measure_json(bytes);
    refuse_deep_json(bytes, maps.fields.iter().map(|(_, value)| *value), 2)
}

/// Reads a JSON datum with a visitor that refuses all kinds but one.
fn json_top<'a, V: Visitor<'a>>(
    bytes: &'a [u8],
    visitor: V,
    expected: DatumKind,
) -> Result<V::Value, CodecError> {
    let text = json::text(bytes)?;
    let mut parser = serde_json::Deserializer::from_str(text);
    let read = parser.deserialize_any(visitor).map_err(|error| {
        if error.is_data() && error.to_string().starts_with(TOO_MANY) {
            CodecError::TooLarge { at: json::offset(&error, text) }
        } else if error.is_data() {
            CodecError::WrongKind { expected }
        } else {
            json::failure(&error, text)
        }
    })?;
    parser.end().map_err(|error| json::failure(&error, text))?;
    Ok(read)
}

/// The parser steps over values of any depth, so that the depth of each is looked at behind it.
/// They stand in `text`, inside `level` containers.
fn refuse_deep_json<'a>(
    text: &[u8],
    mut values: impl Iterator<Item = &'a [u8]>,
    level: usize,
) -> Result<(), CodecError> {
    values.try_for_each(|value| {
        // So few brackets, wherever they stand, cannot be too deep, and are counted much faster.
        if opening_brackets(value) <= MAX_DEPTH - level {
            return Ok(());
        }
        let start = (value.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        count_brackets(value, start, level)
    })
}

/// Brackets that open, in strings too. A count that fits into a byte is what the processor counts
/// for many bytes at once.
fn opening_brackets(value: &[u8]) -> usize {
    let is_bracket = |byte: &u8| u8::from(matches!(byte, b'[' | b'{'));
    let count = |part: &[u8]| usize::from(part.iter().map(is_bracket).sum::<u8>());
    value.chunks(usize::from(u8::MAX)).map(count).sum()
}

/// Counts brackets outside strings.
fn count_brackets(value: &[u8], start: usize, level: usize) -> Result<(), CodecError> {
    let (mut depth, mut at) = (level, 0);
    while let Some(&byte) = value.get(at) {
        match byte {
            b'"' => at = json::after_string(value, at) - 1,
            b'[' | b'{' if depth == MAX_DEPTH => {
                return Err(CodecError::TooDeep { at: start + at });
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

fn json_kind(bytes: &[u8]) -> Option<DatumKind> {
    let text = bytes.trim_ascii();
    Some(match text.first()? {
        b'n' => DatumKind::Null,
        b't' | b'f' => DatumKind::Bool,
        b'"' => DatumKind::Text,
        b'[' => DatumKind::Array,
        b'{' => DatumKind::Map,
        b'-' | b'0'..=b'9' => {
            let is_float = |byte: &u8| matches!(byte, b'.' | b'e' | b'E');
            if text == b"-0" || text.iter().any(is_float) {
                DatumKind::Float
            } else {
                DatumKind::Int
            }
        }
        _ => return None,
    })
}

/// Puts the fields of a map behind those that are there.
struct MapFieldsSeed<'f, 'de>(&'f mut Vec<MapField<'de>>);

impl<'de> serde::de::DeserializeSeed<'de> for MapFieldsSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MapFieldsSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let MapFieldsSeed(fields) = self;
        while let Some(key) = map.next_key_seed(TextSeed)? {
            let value: &RawValue = map.next_value()?;
            fields.push((key, value.get().as_bytes()));
            if fields.len() > MAX_VALUES {
                return Err(serde::de::Error::custom(TOO_MANY));
            }
        }
        Ok(())
    }
}

struct MapsOf<'m, 'de>(&'m mut Maps<'de>);

impl<'de> Visitor<'de> for MapsOf<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of maps")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let MapsOf(maps) = self;
        while array.next_element_seed(MapFieldsSeed(&mut maps.fields))?.is_some() {
            maps.close();
            if maps.is_too_large() {
                return Err(serde::de::Error::custom(TOO_MANY));
            }
        }
        Ok(())
    }
}

struct ArrayVisitor;

impl<'de> Visitor<'de> for ArrayVisitor {
    type Value = Vec<&'de [u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = array.next_element::<&RawValue>()? {
            elements.push(element.get().as_bytes());
            if elements.len() > MAX_VALUES {
                return Err(serde::de::Error::custom(TOO_MANY));
            }
        }
        Ok(elements)
    }
}

struct TextSeed;

impl<'de> serde::de::DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<Self::Value, D::Error> {
        parser.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct Scalar;

impl Visitor<'_> for Scalar {
    type Value = ItemHead;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a boolean")
    }

    fn visit_bool<E: serde::de::Error>(self, bool: bool) -> Result<ItemHead, E> {
        Ok(ItemHead::Bool(bool))
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<ItemHead, E> {
        Ok(ItemHead::I64(n))
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<ItemHead, E> {
        Ok(ItemHead::U64(n))
    }

    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<ItemHead, E> {
        Ok(ItemHead::F64(n))
    }
}
