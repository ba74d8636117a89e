use std::borrow::Cow;

use bytes::Bytes;
use sealane_codec::{Codec, CodecError, DatumKind, DatumWriter, Maps};
use sealane_message::Topic;

use crate::error::{parameter_number, unknown_field};
use crate::fields::ReplyFields;
use crate::forms::append;
use crate::frame::codec_named;
use crate::limits::MAX_SESSION_NAME_BYTES;
use crate::{EnqueueOutcome, Error, Features, HubLevel, Malformed, StreamPosition, WireError};

/// The query of a publishing socket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublishQuery {
    /// The session to go on with; none: the hub names a new one.
    pub session: Option<String>,
    /// The stream of which the first frame says which number comes next.
    pub stream: Option<Topic>,
}

impl PublishQuery {
    /// Where the socket is.
    pub const PATH: &'static str = "/v1/publish";

    /// Reads the names and values of a query.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`].
    pub fn read(parameters: Vec<(String, String)>) -> Result<Self, Error> {
        let (mut session, mut stream) = (None, None);
        for (name, value) in parameters {
            match name.as_str() {
                "codec" => {}
                "session" => session = Some(session_name(value)?),
                "stream" => stream = Some(value.parse()?),
                _ => return Err(Error::parameter(name, "is no parameter of a publishing socket")),
            }
        }
        Ok(Self { session, stream })
    }

    /// The names and values of the query.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let session = self.session.iter().map(|session| ("session", session.clone()));
        let stream = self.stream.iter().map(|stream| ("stream", stream.to_string()));
        session.chain(stream).collect()
    }
}

/// A name that a session may have: as in consumers, no character that a terminal obeys.
fn session_name(name: String) -> Result<String, Error> {
    if name.is_empty() || name.len() > MAX_SESSION_NAME_BYTES {
        return Err(Error::parameter("session", "is not 1 to 64 bytes"));
    }
    if name.contains(char::is_control) {
        return Err(Error::parameter("session", "has a control character"));
    }
    Ok(name)
}

/// One numbered message of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishItem<'a> {
    /// The stream.
    pub to: Topic,
    /// Its number in the session and the stream, from 1.
    pub n: u64,
    /// The message, a map of the connection's codec.
    pub envelope: &'a [u8],
    /// How long it is held back.
    pub delay_ms: Option<u64>,
    /// The offset that it must get.
    pub expect: Option<u64>,
}

/// The form of an item, as it is shown to whoever sent another one.
const ITEM: &str = r#"{"to": TOPIC, "n": N, "envelope": {…}}, with "delayMs" or "condition""#;

impl<'a> PublishItem<'a> {
    /// Appends the item, which [`write_publish`] puts into a frame.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        let mut writer = DatumWriter::new(codec, out);
        let (delays, expects) = (self.delay_ms.is_some(), self.expect.is_some());
        writer.map(3 + usize::from(delays) + usize::from(expects));
        writer.key("to");
        writer.text(self.to.as_str());
        writer.key("n");
        writer.u64(self.n);
        writer.key("envelope");
        writer.raw(self.envelope);
        if let Some(delay_ms) = self.delay_ms {
            writer.key("delayMs");
            writer.u64(delay_ms);
        }
        if let Some(expect) = self.expect {
            writer.key("condition");
            writer.map(1);
            writer.key("expect");
            writer.u64(expect);
            writer.end();
        }
        writer.end();
    }

    /// Reads what stands beside `to` and `n`.
    fn read(
        codec: Codec,
        named: PublishTopicRef<'_>,
        n: u64,
        fields: &[PublishField<'a>],
    ) -> Result<Self, Error> {
        let to = named.topic()?;
        let (mut envelope, mut delay_ms, mut expect) = (None, None, None);
        for (key, raw) in fields {
            match key.as_ref() {
                "to" | "n" => {}
                "envelope" => envelope = Some(*raw),
                "delayMs" => delay_ms = Some(parameter_number(codec, raw, "delayMs")?),
                "condition" => expect = read_condition(codec, raw)?,
                key => return Err(unknown_field(key, ITEM)),
            }
        }
        let envelope = envelope.ok_or_else(|| Error::parameter("envelope", "is missing"))?;
        Ok(Self { to, n, envelope, delay_ms, expect })
    }
}

type PublishField<'a> = (Cow<'a, str>, &'a [u8]);

/// The stream of an item. Messages of one stream mostly come together and then share its name with
/// the one before.
#[derive(Clone, Copy)]
struct PublishTopicRef<'a> {
    to: &'a str,
    before: Option<&'a Topic>,
}

impl PublishTopicRef<'_> {
    fn topic(self) -> Result<Topic, Error> {
        match self.before {
            Some(before) if before.as_str() == self.to => Ok(before.clone()),
            _ => Ok(self.to.parse()?),
        }
    }
}

