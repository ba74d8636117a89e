use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use sealane_frame::GroupTag;
use sealane_message::{Pattern, System, Topic};
use sealane_stream::OwnShares;

/// The beginning of every token, so that a token left somewhere by mistake can be found.
const PREFIX: &str = concat!("sealane", "_");
const SECRET_BYTES: usize = 32;

/// The text of a token. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

impl TokenSecret {
    /// A token of these random bytes.
    pub fn new(random: [u8; SECRET_BYTES]) -> Self {
        Self(format!("{PREFIX}{}", base64_simd::URL_SAFE_NO_PAD.encode_to_string(random)))
    }

    /// The text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The hash of the secret, which the node keeps.
    pub fn hash(&self) -> [u8; 32] {
        blake3::derive_key("sealane token v1", self.0.as_bytes())
    }
}

impl FromStr for TokenSecret {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let random = text.strip_prefix(PREFIX).ok_or(NotAToken)?;
        // The length first: nothing else of a stranger's text is looked at.
        if random.len() != SECRET_BYTES * 4 / 3 + 1 {
            return Err(NotAToken);
        }
        // A text that is no base64 is no guess at a token, and costs no hash.
        let bytes = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(random).map_err(|_| NotAToken)?;
        if bytes.len() == SECRET_BYTES { Ok(Self(text.to_owned())) } else { Err(NotAToken) }
    }
}

impl fmt::Debug for TokenSecret {
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
pub enum TokenRight {
    /// Range reads, states, subscriptions.
    Read,
    /// Enqueueing.
    Publish,
    /// Making, changing and removing streams.
    Manage,
    /// All of both on the control streams of groups, where neither of them is enough.
    Orders,
}

impl TokenRight {
    /// All of them.
    pub const ALL: [TokenRight; 4] =
        [TokenRight::Read, TokenRight::Publish, TokenRight::Manage, TokenRight::Orders];

    /// Its name in files and refusals.
    pub fn name(self) -> &'static str {
        match self {
            TokenRight::Read => "read",
            TokenRight::Publish => "publish",
            TokenRight::Manage => "manage",
            TokenRight::Orders => "orders",
        }
    }

    /// The right that a topic asks for in place of this one. A token that may publish or manage
    /// everything is not yet trusted with what all members of a group obey.
    #[must_use]
    pub fn on(self, topic: &Topic) -> TokenRight {
        match self {
            TokenRight::Publish | TokenRight::Manage if is_control(topic) => TokenRight::Orders,
            right => right,
        }
    }
}

/// Whether a topic is the control stream of a group: `groups/` and the group's tag (spec/group.md).
fn is_control(topic: &Topic) -> bool {
    topic.as_str().strip_prefix("groups/").and_then(GroupTag::from_hex).is_some()
}

/// The rights of a token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenRights {
    /// The topics that may be read.
    pub read: Vec<Pattern>,
    /// Where may be published.
    pub publish: Vec<Pattern>,
    /// The streams that may be made, changed and removed.
    pub manage: Vec<Pattern>,
    /// Which control streams of groups may be written, made, changed and removed.
    pub orders: Vec<Pattern>,
    /// Whether the node's own figures may be seen, and its audit.
    pub observe: bool,
}

impl TokenRights {
    /// The patterns of one right.
    pub fn of(&self, right: TokenRight) -> &[Pattern] {
        match right {
            TokenRight::Read => &self.read,
            TokenRight::Publish => &self.publish,
            TokenRight::Manage => &self.manage,
            TokenRight::Orders => &self.orders,
        }
    }

    /// The pattern that grants a right on a topic. None of them grants a right that the topic does
    /// not ask for: `publish` and `manage` mean nothing on control streams, `orders` on any other.
    pub fn granting(&self, right: TokenRight, topic: &Topic) -> Option<&Pattern> {
        // The node alone writes its audit, and `observe` reads it.
        let is_audit = topic.system() == Some(System::Audit);
        if is_audit && matches!(right, TokenRight::Read | TokenRight::Publish) {
            return None;
        }
        // A pattern such as `**` under `publish` must not grant control streams, which all members
        // obey.
        let is_asked =
            right.on(topic) == right && (right != TokenRight::Orders || is_control(topic));
        self.of(right).iter().find(|pattern| is_asked && pattern.matches(topic))
    }

