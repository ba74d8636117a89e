use std::borrow::Cow;

use bytes::Bytes;
use sealane_codec::{Codec, DatumWriter};
use sealane_frame::GroupTag;
use sealane_message::{ErrorInfo, Topic};

use crate::fields::{Malformed, ReplyFields};
use crate::forms::{AsText, MaybeGroup, append};
use crate::{Error, Features, HubLevel};

/// A frame of the hub on a subscription.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerFrame {
    /// The subscription stands. `joined` is absent for a pattern.
    Subscribed {
        /// The topic or pattern that was asked for.
        stream: String,
        /// The codec of this connection.
        codec: Codec,
        /// The hub's clock, Unix milliseconds.
        time_ms: u64,
        /// The hub's features.
        features: Features,
        /// Where the reading begins, for one stream.
        joined: Option<StreamJoined>,
    },
    /// A stream of a pattern begins, or a seek was done.
    Joined(StreamJoined),
    /// The offsets `from` to `to`, both included, will not come.
    Gap {
        /// The stream.
        stream: Topic,
        /// The first offset that is missing.
        from: u64,
        /// The last offset that is missing.
        to: u64,
        /// `retention` or `damaged`; a newer hub may know other reasons.
        reason: String,
    },
    /// One message.
    Deliver(Deliver),
    /// Several messages.
    Batch(Vec<Deliver>),
    /// Nothing to send, still here; the hub's clock, Unix milliseconds.
    Heartbeat(u64),
    /// The error; the close follows.
    Error(WireError),
    /// A frame that only a newer hub sends: the status of the frame; empty where it has none.
    Unknown(String),
}

/// Where the reading of a stream begins.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StreamJoined {
    /// The stream.
    #[serde(with = "AsText")]
    pub stream: Topic,
    /// The generation that is being written.
    pub generation: u64,
    /// The next offset that comes.
    pub offset: u64,
    /// Whether everything since the offset that was asked for is still there.
    pub recovered: bool,
    /// The stream's level; its name is empty where the stream is not there yet.
    #[serde(with = "AsText")]
    pub level: HubLevel,
    /// The group whose keys open the stream's messages; none: the stream is open.
    #[serde(default, with = "MaybeGroup")]
    pub sealed: Option<GroupTag>,
}

/// One delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Deliver {
    /// The stream.
    pub stream: Topic,
    /// The message's offset.
    pub offset: u64,
    /// The generation in which it was appended.
    pub generation: u64,
    /// How often it has been delivered, counting this time.
    pub attempt: u32,
    /// When it was stored, in Unix milliseconds; 0: an older hub does not say it.
    pub stored_ms: u64,
    /// The envelope, in the connection's codec, a slice of the frame.
    pub envelope: Bytes,
}

/// An error as it stands on the wire.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireError {
    /// The name, for example `UnknownOp`.
    pub code: Cow<'static, str>,
    /// The error, in one sentence.
    pub message: String,
    /// The remedy.
    #[serde(default)]
    pub hint: Cow<'static, str>,
    /// The code for `sealane explain`.
    #[serde(default, rename = "ref")]
    pub reference: Cow<'static, str>,
    /// The next offset, beside `OffsetMismatch` and `BeyondEnd`; the next `n`, beside
    /// `NumberSkipped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

impl WireError {
    /// The wire form of an error of the table row `info`.
    pub fn new(info: &'static ErrorInfo, message: String) -> Self {
        Self {
            code: info.name.into(),
            message,
            hint: info.hint.into(),
            reference: info.code.into(),
            next: None,
        }
    }

    /// Appends `{error: {…}}`.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        append(codec, &ControlForm::Error { error: Cow::Borrowed(self) }, out);
    }
}

impl From<&Error> for WireError {
    fn from(error: &Error) -> Self {
        let mut wire = WireError::new(error.info(), error.to_string());
        if let Error::OffsetMismatch { next }
        | Error::NumberSkipped { next }
        | Error::BeyondEnd { next } = error
        {
            wire.next = Some(*next);
        }
        wire
    }
}

/// Where a message stands in its stream. No two messages of a stream ever have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamPosition {
    /// The generation in which it was appended.
    pub generation: u64,
    /// Its offset.
    pub offset: u64,
}

/// The fields of a deliver frame about its message.
#[derive(Debug, Clone, Copy)]
pub struct DeliverHead<'a> {
    /// The stream.
    pub stream: &'a Topic,
    /// Where it stands there.
    pub position: StreamPosition,
    /// How often it has been delivered, counting this time.
    pub attempt: u32,
    /// When it was stored, in Unix milliseconds.
    pub stored_ms: u64,
}