fn read_condition(codec: Codec, raw: &[u8]) -> Result<Option<u64>, Error> {
    let wrong = |_| Error::parameter("condition", "is not a map");
    let mut expect = None;
    for (key, raw) in sealane_codec::fields(codec, raw).map_err(wrong)? {
        match key.as_ref() {
            "expect" => expect = Some(parameter_number(codec, raw, "expect")?),
            other => {
                return Err(Error::UnknownCondition(other.chars().take(SHOWN_CHARS).collect()));
            }
        }
    }
    Ok(expect)
}

/// A value that a client chose is told back to it up to this length. More of it is not worth
/// reading.
const SHOWN_CHARS: usize = 64;

/// Appends a frame that publishes items, each as [`PublishItem::write`] wrote it.
pub fn write_publish<'a>(
    codec: Codec,
    items: impl ExactSizeIterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) {
    let mut writer = DatumWriter::new(codec, out);
    writer.map(1);
    writer.key("publish");
    writer.array(items.len());
    items.for_each(|item| writer.raw(item));
    writer.end();
    writer.end();
}

/// One message of a frame, as the hub takes it in: that it is refused is told beside its number.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishAsked<'a> {
    /// The stream, as the client wrote it.
    pub to: Cow<'a, str>,
    /// Its number.
    pub n: u64,
    /// Bytes of the item, which it takes of the credit.
    pub bytes: usize,
    /// The message, or why it is refused.
    pub item: Result<PublishItem<'a>, Error>,
}

/// Reads a frame that publishes; the envelopes are slices of it that nobody has looked into.
/// `before` is the stream of the last message that came, whose name is not made again.
///
/// # Errors
/// [`Error::Decode`] where the frame is not of the codec, [`Error::UnknownOp`] where it does
/// something else, or an item has no `to` or no `n` by which it could be answered.
pub fn read_publish<'a>(
    codec: Codec,
    frame: &'a [u8],
    before: Option<&Topic>,
) -> Result<Vec<PublishAsked<'a>>, Error> {
    if codec == Codec::Json
        && let Some(maps) = json_items(frame)
    {
        return read_maps(codec, &maps, before);
    }
    if codec == Codec::Json
        && let Some((bytes, fields)) = single_json(frame)
    {
        return Ok(vec![read_fields(codec, bytes, &fields, before)?]);
    }
    let fields = sealane_codec::fields(codec, frame).map_err(|cause| match cause {
        CodecError::WrongKind { .. } => Error::UnknownOp("frame".into()),
        cause => Error::Decode { codec: codec.name(), cause },
    })?;
    let mut items = Vec::new();
    for (key, raw) in &fields {
        if key != "publish" {
            return Err(Error::UnknownOp(key.chars().take(SHOWN_CHARS).collect()));
        }
        items = match sealane_codec::kind(codec, raw) {
            Some(DatumKind::Array) => sealane_codec::elements(codec, raw).map_err(|_| wrong())?,
            _ => vec![*raw],
        };
    }
    if items.is_empty() {
        return Err(wrong());
    }
    let mut all: Vec<PublishAsked<'_>> = Vec::with_capacity(items.len());
    for raw in items {
        let last = all.last().and_then(|asked| asked.item.as_ref().ok()).map(|item| &item.to);
        let fields = sealane_codec::fields(codec, raw).map_err(|_| wrong())?;
        let asked = read_fields(codec, raw.len(), &fields, last.or(before))?;
        all.push(asked);
    }
    Ok(all)
}

/// The items of a frame that is written as clients write it, found in one pass. Passes
/// for the frame, its array and each item took 2.2 µs of CPU a message, and this one takes 0.8.
fn json_items(frame: &[u8]) -> Option<Maps<'_>> {
    let items = frame.strip_prefix(br#"{"publish":"#)?.strip_suffix(b"}")?;
    sealane_codec::maps(Codec::Json, items).ok().filter(|maps| maps.lengths().len() > 0)
}

fn read_maps<'a>(
    codec: Codec,
    maps: &Maps<'a>,
    before: Option<&Topic>,
) -> Result<Vec<PublishAsked<'a>>, Error> {
    let mut all: Vec<PublishAsked<'_>> = Vec::with_capacity(maps.iter().len());
    for (fields, bytes) in maps.iter().zip(maps.lengths()) {
        let last = all.last().and_then(|asked| asked.item.as_ref().ok()).map(|item| &item.to);
        let asked = read_fields(codec, bytes, fields, last.or(before))?;
        all.push(asked);
    }
    Ok(all)
}

