//! JSON Schema of the protocol, made from its types by tests alone.
//!
//! Types that are written by hand, for speed, have a twin here. Tests read with the twins what the
//! hand has written.

mod typescript;

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::consumer::VerbForm;
use crate::forms::{AsText, MaybeGroup, MaybeText, OffsetRange, OffsetRangesForm};
use crate::frame::{ControlForm, StatusForm};
use crate::op::OpForm;
use crate::publish::PublishForm;
use crate::rule::RemovedRule;
use crate::state::Removed;
use crate::{
    AccessTicket, Cancelled, ConsumerInfo, Consumers, ConsumersPage, DelayedPage, Health,
    NodeOverview, Purge, Purged, ReadStart, RetentionRule, RuleBounds, StreamChange, StreamRules,
    StreamState, StreamsPage, WireError,
};

/// Any map; it is delivered as it was written.
#[derive(Deserialize, JsonSchema)]
struct Envelope(#[expect(dead_code, reason = "it is read to see its kind")] Map<String, Value>);

macro_rules! twins {
    ($($(#[$meta:meta])* struct $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[expect(dead_code, reason = "they are read to see that every field has a place")]
        struct $name {
            $($(#[$field_meta])* $field: $type,)*
        }
    )*};
}

twins! {
    /// Append one message.
    struct Enqueue {
        /// The stream.
        to: String,
        /// The message.
        envelope: Envelope,
        /// How long it is held back; not beside `expect`.
        #[serde(skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        /// The offset that it must get.
        #[serde(skip_serializing_if = "Option::is_none")]
        expect: Option<u64>,
    }

    /// Append messages: all or none.
    struct EnqueueBatch {
        /// The stream.
        to: String,
        /// The messages.
        envelopes: Vec<Envelope>,
        /// The offset that the first must get.
        #[serde(skip_serializing_if = "Option::is_none")]
        expect: Option<u64>,
    }

    /// The message is stored: at an offset of a generation, or held back until `dueMs`.
    struct Enqueued {
        /// The message's id.
        id: String,
        /// Its stream.
        stream: String,
        /// When it enters the stream, Unix milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        due_ms: Option<u64>,
        /// Its offset.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// The generation in which it was appended.
        #[serde(skip_serializing_if = "Option::is_none")]
        generation: Option<u64>,
        /// The level that was reached before the hub answered.
        level: String,
        /// Whether it was stored before, under the same idempotency key.
        #[serde(skip_serializing_if = "Option::is_none")]
        replayed: Option<bool>,
    }

    /// The messages are stored, one after the other.
    struct EnqueuedBatch {
        /// Their ids, in order.
        ids: Vec<String>,
        /// How many there are.
        count: u64,
        /// Their stream.
        stream: String,
        /// The offset of the first.
        offset: u64,
        /// The generation in which they were appended.
        generation: u64,
        /// The level that was reached before the hub answered.
        level: String,
        /// Whether they were stored before, under the same idempotency key.
        #[serde(skip_serializing_if = "Option::is_none")]
        replayed: Option<bool>,
    }

    /// One delivery.
    struct Deliver {
        /// The message.
        deliver: Envelope,
        /// The stream.
        stream: String,
        /// The message's offset.
        offset: u64,
        /// The generation in which it was appended.
        generation: u64,
        /// How often it has been delivered, counting this time.
        attempt: u32,
        /// When it was stored, in Unix milliseconds.
        stored_ms: u64,
    }

    /// Several deliveries.
    struct Batch {
        /// They, in order.
        batch: Vec<Deliver>,
    }

    /// Messages of one stream that were read without subscribing.
    struct Page {
        /// The stream.
        stream: String,
        /// The generation that is being written.
        generation: u64,
        /// The messages, in order.
        messages: Vec<Deliver>,
        /// The gaps between them: frames of the status `gap`.
        #[schemars(with = "Vec<StatusForm<'static>>")]
        gaps: Vec<Envelope>,
        /// Where the next page begins.
        next: u64,
        /// Whether nothing is left.
        end: bool,
    }

    /// Messages for a publishing socket.
    struct PublishRequest {
        /// One or several.
        publish: PublishItems,
    }

    /// One numbered message of a session.
    struct PublishItem {
        /// The stream.
        to: String,
        /// Its number in the session and the stream, from 1.
        n: u64,
        /// The message.
        envelope: Envelope,
        /// How long it is held back.
        #[serde(skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        /// The condition for storing it.
        #[serde(skip_serializing_if = "Option::is_none")]
        condition: Option<Condition>,
    }

    /// The condition for storing a message.
    struct Condition {
        /// The offset that it must get.
        #[serde(skip_serializing_if = "Option::is_none")]
        expect: Option<u64>,
    }

    /// Messages of a publishing socket are stored.
    struct Published {
        /// Which, and where.
        published: Placed,
    }

    /// Messages of one stream: of the number `n`, or from `from` to `to`. They stand at an offset
    /// of a generation and behind it, or are held back until `dueMs`.
    struct Placed {
        /// The one.
        #[serde(skip_serializing_if = "Option::is_none")]
        n: Option<u64>,
        /// The first.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<u64>,
        /// The last.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<u64>,
        /// The stream.
        stream: String,
        /// Where the first stands.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// The generation in which they were appended.
        #[serde(skip_serializing_if = "Option::is_none")]
        generation: Option<u64>,
        /// When they enter the stream, Unix milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        due_ms: Option<u64>,
        /// The level that was reached before the hub answered.
        level: String,
        /// True: they were stored before and came again; nothing was appended.
        #[serde(skip_serializing_if = "Option::is_none")]
        replayed: Option<bool>,
    }

    /// Whether a node takes messages now.
    struct Ready {
        /// Whether it does.
        ready: bool,
        /// `ready`, `draining` or `storage`; a newer one has others.
        status: String,
    }
}

/// The twins of what a hub says. They are read strictly here, but a newer hub may say more.
const SAID: [&str; 8] =
    ["Batch", "Deliver", "Enqueued", "EnqueuedBatch", "Page", "Placed", "Published", "Ready"];

/// One item, or a list of them.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "they are read to see that every field has a place")]
enum PublishItems {
    One(PublishItem),
    Many(Vec<PublishItem>),
}

/// A refusal, as an answer or the last frame of a socket.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "its schema alone is used")]
struct Refusal {
    error: WireError,
}

/// The frames that a hub sends on a subscription.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "its schema alone is used")]
enum ServerFrame<'a> {
    Status(StatusForm<'a>),
    Deliver(Deliver),
    Batch(Batch),
    Control(ControlForm<'a>),
}

/// The frames that a hub sends on a publishing socket.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "its schema alone is used")]
enum PublishFrame<'a> {
    Told(PublishForm<'a>),
    Published(Published),
    Refusal(Refusal),
}

fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string"})
}

macro_rules! schemas {
    ($($type:ty: $name:literal, $schema:expr;)*) => {$(
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                ($schema)(generator)
            }
        }
    )*};
}

schemas! {
    AsText: "Text", text;
    MaybeText: "MaybeText", text;
    MaybeGroup: "Group",
        |_: &mut _| json_schema!({"type": ["string", "null"], "pattern": "^[0-9a-f]{8}$"});
    OffsetRangesForm: "OffsetRangesForm", Vec::<OffsetRange>::json_schema;
    ReadStart: "Start", |_: &mut _| json_schema!({
        "type": ["string", "integer"],
        "description": "first, new, an offset, an RFC 3339 time, or @ and Unix milliseconds",
    });
}

/// The schemas of all types, by their names.
fn definitions() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    macro_rules! add {
        ($($type:ty),* $(,)?) => {$( generator.subschema_for::<$type>(); )*};
    }
    add![
        Enqueue,
        EnqueueBatch,
        StreamChange,
        VerbForm,
        Purge,
        OpForm<'_>,
        PublishRequest,
        Enqueued,
        EnqueuedBatch,
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
        StreamRules,
        RuleBounds,
        RemovedRule<'_>,
        Removed<'_>,
        Page,
        Health,
        Ready,
        Refusal,
        ServerFrame<'_>,
        PublishFrame<'_>,
    ];
    let all = generator.take_definitions(true).into_iter();
    let mut all: Map<String, Value> = all
        .map(|(name, mut schema)| {
            if let (true, Some(map)) = (SAID.contains(&&*name), schema.as_object_mut()) {
                map.remove("additionalProperties");
            }
            settle(&mut schema);
            (plain_name(&name).to_owned(), schema)
        })
        .collect();
    tell_apart(&mut all);
    all
}

/// Gives types of their own to frames that one field tells apart, and names that field. Generators
/// of clients otherwise try one after the other, or break.
fn tell_apart(all: &mut Map<String, Value>) {
    let names: Vec<String> = all.keys().cloned().collect();
    for name in names {
        let one_of = all[&name].get("oneOf").and_then(Value::as_array).cloned();
        let read = |frame: &Value| TaggedFrame::read(&name, frame, all);
        let frames: Option<Vec<_>> = one_of.unwrap_or_default().iter().map(read).collect();
        let Some(frames) = frames.filter(|frames| !frames.is_empty()) else { continue };
        let reference = |frame: &TaggedFrame| json!(format!("#/$defs/{}", frame.name));
        let each: Vec<_> = frames.iter().map(|frame| json!({"$ref": reference(frame)})).collect();
        let mapping: Map<_, _> =
            frames.iter().map(|frame| (frame.value.clone(), reference(frame))).collect();
        let told = json!({"propertyName": frames[0].tag, "mapping": mapping});
        all[&name]["oneOf"] = json!(each);
        all[&name]["discriminator"] = told;
        for TaggedFrame { name, schema, .. } in frames {
            assert!(all.insert(name, schema).is_none(), "two types have one name");
        }
    }
}

/// A frame that is told from others by a field that has one value.
struct TaggedFrame {
    name: String,
    tag: String,
    value: String,
    /// The field and those of the type within, as one object.
    schema: Value,
}

impl TaggedFrame {
    fn read(of: &str, frame: &Value, all: &Map<String, Value>) -> Option<Self> {
        let [own, within] = frame.get("allOf")?.as_array()?.as_slice() else { return None };
        let within = &all[within["$ref"].as_str()?.strip_prefix("#/$defs/")?];
        let (tag, field) = own["properties"].as_object()?.iter().next()?;
        let value = field["enum"][0].as_str()?;
        let mut schema = within.clone();
        schema["description"] = own["description"].clone();
        schema["properties"][tag] = field.clone();
        schema["required"].as_array_mut()?.insert(0, json!(tag));
        let (first, rest) = value.split_at_checked(1)?;
        let name = format!("{of}{}{rest}", first.to_uppercase());
        Some(Self { name, tag: tag.clone(), value: value.to_owned(), schema })
    }
}

/// The name on the wire: a form's own, without `Form`.
fn plain_name(name: &str) -> &str {
    name.strip_suffix("Form").unwrap_or(name)
}

/// Puts a schema into the shape that generators of clients understand best.
fn settle(schema: &mut Value) {
    match schema {
        Value::Object(map) => settle_map(map),
        Value::Array(all) => all.iter_mut().for_each(settle),
        Value::String(text) => {
            if let Some(name) = text.strip_prefix("#/$defs/") {
                *text = format!("#/$defs/{}", plain_name(name));
            } else if text.contains("[`") {
                *text = text.replace("[`", "`").replace("`]", "`");
            }
        }
        _ => {}
    }
}

fn settle_map(map: &mut Map<String, Value>) {
    // A width of integers that JSON has not, and defaults that only old hubs need.
    if map.get("format").is_some_and(Value::is_string) {
        map.remove("format");
    }
    map.remove("default");
    map.remove("maximum");
    // Generators of Python break on a constant that may be absent.
    if let Some(constant) = map.remove("const") {
        map.insert("enum".into(), json!([constant]));
    }
    let required = map.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_request = map.get("additionalProperties") == Some(&Value::Bool(false));
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            // A field that may be absent is never null, but for an open stream's group, which is
            // absent with the whole place.
            let is_group = !is_request && property.get("pattern").is_some();
            if !required.contains(&json!(name)) && !is_group {
                without_null(property);
            }
        }
    }
    map.values_mut().for_each(settle);
    // Generators pass over what stands beside a reference.
    if map.contains_key("properties")
        && let Some(reference) = map.remove("$ref")
    {
        let own = std::mem::take(map);
        map.insert("allOf".into(), json!([own, {"$ref": reference}]));
    }
}

