//! The removal of a stream's oldest messages: `/v1/purge/{topic}`.

use sealane_codec::Codec;
use sealane_message::Topic;

use crate::forms::{AsText, append, read_body};
use crate::{Error, ReadStart};

/// The part of a stream to be removed: the body of `POST /v1/purge/{topic}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Purge {
    /// Everything before this place goes; `new`: all that there is.
    pub before: ReadStart,
}

/// The body, as it is shown to whoever sent another one.
const PURGE: &str = r#"{"before": OFFSET, TIME or "new"}"#;

impl Purge {
    /// Reads a request's body.
    ///
    /// # Errors
    /// [`Error::Decode`], [`Error::UnknownField`] or [`Error::InvalidParameter`].
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Error> {
        read_body(codec, body, PURGE)
    }

    /// Appends the request's body.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        append(codec, self, out);
    }
}

/// The result of a purge.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Purged {
    /// The stream.
    #[serde(with = "AsText")]
    pub stream: Topic,
    /// How many messages went.
    pub purged: u64,
    /// The lowest offset that can still be read.
    pub first: u64,
    /// The offset of the next message.
    pub next: u64,
}

#[cfg(test)]
mod tests {
    use sealane_codec::DatumWriter;

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let purged = Purged { stream: "a/b".parse().unwrap(), purged: 3, first: 4, next: 5 };
        for codec in Codec::AT_REST {
            for before in [ReadStart::New, ReadStart::Offset(7), ReadStart::Time(9)] {
                let mut body = Vec::new();
                Purge { before }.write(codec, &mut body);
                assert_eq!(Purge::read(codec, &body), Ok(Purge { before }));
            }
            let mut body = Vec::new();
            purged.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(Purged::read(codec, &body), Ok(purged.clone()));
        }
        let read = |body: &str| Purge::read(Codec::Json, body.as_bytes());
        assert_eq!(read(r#"{"before":7}"#), Ok(Purge { before: ReadStart::Offset(7) }));
        for wrong in ["{}", r#"{"before":-1}"#, r#"{"before":true}"#] {
            assert!(matches!(read(wrong), Err(Error::InvalidParameter { .. })), "{wrong}");
        }
        assert!(matches!(read(r#"{"after":1}"#), Err(Error::UnknownField { .. })));
    }
}