/// The one item of a frame that is written as clients write it, and its bytes. Around what is one
/// map these brackets are one frame, which is thus read in one pass. Anything else is read layer by
/// layer.
fn single_json(frame: &[u8]) -> Option<(usize, Vec<PublishField<'_>>)> {
    let item = frame.strip_prefix(br#"{"publish":["#)?.strip_suffix(b"]}")?;
    Some((item.trim_ascii().len(), sealane_codec::fields(Codec::Json, item).ok()?))
}

fn read_fields<'a>(
    codec: Codec,
    bytes: usize,
    fields: &[PublishField<'a>],
    before: Option<&Topic>,
) -> Result<PublishAsked<'a>, Error> {
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, raw)| *raw);
    let to = field("to").ok_or_else(wrong)?;
    let to = sealane_codec::read_text(codec, to).map_err(|_| wrong())?;
    let n = field("n").ok_or_else(wrong)?;
    let n = sealane_codec::read_u64(codec, n).map_err(|_| wrong())?;
    let item = PublishItem::read(codec, PublishTopicRef { to: &to, before }, n, fields);
    Ok(PublishAsked { to, n, bytes, item })
}

fn wrong() -> Error {
    Error::UnknownOp("publish".into())
}

/// Numbers that follow each other, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberRange {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

/// Messages of one stream that are stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRange {
    /// The stream.
    pub stream: Topic,
    /// Which of the session's messages.
    pub numbers: NumberRange,
    /// Where the first stands and the others behind it, or when they enter the stream.
    pub outcome: EnqueueOutcome,
    /// The level that was reached before the hub answered.
    pub level: HubLevel,
    /// Whether they were stored before and came again; nothing was appended.
    pub replayed: bool,
}

/// Messages of one stream that are not stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NotPlaced {
    /// The stream, as the client wrote it.
    pub stream: String,
    /// Which of the session's messages.
    pub numbers: NumberRange,
    /// Why.
    pub error: WireError,
}

/// The place of a session in one stream.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionPlace {
    /// The stream.
    pub stream: Topic,
    /// The number of the message that comes next.
    pub next: u64,
}

/// A frame of the hub on a publishing socket.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PublishFrame {
    /// The session stands.
    Session {
        /// Its name.
        session: String,
        /// The codec of this connection.
        codec: Codec,
        /// The hub's clock, Unix milliseconds.
        time_ms: u64,
        /// The hub's features.
        features: Features,
        /// The place of the session in the stream that was asked for.
        place: Option<SessionPlace>,
    },
    /// So much more may be published.
    Credit {
        /// Messages.
        messages: u64,
        /// Bytes of their items.
        bytes: u64,
    },
    /// Messages are stored.
    Published(StoredRange),
    /// Messages are not stored; the socket goes on.
    Refused(NotPlaced),
    /// The error; the close follows.
    Error(WireError),
    /// A frame that only a newer hub sends.
    Unknown,
}

/// The frames of a publishing socket as they stand on the wire, but for that of stored messages,
/// which [`StoredRange`] writes.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum PublishForm<'a> {
    /// The session stands.
    Session(SessionForm<'a>),
    /// So much more may be published.
    Credit(CreditForm),
    /// Messages are not stored.
    Refused {
        /// Which, and why.
        refused: RefusedForm<'a>,
    },
    /// A frame that only a newer hub sends.
    #[cfg_attr(test, schemars(skip))]
    Unknown {},
}

/// The first frame of a publishing socket.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SessionForm<'a> {
    /// Its name.
    session: Cow<'a, str>,
    /// The codec of this connection.
    codec: Cow<'a, str>,
    /// The hub's clock, Unix milliseconds.
    time: u64,
    /// The features of the hub.
    #[serde(default = "Features::base")]
    features: Features,
    /// The stream that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stream: Option<Cow<'a, str>>,
    /// The number of the session's next message in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// The allowance for further publishing.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CreditForm {
    /// Messages.
    credit: u64,
    /// Bytes of their items.
    bytes: u64,
}

/// Messages of one stream that are not stored: of the number `n`, or from `from` to `to`.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RefusedForm<'a> {
    /// The one.
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u64>,
    /// The first.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    /// The last.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
    /// The stream, as the client wrote it.
    stream: &'a str,
    /// Why.
    error: &'a WireError,
}

impl<'a> RefusedForm<'a> {
    fn of(NotPlaced { stream, numbers, error }: &'a NotPlaced) -> Self {
        let NumberRange { from, to } = *numbers;
        let (n, from, to) =
            if from == to { (Some(from), None, None) } else { (None, Some(from), Some(to)) };
        Self { n, from, to, stream, error }
    }
}