/// Appends `{deliver: envelope, stream, offset, generation, attempt, storedMs}`; the envelope is
/// spliced.
pub fn write_deliver(codec: Codec, envelope: &[u8], head: &DeliverHead<'_>, out: &mut Vec<u8>) {
    let mut writer = DatumWriter::new(codec, out);
    writer.map(6);
    writer.key("deliver");
    writer.raw(envelope);
    write_text(&mut writer, "stream", head.stream.as_str());
    write_number(&mut writer, "offset", head.position.offset);
    write_number(&mut writer, "generation", head.position.generation);
    write_number(&mut writer, "attempt", u64::from(head.attempt));
    write_number(&mut writer, "storedMs", head.stored_ms);
    writer.end();
}

/// Appends `{batch: [frames]}`; the frames are spliced.
pub fn write_batch<'a>(
    codec: Codec,
    frames: impl ExactSizeIterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) {
    let mut writer = DatumWriter::new(codec, out);
    writer.map(1);
    writer.key("batch");
    writer.array(frames.len());
    frames.for_each(|frame| writer.raw(frame));
    writer.end();
    writer.end();
}

impl ServerFrame {
    /// Appends this frame.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        match self {
            ServerFrame::Deliver(d) => {
                let head = DeliverHead {
                    stream: &d.stream,
                    position: StreamPosition { generation: d.generation, offset: d.offset },
                    attempt: d.attempt,
                    stored_ms: d.stored_ms,
                };
                write_deliver(codec, &d.envelope, &head, out);
            }
            ServerFrame::Batch(all) => {
                let frames: Vec<Vec<u8>> = all
                    .iter()
                    .map(|d| {
                        let mut frame = Vec::new();
                        ServerFrame::Deliver(d.clone()).write(codec, &mut frame);
                        frame
                    })
                    .collect();
                write_batch(codec, frames.iter().map(Vec::as_slice), out);
            }
            ServerFrame::Error(error) => error.write(codec, out),
            ServerFrame::Heartbeat(heartbeat) => {
                append(codec, &ControlForm::Heartbeat { heartbeat: *heartbeat }, out);
            }
            ServerFrame::Unknown(status) => append(codec, &UnknownForm { status }, out),
            ServerFrame::Subscribed { stream, codec: spoken, time_ms, features, joined } => {
                let form = SubscribedForm {
                    stream: stream.as_str().into(),
                    codec: spoken.name().into(),
                    time: *time_ms,
                    features: features.clone(),
                    place: joined.as_ref().map(PlaceForm::of),
                };
                append(codec, &StatusForm::Subscribed(form), out);
            }
            ServerFrame::Joined(joined) => {
                append(codec, &StatusForm::Joined(Cow::Borrowed(joined)), out);
            }
            ServerFrame::Gap { stream, from, to, reason } => {
                let (stream, reason) = (stream.as_str().into(), reason.as_str().into());
                let form = GapForm { stream, from: *from, to: *to, reason };
                append(codec, &StatusForm::Gap(form), out);
            }
        }
    }
}

/// The frames that something else than a message makes, as they stand on the wire.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum ControlForm<'a> {
    /// Nothing to send, still here.
    Heartbeat {
        /// The hub's clock, Unix milliseconds.
        heartbeat: u64,
    },
    /// An error.
    Error {
        /// It.
        error: Cow<'a, WireError>,
    },
}

/// A frame that only a newer hub has.
#[derive(serde::Serialize)]
struct UnknownForm<'a> {
    status: &'a str,
}

/// The frames that `status` tells apart, as they stand on the wire.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "lowercase")]
pub(crate) enum StatusForm<'a> {
    /// The subscription stands.
    Subscribed(SubscribedForm<'a>),
    /// A stream of a pattern begins, or a seek was done.
    Joined(Cow<'a, StreamJoined>),
    /// Offsets will not come.
    Gap(GapForm<'a>),
}

/// The first frame of a subscription.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SubscribedForm<'a> {
    /// The topic or pattern that was asked for.
    stream: Cow<'a, str>,
    /// The codec of this connection.
    codec: Cow<'a, str>,
    /// The hub's clock, Unix milliseconds.
    time: u64,
    /// The features of the hub.
    #[serde(default = "Features::base")]
    features: Features,
    /// Where the reading begins, for one stream.
    #[serde(flatten, skip_deserializing)]
    place: Option<PlaceForm<'a>>,
}

/// The fields of [`StreamJoined`] beside its stream.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlaceForm<'a> {
    /// The generation that is being written.
    generation: u64,
    /// The next offset that comes.
    offset: u64,
    /// Whether everything since the offset that was asked for is still there.
    recovered: bool,
    /// The stream's level; empty where the stream is not there yet.
    level: &'a str,
    /// The group whose keys open the stream's messages; null: the stream is open.
    #[serde(with = "MaybeGroup")]
    sealed: Option<GroupTag>,
}

