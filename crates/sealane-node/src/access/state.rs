//! Tokens as a list shows them, and as a request asks for one.

use std::time::{Duration, SystemTime};

use sealane_message::Pattern;
use sealane_protocol::{Error, TokenRequest, TokenShare, TokenState};
use sealane_stream::{OwnShares, ShareKind};

use super::file::TokenFile;
use super::shares;
use super::token::{AccessToken, TokenRight, TokenRights};
use crate::limits::MAX_EXPIRY_S;

impl TokenFile {
    /// The tokens without their hashes, with what `held` says that each holds.
    pub fn states(&self, held: impl Fn(&str, ShareKind) -> u64) -> Vec<TokenState> {
        let (rules, now) = (self.share_rules(), SystemTime::now());
        let state = |token: &AccessToken| {
            let share = |kind: ShareKind| TokenShare {
                kind: kind.name().to_owned(),
                held: held(token.name(), kind),
                limit: rules.limit(token.name(), kind),
                chosen: token.shares().of(kind).is_some(),
            };
            // Only the node knows what is in flight now: `/metrics` says it.
            let is_stored = |kind: &ShareKind| *kind != ShareKind::InFlight;
            let patterns = |right| {
                let patterns = token.rights().of(right).iter();
                patterns.map(|pattern| pattern.as_str().to_owned()).collect()
            };
            let expires = token.expires().map(|expires| {
                expires.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis()
            });
            TokenState {
                name: token.name().to_owned(),
                read: patterns(TokenRight::Read),
                publish: patterns(TokenRight::Publish),
                manage: patterns(TokenRight::Manage),
                orders: patterns(TokenRight::Orders),
                observe: token.rights().observe,
                admin: token.rights().admin,
                shares: ShareKind::ALL.into_iter().filter(is_stored).map(share).collect(),
                valid: token.is_valid(now),
                expires_ms: expires.map(|expires| expires as u64),
            }
        };
        self.iter().map(state).collect()
    }
}

/// A token that is to be made.
#[derive(Debug)]
pub(crate) struct AskedToken {
    pub(crate) rights: TokenRights,
    pub(crate) shares: OwnShares,
    pub(crate) expires: Option<SystemTime>,
}

impl AskedToken {
    /// The token that a request asks for.
    pub(crate) fn read(request: &TokenRequest) -> Result<Self, Error> {
        let patterns = |all: &[String]| -> Result<Vec<Pattern>, Error> {
            all.iter().map(|pattern| pattern.parse().map_err(Error::from)).collect()
        };
        let rights = TokenRights {
            read: patterns(&request.read)?,
            publish: patterns(&request.publish)?,
            manage: patterns(&request.manage)?,
            orders: patterns(&request.orders)?,
            observe: request.observe,
            admin: request.admin,
        };
        if rights == TokenRights::default() {
            let cause = "grants no right: name read, publish, manage, orders, observe or admin";
            return Err(Error::parameter("body", cause));
        }
        let mut own = OwnShares::default();
        for (name, limit) in &request.shares {
            let (kind, limit) = shares::checked(name, Some(*limit), limit)
                .map_err(|cause| Error::parameter("shares", cause.to_string()))?;
            own = own.with(kind, limit);
        }
        let last = SystemTime::UNIX_EPOCH + Duration::from_secs(MAX_EXPIRY_S);
        let after = request.expires_after_ms.map(|after| {
            let until = SystemTime::now().checked_add(Duration::from_millis(after));
            let until = until.filter(|until| *until <= last);
            until.ok_or_else(|| Error::parameter("expiresAfterMs", "ends beyond the year 9999"))
        });
        Ok(Self { rights, shares: own, expires: after.transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_refused_by_the_part_that_is_wrong() {
        let read = |text: &str| {
            let request = TokenRequest::read(sealane_codec::Codec::Json, text.as_bytes()).unwrap();
            AskedToken::read(&request)
        };
        let asked =
            read(r#"{"read":["a/**"],"admin":true,"shares":{"keys":7},"expiresAfterMs":1}"#)
                .unwrap();
        assert!(asked.rights.admin && asked.expires.is_some());
        assert_eq!(asked.shares.of(ShareKind::Keys), Some(7));
        for (wrong, named) in [
            ("{}", "grants no right"),
            (r#"{"read":["a//b"]}"#, "between its slashes"),
            (r#"{"observe":true,"shares":{"key":1}}"#, "is no share"),
            (r#"{"observe":true,"shares":{"keys":99999999}}"#, "integer from 0 to 1000000"),
            (r#"{"observe":true,"expiresAfterMs":18446744073709551615}"#, "beyond the year 9999"),
        ] {
            let said = read(wrong).unwrap_err().to_string();
            assert!(said.contains(named), "{wrong}: {said}");
        }
    }
}
