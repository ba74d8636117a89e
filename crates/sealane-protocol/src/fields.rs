//! The fields of what a hub says, read from the bytes as they came.

use std::borrow::Cow;

use sealane_codec::typed::{self, TypedError};
use sealane_codec::{Codec, CodecError, MapField};
use sealane_message::{Topic, TopicError};

use serde::Deserialize;

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
    Field(Cow<'static, str>),
}

impl From<TypedError> for Malformed {
    fn from(error: TypedError) -> Self {
        match error {
            TypedError::Codec(cause) => Self::Codec(cause),
            TypedError::Missing(name) => Self::Field(name.into()),
            TypedError::Unknown(path) | TypedError::Wrong { path, .. } => Self::Field(path.into()),
        }
    }
}

/// A map that a hub has written.
pub(crate) struct ReplyFields<'a> {
    codec: Codec,
    all: Cow<'a, [MapField<'a>]>,
}

impl<'a> ReplyFields<'a> {
    pub(crate) fn read(codec: Codec, raw: &'a [u8]) -> Result<Self, Malformed> {
        Ok(Self { codec, all: sealane_codec::fields(codec, raw)?.into() })
    }

    /// Fields that were found already.
    pub(crate) fn of(codec: Codec, all: &'a [MapField<'a>]) -> Self {
        Self { codec, all: all.into() }
    }

    /// All that a type knows of them.
    pub(crate) fn typed<T: Deserialize<'a>>(&self) -> Result<T, Malformed> {
        Ok(typed::read_fields(self.codec, &self.all)?)
    }

    /// The field as it was written; none where it is absent.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a [u8]> {
        self.all.iter().find(|(key, _)| key == name).map(|(_, raw)| *raw)
    }

    pub(crate) fn need(&self, name: &'static str) -> Result<&'a [u8], Malformed> {
        self.raw(name).ok_or(Malformed::Field(name.into()))
    }

    pub(crate) fn number(&self, name: &'static str) -> Result<u64, Malformed> {
        let raw = self.need(name)?;
        sealane_codec::read_u64(self.codec, raw).map_err(|_| Malformed::Field(name.into()))
    }

    /// The number, 0 where a hub does not say it.
    pub(crate) fn number_or_zero(&self, name: &'static str) -> u64 {
        self.number(name).unwrap_or(0)
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Cow<'a, str>, Malformed> {
        let raw = self.need(name)?;
        sealane_codec::read_text(self.codec, raw).map_err(|_| Malformed::Field(name.into()))
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, Malformed> {
        let raw = self.need(name)?;
        sealane_codec::read_bool(self.codec, raw).map_err(|_| Malformed::Field(name.into()))
    }

    pub(crate) fn topic(&self, name: &'static str) -> Result<Topic, Malformed> {
        Ok(self.text(name)?.parse()?)
    }

    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<Cow<'a, str>>, Malformed> {
        typed::read(self.codec, self.need(name)?).map_err(|_| Malformed::Field(name.into()))
    }

    pub(crate) fn level(&self) -> Result<HubLevel, Malformed> {
        Ok(HubLevel::from_name(&self.text("level")?))
    }
}
