//! `sealane token` and `sealane explain access`: who may do what at a node of this machine.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use sealane::Value;
use sealane_message::{Pattern, Topic};
use sealane_node::access::{AccessToken, TokenFile, TokenRight, TokenRights, TokenSecret};
use sealane_stream::{OwnShares, OwnedRows, ShareHeld, ShareKind, ShareRules};

use crate::args::token::{TokenArgs as Args, TokenNew, TokenVerb};
use crate::colour::warn;
use crate::config::SettingsFile;
use crate::{CliFailure, Terminal, folder};

/// Makes, lists and takes back tokens.
///
/// # Errors
/// [`CliFailure::OtherNode`], [`CliFailure::Node`].
pub async fn run(
    args: &Args,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let folder = folder::of_node(file, args.data.as_ref(), args.hub.server.as_ref()).await?;
    match &args.verb {
        TokenVerb::New(new) => make(new, &folder, terminal),
        TokenVerb::Ls => list(&folder, terminal),
        TokenVerb::Revoke { name } => {
            TokenFile::revoke(&folder, name)?;
            if terminal.json() {
                return terminal.record(vec![("revoked", name.as_str().into())]);
            }
            terminal.line(format_args!("{name} is revoked"))
        }
    }
}

/// The warning for patterns of orders that stand for no group.
pub(crate) const ORDERS_OPEN: &str =
    "`*` and `**` at the beginning stand for no group: orders are of `groups/*`, or of groups/TAG";

fn make(new: &TokenNew, folder: &Path, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let rights = TokenRights {
        read: new.read.clone(),
        publish: new.publish.clone(),
        manage: new.manage.clone(),
        orders: new.orders.clone(),
        observe: new.observe,
    };
    if rights == TokenRights::default() {
        let needs = "a token needs --read, --publish, --manage, --orders or --observe";
        return Err(CliFailure::Usage(needs));
    }
    if rights.orders.iter().any(Pattern::begins_open) {
        warn(ORDERS_OPEN);
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|e| CliFailure::Runtime(std::io::Error::other(e)))?;
    let secret = TokenSecret::new(random);
    let expires = new.expires.map(|after| SystemTime::now() + after);
    let chosen = new.share.iter();
    let shares = chosen.fold(OwnShares::default(), |own, (kind, limit)| own.with(*kind, *limit));
    TokenFile::add_with(folder, &new.name, &secret, (rights, shares), expires)?;
    if let Some(path) = &new.to {
        return keep(path, &secret);
    }
    if terminal.json() {
        let fields = vec![("name", new.name.as_str().into()), ("token", secret.reveal().into())];
        return terminal.record(fields);
    }
    terminal.line(secret.reveal())?;
    eprintln!(
        "sealane: this is shown once; clients bring it as SEALANE_TOKEN, to the node of {}",
        folder.display()
    );
    Ok(())
}

/// Writes a token where only its owner reads it, and over nothing.
fn keep(path: &Path, secret: &TokenSecret) -> Result<(), CliFailure> {
    let failed = |cause: std::io::Error| CliFailure::file(path, cause);
    let mut options = OpenOptions::new();
    let mut out = options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    writeln!(out, "{}", secret.reveal()).and_then(|()| out.sync_all()).map_err(failed)
}

fn list(folder: &Path, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let tokens = TokenFile::read(&TokenFile::path(folder))?;
    // Without a store nobody holds anything yet.
    let held = sealane_stream::owned(folder).unwrap_or_default();
    let rules = tokens.share_rules();
    for token in tokens.iter() {
        let shares = shares(token.name(), &rules, &held);
        if terminal.json() {
            terminal.record(fields(token, &shares))?;
        } else {
            terminal.line(format_args!("{}{}", token.name(), until(token)))?;
            for right in TokenRight::ALL {
                for pattern in token.rights().of(right) {
                    terminal.line(format_args!("  {:<9}{pattern}", right.name()))?;
                }
            }
            if token.rights().observe {
                terminal.line("  observe")?;
            }
            let is_chosen = |kind| token.shares().of(kind).is_some();
            for ShareHeld { kind, held, limit, .. } in shares {
                if held > 0 || is_chosen(kind) {
                    let name = kind.name();
                    terminal.line(format_args!("  {:<9}{name}: {held} of {limit}", "share"))?;
                }
            }
        }
    }
    if !terminal.json() && !tokens.guards() {
        eprintln!("sealane: no token: the node serves this machine alone, and all of it");
    } else if !terminal.json() && tokens.is_empty() {
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

fn until(token: &AccessToken) -> String {
    let Some(expires) = token.expires() else { return String::new() };
    let said = if token.is_valid(SystemTime::now()) { "until" } else { "expired" };
    format!("  {said} {}", humantime::format_rfc3339_seconds(expires))
}

/// The stored shares of a token: how much it holds and may hold of each.
pub(crate) fn shares(name: &str, rules: &ShareRules, held: &[OwnedRows]) -> Vec<ShareHeld> {
    let of = |kind| {
        let found = held.iter().find(|rows| rows.owner == name && rows.kind == kind);
        let (owner, held) = (name.to_owned(), found.map_or(0, |rows| rows.count));
        ShareHeld { owner, kind, held, limit: rules.limit(name, kind), refused: 0 }
    };
    // Only the node knows what is in flight now: `/metrics` says it.
    let is_stored = |kind: &ShareKind| *kind != ShareKind::InFlight;
    ShareKind::ALL.into_iter().filter(is_stored).map(of).collect()
}

fn fields(token: &AccessToken, shares: &[ShareHeld]) -> Vec<(&'static str, Value)> {
    let mut fields = vec![("name", token.name().into())];
    for right in TokenRight::ALL {
        let patterns = token.rights().of(right).iter();
        let patterns = patterns.map(|pattern| Value::from(pattern.as_str())).collect();
        fields.push((right.name(), Value::Array(patterns)));
    }
    fields.push(("observe", token.rights().observe.into()));
    let share = |of: &ShareHeld| {
        let kind = ("kind".into(), of.kind.name().into());
        Value::Map(vec![kind, ("held".into(), of.held.into()), ("limit".into(), of.limit.into())])
    };
    fields.push(("shares", Value::Array(shares.iter().map(share).collect())));
    fields.push(("valid", token.is_valid(SystemTime::now()).into()));
    if let Some(expires) = token.expires() {
        let since = expires.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        fields.push(("expiresMs", (since.as_millis() as u64).into()));
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
                None => format!("no:{}", until(token)),
            };
            terminal.line(format_args!("{:<9}{because}", right.name()))?;
        }
    }
    Ok(())
}
