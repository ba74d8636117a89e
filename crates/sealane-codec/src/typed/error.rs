use std::borrow::Cow;
use std::fmt;

use serde::de::{Expected, Unexpected};

use crate::CodecError;

/// Why a datum is no value of a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypedError {
    /// The datum itself cannot be read, or is of another kind than the type.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// It has a field that the type does not know, and the type knows all.
    #[error("`{0}` is unknown")]
    Unknown(String),
    /// A field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field has a value that it cannot have.
    #[error("`{path}` {cause}")]
    Wrong {
        /// The names of the fields that lead there, with dots between them; none for the datum.
        path: String,
        /// The fault of the value, for example `is not text`.
        cause: Cow<'static, str>,
    },
}

impl TypedError {
    /// The same cause, found inside the field `key`.
    pub(super) fn within(self, key: &str) -> Self {
        let (inner, cause) = match self {
            Self::Codec(CodecError::WrongKind { expected }) => {
                (Cow::default(), format!("is not {}", expected.name()).into())
            }
            Self::Codec(cause) => (Cow::default(), format!("cannot be read: {cause}").into()),
            Self::Unknown(_) => (Cow::default(), "has an unknown field".into()),
            Self::Missing(name) => (name.into(), "is missing".into()),
            Self::Wrong { path, cause } => (path.into(), cause),
        };
        let dot = if inner.is_empty() { "" } else { "." };
        Self::Wrong { path: format!("{key}{dot}{inner}"), cause }
    }

    /// The name of the outermost field that is concerned; empty: the datum itself is.
    pub fn field(&self) -> &str {
        match self {
            Self::Codec(_) => "",
            Self::Unknown(name) => name,
            Self::Missing(name) => name,
            Self::Wrong { path, .. } => path.split('.').next().unwrap_or_default(),
        }
    }

    fn wrong(cause: impl Into<Cow<'static, str>>) -> Self {
        Self::Wrong { path: String::new(), cause: cause.into() }
    }
}

impl serde::de::Error for TypedError {
    fn custom<T: fmt::Display>(cause: T) -> Self {
        Self::wrong(cause.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::wrong(format!("is not {expected}"))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::wrong(format!("is not {expected}"))
    }

    fn unknown_variant(variant: &str, _: &'static [&'static str]) -> Self {
        Self::Unknown(variant.to_owned())
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self::Unknown(field.to_owned())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }
}