impl<'a> PlaceForm<'a> {
    fn of(joined: &'a StreamJoined) -> Self {
        let StreamJoined { generation, offset, recovered, sealed, .. } = *joined;
        Self { generation, offset, recovered, level: joined.level.name(), sealed }
    }
}

/// Offsets that will not come.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GapForm<'a> {
    /// The stream.
    stream: Cow<'a, str>,
    /// The first offset that is missing.
    from: u64,
    /// The last offset that is missing.
    to: u64,
    /// `retention` or `damaged`; a newer hub may know other reasons.
    reason: Cow<'a, str>,
}

fn write_text(writer: &mut DatumWriter<'_>, key: &str, text: &str) {
    writer.key(key);
    writer.text(text);
}

fn write_number(writer: &mut DatumWriter<'_>, key: &str, number: u64) {
    writer.key(key);
    writer.u64(number);
}

impl ServerFrame {
    /// Reads a frame of the hub; envelopes are slices of `frame`. A newer hub can say more: fields
    /// that are not known are passed over, frames that are not known are [`Self::Unknown`].
    ///
    /// # Errors
    /// [`Malformed`] where it is not of the codec, or a frame of a known kind lacks something.
    pub fn read(codec: Codec, frame: &Bytes) -> Result<Self, Malformed> {
        let fields = ReplyFields::read(codec, frame)?;
        if fields.raw("deliver").is_some() {
            return Ok(Self::Deliver(Deliver::read(&fields, frame, None)?));
        }
        if let Some(raw) = fields.raw("batch") {
            return Ok(Self::Batch(read_batch(codec, raw, frame)?));
        }
        if fields.raw("heartbeat").is_some() {
            return Ok(Self::Heartbeat(fields.number("heartbeat")?));
        }
        if let Some(raw) = fields.raw("error") {
            return Ok(Self::Error(ReplyFields::read(codec, raw)?.typed()?));
        }
        match fields.text("status").unwrap_or_default().as_ref() {
            "subscribed" => {
                let SubscribedForm { stream, codec, time, features, .. } = fields.typed()?;
                Ok(Self::Subscribed {
                    stream: stream.into_owned(),
                    codec: codec_named(&codec)?,
                    time_ms: time,
                    features,
                    joined: fields.raw("offset").map(|_| fields.typed()).transpose()?,
                })
            }
            "joined" => Ok(Self::Joined(fields.typed()?)),
            "gap" => {
                let GapForm { stream, from, to, reason } = fields.typed()?;
                let (stream, reason) = (stream.parse()?, reason.into_owned());
                Ok(Self::Gap { stream, from, to, reason })
            }
            other => Ok(Self::Unknown(other.chars().take(SHOWN_CHARS).collect())),
        }
    }
}

/// The codec of a connection, which both ends know.
pub(crate) fn codec_named(name: &str) -> Result<Codec, Malformed> {
    Codec::from_name(name).ok_or(Malformed::Field("codec".into()))
}

/// A name that a newer hub chose is kept as far as it is shown.
const SHOWN_CHARS: usize = 64;

/// The deliveries of a batch. What else a newer hub puts into one costs no credit and is passed
/// over.
fn read_batch(codec: Codec, raw: &[u8], frame: &Bytes) -> Result<Vec<Deliver>, Malformed> {
    let maps = sealane_codec::maps(codec, raw)?;
    let mut deliveries: Vec<Deliver> = Vec::with_capacity(maps.iter().len());
    for map in maps.iter() {
        let fields = ReplyFields::of(codec, map);
        if fields.raw("deliver").is_some() {
            let before = deliveries.last().map(|deliver| &deliver.stream);
            deliveries.push(Deliver::read(&fields, frame, before)?);
        }
    }
    Ok(deliveries)
}