impl PublishFrame {
    /// Appends this frame.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        let form = match self {
            Self::Published(placed) => return placed.write(&mut DatumWriter::new(codec, out)),
            Self::Error(error) => return error.write(codec, out),
            Self::Unknown => PublishForm::Unknown {},
            Self::Session { session, codec, time_ms, features, place } => {
                PublishForm::Session(SessionForm {
                    session: session.into(),
                    codec: codec.name().into(),
                    time: *time_ms,
                    features: features.clone(),
                    stream: place.as_ref().map(|place| place.stream.as_str().into()),
                    next: place.as_ref().map(|place| place.next),
                })
            }
            Self::Credit { messages, bytes } => {
                PublishForm::Credit(CreditForm { credit: *messages, bytes: *bytes })
            }
            Self::Refused(refused) => PublishForm::Refused { refused: RefusedForm::of(refused) },
        };
        append(codec, &form, out);
    }

    /// Reads a frame of the hub.
    ///
    /// # Errors
    /// [`Malformed`] where it is not of the codec, or a frame of a known kind lacks something.
    pub fn read(codec: Codec, frame: &Bytes) -> Result<Self, Malformed> {
        let fields = ReplyFields::read(codec, frame)?;
        if let Some(raw) = fields.raw("published") {
            return Ok(Self::Published(StoredRange::read(&ReplyFields::read(codec, raw)?)?));
        }
        if let Some(raw) = fields.raw("refused") {
            let fields = ReplyFields::read(codec, raw)?;
            return Ok(Self::Refused(NotPlaced {
                stream: fields.text("stream")?.into_owned(),
                numbers: NumberRange::read(&fields)?,
                error: ReplyFields::read(codec, fields.need("error")?)?.typed()?,
            }));
        }
        if fields.raw("credit").is_some() {
            let CreditForm { credit: messages, bytes } = fields.typed()?;
            return Ok(Self::Credit { messages, bytes });
        }
        if let Some(raw) = fields.raw("error") {
            return Ok(Self::Error(ReplyFields::read(codec, raw)?.typed()?));
        }
        if fields.raw("session").is_none() {
            return Ok(Self::Unknown);
        }
        let SessionForm { session, codec, time, features, stream, next } = fields.typed()?;
        let stream = stream.map(|stream| stream.parse()).transpose();
        let stream = stream.map_err(|_| Malformed::Field("stream".into()))?;
        let place = stream.zip(next).map(|(stream, next)| SessionPlace { stream, next });
        let (session, codec) = (session.into_owned(), codec_named(&codec)?);
        Ok(Self::Session { session, codec, time_ms: time, features, place })
    }
}

impl StoredRange {
    fn write(&self, writer: &mut DatumWriter<'_>) {
        writer.map(1);
        writer.key("published");
        let place = if matches!(self.outcome, EnqueueOutcome::At(_)) { 2 } else { 1 };
        writer.map(2 + self.numbers.fields() + place + usize::from(self.replayed));
        self.numbers.write(writer);
        writer.key("stream");
        writer.text(self.stream.as_str());
        match self.outcome {
            EnqueueOutcome::At(StreamPosition { generation, offset }) => {
                writer.key("offset");
                writer.u64(offset);
                writer.key("generation");
                writer.u64(generation);
            }
            EnqueueOutcome::Due(due_ms) => {
                writer.key("dueMs");
                writer.u64(due_ms);
            }
        }
        writer.key("level");
        writer.text(self.level.name());
        if self.replayed {
            writer.key("replayed");
            writer.bool(true);
        }
        writer.end();
        writer.end();
    }

    fn read(fields: &ReplyFields<'_>) -> Result<Self, Malformed> {
        let outcome = match fields.raw("dueMs") {
            Some(_) => EnqueueOutcome::Due(fields.number("dueMs")?),
            None => EnqueueOutcome::At(StreamPosition {
                generation: fields.number("generation")?,
                offset: fields.number("offset")?,
            }),
        };
        let (stream, numbers) = (fields.topic("stream")?, NumberRange::read(fields)?);
        let replayed = fields.flag("replayed").unwrap_or(false);
        Ok(Self { stream, numbers, outcome, level: fields.level()?, replayed })
    }
}

impl NumberRange {
    /// How many fields say them.
    fn fields(self) -> usize {
        if self.from == self.to { 1 } else { 2 }
    }

    fn write(self, writer: &mut DatumWriter<'_>) {
        if self.from == self.to {
            writer.key("n");
            writer.u64(self.from);
        } else {
            writer.key("from");
            writer.u64(self.from);
            writer.key("to");
            writer.u64(self.to);
        }
    }

    fn read(fields: &ReplyFields<'_>) -> Result<Self, Malformed> {
        if fields.raw("n").is_some() {
            let n = fields.number("n")?;
            return Ok(Self { from: n, to: n });
        }
        let (from, to) = (fields.number("from")?, fields.number("to")?);
        if from < to { Ok(Self { from, to }) } else { Err(Malformed::Field("to".into())) }
    }
}

#[cfg(test)]
mod tests;
