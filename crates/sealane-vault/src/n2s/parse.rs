//! JSON of every form, from any writer.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{Error, write};
use crate::limits::MAX_DESCRIPTION_ENDS;

/// A blob before anything in it was compared.
#[derive(Debug)]
pub(super) struct N2sParsedBlob {
    pub(super) form: u8,
    pub(super) size: u64,
    pub(super) modified_s: f64,
    pub(super) body: N2sBody,
}

#[derive(Debug)]
pub(super) enum N2sBody {
    /// Form 2: ciphertext and tag.
    Sealed { path: String, hash: String, content: Vec<u8> },
    /// Form 2: the target of a symbolic link.
    Symlink { path: String, hash: String, target: String },
    /// Forms 3 and 4: LZ4 frames.
    Open { path: Option<String>, frames: Vec<u8> },
}

/// Reads the JSON; says whether it had to be repaired.
pub(super) fn parse(bytes: &[u8]) -> Result<(N2sParsedBlob, bool), Error> {
    if bytes.starts_with(b"age-encryption.org/") {
        return Err(Error::Age);
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(Error::Gzip);
    }
    let text = simdutf8::basic::from_utf8(bytes).map_err(|_| Error::Malformed)?;
    if let Ok(raw) = serde_json::from_str::<N2sRawBlob>(text) {
        return Ok((raw.into_parsed()?, false));
    }
    let parsed = repairs(text).find_map(|repaired| {
        let raw = serde_json::from_str::<N2sRawBlob>(&repaired).ok()?;
        raw.into_parsed().ok()
    });
    Ok((parsed.ok_or(Error::Malformed)?, true))
}

/// The text with its `filetype` escaped, for each place where that may end.
///
/// One writer put the description of a file's type between quotes as it was. That of a gzip file
/// holds the packed file's name in quotes, which nothing escaped.
fn repairs(text: &str) -> impl Iterator<Item = String> {
    let value = text.split_once("\"filetype\"").and_then(|(before, after)| {
        let value = after.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        Some((before, value))
    });
    value.into_iter().flat_map(|(before, value)| {
        let ends = value.match_indices('"').map(|(at, _)| at).filter(|at| ends_there(value, *at));
        ends.take(MAX_DESCRIPTION_ENDS).filter_map(move |at| {
            let (description, after) = value.split_at_checked(at)?;
            let description = write::text(description);
            Some(format!("{before}\"filetype\": {description}{}", after.strip_prefix('"')?))
        })
    })
}

/// Whether a quote is followed by the next key of the metadata or by their end.
fn ends_there(value: &str, at: usize) -> bool {
    let after = value.get(at + 1..).unwrap_or_default().trim_start();
    after.starts_with('}')
        || after.strip_prefix(',').is_some_and(|after| {
            let key = after.trim_start().strip_prefix('"').unwrap_or_default();
            let keys = ["encryption\"", "path\"", "size\"", "mtime\""];
            keys.iter().any(|known| {
                key.strip_prefix(known).is_some_and(|rest| rest.trim_start().starts_with(':'))
            })
        })
}

#[derive(Deserialize)]
struct N2sRawBlob<'a> {
    encrypted_content: Option<N2sBase64>,
    #[serde(borrow)]
    symlink_target: Option<Cow<'a, str>>,
    content: Option<N2sLz4Frames>,
    #[serde(borrow)]
    metadata: N2sMetadata<'a>,
}

#[derive(Deserialize)]
struct N2sMetadata<'a> {
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    size: u64,
    timestamp: Option<f64>,
    mtime: Option<f64>,
    #[serde(borrow)]
    file_hash: Option<Cow<'a, str>>,
    encryption: Option<bool>,
}

impl N2sRawBlob<'_> {
    fn into_parsed(self) -> Result<N2sParsedBlob, Error> {
        let N2sMetadata { path, size, timestamp, mtime, file_hash, encryption } = self.metadata;
        let path = path.map(Cow::into_owned);
        let (form, modified_s, body) = match (self.encrypted_content, self.symlink_target) {
            (Some(N2sBase64(content)), None) if self.content.is_none() => {
                let (path, hash) = path.zip(file_hash).ok_or(Error::Malformed)?;
                (2, timestamp, N2sBody::Sealed { path, hash: hash.into_owned(), content })
            }
            (None, Some(target)) if self.content.is_none() => {
                let (path, hash) = path.zip(file_hash).ok_or(Error::Malformed)?;
                let (hash, target) = (hash.into_owned(), target.into_owned());
                (2, timestamp, N2sBody::Symlink { path, hash, target })
            }
            (None, None) if encryption != Some(true) => {
                let N2sLz4Frames(frames) = self.content.ok_or(Error::Malformed)?;
                (if path.is_some() { 4 } else { 3 }, mtime, N2sBody::Open { path, frames })
            }
            _ => return Err(Error::Malformed),
        };
        Ok(N2sParsedBlob { form, size, modified_s: modified_s.ok_or(Error::Malformed)?, body })
    }
}

/// A text of base64, decoded while it is read.
struct N2sBase64(Vec<u8>);

impl<'de> Deserialize<'de> for N2sBase64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(N2sFramesVisitor(vec![])).map(Self)
    }
}

/// LZ4 frames: one text, or an object that names its encoding and lists pieces. Whether the pieces
/// are frames or parts of one frame makes no difference once they lie one after the other.
struct N2sLz4Frames(Vec<u8>);

impl<'de> Deserialize<'de> for N2sLz4Frames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(N2sFramesVisitor(vec![])).map(Self)
    }
}

/// The bytes decoded so far. Nothing is kept in base64.
struct N2sFramesVisitor(Vec<u8>);

impl<'de> Visitor<'de> for N2sFramesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("base64 text")
    }

    fn visit_str<E: de::Error>(mut self, text: &str) -> Result<Vec<u8>, E> {
        let decoded = base64_simd::STANDARD.decode_append(text, &mut self.0);
        decoded.map_err(|_| E::custom("not base64"))?;
        Ok(self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut pieces: A) -> Result<Vec<u8>, A::Error> {
        while pieces.next_element_seed(N2sBase64Seed(&mut self.0))?.is_some() {}
        Ok(self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<u8>, A::Error> {
        let (mut known, mut pieces) = (false, None);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "encoding" => {
                    let encoding = map.next_value::<Cow<'de, str>>()?;
                    known = matches!(&*encoding, "lz4-multiframe" | "lz4+base64-chunked");
                }
                "frames" | "chunks" if pieces.is_none() => {
                    pieces = Some(map.next_value::<N2sBase64List>()?.0);
                }
                _ => return Err(de::Error::custom("an unknown part of the content")),
            }
        }
        match pieces {
            Some(pieces) if known => Ok(pieces),
            _ => Err(de::Error::custom("an unknown encoding")),
        }
    }
}

/// Texts of base64, decoded one after the other into the same bytes.
struct N2sBase64List(Vec<u8>);

impl<'de> Deserialize<'de> for N2sBase64List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(N2sFramesVisitor(vec![])).map(Self)
    }
}

/// One of them.
struct N2sBase64Seed<'a>(&'a mut Vec<u8>);

impl<'de> de::DeserializeSeed<'de> for N2sBase64Seed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let bytes = std::mem::take(self.0);
        *self.0 = deserializer.deserialize_str(N2sFramesVisitor(bytes))?;
        Ok(())
    }
}