fn without_null(schema: &mut Value) {
    for key in ["type", "anyOf"] {
        let Some(all) = schema.get_mut(key).and_then(Value::as_array_mut) else { continue };
        all.retain(|one| one != "null" && one.get("type").is_none_or(|kind| kind != "null"));
        if let [only] = all.as_slice() {
            let only = only.clone();
            if key == "type" {
                schema["type"] = only;
            } else if let (Some(map), Value::Object(only)) = (schema.as_object_mut(), only) {
                map.remove(key);
                map.extend(only);
            }
        }
    }
}

/// JSON whose parts stand in one line where they fit.
fn pretty(value: &Value, indent: usize, out: &mut String) {
    const WIDTH: usize = 100;
    // A key stands before most brackets, which is never longer than this.
    const KEY: usize = 24;
    let (ends, parts): (_, Vec<(String, &Value)>) = match value {
        Value::Object(map) => {
            (["{", "}"], map.iter().map(|(key, one)| (format!("{}: ", json!(key)), one)).collect())
        }
        Value::Array(all) => (["[", "]"], all.iter().map(|one| (String::new(), one)).collect()),
        scalar => return out.push_str(&scalar.to_string()),
    };
    let [open, close] = ends;
    let lines = parts.into_iter().map(|(mut line, one)| {
        pretty(one, indent + 2, &mut line);
        line
    });
    let lines: Vec<_> = lines.collect();
    let inline = format!("{open}{}{close}", lines.join(", "));
    if indent > 0 && !inline.contains('\n') && indent + KEY + inline.len() <= WIDTH {
        return out.push_str(&inline);
    }
    let between = format!("\n{}", " ".repeat(indent + 2));
    let lines = lines.join(&format!(",{between}"));
    *out += &format!("{open}{between}{lines}\n{}{close}", " ".repeat(indent));
}

#[cfg(test)]
mod tests;
