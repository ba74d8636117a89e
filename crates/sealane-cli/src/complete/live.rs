//! The names that exist now: at the hub, in the key folder, the data folder and the vault.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sealane_group::KeyFolder;
use sealane_node::access::TokenFile;

use super::CompletionOffer;
use super::words::{CompletionSource, TypedWords};
use crate::args::CliVerb;
use crate::args::key::KeysArgs;
use crate::config::{SettingKey, SettingsFile, environment};
use crate::limits::MAX_COMPLETION_OFFERS;
use crate::times::{count, show_time};
use crate::vault::VaultAccess;
use crate::{context, key};

/// The present names of a kind, or none where they cannot be read.
pub(super) async fn offers(
    kind: CompletionSource,
    typed: &TypedWords<'_>,
) -> Option<Vec<CompletionOffer>> {
    match kind {
        CompletionSource::Topics => topics(typed).await,
        CompletionSource::Consumers => consumers(typed).await,
        CompletionSource::Groups => groups(typed),
        CompletionSource::Tokens => tokens(typed),
        CompletionSource::Contexts => {
            let all = context::all().ok()?.into_iter();
            Some(all.map(|context| CompletionOffer::new(context.name, context.server)).collect())
        }
        CompletionSource::Snapshots => snapshots(typed),
    }
}

fn value(typed: &TypedWords<'_>, id: &str) -> Option<String> {
    typed.values.get(id).cloned()
}

fn settings(typed: &TypedWords<'_>) -> Option<SettingsFile> {
    let file = value(typed, "config").map(PathBuf::from);
    SettingsFile::find(file.as_deref(), value(typed, "context").as_deref()).ok()
}

fn client(typed: &TypedWords<'_>) -> Option<sealane::Client> {
    let server = value(typed, "server");
    Some(settings(typed)?.client(server.as_ref(), None).ok()?.patience(Duration::ZERO))
}

/// The hub is asked for what lies below the names that are typed in full.
async fn topics(typed: &TypedWords<'_>) -> Option<Vec<CompletionOffer>> {
    let client = client(typed)?;
    let mut ask = client.streams().limit(MAX_COMPLETION_OFFERS);
    if let Some((above, _)) = typed.last.rsplit_once('/') {
        ask = ask.matching(&format!("{above}/**"));
    }
    let page = ask.await.ok()?;
    let offer = |state: sealane::StreamState| {
        CompletionOffer::new(state.stream.as_str(), count(state.count, "messages"))
    };
    Some(page.streams.into_iter().map(offer).collect())
}

async fn consumers(typed: &TypedWords<'_>) -> Option<Vec<CompletionOffer>> {
    let all = client(typed)?.consumers(typed.positionals.first()?).await.ok()?;
    let named = all.into_iter().filter(|info| !info.state.consumer.is_empty());
    let offer = |info: sealane::ConsumerInfo| {
        CompletionOffer::new(info.state.consumer, format!("lag {}", info.lag))
    };
    Some(named.map(offer).collect())
}

/// A passphrase is taken where it is given, and never asked for.
fn groups(typed: &TypedWords<'_>) -> Option<Vec<CompletionOffer>> {
    let keys = KeysArgs {
        keys: value(typed, "keys").map(PathBuf::from),
        passphrase_file: value(typed, "passphrase_file").map(PathBuf::from),
    };
    let is_given = keys.passphrase_file.is_some() || environment("SEALANE_PASSPHRASE").is_some();
    if !is_given && KeyFolder::is_protected(&key::root(&keys)).ok()? {
        return None;
    }
    let names = key::open(&keys).ok()?.groups().ok()?;
    Some(names.into_iter().map(|name| CompletionOffer::new(name, "group")).collect())
}

fn tokens(typed: &TypedWords<'_>) -> Option<Vec<CompletionOffer>> {
    let folder = settings(typed)?.setting(SettingKey::Data, value(typed, "data").as_ref()).value;
    let tokens = TokenFile::read(&TokenFile::path(Path::new(&folder))).ok()?;
    Some(tokens.iter().map(|token| CompletionOffer::new(token.name(), "token")).collect())
}

fn snapshots(typed: &TypedWords<'_>) -> Option<Vec<CompletionOffer>> {
    let mut offers = vec![CompletionOffer::new("latest", "the newest snapshot of this host")];
    let is_given =
        value(typed, "passphrase_file").is_some() || environment("SEALANE_PASSPHRASE").is_some();
    if !is_given {
        return Some(offers);
    }
    let given = ["vault", "state", "passphrase_file"];
    let given = given.iter().filter_map(|id| Some((id.replace('_', "-"), value(typed, id)?)));
    let words = given.flat_map(|(flag, value)| [format!("--{flag}"), value]);
    let words = ["sealane", "vault", "status"].map(str::to_owned).into_iter().chain(words);
    let CliVerb::Vault(args) = crate::parse(words.map(Into::into)).ok()?.command else {
        return None;
    };
    let vault = VaultAccess::new(&args).ok()?.open().ok()?;
    let all = vault.snapshots().ok()?;
    offers.extend(all.iter().rev().map(|snapshot| {
        let time = show_time(u64::try_from(snapshot.time_ns / 1_000_000).unwrap_or(0));
        CompletionOffer::new(snapshot.number.to_string(), format!("{} {time}", snapshot.source))
    }));
    Some(offers)
}
