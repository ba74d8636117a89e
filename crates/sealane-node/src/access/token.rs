use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use sealane_message::{Pattern, Topic};

/// What every token begins with, so that it is found where it was left by mistake.
const PREFIX: &str = concat!("sealane", "_");
const SECRET_BYTES: usize = 32;

/// The text of a token. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A token of these random bytes.
    pub fn new(random: [u8; SECRET_BYTES]) -> Self {
        Self(format!("{PREFIX}{}", base64_simd::URL_SAFE_NO_PAD.encode_to_string(random)))
    }

    /// The text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What a node keeps of it.
    pub fn hash(&self) -> [u8; 32] {
        blake3::derive_key("sealane token v1", self.0.as_bytes())
    }
}

impl FromStr for Secret {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let random = text.strip_prefix(PREFIX).ok_or(NotAToken)?;
        // The length first: nothing else of a stranger's text is looked at.
        if random.len() != SECRET_BYTES * 4 / 3 + 1 {
            return Err(NotAToken);
        }
        let bytes = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(random).map_err(|_| NotAToken)?;
        if bytes.len() == SECRET_BYTES { Ok(Self(text.to_owned())) } else { Err(NotAToken) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A text that cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token is `{PREFIX}` and 43 characters")]
pub struct NotAToken;

/// A right that is granted on topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Range reads, states, subscriptions.
    Read,
    /// Enqueueing.
    Publish,
    /// Making, changing and removing streams.
    Manage,
}

impl Right {
    /// All of them.
    pub const ALL: [Right; 3] = [Right::Read, Right::Publish, Right::Manage];

    /// Its name in files and refusals.
    pub fn name(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Publish => "publish",
            Right::Manage => "manage",
        }
    }
}

/// What a token grants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// What may be read.
    pub read: Vec<Pattern>,
    /// Where may be published.
    pub publish: Vec<Pattern>,
    /// What may be made, changed and removed.
    pub manage: Vec<Pattern>,
    /// Whether the node's own figures may be seen.
    pub observe: bool,
}

impl Rights {
    /// The patterns of one right.
    pub fn of(&self, right: Right) -> &[Pattern] {
        match right {
            Right::Read => &self.read,
            Right::Publish => &self.publish,
            Right::Manage => &self.manage,
        }
    }

    /// The pattern that grants a right on a topic.
    pub fn granting(&self, right: Right, topic: &Topic) -> Option<&Pattern> {
        self.of(right).iter().find(|pattern| pattern.matches(topic))
    }

    /// Whether a right on a topic is granted.
    pub fn grants(&self, right: Right, topic: &Topic) -> bool {
        self.granting(right, topic).is_some()
    }

    /// Whether a right on all topics of a pattern is granted.
    pub fn grants_all(&self, right: Right, pattern: &Pattern) -> bool {
        self.of(right).iter().any(|granted| granted.covers(pattern))
    }
}

/// A token as the node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub(super) name: String,
    pub(super) hash: [u8; 32],
    pub(super) rights: Rights,
    pub(super) created: SystemTime,
    pub(super) expires: Option<SystemTime>,
}

impl Token {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it grants.
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// When it was made.
    pub fn created(&self) -> SystemTime {
        self.created
    }

    /// When it ends, if it does.
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    /// Whether it holds at a time.
    pub fn is_valid(&self, now: SystemTime) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_nothing_else_does() {
        let secret = Secret::new([7; 32]);
        assert_eq!(secret.reveal().len(), 51);
        assert_eq!(secret.reveal().parse(), Ok(secret.clone()));
        for wrong in ["", "sealane_", "bearer", &secret.reveal()[1..], &secret.reveal()[..50]] {
            assert_eq!(wrong.parse::<Secret>(), Err(NotAToken), "{wrong}");
        }
        assert_eq!(format!("{secret:?}"), "Secret");
        assert_ne!(secret.hash(), Secret::new([8; 32]).hash());
    }
}
