use sealane_codec::{Codec, CodecError, Kind, Writer};
use sealane_message::Topic;

use crate::Error;

/// What a client asks on an open subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// So many messages more may come.
    Credit(u64),
    /// These are done.
    Ack(Vec<Mark>),
    /// Deliver these again, after so many milliseconds.
    Nack(Vec<Mark>, u64),
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
pub enum Mark {
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

impl Op {
    /// Appends the frame that asks this.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        let mut writer = Writer::new(codec, out);
        match self {
            Op::Credit(n) => {
                writer.map(1);
                writer.key("credit");
                writer.u64(*n);
            }
            Op::Ack(marks) => {
                writer.map(1);
                writer.key("ack");
                write_marks(marks, &mut writer);
            }
            Op::Nack(marks, delay_ms) => {
                // A hub without the feature `nack-delay` knows no delay, not even one of nothing.
                writer.map(1 + usize::from(*delay_ms > 0));
                writer.key("nack");
                write_marks(marks, &mut writer);
                if *delay_ms > 0 {
                    writer.key("delayMs");
                    writer.u64(*delay_ms);
                }
            }
            Op::Seek { stream, offset, generation } => {
                writer.map(1);
                writer.key("seek");
                writer.map(1 + usize::from(stream.is_some()) + usize::from(generation.is_some()));
                write_stream(&mut writer, stream.as_ref());
                writer.key("offset");
                writer.u64(*offset);
                if let Some(generation) = generation {
                    writer.key("generation");
                    writer.u64(*generation);
                }
                writer.end();
            }
        }
        writer.end();
    }
}

fn write_marks(marks: &[Mark], writer: &mut Writer<'_>) {
    if let [mark] = marks {
        return mark.write(writer);
    }
    writer.array(marks.len());
    marks.iter().for_each(|mark| mark.write(writer));
    writer.end();
}

impl Mark {
    fn write(&self, writer: &mut Writer<'_>) {
        match self {
            Mark::Id(id) => writer.text(id),
            Mark::Range { stream, from, to } => {
                writer.map(2 + usize::from(stream.is_some()));
                write_stream(writer, stream.as_ref());
                writer.key("from");
                writer.u64(*from);
                writer.key("to");
                writer.u64(*to);
                writer.end();
            }
        }
    }
}

/// Reads what one frame asks, in the order in which the hub honours it.
///
/// # Errors
/// [`Error::Decode`] where the frame is not of the codec, [`Error::UnknownOp`] where a field is
/// unknown, of the wrong type, or the frame asks nothing.
pub fn read_ops(codec: Codec, frame: &[u8], ops: &mut Vec<Op>) -> Result<(), Error> {
    let fields = sealane_codec::fields(codec, frame).map_err(|cause| match cause {
        CodecError::WrongKind { .. } => Error::UnknownOp("frame".into()),
        cause => Error::Decode { codec: codec.name(), cause },
    })?;
    let (mut credit, mut ack, mut nack, mut seek, mut delay_ms) = (None, None, None, None, None);
    for (key, raw) in &fields {
        match key.as_ref() {
            "credit" => credit = Some(Op::Credit(number(codec, raw, "credit")?)),
            "ack" => ack = Some(Op::Ack(read_marks(codec, raw, "ack")?)),
            "nack" => nack = Some(read_marks(codec, raw, "nack")?),
            "delayMs" => delay_ms = Some(number(codec, raw, "delayMs")?),
            "seek" => seek = Some(read_seek(codec, raw)?),
            other => return Err(Error::UnknownOp(other.chars().take(64).collect())),
        }
    }
    if delay_ms.is_some() && nack.is_none() {
        return Err(Error::UnknownOp("delayMs".into()));
    }
    let nack = nack.map(|marks| Op::Nack(marks, delay_ms.unwrap_or(0)));
    let before = ops.len();
    ops.extend([credit, ack, nack, seek].into_iter().flatten());
    if ops.len() == before {
        return Err(Error::UnknownOp("frame".into()));
    }
    Ok(())
}

