//! `sealane status`: whether a hub answers, and what it is.

use std::time::{Duration, Instant};

use sealane::Value;

use crate::args::operate::StatusArgs;
use crate::config::SettingsFile;
use crate::times::count;
use crate::{CliFailure, Terminal};

/// Asks a hub how it is.
///
/// # Errors
/// [`CliFailure::Client`] where it does not answer, [`CliFailure::NotWell`] where it takes nothing.
pub async fn run(
    args: &StatusArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let client = file.client(args.hub.server.as_ref(), None)?.patience(Duration::ZERO);
    let begun = Instant::now();
    let health = client.health().await?;
    let took = begun.elapsed();
    let cause = health.cause.clone().map_or(Value::Null, Value::from);
    if terminal.json() {
        terminal.record(vec![
            ("address", client.address().into()),
            ("status", health.status.as_str().into()),
            ("cause", cause),
            ("version", health.version.as_str().into()),
            ("level", health.level.name().into()),
            ("streams", health.streams.into()),
            ("store", health.store.clone().map_or(Value::Null, Value::from)),
            ("tookUs", (took.as_micros() as u64).into()),
        ])?;
    } else {
        let (status, version) = (&health.status, &health.version);
        let streams = count(health.streams, "streams");
        terminal.line(format_args!(
            "{}  {status} after {} us, version {version}, {streams}, level {}",
            client.address(),
            took.as_micros(),
            health.level.name()
        ))?;
        if let Some(store) = &health.store {
            terminal.line(format_args!("  store  {store}"))?;
        }
    }
    if health.ok {
        return Ok(());
    }
    Err(CliFailure::NotWell(health.cause.unwrap_or(health.status)))
}
