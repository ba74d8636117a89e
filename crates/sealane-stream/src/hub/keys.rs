//! The keys under which a request is done once.

use sealane_protocol::limits::MAX_IDEMPOTENCY_KEY_BYTES;

use crate::Error;
use crate::envelope::StreamEnvelope;
use crate::store::StoredRequestKey;

/// A key under which the same request is done once.
#[derive(Debug, Clone)]
pub struct IdempotencyKey(pub(super) EnqueueKeys);

/// The unit that a key makes happen once.
#[derive(Debug, Clone)]
pub(super) enum EnqueueKeys {
    /// The request.
    Whole(StoredRequestKey),
    /// Each message of it.
    Each(Vec<StoredRequestKey>),
}

impl IdempotencyKey {
    /// The key that a client, known by `token`, gave to the request `body`.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where the key is empty or too long.
    pub fn new(token: &[u8], key: &[u8], body: &[u8]) -> Result<Self, Error> {
        if key.is_empty() || key.len() > MAX_IDEMPOTENCY_KEY_BYTES {
            let cause = "is not 1 to 128 bytes";
            return Err(Error::parameter("Idempotency-Key", cause));
        }
        let mut hash = [0; 16];
        blake3::Hasher::new().update(body).finalize_xof().fill(&mut hash);
        // The length stands first, so that no token and key make another's.
        let key = [&(token.len() as u32).to_le_bytes(), token, key].concat();
        Ok(Self(EnqueueKeys::Whole(StoredRequestKey { key, body: hash })))
    }

    /// The key that the hub itself makes of messages: the same ones are stored once, whoever brings
    /// them. Each is given as it came, and as it was read. No client can name such a key, or have
    /// it for other messages.
    pub fn of_content(came: &[&[u8]], read: &[StreamEnvelope]) -> Self {
        Self(EnqueueKeys::Whole(content_key(came, read)))
    }

    /// The keys that the hub makes of each message of a batch. A message has the same one if it
    /// comes alone. Those that the stream has already are left out of the batch, and the answer
    /// tells of the others.
    pub fn of_each(came: &[&[u8]], read: &[StreamEnvelope]) -> Self {
        let one = |(raw, envelope)| {
            content_key(std::slice::from_ref(raw), std::slice::from_ref(envelope))
        };
        Self(EnqueueKeys::Each(came.iter().zip(read).map(one).collect()))
    }
}

/// The key of messages that are known by what they are.
fn content_key(came: &[&[u8]], read: &[StreamEnvelope]) -> StoredRequestKey {
    let mut hasher = blake3::Hasher::new_derive_key("sealane message of a stream v1");
    for (raw, envelope) in came.iter().zip(read) {
        // Relays change 17 bytes of a frame. Two gateways would else store the same frame twice.
        let content = envelope.sealed_content().unwrap_or(raw);
        hasher.update(&[envelope.content.id()]);
        // Its length, so that no two lists of messages are the same bytes.
        hasher.update(&(content.len() as u64).to_le_bytes());
        hasher.update(content);
    }
    let hash = hasher.finalize();
    let mut body = [0; 16];
    hasher.finalize_xof().fill(&mut body);
    // No token's name is so long.
    StoredRequestKey { key: [&u32::MAX.to_le_bytes(), hash.as_bytes().as_slice()].concat(), body }
}
