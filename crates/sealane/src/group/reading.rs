//! A subscription's deliveries, opened.

use std::borrow::Cow;

use sealane_codec::Codec;
use sealane_frame::FrameError;
use sealane_message::Topic;
use sealane_protocol::SealedEnvelope;
use sealane_seal::policy::PolicyRefusal;
use sealane_seal::{Epoch, Error as SealError};

use super::keys::SealedMessageOrigin;
use super::seen::{DuplicateVerdict, HubPosition, MessageIdentity, SeenMessages, SenderStart};
use super::{DEAD, GroupClient};
use crate::error::DeliveryRejection;
use crate::{ReceivedMessage, Seal, SealCounts};

/// The reader of one subscription.
#[derive(Debug)]
pub(crate) struct SubscriptionOpener {
    group: GroupClient,
    /// The epoch of the last message that opened.
    cursor: Epoch,
    seen: SeenMessages,
    counts: SealCounts,
}

impl SubscriptionOpener {
    /// A reader for itself, or one member of a consumer, to whom the same message may come again.
    pub(crate) fn new(group: GroupClient, is_consumer: bool) -> Self {
        let cursor = group.keys().newest();
        Self { group, cursor, seen: SeenMessages::new(is_consumer), counts: SealCounts::default() }
    }

    pub(crate) fn group(&self) -> &GroupClient {
        &self.group
    }

    pub(crate) fn counts(&self) -> SealCounts {
        SealCounts { skipped: self.seen.skipped(), ..self.counts }
    }

    /// Opens a message as it came.
    pub(crate) fn open(
        &mut self,
        message: &ReceivedMessage,
    ) -> Result<ReceivedMessage, DeliveryRejection> {
        let DeliveredFrame { frame, letter_of } = find(message)?;
        self.group.met(&message.stream);
        let place = SealedMessageOrigin {
            stream: letter_of.as_ref().unwrap_or(&message.stream),
            kept_in: &message.stream,
            generation: message.generation,
            offset: message.offset,
        };
        let shown = self.group.keys().open(self.cursor, place, frame)?;
        self.group.hinted(shown.orders);
        let opened = &shown.opened;
        let sender =
            SenderStart { epoch: opened.epoch(), slot: opened.slot(), context: opened.context() };
        // Where no mark tells where a removal began, its first message does.
        let is_late = sender.epoch < shown.live_from
            && self.seen.newest(&message.stream) >= Some(shown.live_from);
        if is_late {
            return Err(DeliveryRejection::Posthumous);
        }
        self.cursor = sender.epoch;
        let origin = HubPosition::of(message);
        let identity = MessageIdentity { sender, counter: opened.counter() };
        if self.seen.see(identity, &message.stream, origin) == DuplicateVerdict::Elsewhere {
            return Err(DeliveryRejection::Repeated);
        }
        self.counts.opened += 1;
        let seal = Seal {
            group: self.group.tag(),
            sender: shown.sender,
            slot: sender.slot.number(),
            class: opened.class(),
            data_type: shown.data_type,
            epoch: sender.epoch.0,
            context: sender.context,
            counter: opened.counter(),
            time_ms: shown.time_ms,
        };
        Ok(message.opened(shown.codec, shown.envelope, seal))
    }

    /// Counts a delivery that is not shown.
    pub(crate) fn count(&mut self, refusal: &DeliveryRejection) {
        let count = match refusal {
            DeliveryRejection::Repeated => &mut self.counts.repeated,
            DeliveryRejection::Posthumous => &mut self.counts.behind_removal,
            DeliveryRejection::Early(_)
            | DeliveryRejection::Frame(FrameError::Seal(SealError::EpochUnknown)) => {
                &mut self.counts.keys_unknown
            }
            DeliveryRejection::Policy(PolicyRefusal::BelowFloor { .. }) => {
                &mut self.counts.below_floor
            }
            _ => &mut self.counts.refused,
        };
        *count += 1;
    }
}

/// A sealed message's frame.
struct DeliveredFrame {
    frame: Vec<u8>,
    /// Of a dead letter, the stream that the message was sealed for, as the letter says: if it is
    /// another one, the frame does not open.
    letter_of: Option<Topic>,
}

fn find(message: &ReceivedMessage) -> Result<DeliveredFrame, DeliveryRejection> {
    let read = |codec: Codec, envelope: &[u8]| {
        let sealed = SealedEnvelope::read(codec, envelope).ok().flatten()?;
        Some(sealed.frame.into_owned())
    };
    if let Some(frame) = read(message.codec, &message.envelope) {
        return Ok(DeliveredFrame { frame, letter_of: None });
    }
    let fields = sealane_codec::fields(message.codec, &message.envelope);
    let fields = fields.map_err(|_| DeliveryRejection::NotSealed)?;
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, raw)| *raw);
    let text = |name: &str| -> Option<Cow<'_, str>> {
        sealane_codec::read_text(message.codec, field(name)?).ok()
    };
    if !message.stream.as_str().starts_with(DEAD) || text("type").as_deref() != Some("dead-letter")
    {
        return Err(DeliveryRejection::NotSealed);
    }
    let letter_of = text("stream").and_then(|stream| stream.parse().ok());
    let frame = field("envelope").and_then(|envelope| read(message.codec, envelope));
    match (letter_of, frame) {
        (Some(stream), Some(frame)) => Ok(DeliveredFrame { frame, letter_of: Some(stream) }),
        _ => Err(DeliveryRejection::NotSealed),
    }
}
