//! `sealane context`: the hubs that a user speaks to, by name.

mod file;

use std::path::{Path, PathBuf};

use sealane::Value;
use sealane_node::access::TokenSecret;

use crate::args::context::{ContextAdd, ContextArgs as Args, ContextVerb};
use crate::config::{self, EnvironmentLookup, SettingKey, environment};
use crate::passphrase::first_line;
use crate::terminal::table;
use crate::{CliFailure, Terminal};
use file::HubContexts;

/// One hub, and how it is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubContext {
    /// Its name.
    pub name: String,
    /// The address of the hub.
    pub server: String,
    /// The file of the token.
    pub token_file: Option<PathBuf>,
    /// The file of the certificates that are trusted.
    pub ca: Option<PathBuf>,
    /// The codec on the wire.
    pub codec: Option<String>,
}

impl HubContext {
    /// The context's value of a setting. For the token this is its file.
    pub(crate) fn value(&self, key: SettingKey) -> Option<String> {
        let path = |path: &Option<PathBuf>| Some(path.as_ref()?.display().to_string());
        match key {
            SettingKey::Server => Some(self.server.clone()),
            SettingKey::Token => path(&self.token_file),
            SettingKey::Ca => path(&self.ca),
            SettingKey::Codec => self.codec.clone(),
            _ => None,
        }
    }
}

/// The context of a command, and whether a flag named it.
#[derive(Debug, Clone)]
pub(crate) struct ChosenContext {
    pub(crate) context: HubContext,
    pub(crate) by_flag: bool,
}

impl ChosenContext {
    /// The context that a flag names, else that of `SEALANE_CONTEXT`, else that which is in use.
    ///
    /// # Errors
    /// [`CliFailure::UnknownContext`], [`CliFailure::File`].
    pub(crate) fn find(
        flag: Option<&str>,
        environment: &EnvironmentLookup,
    ) -> Result<Option<ChosenContext>, CliFailure> {
        let contexts = HubContexts::read(&path(environment))?;
        let by_flag = flag.is_some();
        let named = flag.map(str::to_owned).or_else(|| environment("SEALANE_CONTEXT"));
        let Some(name) = named.or_else(|| contexts.used.clone()) else { return Ok(None) };
        let context = contexts.get(&name)?.clone();
        Ok(Some(ChosenContext { context, by_flag }))
    }
}

/// All contexts.
///
/// # Errors
/// [`CliFailure::File`].
pub(crate) fn all() -> Result<Vec<HubContext>, CliFailure> {
    Ok(HubContexts::read(&path(&environment))?.all)
}

/// Where the contexts are.
fn path(environment: &EnvironmentLookup) -> PathBuf {
    config::folder(environment, "XDG_CONFIG_HOME", ".config").join("contexts.toml")
}

/// Adds, chooses, lists and removes contexts.
///
/// # Errors
/// [`CliFailure::UnknownContext`], [`CliFailure::File`], and for a new one what is wrong
/// with its parts.
pub fn run(args: &Args, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let path = path(&environment);
    match &args.verb {
        ContextVerb::Add(new) => add(&path, new, terminal),
        ContextVerb::Use { name, .. } => choose(&path, name.as_deref(), terminal),
        ContextVerb::Ls => list(&HubContexts::read(&path)?, terminal),
        ContextVerb::Rm { name } => {
            HubContexts::change(&path, |contexts| contexts.remove(name))?;
            done(name, "removed", terminal)
        }
    }
}

fn add(path: &Path, new: &ContextAdd, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let absolute = |file: &Option<PathBuf>| -> Result<Option<PathBuf>, CliFailure> {
        let Some(file) = file else { return Ok(None) };
        let absolute = std::path::absolute(file);
        absolute.map(Some).map_err(|cause| CliFailure::file(file, cause))
    };
    let context = HubContext {
        name: new.name.clone(),
        server: new.server.clone(),
        token_file: absolute(&new.token_file)?,
        ca: absolute(&new.ca)?,
        codec: new.codec.clone(),
    };
    // An unusable setting is refused now, and not by the first command that needs it.
    if let Some(file) = &context.token_file {
        first_line(file)?.parse::<TokenSecret>().map_err(|_| sealane::Error::Token)?;
    }
    config::SettingsFile::of_context(context.clone()).client(None, None)?;
    let is_new = HubContexts::change(path, |contexts| {
        if new.is_used {
            contexts.used = Some(context.name.clone());
        }
        contexts.add(context)
    })?;
    done(&new.name, if is_new { "added" } else { "replaced" }, terminal)?;
    if !new.is_used && !terminal.json() {
        eprintln!("sealane: to use it: sealane context use {}", new.name);
    }
    Ok(())
}

fn choose(path: &Path, name: Option<&str>, terminal: &mut Terminal) -> Result<(), CliFailure> {
    HubContexts::change(path, |contexts| {
        contexts.used = match name {
            Some(name) => Some(contexts.get(name)?.name.clone()),
            None => None,
        };
        Ok(())
    })?;
    match name {
        Some(name) => done(name, "in use", terminal),
        None if terminal.json() => terminal.record(vec![("context", Value::Null)]),
        None => terminal.line("no context is in use"),
    }
}

fn done(name: &str, what: &'static str, terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(vec![("context", name.into()), ("done", what.into())]);
    }
    terminal.line(format_args!("{name} is {what}"))
}

fn list(contexts: &HubContexts, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let is_used = |context: &HubContext| contexts.used.as_deref() == Some(&context.name);
    if terminal.json() {
        return contexts.all.iter().try_for_each(|context| {
            let text = |key| context.value(key).map_or(Value::Null, Value::from);
            terminal.record(vec![
                ("context", context.name.as_str().into()),
                ("used", is_used(context).into()),
                ("server", context.server.as_str().into()),
                ("tokenFile", text(SettingKey::Token)),
                ("ca", text(SettingKey::Ca)),
                ("codec", text(SettingKey::Codec)),
            ])
        });
    }
    let row = |context: &HubContext| {
        let mark = if is_used(context) { "*" } else { " " };
        let text = |key| context.value(key).unwrap_or("-".to_owned());
        let name = format!("{mark} {}", context.name);
        [SettingKey::Server, SettingKey::Codec, SettingKey::Token, SettingKey::Ca].into_iter().fold(
            vec![name],
            |mut row, key| {
                row.push(text(key));
                row
            },
        )
    };
    let rows: Vec<_> = contexts.all.iter().map(row).collect();
    terminal.write(table(&["  CONTEXT", "SERVER", "CODEC", "TOKEN", "CA"], &rows).as_bytes())
}
