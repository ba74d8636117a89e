use crate::limits::MAX_RANGE_MESSAGES;
use bytes::Bytes;
use sealane_codec::typed::{self, RawDatum};
use sealane_codec::{Codec, DatumWriter};
use sealane_message::Topic;

use crate::forms::AsText;
use crate::state::read_limit;
use crate::{Deliver, Error, Malformed, ReadStart, ServerFrame};

/// A question for messages of one stream: the query of `GET /v1/streams/{topic}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeQuery {
    /// Where reading begins.
    pub from: ReadStart,
    /// At most so many.
    pub limit: usize,
}

impl RangeQuery {
    /// Reads the names and values of a query.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub fn read(parameters: Vec<(String, String)>) -> Result<Self, Error> {
        let (mut from, mut limit) = (None, MAX_RANGE_MESSAGES);
        for (name, value) in parameters {
            match name.as_str() {
                "from" => from = Some(value.parse()?),
                "limit" => limit = read_limit(&value)?,
                _ => return Err(Error::parameter(name, "is no parameter of this request")),
            }
        }
        Ok(Self { from: from.ok_or_else(|| Error::parameter("from", "is missing"))?, limit })
    }

    /// The names and values of the query.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![("from", self.from.to_string()), ("limit", self.limit.to_string())]
    }
}

/// Messages of one stream that were read without subscribing.
#[derive(Debug, Clone, PartialEq)]
pub struct RangePage {
    /// The stream.
    pub stream: Topic,
    /// The generation that is being written.
    pub generation: u64,
    /// The `deliver` frames of the messages, in order.
    pub messages: Vec<Bytes>,
    /// The `gap` frames of what is missing between them.
    pub gaps: Vec<Bytes>,
    /// Where the next page begins.
    pub next: u64,
    /// Whether nothing is left.
    pub end: bool,
}

/// A page as it stands on the wire, its frames spliced.
#[derive(serde::Serialize, serde::Deserialize)]
struct PageForm<'a> {
    #[serde(with = "AsText")]
    stream: Topic,
    generation: u64,
    #[serde(borrow)]
    messages: Vec<RawDatum<'a>>,
    #[serde(borrow, default)]
    gaps: Vec<RawDatum<'a>>,
    next: u64,
    #[serde(default)]
    end: bool,
}

impl RangePage {
    /// Writes the answer; its frames are of the writer's codec.
    pub fn write(&self, writer: &mut DatumWriter<'_>) {
        let form = PageForm {
            stream: self.stream.clone(),
            generation: self.generation,
            messages: self.messages.iter().map(|frame| RawDatum(frame)).collect(),
            gaps: self.gaps.iter().map(|frame| RawDatum(frame)).collect(),
            next: self.next,
            end: self.end,
        };
        typed::write(&form, writer);
    }

    /// Reads the answer; its frames are slices of `body`.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
    pub fn read(codec: Codec, body: &Bytes) -> Result<Self, Malformed> {
        let form: PageForm<'_> = typed::read(codec, body)?;
        let PageForm { stream, generation, messages, gaps, next, end } = form;
        let slices = |frames: Vec<RawDatum<'_>>| {
            frames.into_iter().map(|RawDatum(frame)| body.slice_ref(frame)).collect()
        };
        Ok(Self { stream, generation, messages: slices(messages), gaps: slices(gaps), next, end })
    }

    /// The messages.
    ///
    /// # Errors
    /// [`Malformed`] where one of them is no `deliver` frame.
    pub fn deliveries(&self, codec: Codec) -> Result<Vec<Deliver>, Malformed> {
        let deliver = |frame| match ServerFrame::read(codec, frame)? {
            ServerFrame::Deliver(deliver) => Ok(deliver),
            _ => Err(Malformed::Field("messages".into())),
        };
        self.messages.iter().map(deliver).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for codec in Codec::AT_REST {
            let mut envelope = Vec::new();
            sealane_codec::encode(codec, &sealane_message::Value::Map(Vec::new()), &mut envelope);
            let stream: Topic = "a".parse().unwrap();
            let envelope = envelope.into();
            let deliver = Deliver {
                stream: stream.clone(),
                offset: 4,
                generation: 2,
                attempt: 1,
                stored_ms: 7,
                envelope,
            };
            let mut frame = Vec::new();
            ServerFrame::Deliver(deliver.clone()).write(codec, &mut frame);
            let messages = vec![frame.into()];
            let page =
                RangePage { stream, generation: 2, messages, gaps: vec![], next: 5, end: true };
            let mut body = Vec::new();
            page.write(&mut DatumWriter::new(codec, &mut body));
            let read = RangePage::read(codec, &body.into()).unwrap();
            assert_eq!(read, page);
            assert_eq!(read.deliveries(codec), Ok(vec![deliver]));
        }
    }

    #[test]
    fn a_range_is_read_back() {
        let range = RangeQuery { from: ReadStart::Time(7), limit: 3 };
        let owned = range.parameters().into_iter().map(|(name, value)| (name.to_owned(), value));
        assert_eq!(RangeQuery::read(owned.collect()), Ok(range));
        assert!(RangeQuery::read(vec![("limit".into(), "5".into())]).is_err());
        assert!(
            RangeQuery::read(vec![("from".into(), "1".into()), ("limit".into(), "0".into())])
                .is_err()
        );
    }
}
