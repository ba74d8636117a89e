//! `sealane context`: the hubs that a user speaks to, by name.

mod file;

use std::path::{Path, PathBuf};

use sealane::Value;
use sealane_node::access::Secret;

use crate::args::context::{Context as Args, ContextAdd, ContextVerb};
use crate::config::{self, Environment, Key, environment};
use crate::passphrase::first_line;
use crate::terminal::table;
use crate::{Failure, Terminal};
use file::Contexts;

/// One hub, and how it is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
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

impl Context {
    /// The context's value of a setting. For the token this is its file.
    pub(crate) fn value(&self, key: Key) -> Option<String> {
        let path = |path: &Option<PathBuf>| Some(path.as_ref()?.display().to_string());
        match key {
            Key::Server => Some(self.server.clone()),
            Key::Token => path(&self.token_file),
            Key::Ca => path(&self.ca),
            Key::Codec => self.codec.clone(),
            _ => None,
        }
    }
}

/// The context of a command, and whether a flag named it.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    pub(crate) context: Context,
    pub(crate) by_flag: bool,
}

impl Chosen {
    /// The context that a flag names, else that of `SEALANE_CONTEXT`, else that which is in use.
    ///
    /// # Errors
    /// [`Failure::UnknownContext`], [`Failure::File`].
    pub(crate) fn find(
        flag: Option<&str>,
        environment: &Environment,
    ) -> Result<Option<Chosen>, Failure> {
        let contexts = Contexts::read(&path(environment))?;
        let by_flag = flag.is_some();
        let named = flag.map(str::to_owned).or_else(|| environment("SEALANE_CONTEXT"));
        let Some(name) = named.or_else(|| contexts.used.clone()) else { return Ok(None) };
        let context = contexts.get(&name)?.clone();
        Ok(Some(Chosen { context, by_flag }))
    }
}

/// All contexts.
///
/// # Errors
/// [`Failure::File`].
pub(crate) fn all() -> Result<Vec<Context>, Failure> {
    Ok(Contexts::read(&path(&environment))?.all)
}

/// Where the contexts are.
fn path(environment: &Environment) -> PathBuf {
    config::folder(environment, "XDG_CONFIG_HOME", ".config").join("contexts.toml")
}

/// Adds, chooses, lists and removes contexts.
///
/// # Errors
/// [`Failure::UnknownContext`], [`Failure::File`], and for a new one what is wrong with its parts.
pub fn run(args: &Args, terminal: &mut Terminal) -> Result<(), Failure> {
    let path = path(&environment);
    match &args.verb {
        ContextVerb::Add(new) => add(&path, new, terminal),
        ContextVerb::Use { name, .. } => choose(&path, name.as_deref(), terminal),
        ContextVerb::Ls => list(&Contexts::read(&path)?, terminal),
        ContextVerb::Rm { name } => {
            Contexts::change(&path, |contexts| contexts.remove(name))?;
            done(name, "removed", terminal)
        }
    }
}

fn add(path: &Path, new: &ContextAdd, terminal: &mut Terminal) -> Result<(), Failure> {
    let absolute = |file: &Option<PathBuf>| -> Result<Option<PathBuf>, Failure> {
        let Some(file) = file else { return Ok(None) };
        let absolute = std::path::absolute(file);
        absolute.map(Some).map_err(|cause| Failure::file(file, cause))
    };
    let context = Context {
        name: new.name.clone(),
        server: new.server.clone(),
        token_file: absolute(&new.token_file)?,
        ca: absolute(&new.ca)?,
        codec: new.codec.clone(),
    };
    // An unusable setting is refused now, and not by the first command that needs it.
    if let Some(file) = &context.token_file {
        first_line(file)?.parse::<Secret>().map_err(|_| sealane::Error::Token)?;
    }
    config::File::of_context(context.clone()).client(None, None)?;
    let is_new = Contexts::change(path, |contexts| {
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

fn choose(path: &Path, name: Option<&str>, terminal: &mut Terminal) -> Result<(), Failure> {
    Contexts::change(path, |contexts| {
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

fn done(name: &str, what: &'static str, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json() {
        return terminal.record(vec![("context", name.into()), ("done", what.into())]);
    }
    terminal.line(format_args!("{name} is {what}"))
}

fn list(contexts: &Contexts, terminal: &mut Terminal) -> Result<(), Failure> {
    let is_used = |context: &Context| contexts.used.as_deref() == Some(&context.name);
    if terminal.json() {
        return contexts.all.iter().try_for_each(|context| {
            let text = |key| context.value(key).map_or(Value::Null, Value::from);
            terminal.record(vec![
                ("context", context.name.as_str().into()),
                ("used", is_used(context).into()),
                ("server", context.server.as_str().into()),
                ("tokenFile", text(Key::Token)),
                ("ca", text(Key::Ca)),
                ("codec", text(Key::Codec)),
            ])
        });
    }
    let row = |context: &Context| {
        let mark = if is_used(context) { "*" } else { " " };
        let text = |key| context.value(key).unwrap_or("-".to_owned());
        let name = format!("{mark} {}", context.name);
        [Key::Server, Key::Codec, Key::Token, Key::Ca].into_iter().fold(
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
