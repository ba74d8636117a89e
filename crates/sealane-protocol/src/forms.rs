//! How fields stand on the wire whose types have no form of their own there.
//!
//! Each is named in `#[serde(with = …)]`. It is a type, so that it has a schema too.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use sealane_codec::typed::{self, TypedError};
use sealane_codec::{Codec, DatumWriter};
use sealane_frame::GroupTag;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use crate::error::unknown_field;
use crate::{
    AccessTicket, Cancelled, ConsumerInfo, Consumers, ConsumersPage, DelayedPage, Error, Malformed,
    NodeOverview, Purged, RetentionRule, StreamRules, StreamState, StreamsPage,
};

/// Appends a value as one datum.
pub(crate) fn append<T: Serialize>(codec: Codec, value: &T, out: &mut Vec<u8>) {
    typed::write(value, &mut DatumWriter::new(codec, out));
}

/// Answers that stand on the wire as their types say.
macro_rules! answers {
    ($($name:ident),*) => {$(
        impl $name {
            /// Writes the answer.
            pub fn write(&self, writer: &mut DatumWriter<'_>) {
                typed::write(self, writer);
            }

            /// Reads the answer.
            ///
            /// # Errors
            /// [`Malformed`] where it is none.
            pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Malformed> {
                Ok(typed::read(codec, body)?)
            }
        }
    )*};
}

answers!(
    AccessTicket,
    NodeOverview,
    StreamState,
    StreamsPage,
    ConsumerInfo,
    Consumers,
    ConsumersPage,
    DelayedPage,
    Cancelled,
    Purged,
    RetentionRule,
    StreamRules
);

/// Reads the body of a request. `expected` is the form that the sender of another one is shown.
pub(crate) fn read_body<'de, T: Deserialize<'de>>(
    codec: Codec,
    body: &'de [u8],
    expected: &'static str,
) -> Result<T, Error> {
    typed::read_request(codec, body).map_err(|error| match error {
        TypedError::Codec(cause) => Error::Decode { codec: codec.name(), cause },
        TypedError::Unknown(field) => unknown_field(&field, expected),
        TypedError::Missing(name) => Error::parameter(name, "is missing"),
        TypedError::Wrong { ref path, ref cause } => {
            let name = if path.is_empty() { "body" } else { error.field() };
            Error::parameter(name.to_owned(), cause.clone())
        }
    })
}

/// The text that `Display` shows and `FromStr` reads.
pub(crate) struct AsText;

impl AsText {
    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        Cow::<str>::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// [`AsText`], or nothing.
pub(crate) struct MaybeText;

impl MaybeText {
    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => to.collect_str(value),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<Cow<'de, str>>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// The group of a sealed stream. An open one says null.
pub(crate) struct MaybeGroup;

impl MaybeGroup {
    pub(crate) fn serialize<S: Serializer>(
        group: &Option<GroupTag>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        MaybeText::serialize(group, to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<GroupTag>, D::Error> {
        let wrong = || D::Error::custom("is not a group tag: 8 lower-case hexadecimal digits");
        let text = Option::<Cow<'de, str>>::deserialize(from).map_err(|_| wrong())?;
        text.map(|text| GroupTag::from_hex(&text).ok_or_else(wrong)).transpose()
    }
}

/// Offsets of one stream: `{from, to}`, both included.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OffsetRange {
    /// The first.
    pub(crate) from: u64,
    /// The last.
    pub(crate) to: u64,
}

/// Ranges of offsets, as [`OffsetRange`].
pub(crate) struct OffsetRangesForm;

impl OffsetRangesForm {
    pub(crate) fn serialize<S: Serializer>(
        ranges: &[RangeInclusive<u64>],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let form =
            |range: &RangeInclusive<u64>| OffsetRange { from: *range.start(), to: *range.end() };
        to.collect_seq(ranges.iter().map(form))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<RangeInclusive<u64>>, D::Error> {
        let ranges = Vec::<OffsetRange>::deserialize(from)?;
        Ok(ranges.into_iter().map(|range| range.from..=range.to).collect())
    }
}

/// The elements of a list that are understood. A hub may come to describe connections otherwise,
/// on which nobody depends.
pub(crate) fn those_read<'de, T, D>(from: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct MaybeRead<T>(Option<T>);

    impl<'de, T: Deserialize<'de>> Deserialize<'de> for MaybeRead<T> {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            // Our reader has each element apart from those behind it, so that it may fail alone.
            Ok(Self(T::deserialize(from).ok()))
        }
    }

    let all = Option::<Vec<MaybeRead<T>>>::deserialize(from)?;
    Ok(all.map(|all| all.into_iter().filter_map(|MaybeRead(one)| one).collect()))
}
