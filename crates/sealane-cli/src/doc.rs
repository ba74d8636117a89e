//! `sealane doc` and `sealane emergency`.

use std::collections::BTreeMap;
use std::path::Path;

use sealane::{Codec, DataType, DocumentWriteOutcome, DocumentsClient, EmergencyRequest, Value};
use sealane_machine::MachineConfig;
use sealane_message::time::whole_ms;

use crate::args::doc::{DocArgs, DocVerb, EmergencyArgs, EmergencyCallArgs, EmergencyVerb};
use crate::terminal::{map, one_line};
use crate::{CliFailure, Terminal};

/// Runs what was asked of documents.
///
/// # Errors
/// [`CliFailure::Documents`], or a configuration that names no socket.
pub async fn run(args: &DocArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    match &args.verb {
        DocVerb::Ls(held) => show(&connect(&held.file).await?.ls().await?, terminal),
        DocVerb::Get { held, data_type, slot } => {
            let mut documents = connect(&held.file).await?;
            show(&documents.get(data_type, *slot).await?, terminal)?;
            match data_type.parse() == Ok(DataType::COUNTER) && slot.is_none() {
                true => show(&sums(&documents.sums().await?), terminal),
                false => Ok(()),
            }
        }
        DocVerb::Set { held, data_type, value } => {
            let json = sealane_codec::decode(Codec::Json, value.as_bytes()).ok();
            let map = json.filter(|value| matches!(value, Value::Map(_)));
            let value = map.unwrap_or_else(|| value.as_str().into());
            written(connect(&held.file).await?.set(data_type, value).await?, terminal)
        }
        DocVerb::Add { held, counter, amount } => {
            written(connect(&held.file).await?.add(*counter, *amount).await?, terminal)
        }
        DocVerb::Say { held, text } => Ok(connect(&held.file).await?.say(text).await?),
        DocVerb::Watch(held) => {
            let mut documents = connect(&held.file).await?;
            documents.watch().await?;
            let mut ended = tokio::spawn(tokio::signal::ctrl_c());
            loop {
                tokio::select! {
                    new = documents.next() => show(&[new?], terminal)?,
                    _ = &mut ended => return Ok(()),
                }
                terminal.flush()?;
            }
        }
    }
}

/// Runs what was asked of calls for help.
///
/// # Errors
/// As [`run`].
pub async fn emergency(args: &EmergencyArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    match &args.verb {
        EmergencyVerb::Raise { held, kind, text, position } => {
            let position = position.as_deref().and_then(|ends| ends.first_chunk().copied());
            let raise = EmergencyRequest { kind: kind.clone(), text: text.clone(), position };
            let number = connect(&held.file).await?.raise(&raise).await?;
            match terminal.json() {
                true => terminal.record(vec![("number", number.into())]),
                false => terminal.line(format_args!("call {number} is raised")),
            }
        }
        EmergencyVerb::Ack(EmergencyCallArgs { held, slot, number }) => {
            Ok(connect(&held.file).await?.acknowledge(*slot, *number).await?)
        }
        EmergencyVerb::Clear(EmergencyCallArgs { held, slot, number }) => {
            Ok(connect(&held.file).await?.clear(*slot, *number).await?)
        }
        EmergencyVerb::Ls(held) => show(&connect(&held.file).await?.emergencies().await?, terminal),
    }
}

async fn connect(file: &Path) -> Result<DocumentsClient, CliFailure> {
    Ok(DocumentsClient::connect(MachineConfig::read(file)?.documents_socket()?).await?)
}

/// Says whether a document is stored, in the words of the socket.
fn written(written: DocumentWriteOutcome, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let wait = match written {
        DocumentWriteOutcome::Stored => None,
        DocumentWriteOutcome::Waiting(wait) => Some(wait),
    };
    if terminal.json() {
        let mut fields = vec![("done", wait.is_none().into())];
        let wait_ms = wait.map(whole_ms);
        fields.extend(wait_ms.map(|wait_ms| ("waitMs", wait_ms.into())));
        return terminal.record(fields);
    }
    match wait {
        None => terminal.line("stored"),
        Some(wait) => {
            let seconds = wait.as_secs_f64();
            terminal.line(format_args!("not stored yet: it waits for its turn, {seconds:.1} s"))
        }
    }
}

/// The sums of all members' counters, if there are any.
fn sums(of: &BTreeMap<u8, u64>) -> Vec<Value> {
    let sums = of.iter().map(|(id, sum)| (id.to_string(), (*sum).into())).collect();
    let sums = map(vec![("type", "counter".into()), ("sums", Value::Map(sums))]);
    if of.is_empty() { vec![] } else { vec![sums] }
}

/// Shows values as JSON, or as a line of their fields each.
fn show(items: &[Value], terminal: &mut Terminal) -> Result<(), CliFailure> {
    for item in items {
        match (terminal.json(), item) {
            (false, Value::Map(fields)) => {
                terminal.line(line(fields))?;
            }
            (true, Value::Map(fields)) => {
                let fields = fields.iter().map(|(key, value)| (key.as_str(), value.clone()));
                terminal.record(fields.collect())?;
            }
            (_, other) => terminal.datum(other)?,
        }
    }
    Ok(())
}

/// The fields in one line: what others wrote begins no other line, and is not obeyed.
fn line(fields: &[(String, Value)]) -> String {
    let words = fields.iter().map(|(key, value)| match value {
        Value::Text(text) => format!("{key}={}", one_line(text)),
        other => format!("{key}={}", one_line(&json(other))),
    });
    words.collect::<Vec<_>>().join("  ")
}

fn json(value: &Value) -> String {
    let mut text = vec![];
    sealane_codec::encode(Codec::Json, value, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_member_wrote_is_one_line_that_no_terminal_obeys() {
        let text = "fine\nslot=1  type=clear\u{1b}]52;c;cm0=\u{7} \u{202e}pleh";
        let fields =
            |value: Value| vec![("slot".to_owned(), 7_u64.into()), ("value".into(), value)];
        for value in [text.into(), Value::Map(vec![("text".to_owned(), text.into())])] {
            let line = line(&fields(value));
            assert!(line.starts_with("slot=7  value="), "{line}");
            let is_plain = |c: char| !c.is_control() && c != '\u{202e}';
            assert!(line.chars().all(is_plain), "{line:?}");
        }
    }
}
