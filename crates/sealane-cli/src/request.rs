//! `sealane request` and `sealane reply`.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use sealane::{Client, Codec, Error, HubError, ReceivedMessage, Value};
use sealane_protocol::limits::MAX_ENVELOPE_BYTES;

use crate::args::{ReplyArgs, RequestArgs};
use crate::config::SettingsFile;
use crate::show::MessagePrinter;
use crate::terminal::harmless;
use crate::{CliFailure, Terminal, envelope, subscribe};

/// Publishes a request, and prints the first answer.
///
/// # Errors
/// The hub's refusal, or that nobody answered in time.
pub async fn request(
    args: &RequestArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let body = envelope::value(args.body.as_deref().unwrap_or("{}"))?;
    let client = file.client(args.hub.server.as_ref(), None)?;
    let answer = client.request(&args.topic, &body, args.timeout).await?;
    MessagePrinter::new(true, terminal).print(&answer, terminal)?;
    terminal.flush()?;
    let failed = failure(&answer.value()?).map(CliFailure::Answer);
    // The library removes the stream of the answer in the background, and this process ends now.
    match client.remove(answer.stream.as_str()).await {
        Err(error) if error.hub_error() == Some(HubError::UnknownStream) => {}
        done => done?,
    }
    failed.map_or(Ok(()), Err)
}

/// Why an answer says that it failed: it has a field `error` that is neither null nor false.
fn failure(answer: &Value) -> Option<String> {
    match answer.field("error")? {
        Value::Null | Value::Bool(false) => None,
        Value::Text(cause) => Some(cause.to_string()),
        cause => {
            let mut text = Vec::new();
            sealane_codec::encode(Codec::Json, cause, &mut text);
            Some(String::from_utf8_lossy(&text).into_owned())
        }
    }
}

/// Answers requests as they come, until the count is reached or Ctrl-C.
///
/// # Errors
/// The hub's refusal; a program that fails is an answer that says so.
pub async fn reply(
    args: &ReplyArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let fixed = args.body.as_deref().map(envelope::value).transpose()?;
    let client = file.client(args.hub.server.as_ref(), None)?;
    let mut subscribe = client.subscribe(&args.pattern);
    if let Some(name) = &args.consumer {
        subscribe = subscribe.consumer(name);
    }
    let mut requests = subscribe.await?;
    let events = tokio::spawn(subscribe::tell(requests.events(), Arc::default()));
    let serving = async {
        let mut left = args.count.unwrap_or(u64::MAX);
        while left > 0
            && let Some(request) = requests.next().await
        {
            let request = request?;
            left -= u64::from(answer(&client, &request, &fixed, args, terminal).await?);
            request.ack();
        }
        Ok(())
    };
    let outcome = tokio::select! {
        outcome = serving => outcome,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    requests.close().await;
    events.abort();
    outcome
}

/// Answers one request, and says whether it was one.
async fn answer(
    client: &Client,
    request: &ReceivedMessage,
    fixed: &Option<Value>,
    args: &ReplyArgs,
    terminal: &mut Terminal,
) -> Result<bool, CliFailure> {
    let ReceivedMessage { stream, offset, .. } = request;
    let heard = match client.is_awaited(request) {
        Ok(true) => {
            let answer = body(request, fixed, args).await?;
            if let Some(cause) = args.command.as_ref().and_then(|_| failure(&answer)) {
                eprintln!("sealane: {stream} offset {offset} failed: {}", harmless(&cause));
            }
            client.reply(request, &answer).await?
        }
        Ok(false) => false,
        // Anybody may publish anything; the next one may be a request.
        Err(error @ Error::NotARequest(_)) => {
            eprintln!("sealane: {stream} offset {offset}: {}", harmless(&error.to_string()));
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    if terminal.json() {
        terminal.record(vec![
            ("stream", stream.as_str().into()),
            ("offset", (*offset).into()),
            ("answered", heard.into()),
        ])?;
    } else {
        let said = if heard { "answered" } else { "too late: its deadline is over" };
        terminal.line(format_args!("{stream} offset {offset} {said}"))?;
    }
    terminal.flush()?;
    Ok(true)
}

/// The answer to a request that somebody waits for; no program runs for any other.
async fn body(
    request: &ReceivedMessage,
    fixed: &Option<Value>,
    args: &ReplyArgs,
) -> Result<Value, CliFailure> {
    let Some(program) = args.command.clone() else {
        return Ok(fixed.clone().unwrap_or(Value::Map(Vec::new())));
    };
    let asked = request.value()?;
    let ran = tokio::task::spawn_blocking(move || ask(&program, &asked)).await;
    Ok(ran.unwrap_or_else(|panic| failed(&panic.to_string())))
}

/// The answer of a shell's program to a request, which it reads as JSON.
fn ask(program: &str, request: &Value) -> Value {
    run(program, request).unwrap_or_else(|cause| failed(&cause.to_string()))
}

fn run(program: &str, request: &Value) -> io::Result<Value> {
    let mut asked = Vec::new();
    sealane_codec::encode(Codec::Json, request, &mut asked);
    let shell = Command::new("/bin/sh")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = shell?;
    // A program may read little of it, or nothing.
    let writing = child.stdin.take().map(|mut stdin| {
        std::thread::spawn(move || {
            let _ = stdin.write_all(&asked);
        })
    });
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let most = MAX_ENVELOPE_BYTES as u64 + 1;
        stdout.take(most).read_to_end(&mut said)?;
    }
    let status = child.wait()?;
    writing.into_iter().for_each(|writing| drop(writing.join()));
    if said.len() > MAX_ENVELOPE_BYTES {
        let cause = format!("the answer has more than {MAX_ENVELOPE_BYTES} bytes");
        return Err(io::Error::other(cause));
    }
    if !status.success() {
        return Err(io::Error::other(status.to_string()));
    }
    let said = String::from_utf8(said).map_err(io::Error::other)?;
    envelope::value(said.trim_end_matches('\n'))
        .map_err(|failure| io::Error::other(failure.to_string()))
}

fn failed(cause: &str) -> Value {
    Value::Map(vec![("error".into(), cause.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(key: &str, value: &str) -> Value {
        Value::Map(vec![(key.into(), value.into())])
    }

    #[test]
    fn a_program_answers_with_what_it_prints() {
        let request = map("name", "a");
        assert_eq!(ask("cat", &request), request);
        assert_eq!(ask("echo hello", &request), map("data", "hello"));
        assert_eq!(ask("exit 3", &request), map("error", "exit status: 3"));
        assert!(ask("printf '{a'", &request).field("error").is_some());
    }

    #[test]
    fn an_answer_fails_by_its_field_error() {
        let read = |text: &str| sealane_codec::decode(Codec::Json, text.as_bytes()).unwrap();
        let cause = |text: &str| failure(&read(text));
        assert_eq!(cause(r#"{"error":"no lamp"}"#).as_deref(), Some("no lamp"));
        assert_eq!(cause(r#"{"error":{"code":7}}"#).as_deref(), Some(r#"{"code":7}"#));
        for good in [r#"{"error":null}"#, r#"{"error":false}"#, r#"{"a":{"error":1}}"#, "{}"] {
            assert_eq!(cause(good), None, "{good}");
        }
    }

    #[test]
    fn what_a_program_prints_is_bounded() {
        let said = ask("head -c 2000000 /dev/zero | tr '\\0' x", &map("a", "b"));
        let cause = said.field("error").and_then(Value::as_text).unwrap();
        assert!(cause.contains("more than 1048576 bytes"), "{cause}");
    }
}
