use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_message::time::whole_ms;
use sealane_message::{Topic, Value};
use sealane_protocol::Deliver;

use crate::Error;
use crate::Seal;
use crate::subscription::SubscriptionShared;

/// One message, as it was delivered or read.
#[derive(Clone)]
pub struct ReceivedMessage {
    /// Its stream.
    pub stream: Topic,
    /// Its offset in the stream.
    pub offset: u64,
    /// The generation in which it was appended.
    pub generation: u64,
    /// How often it has been delivered, counting this time; 1 for who reads for itself.
    pub attempt: u32,
    /// When the hub stored it, in Unix milliseconds by its clock; 0: an older hub does not say it.
    pub stored_ms: u64,
    /// The envelope's codec. Of a sealed message it is the publisher's.
    pub codec: Codec,
    /// The envelope, a map; as it was written, but translated where the codecs differ. Of a sealed
    /// message, if it was read with the keys of its group, what was sealed.
    pub envelope: Bytes,
    /// The sender and the kind of the seal, if the message was read with the keys of a group.
    pub seal: Option<Seal>,
    origin: Option<AckTarget>,
}

/// Where an acknowledgement goes.
#[derive(Clone)]
struct AckTarget {
    shared: Arc<SubscriptionShared>,
    connection: u64,
}

impl ReceivedMessage {
    pub(crate) fn new(codec: Codec, deliver: Deliver) -> Self {
        Self {
            stream: deliver.stream,
            offset: deliver.offset,
            generation: deliver.generation,
            attempt: deliver.attempt,
            stored_ms: deliver.stored_ms,
            codec,
            envelope: deliver.envelope,
            seal: None,
            origin: None,
        }
    }

    /// The message as it was before it was sealed.
    #[cfg(feature = "group")]
    pub(crate) fn opened(&self, codec: Codec, envelope: Bytes, seal: Seal) -> Self {
        Self { codec, envelope, seal: Some(seal), ..self.clone() }
    }

    /// Where it is acknowledged.
    pub(crate) fn came_by(&mut self, shared: &Arc<SubscriptionShared>, connection: u64) {
        self.origin = Some(AckTarget { shared: Arc::clone(shared), connection });
    }

    /// The envelope, decoded.
    ///
    /// # Errors
    /// [`Error::Codec`]; not for what a hub has accepted.
    pub fn value(&self) -> Result<Value, Error> {
        Ok(sealane_codec::decode(self.codec, &self.envelope)?)
    }

    /// Says that this message is done. It costs no request: acknowledgements are gathered for a
    /// few milliseconds and sent as ranges. For who reads for itself, and after
    /// [`crate::Subscription::close`], it does nothing.
    pub fn ack(&self) {
        if let Some(origin) = &self.origin {
            origin.shared.ack(&self.stream, self.offset, origin.connection);
        }
    }

    /// Asks for this message again, after `delay`. As with [`ReceivedMessage::ack`] nothing happens
    /// for who reads for itself.
    pub fn nack(&self, delay: Duration) {
        if let Some(origin) = &self.origin {
            let delay_ms = whole_ms(delay);
            origin.shared.nack(&self.stream, self.offset, delay_ms, origin.connection);
        }
    }
}

impl fmt::Debug for ReceivedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("stream", &self.stream)
            .field("offset", &self.offset)
            .field("generation", &self.generation)
            .field("attempt", &self.attempt)
            .field("stored_ms", &self.stored_ms)
            .field("codec", &self.codec)
            .field("envelope", &self.envelope)
            .field("seal", &self.seal)
            .finish_non_exhaustive()
    }
}