    /// Whether a right on a topic is granted.
    pub fn grants(&self, right: TokenRight, topic: &Topic) -> bool {
        self.granting(right, topic).is_some()
    }

    /// Whether all topics of a pattern may be read. Of the other rights this cannot be said by the
    /// patterns alone, since control streams among the topics ask for another right.
    pub fn reads_all(&self, pattern: &Pattern) -> bool {
        self.read.iter().any(|granted| granted.covers(pattern))
    }

    /// Whether there is any topic on which messages may be enqueued.
    pub fn may_enqueue(&self) -> bool {
        !(self.publish.is_empty() && self.orders.is_empty())
    }
}

/// A token as the node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    pub(super) name: Arc<str>,
    pub(super) hash: [u8; 32],
    pub(super) rights: TokenRights,
    pub(super) shares: OwnShares,
    pub(super) created: SystemTime,
    pub(super) expires: Option<SystemTime>,
}

impl AccessToken {
    /// The token's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its name, as the owner of shares.
    pub(crate) fn owner(&self) -> Arc<str> {
        self.name.clone()
    }

    /// The token's rights.
    pub fn rights(&self) -> &TokenRights {
        &self.rights
    }

    /// The shares that were chosen for it; of all others it has its part.
    pub fn shares(&self) -> &OwnShares {
        &self.shares
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
        let secret = TokenSecret::new([7; 32]);
        assert_eq!(secret.reveal().len(), 51);
        assert_eq!(secret.reveal().parse(), Ok(secret.clone()));
        for wrong in ["", "sealane_", "bearer", &secret.reveal()[1..], &secret.reveal()[..50]] {
            assert_eq!(wrong.parse::<TokenSecret>(), Err(NotAToken), "{wrong}");
        }
        assert_eq!(format!("{secret:?}"), "Secret");
        assert_ne!(secret.hash(), TokenSecret::new([8; 32]).hash());
    }

    #[test]
    fn control_streams_ask_for_a_right_of_their_own_and_no_other_topic_does() {
        let asked = |topic: &str| TokenRight::ALL.map(|right| right.on(&topic.parse().unwrap()));
        let [read, publish, manage, orders] = TokenRight::ALL;
        for control in ["groups/0a1b2c3d", "groups/00000000", "groups/ffffffff"] {
            assert_eq!(asked(control), [read, orders, orders, orders], "{control}");
        }
        for other in [
            "groups",
            "groups/0a1b2c3",
            "groups/0a1b2c3d0",
            "groups/0A1B2C3D",
            "groups/0a1b2c3g",
            "groups/+a1b2c3d",
            "groups/0a1b2c3d/x",
            "Groups/0a1b2c3d",
            "group/0a1b2c3d",
            "x/groups/0a1b2c3d",
            "dead/groups/0a1b2c3d",
        ] {
            assert_eq!(asked(other), [read, publish, manage, orders], "{other}");
        }
    }

    #[test]
    fn no_pattern_grants_a_right_that_the_topic_does_not_ask_for() {
        let granted = |pattern: &str, topic: &str| {
            let all: Vec<Pattern> = vec![pattern.parse().unwrap()];
            let (read, publish, manage, orders) = (all.clone(), all.clone(), all.clone(), all);
            let rights = TokenRights { read, publish, manage, orders, observe: false };
            TokenRight::ALL.map(|right| rights.grants(right, &topic.parse().unwrap()))
        };
        assert_eq!(granted("groups/*", "groups/0a1b2c3d"), [true, false, false, true]);
        assert_eq!(granted("**", "fleet/7"), [true, true, true, false]);
        // A right on the topics of systems is granted by their name alone.
        for topic in ["groups/0a1b2c3d", "groups/other", "dead/fleet/7", "dead"] {
            assert_eq!(granted("**", topic), [false; 4], "{topic}");
        }
        assert_eq!(granted("dead/**", "dead/fleet/7"), [true, true, true, false]);
    }
}
