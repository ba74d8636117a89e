//! `sealane token` and `sealane explain access`: who may do what at a node.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sealane::{TokenRequest, TokenShare, TokenState, TokensList, Value};
use sealane_message::{Pattern, Topic};
use sealane_node::access::{AccessToken, TokenFile, TokenRight, TokenRights, TokenSecret};
use sealane_stream::{OwnShares, OwnedRows, ShareKind};

use crate::args::token::{TokenArgs as Args, TokenNew, TokenVerb};
use crate::colour::warn;
use crate::config::SettingsFile;
use crate::folder::{self, NodeReach};
use crate::terminal::harmless;
use crate::{CliFailure, Terminal};

/// Makes, lists and takes back tokens, in the data folder or through the hub in use.
///
/// # Errors
/// [`CliFailure::OtherNode`], [`CliFailure::Node`], [`CliFailure::Client`].
pub async fn run(
    args: &Args,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let node = folder::reach(file, args.data.as_ref(), args.hub.server.as_ref()).await?;
    match &args.verb {
        TokenVerb::New(new) => make(new, &node, terminal).await,
        TokenVerb::Ls => list(&listed(&node).await?, terminal),
        TokenVerb::Revoke { name } => {
            match &node {
                NodeReach::Folder(folder) => TokenFile::revoke(folder, name)?,
                NodeReach::Hub(client) => client.revoke_token(name).await?,
            }
            if terminal.json() {
                return terminal.record(vec![("revoked", name.as_str().into())]);
            }
            terminal.line(format_args!("{name} is revoked"))
        }
    }
}

/// The tokens of a node.
async fn listed(node: &NodeReach) -> Result<TokensList, CliFailure> {
    let folder = match node {
        NodeReach::Hub(client) => return Ok(client.tokens().await?),
        NodeReach::Folder(folder) => folder,
    };
    let tokens = TokenFile::read(&TokenFile::path(folder))?;
    // Without a store nobody holds anything yet.
    let held = sealane_stream::owned(folder).unwrap_or_default();
    let held = |owner: &str, kind| held_of(&held, owner, kind);
    Ok(TokensList { tokens: tokens.states(held), guarded: tokens.guards() })
}

/// The warning for patterns of orders that stand for no group.
pub(crate) const ORDERS_OPEN: &str =
    "`*` and `**` at the beginning stand for no group: orders are of `groups/*`, or of groups/TAG";

async fn make(new: &TokenNew, node: &NodeReach, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let rights = TokenRights {
        read: new.read.clone(),
        publish: new.publish.clone(),
        manage: new.manage.clone(),
        orders: new.orders.clone(),
        observe: new.observe,
        admin: new.admin,
    };
    if rights == TokenRights::default() {
        let needs = "a token needs --read, --publish, --manage, --orders, --observe or --admin";
        return Err(CliFailure::Usage(needs));
    }
    if rights.orders.iter().any(Pattern::begins_open) {
        warn(ORDERS_OPEN);
    }
    let (secret, whose) = match node {
        NodeReach::Folder(folder) => {
            (make_here(new, rights, folder)?, format!("node of {}", folder.display()))
        }
        NodeReach::Hub(client) => {
            let secret = client.make_token(&new.name, &request(new, &rights)).await?;
            (secret, format!("hub at {}", client.address()))
        }
    };
    if let Some(path) = &new.to {
        return keep(path, &secret);
    }
    if terminal.json() {
        let fields = vec![("name", new.name.as_str().into()), ("token", secret.into())];
        return terminal.record(fields);
    }
    terminal.line(&secret)?;
    eprintln!("sealane: this is shown once; clients bring it as SEALANE_TOKEN, to the {whose}");
    Ok(())
}

/// Makes a token in a data folder.
fn make_here(new: &TokenNew, rights: TokenRights, folder: &Path) -> Result<String, CliFailure> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|e| CliFailure::Runtime(std::io::Error::other(e)))?;
    let secret = TokenSecret::new(random);
    let expires = new.expires.map(|after| SystemTime::now() + after);
    let chosen = new.share.iter();
    let shares = chosen.fold(OwnShares::default(), |own, (kind, limit)| own.with(*kind, *limit));
    TokenFile::add_with(folder, &new.name, &secret, (rights, shares), expires)?;
    Ok(secret.reveal().to_owned())
}

/// The same, as a hub is asked for it.
fn request(new: &TokenNew, rights: &TokenRights) -> TokenRequest {
    let of = |right| rights.of(right).iter().map(|pattern| pattern.as_str().to_owned()).collect();
    let shares = new.share.iter().map(|(kind, limit)| (kind.name().to_owned(), *limit));
    let after = |after: Duration| u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    TokenRequest {
        read: of(TokenRight::Read),
        publish: of(TokenRight::Publish),
        manage: of(TokenRight::Manage),
        orders: of(TokenRight::Orders),
        observe: rights.observe,
        admin: rights.admin,
        shares: shares.collect(),
        expires_after_ms: new.expires.map(after),
    }
}

/// Writes a token where only its owner reads it, and over nothing.
fn keep(path: &Path, secret: &str) -> Result<(), CliFailure> {
    let failed = |cause: std::io::Error| CliFailure::file(path, cause);
    let mut options = OpenOptions::new();
    let mut out = options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    writeln!(out, "{secret}").and_then(|()| out.sync_all()).map_err(failed)
}

