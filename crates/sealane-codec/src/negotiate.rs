//! Which codec two sides speak. It tells the truth: what is not known is refused with the names
//! that are, never replaced in silence.

use crate::Codec;

/// Nothing that was asked for is known. The message lists what is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no codec known for `{asked}`; known are {}", known())]
pub struct Unknown {
    /// The codecs that were asked for, shortened.
    pub asked: String,
}

impl Unknown {
    fn new(asked: &str) -> Self {
        const SHOWN_CHARS: usize = 100;
        Unknown { asked: asked.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect() }
    }
}

/// The codec that a query parameter or a setting names.
///
/// # Errors
/// [`Unknown`] where the name is not exactly one of ours.
pub fn query(name: &str) -> Result<Codec, Unknown> {
    Codec::from_name(name).ok_or_else(|| Unknown::new(name))
}

/// The codec of a WebSocket sub-protocol offer: the first that is known, in the client's order.
/// `None` where nothing was offered.
///
/// # Errors
/// [`Unknown`] where all that was offered is unknown.
pub fn subprotocols<'a>(
    offered: impl IntoIterator<Item = &'a str>,
) -> Result<Option<Codec>, Unknown> {
    let mut unknown: Vec<&str> = Vec::new();
    for name in offered.into_iter().map(str::trim).filter(|name| !name.is_empty()) {
        match Codec::from_name(name) {
            Some(codec) => return Ok(Some(codec)),
            None => unknown.push(name),
        }
    }
    if unknown.is_empty() { Ok(None) } else { Err(Unknown::new(&unknown.join(", "))) }
}

/// The codec of an `Accept` header (RFC 9110 §12.5.1): the highest quality, then our order. A
/// range's quality for a codec is that of the most specific range which matches it. `None` where
/// the header is empty.
///
/// Ranges with wildcards stand for JSON, MessagePack and CBOR: records need a connection and are
/// only given to who names them.
///
/// # Errors
/// [`Unknown`] where nothing that we can send is acceptable; HTTP answers 406.
pub fn accept(header: &str) -> Result<Option<Codec>, Unknown> {
    let ranges: Vec<MediaRange<'_>> = header.split(',').filter_map(MediaRange::parse).collect();
    if header.trim().is_empty() {
        return Ok(None);
    }
    let quality = |codec: Codec| {
        let matching = ranges.iter().filter_map(|range| range.rank(codec));
        matching.max().map_or(0, |(_, quality)| quality)
    };
    let mut best = None;
    for codec in Codec::ALL {
        let quality = quality(codec);
        if quality > best.map_or(0, |(_, quality)| quality) {
            best = Some((codec, quality));
        }
    }
    best.map(|(codec, _)| Some(codec)).ok_or_else(|| Unknown::new(header))
}

/// The codec of a `Content-Type` header. Case and parameters do not count.
///
/// # Errors
/// [`Unknown`] where the media type is none of ours; HTTP answers 415.
pub fn content_type(header: &str) -> Result<Codec, Unknown> {
    let media_type = header.split(';').next().unwrap_or_default().trim();
    by_media_type(&media_type.to_ascii_lowercase()).ok_or_else(|| Unknown::new(header))
}

const MEDIA_TYPES: [(&str, Codec); 7] = [
    ("application/json", Codec::Json),
    ("text/json", Codec::Json),
    ("application/msgpack", Codec::MsgPack),
    ("application/x-msgpack", Codec::MsgPack),
    ("application/vnd.msgpack", Codec::MsgPack),
    ("application/cbor", Codec::Cbor),
    ("application/vnd.msgpack-records", Codec::MsgPackRecords),
];

fn by_media_type(media_type: &str) -> Option<Codec> {
    let listed = MEDIA_TYPES.iter().find(|(name, _)| *name == media_type).map(|(_, codec)| *codec);
    listed.or_else(|| is_json_suffixed(media_type).then_some(Codec::Json))
}

/// `application/problem+json` and the like (RFC 6839 §3.1).
fn is_json_suffixed(media_type: &str) -> bool {
    let name = media_type.strip_prefix("application/").and_then(|name| name.strip_suffix("+json"));
    name.is_some_and(|name| !name.is_empty())
}

fn known() -> String {
    Codec::ALL.map(Codec::name).join(", ")
}

/// One element of an `Accept` header.
struct MediaRange<'a> {
    media_type: &'a str,
    /// In thousandths, the precision of RFC 9110 §12.4.2.
    quality: u16,
}

impl<'a> MediaRange<'a> {
    fn parse(element: &'a str) -> Option<Self> {
        let mut parts = element.split(';').map(str::trim);
        let media_type = parts.next().filter(|name| !name.is_empty())?;
        let weight = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
        });
        Some(MediaRange { media_type, quality: weight.map_or(1000, thousandths) })
    }

    /// How precisely the range names the codec, and its quality; `None` where it does not.
    fn rank(&self, codec: Codec) -> Option<(u8, u16)> {
        let media_type = self.media_type.to_ascii_lowercase();
        let (precision, matches) = match media_type.as_str() {
            "*/*" => (0, codec != Codec::MsgPackRecords),
            "application/*" => (1, codec != Codec::MsgPackRecords),
            "text/*" => (1, codec == Codec::Json),
            name if name == codec.content_type() => (3, true),
            name => (2, by_media_type(name) == Some(codec)),
        };
        matches.then_some((precision, self.quality))
    }
}

/// A weight that is not a number from 0 to 1 excludes: a client that asks for nothing sensible is
/// better told so than served by guess.
fn thousandths(weight: &str) -> u16 {
    match weight.parse::<f32>() {
        Ok(weight) if (0.0..=1.0).contains(&weight) => (weight * 1000.0).round() as u16,
        _ => 0,
    }
}
