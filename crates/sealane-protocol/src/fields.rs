//! The fields of what a hub says, read from the bytes as they came.

use std::borrow::Cow;

use sealane_codec::{Codec, CodecError, Field, Kind};
use sealane_frame::GroupTag;
use sealane_message::{Topic, TopicError};

use crate::HubLevel;

/// Why something that a hub said is not the protocol.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Malformed {
    /// Bytes that are not of the codec.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A stream whose name is no topic.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// A field that has to be there.
    #[error("`{0}` is missing or has the wrong type")]
    Field(&'static str),
}

/// A map that a hub has written.
pub(crate) struct Fields<'a> {
    codec: Codec,
    all: Cow<'a, [Field<'a>]>,
}

impl<'a> Fields<'a> {
    pub(crate) fn read(codec: Codec, raw: &'a [u8]) -> Result<Self, Malformed> {
        Ok(Self { codec, all: sealane_codec::fields(codec, raw)?.into() })
    }

    /// Fields that were found already.
    pub(crate) fn of(codec: Codec, all: &'a [Field<'a>]) -> Self {
        Self { codec, all: all.into() }
    }

    /// The field as it was written; none where it is absent.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a [u8]> {
        self.all.iter().find(|(key, _)| key == name).map(|(_, raw)| *raw)
    }

    pub(crate) fn need(&self, name: &'static str) -> Result<&'a [u8], Malformed> {
        self.raw(name).ok_or(Malformed::Field(name))
    }

    pub(crate) fn number(&self, name: &'static str) -> Result<u64, Malformed> {
        let raw = self.need(name)?;
        sealane_codec::read_u64(self.codec, raw).map_err(|_| Malformed::Field(name))
    }

    /// The number, 0 where a hub does not say it.
    pub(crate) fn number_or_zero(&self, name: &'static str) -> u64 {
        self.number(name).unwrap_or(0)
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Cow<'a, str>, Malformed> {
        let raw = self.need(name)?;
        sealane_codec::read_text(self.codec, raw).map_err(|_| Malformed::Field(name))
    }

    /// The text, empty where a hub does not say it.
    pub(crate) fn text_or_empty(&self, name: &'static str) -> String {
        self.text(name).unwrap_or_default().into_owned()
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Malformed> {
        let raw = self.need(name)?;
        sealane_codec::read_bool(self.codec, raw).map_err(|_| Malformed::Field(name))
    }

    pub(crate) fn topic(&self, name: &'static str) -> Result<Topic, Malformed> {
        Ok(self.text(name)?.parse()?)
    }

    pub(crate) fn level(&self) -> Result<HubLevel, Malformed> {
        Ok(HubLevel::from_name(&self.text("level")?))
    }

    /// The group of a sealed stream. An open one says null, and a hub that knows no others says
    /// nothing.
    pub(crate) fn sealed(&self) -> Result<Option<GroupTag>, Malformed> {
        let is_open = |raw| sealane_codec::kind(self.codec, raw) == Some(Kind::Null);
        if self.raw("sealed").is_none_or(is_open) {
            return Ok(None);
        }
        let group = GroupTag::from_hex(&self.text("sealed")?);
        group.map(Some).ok_or(Malformed::Field("sealed"))
    }

    pub(crate) fn elements(&self, name: &'static str) -> Result<Vec<&'a [u8]>, Malformed> {
        let raw = self.need(name)?;
        sealane_codec::elements(self.codec, raw).map_err(|_| Malformed::Field(name))
    }

    /// The maps of a list; none where the list is absent.
    pub(crate) fn maps(&self, name: &'static str) -> Result<Vec<Fields<'a>>, Malformed> {
        if self.raw(name).is_none() {
            return Ok(Vec::new());
        }
        self.elements(name)?.into_iter().map(|raw| Fields::read(self.codec, raw)).collect()
    }

    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<Cow<'a, str>>, Malformed> {
        let read = |raw| sealane_codec::read_text(self.codec, raw);
        let texts: Result<_, _> = self.elements(name)?.into_iter().map(read).collect();
        texts.map_err(|_| Malformed::Field(name))
    }
}
