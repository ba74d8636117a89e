//! Types of TypeScript from the schemas: each definition is one exported type.

use serde_json::{Map, Value};

/// The text of the file of types.
pub(super) fn types(definitions: &Map<String, Value>) -> String {
    let mut text = String::from(
        "// Made by `cargo xtask docs` from the types of crates/sealane-protocol.\n\
         // In MessagePack and CBOR the types are the same, and bytes stay bytes.\n",
    );
    for (name, schema) in definitions {
        text.push('\n');
        comment(schema, "", &mut text);
        text += &format!("export type {name} = {};\n", of(schema, ""));
    }
    text
}

fn comment(schema: &Value, indent: &str, text: &mut String) {
    if let Some(description) = schema["description"].as_str() {
        *text += &format!("{indent}/** {} */\n", description.replace('\n', " "));
    }
}

/// The type that a schema describes, whose lines are indented so.
fn of(schema: &Value, indent: &str) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for (key, sign) in [("oneOf", " | "), ("anyOf", " | "), ("allOf", " & ")] {
        if let Some(all) = schema[key].as_array() {
            return all.iter().map(|one| of(one, indent)).collect::<Vec<_>>().join(sign);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds.map(|kind| of_kind(kind, schema, indent)).collect::<Vec<_>>().join(" | ")
        }
        kind => of_kind(kind.as_str().unwrap_or_default(), schema, indent),
    }
}

fn of_kind(kind: &str, schema: &Value, indent: &str) -> String {
    match kind {
        "string" | "boolean" | "null" => kind.to_owned(),
        "integer" | "number" => "number".to_owned(),
        "array" => match of(&schema["items"], indent) {
            item if item.contains(' ') => format!("({item})[]"),
            item => format!("{item}[]"),
        },
        "object" => match schema["properties"].as_object() {
            Some(properties) => object(schema, properties, indent),
            None => "Record<string, unknown>".to_owned(),
        },
        _ => "unknown".to_owned(),
    }
}

fn object(schema: &Value, properties: &Map<String, Value>, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
    };
    let mut text = String::from("{\n");
    for (name, property) in properties {
        comment(property, &inner, &mut text);
        let mark = if is_required(name) { "" } else { "?" };
        text += &format!("{inner}{name}{mark}: {};\n", of(property, &inner));
    }
    text + indent + "}"
}
