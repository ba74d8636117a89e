//! Fields of JSON, as they stand in the text.

use sealane_codec::Codec;

/// The value of a field, verbatim.
pub(crate) fn raw<'a>(text: &'a str, name: &str) -> &'a str {
    let fields = sealane_codec::fields(Codec::Json, text.as_bytes());
    let fields = fields.unwrap_or_else(|error| panic!("{error}: {text}"));
    let field = fields.iter().find(|(key, _)| key.as_ref() == name);
    let (_, raw) = field.unwrap_or_else(|| panic!("no `{name}` in {text}"));
    std::str::from_utf8(raw).unwrap()
}

pub(crate) fn number(text: &str, name: &str) -> u64 {
    raw(text, name).parse().unwrap()
}

/// A text without escapes.
pub(crate) fn text<'a>(json: &'a str, name: &str) -> &'a str {
    raw(json, name).trim_matches('"')
}

/// The elements of an array, verbatim.
pub(crate) fn elements(array: &str) -> impl Iterator<Item = &str> {
    let elements = sealane_codec::elements(Codec::Json, array.as_bytes()).unwrap();
    elements.into_iter().map(|element| std::str::from_utf8(element).unwrap())
}
