use sealane_message::Value;
use sealane_message::event::{Action, Content, Event, EventId, Message, Reference};

/// An event as programs and people are shown it, `spec/event.md`, *As a value*.
pub(super) fn to_value(event: &Event<'_>) -> Value {
    let mut fields = EventFields::default();
    fields.put("id", hex(event.id));
    fields.put_some("device", event.device.as_deref());
    fields.put("timeMs", event.time_ms);
    put_action(&event.action, &mut fields);
    Value::Map(fields.0)
}

#[derive(Default)]
struct EventFields(Vec<(String, Value)>);

impl EventFields {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.push((name.to_owned(), value.into()));
    }

    fn put_some(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }
}

fn put_action(action: &Action<'_>, fields: &mut EventFields) {
    fields.put("action", name(action));
    match action {
        Action::Message(message) => put_message(message, fields),
        Action::Edit { of, content } => {
            fields.put("of", reference(*of));
            put_content(content, fields);
        }
        Action::React { of, emoji } | Action::Unreact { of, emoji } => {
            fields.put("of", reference(*of));
            fields.put("emoji", &**emoji);
        }
        Action::Delete(of)
        | Action::Read(of)
        | Action::Deliver(of)
        | Action::Pin(of)
        | Action::Unpin(of) => fields.put("of", reference(*of)),
        Action::Vote { of, choices } => {
            fields.put("of", reference(*of));
            fields.put("choices", texts(choices));
        }
        Action::Create(name) | Action::Rename(name) => fields.put("name", &**name),
        Action::Invite(who) | Action::Join(who) | Action::Leave(who) => {
            fields.put("handle", &**who);
        }
        Action::HangUp(seconds) => fields.put("seconds", *seconds),
        _ => {}
    }
}

fn put_message(message: &Message<'_>, fields: &mut EventFields) {
    put_content(&message.content, fields);
    fields.put_some("thread", message.thread.map(reference));
    fields.put_some("replyTo", message.reply_to.map(reference));
    if !message.mentions.is_empty() {
        fields.put("mentions", texts(&message.mentions));
    }
    if !message.attachments.is_empty() {
        let names = message.attachments.iter().map(|one| Value::from(&*one.filename));
        fields.put("attachments", Value::Array(names.collect()));
    }
    fields.put_some("expiresMs", message.expires_ms);
    fields.put_some("ephemeral", message.is_ephemeral.then_some(true));
}

/// The kind of content, and its words if it has some.
fn put_content(content: &Content<'_>, fields: &mut EventFields) {
    let (kind, text) = match content {
        Content::Text(text) => ("text", Some(text)),
        Content::Rich { raw, .. } => ("rich", Some(raw)),
        Content::Code { code, .. } => ("code", Some(code)),
        Content::Voice { transcription, .. } => ("voice", transcription.as_ref()),
        Content::Video { .. } => ("video", None),
        Content::Location { place, address, .. } => {
            ("location", place.as_ref().or(address.as_ref()))
        }
        Content::Poll { question, .. } => ("poll", Some(question)),
        Content::Sticker { emoji, .. } => ("sticker", Some(emoji)),
        Content::Gif { caption, .. } => ("gif", caption.as_ref()),
        _ => ("unknown", None),
    };
    fields.put("kind", kind);
    fields.put_some("text", text.map(|text| &**text));
    if let Content::Location { latitude, longitude, .. } = content {
        fields.put("latitude", Value::F64(*latitude));
        fields.put("longitude", Value::F64(*longitude));
    }
}

/// The name of an action; an action of a later version gets its number.
fn name(action: &Action<'_>) -> Value {
    let name = match action {
        Action::Message(_) => "message",
        Action::Edit { .. } => "edit",
        Action::Delete(_) => "delete",
        Action::React { .. } => "react",
        Action::Unreact { .. } => "unreact",
        Action::Read(_) => "read",
        Action::Deliver(_) => "deliver",
        Action::Pin(_) => "pin",
        Action::Unpin(_) => "unpin",
        Action::Vote { .. } => "vote",
        Action::Create(_) => "create",
        Action::Rename(_) => "rename",
        Action::Invite(_) => "invite",
        Action::Join(_) => "join",
        Action::Leave(_) => "leave",
        Action::Call => "call",
        Action::HangUp(_) => "hang-up",
        Action::Unknown(number) => return (*number).into(),
        _ => "unknown",
    };
    name.into()
}

fn reference(of: Reference) -> Value {
    let (slot, id) = (u64::from(of.slot).into(), hex(of.id).into());
    Value::Map(vec![("slot".to_owned(), slot), ("id".to_owned(), id)])
}

fn texts(all: &[std::borrow::Cow<'_, str>]) -> Value {
    Value::Array(all.iter().map(|text| Value::from(&**text)).collect())
}

fn hex(EventId(id): EventId) -> String {
    format!("{:016x}", u64::from_be_bytes(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(action: Action<'_>) -> String {
        let mut text = vec![];
        let value = to_value(&Event::new(EventId([1; 8]), 7, action));
        crate::encode(crate::Codec::Json, &value, &mut text);
        let text = String::from_utf8(text).unwrap();
        text.replace("{\"id\":\"0101010101010101\",\"timeMs\":7,", "{")
    }

    #[test]
    fn an_event_is_shown_by_what_it_does_and_says() {
        let of = Reference { slot: 3, id: EventId([2; 8]) };
        let said = Content::Text("hello".into());
        assert_eq!(
            json(Action::Message(said.into())),
            r#"{"action":"message","kind":"text","text":"hello"}"#
        );
        assert_eq!(
            json(Action::React { of, emoji: "+".into() }),
            r#"{"action":"react","of":{"slot":3,"id":"0202020202020202"},"emoji":"+"}"#
        );
        assert_eq!(json(Action::HangUp(9)), r#"{"action":"hang-up","seconds":9}"#);
        assert_eq!(json(Action::Unknown(99)), r#"{"action":99}"#);
        let content = Content::Unknown { kind: 40, map: vec![0xa0].into() };
        assert_eq!(json(Action::Edit { of, content }).matches("\"kind\":\"unknown\"").count(), 1);
    }
}
