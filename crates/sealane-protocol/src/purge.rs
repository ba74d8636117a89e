//! The removal of a stream's oldest messages: `/v1/purge/{topic}`.

use sealane_codec::{Codec, Writer};
use sealane_message::Topic;

use crate::consumer::read_place;
use crate::error::unknown_field;
use crate::fields::Fields;
use crate::state::write_numbers;
use crate::{Error, Malformed, Start};

/// What is removed of a stream: the body of `POST /v1/purge/{topic}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purge {
    /// Everything before this place goes; `new`: all that there is.
    pub before: Start,
}

/// The body, as it is shown to whoever sent another one.
const PURGE: &str = r#"{"before": OFFSET, TIME or "new"}"#;

impl Purge {
    /// Reads a request's body.
    ///
    /// # Errors
    /// [`Error::Decode`], [`Error::UnknownField`] or [`Error::InvalidParameter`].
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Error> {
        let decode = |cause| Error::Decode { codec: codec.name(), cause };
        let mut before = None;
        for (key, raw) in sealane_codec::fields(codec, body).map_err(decode)? {
            match key.as_ref() {
                "before" => before = Some(read_place(codec, raw, "before")?),
                other => return Err(unknown_field(other, PURGE)),
            }
        }
        Ok(Self { before: before.ok_or_else(|| Error::parameter("before", "is missing"))? })
    }

    /// Appends the request's body.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        let mut writer = Writer::new(codec, out);
        writer.map(1);
        writer.key("before");
        writer.text(&self.before.to_string());
        writer.end();
    }
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// The stream.
    pub stream: Topic,
    /// How many messages went.
    pub purged: u64,
    /// The lowest offset that can still be read.
    pub first: u64,
    /// The offset of the next message.
    pub next: u64,
}

impl Purged {
    /// Writes the answer.
    pub fn write(&self, writer: &mut Writer<'_>) {
        let numbers = [("purged", self.purged), ("first", self.first), ("next", self.next)];
        writer.map(1 + numbers.len());
        writer.key("stream");
        writer.text(self.stream.as_str());
        write_numbers(writer, &numbers);
        writer.end();
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Malformed> {
        let fields = Fields::read(codec, body)?;
        Ok(Self {
            stream: fields.topic("stream")?,
            purged: fields.number("purged")?,
            first: fields.number("first")?,
            next: fields.number("next")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let purged = Purged { stream: "a/b".parse().unwrap(), purged: 3, first: 4, next: 5 };
        for codec in Codec::AT_REST {
            for before in [Start::New, Start::Offset(7), Start::Time(9)] {
                let mut body = Vec::new();
                Purge { before }.write(codec, &mut body);
                assert_eq!(Purge::read(codec, &body), Ok(Purge { before }));
            }
            let mut body = Vec::new();
            purged.write(&mut Writer::new(codec, &mut body));
            assert_eq!(Purged::read(codec, &body), Ok(purged.clone()));
        }
        let read = |body: &str| Purge::read(Codec::Json, body.as_bytes());
        assert_eq!(read(r#"{"before":7}"#), Ok(Purge { before: Start::Offset(7) }));
        for wrong in ["{}", r#"{"before":-1}"#, r#"{"before":true}"#] {
            assert!(matches!(read(wrong), Err(Error::InvalidParameter { .. })), "{wrong}");
        }
        assert!(matches!(read(r#"{"after":1}"#), Err(Error::UnknownField { .. })));
    }
}
