use std::borrow::Cow;
use std::fmt;

use sealane_codec::typed::{self, TypedError};
use sealane_codec::{Codec, CodecError};
use sealane_message::Topic;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::Error;
use crate::forms::append;

/// A client's operation on an open subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// So many messages more may come.
    Credit(u64),
    /// These are done.
    Ack(Vec<AckMark>),
    /// Deliver these again, after so many milliseconds.
    Nack(Vec<AckMark>, u64),
    /// Read on from here.
    Seek {
        /// The stream; may be left out where the subscription names one stream.
        stream: Option<Topic>,
        /// The next offset to be delivered.
        offset: u64,
        /// The generation in which the offset was seen.
        generation: Option<u64>,
    },
}

/// Messages that an acknowledgement is about.
#[derive(Debug, Clone, PartialEq)]
pub enum AckMark {
    /// Those in flight with this id.
    Id(String),
    /// Those of these offsets, both ends included.
    Range {
        /// The stream; may be left out where the subscription names one stream.
        stream: Option<Topic>,
        /// The first offset.
        from: u64,
        /// The last offset.
        to: u64,
    },
}

/// A client's frame as it stands on the wire. It may ask several things.
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OpForm<'a> {
    /// So many messages more may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    credit: Option<u64>,
    /// These are done.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    ack: Option<MarksForm<'a>>,
    /// Deliver these again.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    nack: Option<MarksForm<'a>>,
    /// Beside `nack`: after so many milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    /// Read on from here.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    seek: Option<SeekForm<'a>>,
}

/// Where to read on.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SeekForm<'a> {
    /// The stream, if the subscription names a pattern.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    stream: Option<Cow<'a, str>>,
    /// The next offset to be delivered.
    offset: u64,
    /// The generation in which the offset was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
}

/// One mark, or a list of them.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum MarksForm<'a> {
    /// One.
    One(MarkForm<'a>),
    /// Several.
    Many(Vec<MarkForm<'a>>),
}

/// A message's id, one offset, or a range of offsets.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum MarkForm<'a> {
    /// Those in flight with this id.
    Id(Cow<'a, str>),
    /// Those of these offsets.
    Offsets(OffsetsForm<'a>),
}

/// Reads marks by hand: an untagged enum is copied before it is looked at, and an acknowledgement
/// took twice as long to read.
impl<'de: 'a, 'a> Deserialize<'de> for MarksForm<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(MarksVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MarkForm<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match from.deserialize_any(MarksVisitor)? {
            MarksForm::One(mark) => Ok(mark),
            MarksForm::Many(_) => Err(D::Error::custom("is a list in a list")),
        }
    }
}

struct MarksVisitor;

impl<'de> Visitor<'de> for MarksVisitor {
    type Value = MarksForm<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id, a range of offsets or a list of them")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, id: &'de str) -> Result<Self::Value, E> {
        Ok(MarksForm::One(MarkForm::Id(id.into())))
    }

    fn visit_str<E: serde::de::Error>(self, id: &str) -> Result<Self::Value, E> {
        Ok(MarksForm::One(MarkForm::Id(id.to_owned().into())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let offsets = OffsetsForm::deserialize(MapAccessDeserializer::new(map))?;
        Ok(MarksForm::One(MarkForm::Offsets(offsets)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut marks = Vec::new();
        while let Some(mark) = list.next_element()? {
            marks.push(mark);
        }
        Ok(MarksForm::Many(marks))
    }
}

/// `{offset}`, or `{from, to}` with both ends included.
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OffsetsForm<'a> {
    /// The stream, if the subscription names a pattern.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    stream: Option<Cow<'a, str>>,
    /// This one alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// The first.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    /// The last.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
}

impl Op {
    /// Appends the frame that asks this.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        let form = match self {
            Op::Credit(n) => OpForm { credit: Some(*n), ..OpForm::default() },
            Op::Ack(marks) => OpForm { ack: Some(MarksForm::of(marks)), ..OpForm::default() },
            Op::Nack(marks, delay_ms) => OpForm {
                nack: Some(MarksForm::of(marks)),
                // A hub without the feature `nack-delay` knows no delay, not even one of nothing.
                delay_ms: Some(*delay_ms).filter(|delay_ms| *delay_ms > 0),
                ..OpForm::default()
            },
            Op::Seek { stream, offset, generation } => {
                let (stream, offset) = (name(stream.as_ref()), *offset);
                let seek = SeekForm { stream, offset, generation: *generation };
                OpForm { seek: Some(seek), ..OpForm::default() }
            }
        };
        append(codec, &form, out);
    }
}

fn name(stream: Option<&Topic>) -> Option<Cow<'_, str>> {
    stream.map(|stream| stream.as_str().into())
}

impl<'a> MarksForm<'a> {
    fn of(marks: &'a [AckMark]) -> Self {
        match marks {
            [mark] => Self::One(MarkForm::of(mark)),
            marks => Self::Many(marks.iter().map(MarkForm::of).collect()),
        }
    }

    fn marks(self, field: &str) -> Result<Vec<AckMark>, Error> {
        match self {
            Self::One(mark) => Ok(vec![mark.mark(field)?]),
            Self::Many(marks) => marks.into_iter().map(|mark| mark.mark(field)).collect(),
        }
    }
}

