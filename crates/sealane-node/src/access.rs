//! Access to the node: tokens with their rights, and the limits on requests that browsers send for
//! other sites (spec/access.md).

mod file;
mod grant;
mod shares;
mod site;
mod token;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::Mutex;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use sealane_message::{Pattern, System, Topic};
use sealane_stream::{ShareRules, SteeredTopics};
use tokio::sync::watch;

pub use file::{FileError, TokenFile};
pub(crate) use grant::ConnectionGrant;
pub(crate) use site::{AllowedSites, cross_site};
pub use token::{AccessToken, TokenRight, TokenRights, TokenSecret};

use crate::fair::ReplyOwner;
use crate::followed::FollowedFiles;
use crate::peer::ClientPeer;
use crate::refusal::HttpRefusal;

/// The prefix of the sub-protocol that brings a token.
const SUBPROTOCOL: &str = "sealane.token.";

/// The tokens in effect.
pub(crate) struct AccessTokens {
    file: PathBuf,
    tokens: FollowedFiles<TokenFile>,
    /// When it was last looked which tokens have expired.
    looked: Mutex<SystemTime>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    /// Is told which share each token has, at each change.
    sharing: OnceLock<Box<dyn Fn(ShareRules) + Send + Sync>>,
    site: AllowedSites,
    /// Others reach the node: whatever becomes of the file, it is not open to them.
    is_exposed: bool,
}

impl AccessTokens {
    /// Reads the tokens of a data folder, which may have none.
    pub(crate) fn open(
        folder: &Path,
        site: AllowedSites,
        is_exposed: bool,
    ) -> Result<Self, FileError> {
        let file = TokenFile::path(folder);
        // A file that cannot be read ends the start. A node that guessed would be open or closed by
        // accident.
        let tokens = FollowedFiles::open(vec![file.clone()], || TokenFile::read(&file))?;
        remember(folder, &tokens.current());
        let (changes, _) = watch::channel(0);
        let looked = Mutex::new(SystemTime::now());
        let sharing = OnceLock::new();
        Ok(Self { file, tokens, looked, changes, sharing, site, is_exposed })
    }

    /// Has `share` told which share each token has, now and at each change.
    pub(crate) fn share_by(&self, share: impl Fn(ShareRules) + Send + Sync + 'static) {
        share(self.tokens().share_rules());
        let is_first = self.sharing.set(Box::new(share)).is_ok();
        debug_assert!(is_first, "one hub for each set of tokens");
    }

    /// Whether there is any token.
    pub(crate) fn has_tokens(&self) -> bool {
        !self.tokens().is_empty()
    }

    /// How many tokens there are.
    pub(crate) fn count(&self) -> usize {
        self.tokens().iter().count()
    }

    /// Whether a token is needed.
    fn is_guarded(&self) -> bool {
        self.is_exposed || self.tokens().guards()
    }

    fn tokens(&self) -> Arc<TokenFile> {
        self.tokens.current()
    }

    /// Whether the request is meant for this node, and by no page that is none of ours.
    pub(crate) fn check_site(&self, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        self.site.check(headers, self.is_guarded())
    }

    /// The pass of the request's sender, or the reason why the request is refused.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<RequestPass, HttpRefusal> {
        // The site comes first: a page of the web must not even find out whether a token is right.
        self.check_site(headers)?;
        let secret = secret(headers);
        let hash = secret.map(|secret| secret.hash());
        let pass = RequestPass { hash, token: None, peer: None };
        self.renew(pass)
    }

    /// The same pass as of now.
    pub(crate) fn renew(&self, mut pass: RequestPass) -> Result<RequestPass, HttpRefusal> {
        let tokens = self.tokens();
        if !self.is_guarded() {
            // If the last token is removed, its rights do not pass to everybody.
            return if pass.token.is_some() { Err(HttpRefusal::Unauthorized) } else { Ok(pass) };
        }
        // Hashes are compared and never texts, so that the time of a look-up tells nothing about a
        // token.
        let known = pass.hash.and_then(|hash| tokens.find(&hash));
        let alive = known.filter(|token| token.is_valid(SystemTime::now()));
        pass.token = Some(alive.ok_or(HttpRefusal::Unauthorized)?);
        Ok(pass)
    }

    /// Wakes after each change of the tokens.
    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Reads the file again. One that cannot be read changes nothing, and one that has gone lets
    /// nobody in: what a running node was told to guard it does not open.
    pub(crate) fn reload(&self) -> Result<(), FileError> {
        self.tokens.reload(|| {
            let mut tokens = TokenFile::read(&self.file)?;
            if self.tokens().guards() {
                // A file that vanished while the node runs must not open it, even if the mark could
                // not be written.
                tokens = tokens.guarding();
            }
            remember(self.file.parent().unwrap_or(Path::new(".")), &tokens);
            Ok(tokens)
        })?;
        // The shares come first: whoever is told of the change finds them in effect.
        if let Some(share) = self.sharing.get() {
            share(self.tokens().share_rules());
        }
        // The new tokens are in use by now, so that each connection that wakes asks them.
        self.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }

    /// Follows the file, and the times at which tokens expire.
    pub(crate) async fn follow(self: Arc<Self>, stopping: watch::Receiver<bool>) {
        let look = || self.tell_expired(SystemTime::now());
        self.tokens.follow("the tokens", stopping, look, || self.reload()).await;
    }

    /// Wakes who reads by a token that has expired since the last look, however long ago that was:
    /// a machine may have slept, or its clock been set.
    fn tell_expired(&self, now: SystemTime) {
        // Comparing two looks finds an expiry even if the clock jumped over it.
        let last = std::mem::replace(&mut *self.looked.lock(), now);
        if self.tokens().expired_between(last, now) {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }
}

