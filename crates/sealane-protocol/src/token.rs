//! Tokens of a node: `/v1/tokens`.

use std::collections::BTreeMap;

use sealane_codec::Codec;

use crate::Error;
use crate::forms::{append, read_body};

/// A token without its secret, which the node does not know either.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenState {
    /// Its name.
    pub name: String,
    /// The patterns of what it may read.
    #[serde(default)]
    pub read: Vec<String>,
    /// Where it may publish.
    #[serde(default)]
    pub publish: Vec<String>,
    /// The streams that it may make, change and remove.
    #[serde(default)]
    pub manage: Vec<String>,
    /// The control streams on which it may give orders.
    #[serde(default)]
    pub orders: Vec<String>,
    /// Whether it may see the node's figures and audit.
    #[serde(default)]
    pub observe: bool,
    /// Whether it may copy the node and change its tokens.
    #[serde(default)]
    pub admin: bool,
    /// Its shares.
    #[serde(default)]
    pub shares: Vec<TokenShare>,
    /// Whether it holds now.
    #[serde(default)]
    pub valid: bool,
    /// When it ends, in Unix milliseconds; none: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// A share of what a node has.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TokenShare {
    /// Its kind.
    pub kind: String,
    /// How much the token holds.
    #[serde(default)]
    pub held: u64,
    /// How much it may hold.
    #[serde(default)]
    pub limit: u64,
    /// Whether this limit was chosen for the token.
    #[serde(default)]
    pub chosen: bool,
}

/// The tokens of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TokensList {
    /// They, in the order in which they were made.
    #[serde(default)]
    pub tokens: Vec<TokenState>,
    /// Whether a token is needed, be there any or not.
    #[serde(default)]
    pub guarded: bool,
}

/// The body of a `POST` that makes a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenRequest {
    /// The patterns of what it may read.
    pub read: Vec<String>,
    /// Where it may publish.
    pub publish: Vec<String>,
    /// The streams that it may make, change and remove.
    pub manage: Vec<String>,
    /// The control streams on which it may give orders.
    pub orders: Vec<String>,
    /// Whether it may see the node's figures and audit.
    pub observe: bool,
    /// Whether it may copy the node and change its tokens.
    pub admin: bool,
    /// The shares that are chosen for it, by their kinds.
    pub shares: BTreeMap<String, u64>,
    /// It ends after so many milliseconds; none: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_after_ms: Option<u64>,
}

/// The body, as it is shown to the sender of another one.
const REQUEST: &str =
    "any of read, publish, manage, orders, observe, admin, shares, expiresAfterMs";

impl TokenRequest {
    /// Reads a request's body.
    ///
    /// # Errors
    /// [`Error::Decode`], [`Error::UnknownField`] or [`Error::InvalidParameter`].
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Error> {
        read_body(codec, body, REQUEST)
    }

    /// Appends the request's body.
    pub fn write(&self, codec: Codec, out: &mut Vec<u8>) {
        append(codec, self, out);
    }
}

/// The answer to that `POST`: the one time that the token is shown.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MadeToken {
    /// Its name.
    pub name: String,
    /// The token.
    pub token: String,
}

impl std::fmt::Debug for MadeToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A secret in a log is one that has to be revoked.
        f.debug_struct("MadeToken").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The answer to a `DELETE`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RevokedToken {
    /// The name of the token that holds no more.
    pub revoked: String,
}

/// The token that a query names: `name=`.
///
/// # Errors
/// [`Error::InvalidParameter`].
pub fn read_token_query(parameters: Vec<(String, String)>) -> Result<String, Error> {
    let mut token = None;
    for (name, value) in parameters {
        match name.as_str() {
            "name" => token = Some(value),
            _ => return Err(Error::parameter(name, "is no parameter of this request")),
        }
    }
    token.ok_or_else(|| Error::parameter("name", "is missing"))
}

#[cfg(test)]
mod tests {
    use sealane_codec::DatumWriter;

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let share = TokenShare { kind: "streams".into(), held: 1, limit: 2, chosen: true };
        let (read, shares) = (vec!["a/**".to_owned()], vec![share]);
        let token = TokenState { name: "a".into(), read, shares, ..TokenState::default() };
        let other = TokenState { expires_ms: Some(7), admin: true, ..TokenState::default() };
        let list = TokensList { tokens: vec![token, other], guarded: true };
        let request = TokenRequest {
            publish: vec!["b".into()],
            shares: BTreeMap::from([("keys".into(), 3)]),
            expires_after_ms: Some(4),
            ..TokenRequest::default()
        };
        let made = MadeToken { name: "a".into(), token: "secret".into() };
        for codec in Codec::AT_REST {
            let mut body = Vec::new();
            list.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(TokensList::read(codec, &body), Ok(list.clone()));
            let mut body = Vec::new();
            request.write(codec, &mut body);
            assert_eq!(TokenRequest::read(codec, &body), Ok(request.clone()));
            let mut body = Vec::new();
            made.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(MadeToken::read(codec, &body), Ok(made.clone()));
        }
        assert!(!format!("{made:?}").contains("secret"));
    }

    #[test]
    fn a_wrong_body_or_query_is_refused_by_name() {
        let read = |body: &str| TokenRequest::read(Codec::Json, body.as_bytes());
        for wrong in [
            r#"{"read":"a"}"#,
            r#"{"admin":1}"#,
            r#"{"shares":{"keys":-1}}"#,
            r#"{"expiresAfterMs":"1d"}"#,
        ] {
            assert!(matches!(read(wrong), Err(Error::InvalidParameter { .. })), "{wrong}");
        }
        assert!(matches!(read(r#"{"root":true}"#), Err(Error::UnknownField { .. })));
        let query = |name: &str| read_token_query(vec![(name.to_owned(), "a".to_owned())]);
        assert_eq!(query("name"), Ok("a".to_owned()));
        assert!(query("token").is_err() && read_token_query(Vec::new()).is_err());
    }
}