fn list(all: &TokensList, terminal: &mut Terminal) -> Result<(), CliFailure> {
    for token in &all.tokens {
        if terminal.json() {
            terminal.record(fields(token))?;
            continue;
        }
        // A hub may say anything, and a terminal obeys some of it.
        let (name, until) = (harmless(&token.name), until(token.expires_ms, token.valid));
        terminal.line(format_args!("{name}{until}"))?;
        let TokenState { read, publish, manage, orders, .. } = token;
        let rights = [read, publish, manage, orders];
        for (right, patterns) in TokenRight::ALL.into_iter().zip(rights) {
            for pattern in patterns {
                terminal.line(format_args!("  {:<9}{}", right.name(), harmless(pattern)))?;
            }
        }
        for (name, _) in [("observe", token.observe), ("admin", token.admin)].iter().filter(|f| f.1)
        {
            terminal.line(format_args!("  {name}"))?;
        }
        for TokenShare { kind, held, limit, chosen } in &token.shares {
            if *held > 0 || *chosen {
                let kind = harmless(kind);
                terminal.line(format_args!("  {:<9}{kind}: {held} of {limit}", "share"))?;
            }
        }
    }
    if !terminal.json() && !all.guarded {
        eprintln!("sealane: no token: the node serves this machine alone, and all of it");
    } else if !terminal.json() && all.tokens.is_empty() {
        eprintln!(
            "sealane: no token is left: the node serves nobody until there is one; to open it to \
             this machine, stop it and remove tokens.toml and guarded from its data folder"
        );
    }
    Ok(())
}

/// Whether a pattern would grant the right on a topic that were not a system's own.
fn is_open(token: &AccessToken, right: TokenRight, topic: &Topic) -> bool {
    topic.system().is_some() && token.rights().of(right).iter().any(Pattern::begins_open)
}

/// The pattern of all topics of a system.
fn below(topic: &Topic) -> String {
    topic.system().map_or_else(String::new, |system| format!("{}/**", system.name()))
}

/// When a token ends, in Unix milliseconds.
fn expires_ms(token: &AccessToken) -> Option<u64> {
    let since = token.expires()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Some(since.as_millis() as u64)
}

/// The end of the year 9999: a hub may say any number, and no calendar shows more.
const LAST_SHOWN_MS: u64 = 253_402_300_799_000;

fn until(expires_ms: Option<u64>, is_valid: bool) -> String {
    let Some(expires_ms) = expires_ms else { return String::new() };
    let said = if is_valid { "until" } else { "expired" };
    let expires = Duration::from_millis(expires_ms.min(LAST_SHOWN_MS));
    let expires = SystemTime::UNIX_EPOCH + expires;
    format!("  {said} {}", humantime::format_rfc3339_seconds(expires))
}

/// How much of a kind an owner holds in a store.
fn held_of(held: &[OwnedRows], owner: &str, kind: ShareKind) -> u64 {
    let found = held.iter().find(|rows| rows.owner == owner && rows.kind == kind);
    found.map_or(0, |rows| rows.count)
}

fn fields(token: &TokenState) -> Vec<(&'static str, Value)> {
    let mut fields = vec![("name", token.name.as_str().into())];
    let TokenState { read, publish, manage, orders, .. } = token;
    for (right, patterns) in TokenRight::ALL.into_iter().zip([read, publish, manage, orders]) {
        let patterns = patterns.iter().map(|pattern| Value::from(pattern.as_str())).collect();
        fields.push((right.name(), Value::Array(patterns)));
    }
    fields.push(("observe", token.observe.into()));
    fields.push(("admin", token.admin.into()));
    let share = |of: &TokenShare| {
        let kind = ("kind".into(), of.kind.as_str().into());
        Value::Map(vec![kind, ("held".into(), of.held.into()), ("limit".into(), of.limit.into())])
    };
    fields.push(("shares", Value::Array(token.shares.iter().map(share).collect())));
    fields.push(("valid", token.valid.into()));
    if let Some(expires_ms) = token.expires_ms {
        fields.push(("expiresMs", expires_ms.into()));
    }
    fields
}

/// Says what a token, named or shown, may do on a topic, and which pattern grants it.
///
/// # Errors
/// [`CliFailure::Node`] where there is no such token, [`CliFailure::Usage`] for what is no topic,
/// [`CliFailure::OtherNode`].
pub async fn explain(
    asked: &str,
    topic: &str,
    data: Option<&String>,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let topic: Topic = topic.parse().map_err(sealane::Error::from)?;
    let folder = folder::of_node(file, data, None).await?;
    let tokens = TokenFile::read(&TokenFile::path(&folder))?;
    let hash = asked.parse::<TokenSecret>().ok().map(|secret| secret.hash());
    let shown = hash.and_then(|hash| tokens.find(&hash));
    let token = shown.as_deref().or_else(|| tokens.iter().find(|token| token.name() == asked));
    // The given text may be a secret: it is not repeated.
    let name = || if hash.is_some() { "this".to_owned() } else { asked.to_owned() };
    let unknown = || sealane_node::access::FileError::Unknown { name: name() };
    let token = token.ok_or_else(unknown)?;
    let is_valid = token.is_valid(SystemTime::now());
    for right in TokenRight::ALL {
        let granting = token.rights().granting(right, &topic).filter(|_| is_valid);
        let asked = right.on(&topic);
        if terminal.json() {
            terminal.record(vec![
                ("token", token.name().into()),
                ("right", right.name().into()),
                ("granted", granting.is_some().into()),
                ("by", granting.map_or(Value::Null, |pattern| pattern.as_str().into())),
            ])?;
        } else {
            let because = match granting {
                Some(pattern) => format!("yes, by {pattern}"),
                None if asked != right => format!("no: this topic asks for {}", asked.name()),
                None if is_valid && is_open(token, right, &topic) => {
                    format!("no: `**` does not stand for it; name it, as in {}", below(&topic))
                }
                None if is_valid => "no".to_owned(),
                None => format!("no:{}", until(expires_ms(token), is_valid)),
            };
            terminal.line(format_args!("{:<9}{because}", right.name()))?;
        }
    }
    Ok(())
}
