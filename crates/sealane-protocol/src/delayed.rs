//! Messages that are held back: `/v1/delayed/{topic}`.

use std::fmt;
use std::str::FromStr;

use sealane_message::Topic;

use crate::Error;
use crate::forms::{AsText, MaybeText};
use crate::limits::MAX_RANGE_MESSAGES;
use crate::state::read_limit;

/// A place among the delayed messages of a stream, which are in the order in which they come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DelayedPlace {
    /// When the message comes, in Unix milliseconds.
    pub due_ms: u64,
    /// Its number among those that come together.
    pub number: u64,
}

impl FromStr for DelayedPlace {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let read = || {
            let (due_ms, number) = text.split_once('-')?;
            Some(Self { due_ms: due_ms.parse().ok()?, number: number.parse().ok()? })
        };
        read().ok_or_else(|| Error::parameter("after", "is no `next` of an earlier page"))
    }
}

impl fmt::Display for DelayedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.due_ms, self.number)
    }
}

/// A question for the delayed messages of a stream: the query of `GET /v1/delayed/{topic}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListDelayed {
    /// Those behind this place.
    pub after: Option<DelayedPlace>,
    /// At most so many.
    pub limit: usize,
}

impl ListDelayed {
    /// Reads the names and values of a query.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub fn read(parameters: Vec<(String, String)>) -> Result<Self, Error> {
        let mut list = Self { after: None, limit: MAX_RANGE_MESSAGES };
        for (name, value) in parameters {
            match name.as_str() {
                "after" => list.after = Some(value.parse()?),
                "limit" => list.limit = read_limit(&value)?,
                _ => return Err(Error::parameter(name, "is no parameter of this request")),
            }
        }
        Ok(list)
    }

    /// The names and values of the query.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let after = self.after.map(|after| ("after", after.to_string()));
        after.into_iter().chain([("limit", self.limit.to_string())]).collect()
    }
}

/// A message that is held back.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DelayedMessage {
    /// Its id.
    pub id: String,
    /// When it enters its stream, in Unix milliseconds.
    pub due_ms: u64,
    /// Bytes at rest.
    #[serde(default)]
    pub bytes: u64,
}

/// Delayed messages of one stream.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DelayedPage {
    /// The stream.
    #[serde(with = "AsText")]
    pub stream: Topic,
    /// The messages, in the order in which they come.
    #[serde(default)]
    pub delayed: Vec<DelayedMessage>,
    /// [`ListDelayed::after`] of the next page; none: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "MaybeText")]
    pub next: Option<DelayedPlace>,
}

/// The id that the query of `DELETE /v1/delayed/{topic}` names.
///
/// # Errors
/// [`Error::InvalidParameter`].
pub fn read_cancel_query(parameters: Vec<(String, String)>) -> Result<String, Error> {
    let mut id = None;
    for (name, value) in parameters {
        match name.as_str() {
            "id" => id = Some(value),
            _ => return Err(Error::parameter(name, "is no parameter of this request")),
        }
    }
    id.ok_or_else(|| Error::parameter("id", "is missing"))
}

/// The result of cancelling delayed messages.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cancelled {
    /// Their stream.
    #[serde(with = "AsText")]
    pub stream: Topic,
    /// The id of all of them.
    pub id: String,
    /// How many there were: ids are the publishers' own.
    pub cancelled: u64,
}

#[cfg(test)]
mod tests {
    use sealane_codec::{Codec, DatumWriter};

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let message = DelayedMessage { id: "m".into(), due_ms: 5, bytes: 6 };
        let place = DelayedPlace { due_ms: 5, number: 7 };
        let page =
            DelayedPage { stream: "a".parse().unwrap(), delayed: vec![message], next: Some(place) };
        let cancelled = Cancelled { stream: "a".parse().unwrap(), id: "m".into(), cancelled: 2 };
        for codec in Codec::AT_REST {
            for page in [DelayedPage { next: None, ..page.clone() }, page.clone()] {
                let mut body = Vec::new();
                page.write(&mut DatumWriter::new(codec, &mut body));
                assert_eq!(DelayedPage::read(codec, &body), Ok(page));
            }
            let mut body = Vec::new();
            cancelled.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(Cancelled::read(codec, &body), Ok(cancelled.clone()));
        }
        let list = ListDelayed { after: Some(place), limit: 3 };
        let owned = list.parameters().into_iter().map(|(name, value)| (name.to_owned(), value));
        assert_eq!(ListDelayed::read(owned.collect()), Ok(list));
        for wrong in [("after", "5"), ("after", "5-x"), ("limit", "0"), ("id", "m")] {
            let query = vec![(wrong.0.to_owned(), wrong.1.to_owned())];
            assert!(ListDelayed::read(query).is_err(), "{wrong:?}");
        }
        assert!(read_cancel_query(Vec::new()).is_err());
    }
}
