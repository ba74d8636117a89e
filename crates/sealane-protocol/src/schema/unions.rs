//! Unions of the OpenAPI page, of which each value is of one member alone.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The places of unions with two members that no field and no type tells apart.
pub(super) fn ambiguous(page: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(page, page, "", &mut found);
    found
}

fn look(page: &Value, at: &Value, path: &str, found: &mut Vec<String>) {
    let parts: Vec<(String, &Value)> = match at {
        Value::Object(map) => map.iter().map(|(key, one)| (key.clone(), one)).collect(),
        Value::Array(all) => {
            all.iter().enumerate().map(|(place, one)| (place.to_string(), one)).collect()
        }
        _ => return,
    };
    for (key, part) in parts {
        let path = format!("{path}/{key}");
        if ["oneOf", "anyOf"].contains(&key.as_str()) {
            let mut members = Vec::new();
            flatten(page, at, &mut members);
            let mut pairs = (0..members.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
            if pairs.any(|(a, b)| !is_apart(page, &members[a], &members[b])) {
                found.push(path.clone());
            }
        }
        look(page, part, &path, found);
    }
}

/// The schema that a reference leads to.
fn resolved<'a>(page: &'a Value, mut schema: &'a Value) -> &'a Value {
    while let Some(reference) = schema["$ref"].as_str() {
        schema = page.pointer(reference.trim_start_matches('#')).expect("it leads somewhere");
    }
    schema
}

/// The members of a union, and of the unions that are its members.
fn flatten(page: &Value, schema: &Value, members: &mut Vec<Value>) {
    let schema = resolved(page, schema);
    if let Some(all) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return all.iter().for_each(|one| flatten(page, one, members));
    }
    let Some(parts) = schema["allOf"].as_array() else { return members.push(schema.clone()) };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts.iter().map(|part| resolved(page, part)) {
        properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().cloned().unwrap_or_default());
    }
    members.push(json!({"type": "object", "properties": properties, "required": required}));
}

/// Whether no value is of both: they have no type in common, a field has other values in each, or
/// each needs a field that the other one has not.
fn is_apart(page: &Value, a: &Value, b: &Value) -> bool {
    if texts(&a["type"]).is_disjoint(&texts(&b["type"])) {
        return true;
    }
    let values = |schema: &Value| {
        let values = resolved(page, schema)["enum"].as_array().cloned();
        values.map(|all| all.iter().map(Value::to_string).collect::<BTreeSet<_>>())
    };
    let differ =
        |a: &Value, b: &Value| values(a).zip(values(b)).is_some_and(|(a, b)| a.is_disjoint(&b));
    if differ(a, b) {
        return true;
    }
    let needed = |schema: &Value| texts(&schema["required"]);
    let has = |schema: &Value, field: &String| schema["properties"].get(field).is_some();
    let told = needed(a)
        .intersection(&needed(b))
        .any(|field| differ(&a["properties"][field.as_str()], &b["properties"][field.as_str()]));
    let lacks = |of: &Value, in_other: &Value| needed(of).iter().any(|field| !has(in_other, field));
    told || (lacks(a, b) && lacks(b, a))
}

/// A text, or a list of texts.
fn texts(value: &Value) -> BTreeSet<String> {
    let all = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_cannot_tell_apart_is_found() {
        let object = |fields: &[&str], required: &[&str]| {
            let properties: Map<_, _> = fields
                .iter()
                .map(|field| ((*field).to_owned(), json!({"type": "string"})))
                .collect();
            json!({"type": "object", "properties": properties, "required": required})
        };
        let tagged = |value: &str| {
            let properties = json!({"s": {"enum": [value]}});
            json!({"type": "object", "required": ["s"], "properties": properties})
        };
        for (a, b, is_told) in [
            (object(&["a"], &["a"]), object(&["b"], &["b"]), true),
            (object(&["a"], &["a"]), object(&["b"], &[]), false),
            (object(&["a", "b"], &["a"]), object(&["b"], &["b"]), false),
            (object(&["a"], &["a"]), json!({"type": "string"}), true),
            (tagged("x"), tagged("y"), true),
            (tagged("x"), tagged("x"), false),
            (json!({"type": ["string", "integer"]}), json!({"type": "integer"}), false),
        ] {
            let page = json!({"defs": {"A": a, "U": {"anyOf": [{"$ref": "#/defs/A"}, b]}}});
            let expected: &[&str] = if is_told { &[] } else { &["/defs/U/anyOf"] };
            assert_eq!(ambiguous(&page), expected, "{page}");
        }
    }
}
