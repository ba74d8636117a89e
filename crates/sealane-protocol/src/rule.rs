//! Rules of retention: `/v1/rules`.

use sealane_codec::{Codec, DatumWriter, typed};
use sealane_message::Pattern;

use crate::forms::{AsText, append, read_body};
use crate::{Error, Retention};

/// A rule: the bounds of the streams whose topics match, those that are there and those that come,
/// as far as a stream has none of its own.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetentionRule {
    /// The pattern.
    #[serde(with = "AsText")]
    pub pattern: Pattern,
    /// The bounds.
    #[serde(flatten)]
    pub retention: Retention,
    /// When it was made, in Unix milliseconds.
    #[serde(default)]
    pub created_ms: u64,
    /// The token that made it; empty: none was needed.
    #[serde(default)]
    pub maker: String,
}

/// The rules of a hub, the most exact one first.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StreamRules {
    /// They.
    #[serde(default)]
    pub rules: Vec<RetentionRule>,
    /// The bounds of streams that no rule matches.
    #[serde(default, rename = "defaults")]
    pub default: Retention,
}

/// The body of a `PUT` of a rule; a bound that is left out is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleBounds {
    /// Messages older than this go; 0: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_ms: Option<u64>,
    /// So many messages stay; 0: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_count: Option<u64>,
    /// So many bytes at rest stay; 0: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// The body, as it is shown to whoever sent another one.
const BOUNDS: &str = r#"any of {"maxAgeMs": N, "maxCount": N, "maxBytes": N}"#;

impl RuleBounds {
    /// Reads a request's body.
    ///
    /// # Errors
    /// [`Error::Decode`], [`Error::UnknownField`] or [`Error::InvalidParameter`], which it is too
    /// if nothing is said.
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Error> {
        let bounds: Self = read_body(codec, body, BOUNDS)?;
        if bounds == Self::default() {
            return Err(Error::parameter("body", "names no bound; 0 stands for none"));
        }
        Ok(bounds)
    }

    /// Appends the request's body.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        append(codec, self, out);
    }

    /// The bounds.
    pub fn retention(&self) -> Retention {
        let [max_age_ms, max_count, max_bytes] =
            [self.max_age_ms, self.max_count, self.max_bytes].map(Option::unwrap_or_default);
        Retention { max_age_ms, max_count, max_bytes }
    }
}

/// The answer to a `DELETE`.
#[derive(serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RemovedRule<'a> {
    /// The pattern of the rule that is no more.
    #[serde(with = "AsText")]
    pattern: &'a Pattern,
    /// Always true.
    removed: bool,
}

/// Writes the answer to a `DELETE`: the rule is no more.
pub fn write_rule_removed(pattern: &Pattern, writer: &mut DatumWriter<'_>) {
    typed::write(&RemovedRule { pattern, removed: true }, writer);
}

/// The pattern that a query names: `pattern=`.
///
/// # Errors
/// [`Error::InvalidParameter`] or [`Error::Topic`].
pub fn read_rule_query(parameters: Vec<(String, String)>) -> Result<Pattern, Error> {
    let mut pattern = None;
    for (name, value) in parameters {
        match name.as_str() {
            "pattern" => pattern = Some(value.parse()?),
            _ => return Err(Error::parameter(name, "is no parameter of this request")),
        }
    }
    pattern.ok_or_else(|| Error::parameter("pattern", "is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let retention = Retention { max_age_ms: 1, max_count: 2, max_bytes: 3 };
        let (pattern, maker) = ("a/**".parse().unwrap(), "ops".to_owned());
        let rule = RetentionRule { pattern, retention, created_ms: 4, maker };
        let all = StreamRules { rules: vec![rule.clone()], default: retention };
        let bounds = RuleBounds { max_count: Some(0), ..RuleBounds::default() };
        for codec in Codec::AT_REST {
            let mut body = Vec::new();
            all.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(StreamRules::read(codec, &body), Ok(all.clone()));
            let mut body = Vec::new();
            rule.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(RetentionRule::read(codec, &body), Ok(rule.clone()));
            let mut body = Vec::new();
            bounds.write(codec, &mut body);
            assert_eq!(RuleBounds::read(codec, &body), Ok(bounds));
        }
    }

    #[test]
    fn a_wrong_body_or_query_is_refused_by_name() {
        let read = |body: &str| RuleBounds::read(Codec::Json, body.as_bytes());
        for wrong in ["{}", r#"{"maxAgeMs":-1}"#, r#"{"maxAgeMs":"7d"}"#, r#"{"maxCount":1.5}"#] {
            assert!(matches!(read(wrong), Err(Error::InvalidParameter { .. })), "{wrong}");
        }
        assert!(matches!(read(r#"{"level":"os"}"#), Err(Error::UnknownField { .. })));
        let query = |name: &str, value: &str| read_rule_query(vec![(name.into(), value.into())]);
        assert!(query("pattern", "a/**").is_ok());
        assert!(matches!(query("pattern", "a//b"), Err(Error::Topic(_))));
        assert!(matches!(query("x", "a"), Err(Error::InvalidParameter { .. })));
        assert!(matches!(read_rule_query(vec![]), Err(Error::InvalidParameter { .. })));
    }
}
