//! In place of the module `group`, where the feature of that name is off: there are no keys, and so
//! there can be no group to seal with or to open by.

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_message::{DataType, Topic};

use crate::error::DeliveryRejection;
use crate::publish::PublishBatch;
use crate::{Error, ReceivedMessage, SealCounts};

/// The callers are the same with and without groups, so that they find each stand-in by the name of
/// what it stands for.
pub(crate) use self::{
    NoGroup as GroupClient, NoOpener as SubscriptionOpener, NoSentEnvelopes as SentEnvelopes,
};

/// A group; there is none.
#[derive(Debug, Clone)]
pub(crate) enum NoGroup {}

impl NoGroup {
    pub(crate) fn seal_now(
        &self,
        _: &str,
        _: DataType,
        _: Codec,
        _: &[u8],
    ) -> Result<NoSealedEnvelope, Error> {
        match *self {}
    }

    pub(crate) fn sent(&self, _: NoSentEnvelopes, _: &Topic, _: u64, _: u64) {
        match *self {}
    }

    pub(crate) fn publish_batch<E>(&self, _: &str, _: DataType, _: Codec, _: &[E]) -> PublishBatch {
        match *self {}
    }

    pub(crate) async fn catch_up(&self) -> Result<(), Error> {
        match *self {}
    }
}

/// A sealed envelope; there is none.
pub(crate) struct NoSealedEnvelope {
    pub(crate) bytes: Vec<u8>,
    pub(crate) epoch: u64,
}

/// Envelopes that were sealed; there are none.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "only groups read it")]
pub(crate) struct NoSentEnvelopes {
    pub(crate) epoch: u64,
    pub(crate) data_type: DataType,
    pub(crate) codec: Codec,
    pub(crate) envelopes: Vec<Bytes>,
}

/// The opener of messages; there is none.
#[derive(Debug)]
pub(crate) enum NoOpener {}

impl NoOpener {
    pub(crate) fn new(group: NoGroup, _: bool) -> Self {
        match group {}
    }

    pub(crate) fn group(&self) -> &NoGroup {
        match *self {}
    }

    pub(crate) fn open(
        &mut self,
        _: &ReceivedMessage,
    ) -> Result<ReceivedMessage, DeliveryRejection> {
        match *self {}
    }

    pub(crate) fn count(&mut self, _: &DeliveryRejection) {
        match *self {}
    }

    pub(crate) fn counts(&self) -> SealCounts {
        match *self {}
    }
}

/// The codec of the envelope around a frame.
pub(crate) const SEALED_IN: Codec = Codec::MsgPack;
