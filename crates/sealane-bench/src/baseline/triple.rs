//! A rich message in JSON, in JSON, in JSON: the bytes of the inner layers as arrays of numbers, as
//! the report's pipeline wrote them, or as base64, as the report believed.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// How the bytes of an inner layer stand in the outer one.
pub(crate) trait NestedEncoding: Sized {
    const NAME: &'static str;

    fn wrap(bytes: &[u8]) -> Self;
    fn open(self) -> Option<Vec<u8>>;
}

/// `[123,34,…]`: what serde makes of bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct NumberArray(Vec<u8>);

/// `"eyJ…"`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Base64Text(String);

impl NestedEncoding for NumberArray {
    const NAME: &'static str = "number arrays";

    fn wrap(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    fn open(self) -> Option<Vec<u8>> {
        Some(self.0)
    }
}

impl NestedEncoding for Base64Text {
    const NAME: &'static str = "base64";

    fn wrap(bytes: &[u8]) -> Self {
        Self(base64_simd::STANDARD.encode_to_string(bytes))
    }

    fn open(self) -> Option<Vec<u8>> {
        base64_simd::STANDARD.decode_to_vec(self.0).ok()
    }
}

/// The record of 21 fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RichRecord {
    id: String,
    thread_id: Option<String>,
    // Its name on the report's wire.
    #[serde(rename = "channel_id")]
    conversation: String,
    sender: String,
    sender_device: String,
    content: RichContent,
    attachments: Vec<String>,
    mentions: Vec<String>,
    reply_to: Option<String>,
    thread_count: u32,
    last_thread_reply: Option<String>,
    reactions: HashMap<String, Vec<String>>,
    read_by: HashMap<String, String>,
    delivered_to: HashMap<String, String>,
    created_at: String,
    edited_at: Option<String>,
    deleted_at: Option<String>,
    expires_at: Option<String>,
    ephemeral: bool,
    encryption: String,
    signature: RichSignature,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum RichContent {
    Text(String),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct RichSignature {
    algorithm: String,
    signature: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
struct EncryptedRecord<I> {
    id: String,
    #[serde(rename = "channel_id")]
    conversation: String,
    sender: String,
    ciphertext: I,
    nonce: Vec<u8>,
    key_id: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordWrapper<I> {
    protocol: String,
    data: I,
    from: String,
    timestamp: u64,
}

const SENDER: &str = "ocean-forest-moon-star";

/// Identifiers with so many hexadecimal digits from d to f, which take three decimal digits as
/// bytes and not two: the sizes depend on them.
fn ids(letters: usize) -> [String; 2] {
    let id = |letters: usize| {
        let mut left = letters;
        let digit = |character| match character {
            '0' if left > 0 => {
                left -= 1;
                'f'
            }
            other => other,
        };
        "00000000-0000-4000-8000-000000000000".chars().map(digit).collect()
    };
    [id(letters.min(28)), id(letters.saturating_sub(28))]
}

/// Those digits in the inner and outer layer of the report's sizes.
fn letters(kib: usize) -> (usize, usize) {
    match kib {
        8 => (12, 14),
        64 => (6, 10),
        _ => (9, 10),
    }
}

impl RichRecord {
    /// The message of the report: text of so many KiB.
    pub(crate) fn new(kib: usize) -> Self {
        Self::with_text("x".repeat(kib << 10), letters(kib).0)
    }

    pub(crate) fn with_text(text: String, letters: usize) -> Self {
        let [id, conversation] = ids(letters);
        Self {
            id,
            thread_id: None,
            conversation,
            sender: SENDER.into(),
            sender_device: "primary".into(),
            content: RichContent::Text(text),
            attachments: vec![],
            mentions: vec![],
            reply_to: None,
            thread_count: 0,
            last_thread_reply: None,
            reactions: HashMap::new(),
            read_by: HashMap::new(),
            delivered_to: HashMap::new(),
            created_at: "2026-01-29T12:34:56.123456789Z".into(),
            edited_at: None,
            deleted_at: None,
            expires_at: None,
            ephemeral: false,
            encryption: "E2E".into(),
            signature: RichSignature::default(),
        }
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// In a codec whose ends both know the record: no names, no kinds, no lengths of what is fixed.
    pub(crate) fn to_postcard(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    pub(crate) fn from_postcard(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    pub(crate) fn from_json(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// Layer 2 around layer 1. The report encrypts nothing here, and neither does this.
pub(crate) fn encrypt<I: NestedEncoding + Serialize>(kib: usize, rich: &[u8]) -> Vec<u8> {
    let [id, conversation] = ids(letters(kib).1);
    let (sender, key_id) = (SENDER.into(), format!("key_{kib}"));
    let (ciphertext, nonce) = (I::wrap(rich), vec![0; 12]);
    let layer = EncryptedRecord { id, conversation, sender, ciphertext, nonce, key_id };
    serde_json::to_vec(&layer).unwrap_or_default()
}

pub(crate) fn decrypt<I: NestedEncoding + for<'a> Deserialize<'a>>(
    bytes: &[u8],
) -> Option<Vec<u8>> {
    serde_json::from_slice::<EncryptedRecord<I>>(bytes).ok()?.ciphertext.open()
}

/// Layer 3 around layer 2.
pub(crate) fn wrap<I: NestedEncoding + Serialize>(encrypted: &[u8]) -> Vec<u8> {
    let (protocol, from) = ("test".into(), "test-peer-id".into());
    let layer =
        RecordWrapper { protocol, data: I::wrap(encrypted), from, timestamp: 1_769_690_096 };
    serde_json::to_vec(&layer).unwrap_or_default()
}

pub(crate) fn unwrap<I: NestedEncoding + for<'a> Deserialize<'a>>(bytes: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice::<RecordWrapper<I>>(bytes).ok()?.data.open()
}

/// All three layers, there and back.
pub(crate) fn round_trip<I: NestedEncoding + Serialize + for<'a> Deserialize<'a>>(
    kib: usize,
    rich: &RichRecord,
) -> Option<RichRecord> {
    let wire = wrap::<I>(&encrypt::<I>(kib, &rich.to_json()));
    RichRecord::from_json(&decrypt::<I>(&unwrap::<I>(&wire)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes<I: NestedEncoding + Serialize>(kib: usize) -> [usize; 3] {
        let rich = RichRecord::new(kib).to_json();
        let encrypted = encrypt::<I>(kib, &rich);
        [rich.len(), encrypted.len(), wrap::<I>(&encrypted).len()]
    }

    #[test]
    fn layers_have_the_sizes_of_the_reports_pipeline() {
        assert_eq!(sizes::<NumberArray>(8), [8703, 34_751, 104_394]);
        assert_eq!(sizes::<NumberArray>(64), [66_047, 264_122, 792_503]);
        assert_eq!(sizes::<NumberArray>(256), [262_655, 1_050_558, 3_151_811]);
        assert_eq!(sizes::<Base64Text>(8)[2], 15_810);
        assert_eq!(sizes::<Base64Text>(64)[2], 117_758);
        assert_eq!(sizes::<Base64Text>(256)[2], 467_286);
    }

    #[test]
    fn what_went_in_comes_out() {
        let rich = RichRecord::new(8);
        assert_eq!(round_trip::<NumberArray>(8, &rich).as_ref(), Some(&rich));
        assert_eq!(round_trip::<Base64Text>(8, &rich).as_ref(), Some(&rich));
        assert_eq!(RichRecord::from_postcard(&rich.to_postcard()), Some(rich));
    }
}