impl Deliver {
    /// Reads a delivery. Deliveries of one stream mostly come together and then share its name
    /// with the one `before`.
    fn read(
        fields: &ReplyFields<'_>,
        frame: &Bytes,
        before: Option<&Topic>,
    ) -> Result<Self, Malformed> {
        let attempt = fields.number("attempt")?;
        let name = fields.text("stream")?;
        let stream = match before {
            Some(before) if before.as_str() == name => before.clone(),
            _ => name.parse()?,
        };
        Ok(Self {
            stream,
            offset: fields.number("offset")?,
            generation: fields.number("generation")?,
            attempt: u32::try_from(attempt).map_err(|_| Malformed::Field("attempt".into()))?,
            stored_ms: fields.number_or_zero("storedMs"),
            envelope: frame.slice_ref(fields.need("deliver")?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn what_the_hub_writes_the_client_reads() {
        let stream: Topic = "fleet/7".parse().unwrap();
        let joined = StreamJoined {
            stream: stream.clone(),
            generation: 1_700_000_000_000,
            offset: 5,
            recovered: true,
            level: Level::Disk.into(),
            sealed: Some(GroupTag::from_bytes([0xa0, 1, 2, 3])),
        };
        for codec in Codec::AT_REST {
            let mut envelope = Vec::new();
            let value = sealane_message::Value::Map(vec![("id".into(), "m1".into())]);
            sealane_codec::encode(codec, &value, &mut envelope);
            let deliver = Deliver {
                stream: stream.clone(),
                offset: 5,
                generation: 9,
                attempt: 2,
                stored_ms: 1_700_000_000_123,
                envelope: envelope.into(),
            };
            let reason = "damaged".to_owned();
            let other = Deliver { stream: "fleet/8".parse().unwrap(), ..deliver.clone() };
            let all = [
                ServerFrame::Subscribed {
                    stream: "fleet/7".into(),
                    codec,
                    time_ms: 3,
                    features: Features::ours(),
                    joined: Some(joined.clone()),
                },
                ServerFrame::Subscribed {
                    stream: "fleet/*".into(),
                    codec,
                    time_ms: 3,
                    features: ["seek".to_owned()].into_iter().collect(),
                    joined: None,
                },
                ServerFrame::Joined(joined.clone()),
                ServerFrame::Gap { stream: stream.clone(), from: 1, to: 4, reason },
                ServerFrame::Deliver(deliver.clone()),
                ServerFrame::Batch(vec![deliver.clone(), other, deliver.clone(), deliver]),
                ServerFrame::Heartbeat(12),
                ServerFrame::Error(WireError::from(&Error::OffsetMismatch { next: 8 })),
                ServerFrame::Unknown("resting".into()),
                ServerFrame::Unknown(String::new()),
            ];
            for frame in all {
                let mut bytes = Vec::new();
                frame.write(codec, &mut bytes);
                assert_eq!(ServerFrame::read(codec, &bytes.into()).unwrap(), frame);
            }
        }
    }

    /// A frame that is written as JSON, in this codec.
    fn read(codec: Codec, json: &str) -> Result<ServerFrame, Malformed> {
        let mut bytes = Vec::new();
        let value = sealane_codec::decode(Codec::Json, json.as_bytes()).unwrap();
        sealane_codec::encode(codec, &value, &mut bytes);
        ServerFrame::read(codec, &bytes.into())
    }

    #[test]
    fn what_a_newer_hub_says_is_passed_over() {
        let unknown = |name: &str| Ok(ServerFrame::Unknown(name.into()));
        let gap =
            r#"{"new":{"a":[1]},"status":"gap","stream":"a","from":1,"to":2,"reason":"moon"}"#;
        let deliver = r#"{"deliver":{},"stream":"a","offset":1,"generation":1,"attempt":1,"x":0}"#;
        let batch = format!(r#"{{"batch":[{{"note":1}},{deliver}],"more":true}}"#);
        for codec in Codec::AT_REST {
            assert_eq!(read(codec, r#"{"status":"resting","until":7}"#), unknown("resting"));
            assert_eq!(read(codec, r#"{"weather":{"sun":true}}"#), unknown(""));
            assert_eq!(read(codec, r#"{"gap":1,"status":5}"#), unknown(""));
            assert_eq!(read(codec, "{}"), unknown(""));
            let frame = read(codec, gap).unwrap();
            assert!(matches!(frame, ServerFrame::Gap { reason, .. } if reason == "moon"));
            let ServerFrame::Batch(all) = read(codec, &batch).unwrap() else { panic!("no batch") };
            assert_eq!((all.len(), all[0].offset), (1, 1));
        }
    }

    #[test]
    fn a_known_frame_that_lacks_something_is_refused() {
        for frame in [r#"{"status":"gap","stream":"a"}"#, r#"{"deliver":{}}"#, r#"{"error":{}}"#] {
            assert!(matches!(read(Codec::Json, frame), Err(Malformed::Field(_))), "{frame}");
        }
    }

    #[test]
    fn an_older_hub_lists_no_features() {
        let text = r#"{"status":"subscribed","stream":"a/*","codec":"json","time":3}"#;
        let frame = read(Codec::Json, text).unwrap();
        let expected = Features::base();
        assert!(matches!(frame, ServerFrame::Subscribed { features, .. } if features == expected));
    }
}
