//! In place of the module `group`, where the feature of that name is off: there are no keys, and so
//! there can be no group to seal with or to open by.

use sealane_codec::Codec;
use sealane_message::DataType;

use crate::error::Unshown;
use crate::publish::PublishBatch;
use crate::{Error, Message, SealCounts};

/// A group; there is none.
#[derive(Debug, Clone)]
pub(crate) enum Group {}

impl Group {
    pub(crate) fn seal(&self, _: DataType, _: Codec, _: &[u8]) -> Result<Vec<u8>, Error> {
        match *self {}
    }

    pub(crate) fn publish_batch<E>(&self, _: &str, _: DataType, _: Codec, _: &[E]) -> PublishBatch {
        match *self {}
    }

    pub(crate) async fn catch_up(&self) -> Result<(), Error> {
        match *self {}
    }
}

/// What opens messages; there is none.
#[derive(Debug)]
pub(crate) enum Reading {}

impl Reading {
    pub(crate) fn new(group: Group, _: bool) -> Self {
        match group {}
    }

    pub(crate) fn group(&self) -> &Group {
        match *self {}
    }

    pub(crate) fn open(&mut self, _: &Message) -> Result<Message, Unshown> {
        match *self {}
    }

    pub(crate) fn count(&mut self, _: &Unshown) {
        match *self {}
    }

    pub(crate) fn counts(&self) -> SealCounts {
        match *self {}
    }
}

/// The codec of the envelope around a frame.
pub(crate) const SEALED_IN: Codec = Codec::MsgPack;