fn read_marks(codec: Codec, raw: &[u8], name: &str) -> Result<Vec<Mark>, Error> {
    if sealane_codec::kind(codec, raw) != Some(Kind::Array) {
        return Ok(vec![read_mark(codec, raw, name)?]);
    }
    let all = sealane_codec::elements(codec, raw).map_err(|_| wrong(name))?;
    all.into_iter().map(|raw| read_mark(codec, raw, name)).collect()
}

fn read_mark(codec: Codec, raw: &[u8], name: &str) -> Result<Mark, Error> {
    match sealane_codec::kind(codec, raw) {
        Some(Kind::Text) => Ok(Mark::Id(text(codec, raw, name)?)),
        Some(Kind::Map) => read_range(codec, raw, name),
        _ => Err(wrong(name)),
    }
}

fn read_range(codec: Codec, raw: &[u8], name: &str) -> Result<Mark, Error> {
    let (mut stream, mut from, mut to) = (None, None, None);
    for (key, raw) in sealane_codec::fields(codec, raw).map_err(|_| wrong(name))? {
        match key.as_ref() {
            "stream" => stream = Some(text(codec, raw, name)?.parse()?),
            "from" => from = Some(number(codec, raw, name)?),
            "to" => to = Some(number(codec, raw, name)?),
            "offset" => {
                from = Some(number(codec, raw, name)?);
                to = from;
            }
            _ => return Err(wrong(name)),
        }
    }
    match (from, to) {
        (Some(from), Some(to)) if from <= to => Ok(Mark::Range { stream, from, to }),
        _ => Err(wrong(name)),
    }
}

fn read_seek(codec: Codec, raw: &[u8]) -> Result<Op, Error> {
    let (mut stream, mut offset, mut generation) = (None, None, None);
    for (key, raw) in sealane_codec::fields(codec, raw).map_err(|_| wrong("seek"))? {
        match key.as_ref() {
            "stream" => stream = Some(text(codec, raw, "seek")?.parse()?),
            "offset" => offset = Some(number(codec, raw, "seek")?),
            "generation" => generation = Some(number(codec, raw, "seek")?),
            _ => return Err(wrong("seek")),
        }
    }
    let offset = offset.ok_or_else(|| wrong("seek"))?;
    Ok(Op::Seek { stream, offset, generation })
}

fn number(codec: Codec, raw: &[u8], name: &str) -> Result<u64, Error> {
    sealane_codec::read_u64(codec, raw).map_err(|_| wrong(name))
}

fn text(codec: Codec, raw: &[u8], name: &str) -> Result<String, Error> {
    Ok(sealane_codec::read_text(codec, raw).map_err(|_| wrong(name))?.into_owned())
}

fn wrong(name: &str) -> Error {
    Error::UnknownOp(name.into())
}

fn write_stream(writer: &mut Writer<'_>, stream: Option<&Topic>) {
    if let Some(stream) = stream {
        writer.key("stream");
        writer.text(stream.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(frame: &str) -> Result<Vec<Op>, Error> {
        let mut ops = Vec::new();
        read_ops(Codec::Json, frame.as_bytes(), &mut ops).map(|()| ops)
    }

    fn range(stream: Option<Topic>, from: u64, to: u64) -> Mark {
        Mark::Range { stream, from, to }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let stream = Some("a/b".parse().unwrap());
        let all = [
            Op::Credit(10),
            Op::Ack(vec![Mark::Id("x".into()), Mark::Id("y".into())]),
            Op::Ack(vec![range(stream.clone(), 3, 9)]),
            Op::Ack(vec![range(None, 3, 9), range(None, 11, 11), Mark::Id("z".into())]),
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
        assert_eq!(ops, [Op::Credit(2), Op::Ack(vec![Mark::Id("m1".into())])]);
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
