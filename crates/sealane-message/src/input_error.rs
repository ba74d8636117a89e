//! Errors of texts that people write: one sentence, which the caller puts behind the place.

use std::borrow::Cow;
use std::fmt;

/// The reason why a text that a person wrote cannot be read, as one sentence without a full stop.
///
/// It has no code of its own. The error that names the file or the flag has one, and takes this as
/// its cause.
///
/// ```
/// use sealane_message::InputError;
///
/// let cause = InputError::from("a time is like 5s");
/// assert_eq!(cause.to_string(), "a time is like 5s");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError(Cow<'static, str>);

impl fmt::Display for InputError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for InputError {}

impl From<&'static str> for InputError {
    fn from(sentence: &'static str) -> Self {
        Self(Cow::Borrowed(sentence))
    }
}

impl From<String> for InputError {
    fn from(sentence: String) -> Self {
        Self(Cow::Owned(sentence))
    }
}