/// Notes in the data folder that there are or were tokens, and says so where none is left.
fn remember(folder: &Path, tokens: &TokenFile) {
    if !tokens.guards() {
        return;
    }
    if tokens.is_empty() {
        tracing::warn!("no token is left, or their file has gone: nobody is let in");
    }
    if let Err(error) = TokenFile::mark(folder) {
        // As long as the node runs it knows by itself.
        tracing::error!(%error, "the data folder does not take the mark that there are tokens");
    }
}

/// The sender of a request, and its rights.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestPass {
    hash: Option<[u8; 32]>,
    /// None: a node without tokens, which serves its own machine.
    token: Option<Arc<AccessToken>>,
    peer: Option<ClientPeer>,
}

impl RequestPass {
    /// The same sender, at this address.
    pub(crate) fn at(self, peer: Option<ClientPeer>) -> Self {
        Self { peer, ..self }
    }

    /// The client that replies to the sender count for.
    pub(crate) fn reply_owner(&self) -> ReplyOwner {
        match (&self.token, self.peer) {
            (Some(token), _) => ReplyOwner::Token(token.owner()),
            (None, Some(peer)) => ReplyOwner::Peer(peer),
            (None, None) => ReplyOwner::Unknown,
        }
    }

    /// The name of the token, empty where there are none.
    pub(crate) fn name(&self) -> &str {
        self.token.as_ref().map_or("", |token| token.name())
    }

    /// The owner whose shares the sender's things count for: its token, by name.
    pub(crate) fn owner(&self) -> Arc<str> {
        self.token.as_ref().map_or_else(Arc::default, |token| token.owner())
    }

    /// Where the sender may change consumers that others made, whenever that is asked.
    pub(crate) fn steers(&self, access: Arc<AccessTokens>) -> SteeredTopics {
        let pass = self.clone();
        // A subscription to a pattern asks for each stream that comes. The token may have lost the
        // right by then, and still read.
        let renewed = move || access.renew(pass.clone());
        SteeredTopics::new(move |topic| {
            renewed().is_ok_and(|pass| pass.may(TokenRight::Manage, topic))
        })
    }

    /// Whether it was a token that let the sender in.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The patterns of what may be read; none: everything.
    pub(crate) fn readable(&self) -> Option<&[Pattern]> {
        self.token.as_ref().map(|token| token.rights().of(TokenRight::Read))
    }

    /// Whether the right that one topic asks for is granted.
    pub(crate) fn may(&self, right: TokenRight, topic: &Topic) -> bool {
        if topic.system() == Some(System::Audit) {
            match right {
                TokenRight::Read => return self.may_observe(),
                // The node alone writes there, whoever asks.
                TokenRight::Publish => return false,
                TokenRight::Manage | TokenRight::Orders => {}
            }
        }
        self.token.as_ref().is_none_or(|token| token.rights().grants(right.on(topic), topic))
    }

    /// Refuses what is not granted.
    pub(crate) fn need(&self, right: TokenRight, topic: &Topic) -> Result<(), HttpRefusal> {
        if self.may(right, topic) {
            return Ok(());
        }
        let is_audit = topic.system() == Some(System::Audit) && right == TokenRight::Read;
        let right = if is_audit { "observe" } else { right.on(topic).name() };
        Err(HttpRefusal::Forbidden { right, on: topic.to_string() })
    }

    /// The topic of that name, where the right to it is granted.
    pub(crate) fn topic(&self, right: TokenRight, name: &str) -> Result<Topic, HttpRefusal> {
        let topic = name.parse().map_err(sealane_protocol::Error::from)?;
        self.need(right, &topic)?;
        Ok(topic)
    }

    /// Refuses who may enqueue nowhere.
    pub(crate) fn need_to_enqueue(&self) -> Result<(), HttpRefusal> {
        if self.token.as_ref().is_none_or(|token| token.rights().may_enqueue()) {
            return Ok(());
        }
        Err(HttpRefusal::Forbidden {
            right: TokenRight::Publish.name(),
            on: "any topic".to_owned(),
        })
    }