impl<'a> MarkForm<'a> {
    fn of(mark: &'a AckMark) -> Self {
        match mark {
            AckMark::Id(id) => Self::Id(id.into()),
            AckMark::Range { stream, from, to } => {
                let (stream, from, to) = (name(stream.as_ref()), Some(*from), Some(*to));
                Self::Offsets(OffsetsForm { stream, offset: None, from, to })
            }
        }
    }

    fn mark(self, field: &str) -> Result<AckMark, Error> {
        let OffsetsForm { stream, offset, from, to } = match self {
            Self::Id(id) => return Ok(AckMark::Id(id.into_owned())),
            Self::Offsets(offsets) => offsets,
        };
        let stream = stream.map(|stream| stream.parse()).transpose()?;
        match (offset, from, to) {
            (Some(offset), None, None) => Ok(AckMark::Range { stream, from: offset, to: offset }),
            (None, Some(from), Some(to)) if from <= to => Ok(AckMark::Range { stream, from, to }),
            _ => Err(Error::UnknownOp(field.into())),
        }
    }
}

/// Reads what one frame asks, in the order in which the hub honours it.
///
/// # Errors
/// [`Error::Decode`] where the frame is not of the codec, [`Error::UnknownOp`] where a field is
/// unknown, of the wrong type, or the frame asks nothing.
pub fn read_ops(codec: Codec, frame: &[u8], ops: &mut Vec<Op>) -> Result<(), Error> {
    let form = typed::read_request(codec, frame).map_err(|error| match error {
        TypedError::Codec(CodecError::WrongKind { .. }) => Error::UnknownOp("frame".into()),
        TypedError::Codec(cause) => Error::Decode { codec: codec.name(), cause },
        error => Error::UnknownOp(error.field().chars().take(64).collect()),
    })?;
    let OpForm { credit, ack, nack, delay_ms, seek } = form;
    if delay_ms.is_some() && nack.is_none() {
        return Err(Error::UnknownOp("delayMs".into()));
    }
    let ack = ack.map(|marks| marks.marks("ack").map(Op::Ack)).transpose()?;
    let nack = nack.map(|marks| marks.marks("nack")).transpose()?;
    let nack = nack.map(|marks| Op::Nack(marks, delay_ms.unwrap_or(0)));
    let seek = seek.map(SeekForm::op).transpose()?;
    let before = ops.len();
    ops.extend([credit.map(Op::Credit), ack, nack, seek].into_iter().flatten());
    if ops.len() == before {
        return Err(Error::UnknownOp("frame".into()));
    }
    Ok(())
}

impl SeekForm<'_> {
    fn op(self) -> Result<Op, Error> {
        let Self { stream, offset, generation } = self;
        let stream = stream.map(|stream| stream.parse()).transpose()?;
        Ok(Op::Seek { stream, offset, generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(frame: &str) -> Result<Vec<Op>, Error> {
        let mut ops = Vec::new();
        read_ops(Codec::Json, frame.as_bytes(), &mut ops).map(|()| ops)
    }

    fn range(stream: Option<Topic>, from: u64, to: u64) -> AckMark {
        AckMark::Range { stream, from, to }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let stream = Some("a/b".parse().unwrap());
        let all = [
            Op::Credit(10),
            Op::Ack(vec![AckMark::Id("x".into()), AckMark::Id("y".into())]),
            Op::Ack(vec![range(stream.clone(), 3, 9)]),
            Op::Ack(vec![range(None, 3, 9), range(None, 11, 11), AckMark::Id("z".into())]),
            Op::Nack(vec![range(None, 3, 3)], 500),
            Op::Nack(vec![range(None, 4, 4)], 0),
            Op::Seek { stream, offset: 7, generation: Some(1) },
        ];
        for codec in Codec::AT_REST {
            for op in &all {
                let (mut frame, mut ops) = (Vec::new(), Vec::new());
                op.write(codec, &mut frame);
                read_ops(codec, &frame, &mut ops).unwrap();
                assert_eq!(&ops, std::slice::from_ref(op));
            }
        }
    }

    #[test]
    fn one_frame_may_ask_several_things() {
        let ops = json(r#"{"ack":"m1","credit":2}"#).unwrap();
        assert_eq!(ops, [Op::Credit(2), Op::Ack(vec![AckMark::Id("m1".into())])]);
        let ops = json(r#"{"nack":{"offset":4},"delayMs":250}"#).unwrap();
        assert_eq!(ops, [Op::Nack(vec![range(None, 4, 4)], 250)]);
    }

    #[test]
    fn what_is_not_an_op_is_named() {
        let wrong = [
            ("{}", "frame"),
            ("null", "frame"),
            (r#"{"credits":1}"#, "credits"),
            (r#"{"credit":"5"}"#, "credit"),
            (r#"{"credit":-1}"#, "credit"),
            (r#"{"credit":1.5}"#, "credit"),
            (r#"{"ack":7}"#, "ack"),
            (r#"{"ack":{"from":2,"to":1}}"#, "ack"),
            (r#"{"delayMs":1}"#, "delayMs"),
        ];
        for (frame, name) in wrong {
            assert_eq!(json(frame), Err(Error::UnknownOp(name.into())), "{frame}");
        }
        assert!(matches!(json("{"), Err(Error::Decode { codec: "json", .. })));
    }
}