    /// Refuses a pattern of which not all may be read.
    pub(crate) fn need_to_read_all(&self, pattern: &Pattern) -> Result<(), HttpRefusal> {
        if pattern.system() == Some(System::Audit) {
            return self.need_observe();
        }
        if self.token.as_ref().is_none_or(|token| token.rights().reads_all(pattern)) {
            return Ok(());
        }
        Err(HttpRefusal::Forbidden { right: TokenRight::Read.name(), on: pattern.to_string() })
    }

    /// Refuses a pattern of which not all streams may be managed.
    pub(crate) fn need_to_manage_all(&self, pattern: &Pattern) -> Result<(), HttpRefusal> {
        // Among the streams of groups are those that ask for another right.
        let right = match pattern.system() {
            Some(System::Groups) => TokenRight::Orders,
            _ => TokenRight::Manage,
        };
        let is_granted = |token: &Arc<AccessToken>| {
            token.rights().of(right).iter().any(|granted| granted.covers(pattern))
        };
        if self.token.as_ref().is_none_or(is_granted) {
            return Ok(());
        }
        Err(HttpRefusal::Forbidden { right: right.name(), on: pattern.to_string() })
    }

    fn may_observe(&self) -> bool {
        self.token.as_ref().is_none_or(|token| token.rights().observe)
    }

    /// Refuses who may not see the node's own figures.
    pub(crate) fn need_observe(&self) -> Result<(), HttpRefusal> {
        if self.may_observe() {
            return Ok(());
        }
        Err(HttpRefusal::Forbidden { right: "observe", on: "the node".to_owned() })
    }
}

/// The token that a request brings.
fn secret(headers: &HeaderMap) -> Option<TokenSecret> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        // A header that is present decides alone. Falling back to a sub-protocol would let a
        // request show two tokens.
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().parse().ok())?;
    }
    let lists = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
    offered.find_map(|name| name.trim().strip_prefix(SUBPROTOCOL)?.parse().ok())
}

/// Whether a request shows anything as a token.
pub(crate) fn shows_token(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION) || secret(headers).is_some()
}

/// Whether an offered sub-protocol is a token and no codec.
pub(crate) fn is_token(offered: &str) -> bool {
    offered.starts_with(SUBPROTOCOL)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    /// Tokens of a folder with one, which reads everything.
    fn access(folder: &Path, expires: Option<SystemTime>) -> AccessTokens {
        let rights = TokenRights { read: vec!["**".parse().unwrap()], ..TokenRights::default() };
        TokenFile::add(folder, "reader", &TokenSecret::new([1; 32]), rights, expires).unwrap();
        AccessTokens::open(folder, AllowedSites::default(), false).unwrap()
    }

    fn look(access: &AccessTokens) -> Option<Result<(), FileError>> {
        access.tokens.has_changed().then(|| access.reload())
    }

    #[test]
    fn every_change_is_read_and_what_failed_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let access = access(folder.path(), None);
        assert!(look(&access).is_none());
        // Between the first reading and the first look.
        let rights = TokenRights::default();
        TokenFile::add(folder.path(), "other", &TokenSecret::new([2; 32]), rights, None).unwrap();
        assert!(matches!(look(&access), Some(Ok(()))));
        assert_eq!(access.tokens().iter().count(), 2);
        assert!(look(&access).is_none());
        // A change of the mode alone, which fails for as long as it stands.
        fs::set_permissions(&access.file, Permissions::from_mode(0o640)).unwrap();
        for _ in 0..3 {
            assert!(matches!(look(&access), Some(Err(FileError::Exposed { .. }))));
        }
        fs::set_permissions(&access.file, Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(look(&access), Some(Ok(()))));
        assert!(look(&access).is_none());
    }

    #[test]
    fn manage_that_was_taken_back_steers_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let (topic, all): (Topic, Vec<Pattern>) =
            ("s".parse().unwrap(), vec!["**".parse().unwrap()]);
        let rights = |manage| TokenRights { read: all.clone(), manage, ..TokenRights::default() };
        let add = |rights| {
            TokenFile::add(folder.path(), "m", &TokenSecret::new([3; 32]), rights, None).unwrap();
        };
        add(rights(all.clone()));
        let access =
            Arc::new(AccessTokens::open(folder.path(), AllowedSites::default(), false).unwrap());
        let hash = Some(TokenSecret::new([3; 32]).hash());
        let pass = access.renew(RequestPass { hash, ..RequestPass::default() }).unwrap();
        let steers = pass.steers(access.clone());
        assert!(steers.may(&topic));
        TokenFile::revoke(folder.path(), "m").unwrap();
        add(rights(Vec::new()));
        access.reload().unwrap();
        assert!(access.renew(pass).is_ok(), "it reads on");
        assert!(!steers.may(&topic));
    }

    #[test]
    fn a_token_that_expired_while_nobody_looked_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let access = access(folder.path(), Some(at(1000)));
        let told = |last, now| {
            let changes = access.changes();
            *access.looked.lock() = at(last);
            access.tell_expired(at(now));
            changes.has_changed().unwrap()
        };
        assert!(told(999, 1000) && told(10, 100_000));
        assert!(!told(998, 999) && !told(1000, 100_000), "not before, and once");
    }
}
