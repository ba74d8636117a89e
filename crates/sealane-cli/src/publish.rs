//! `sealane pub`.

use std::io::BufRead;
use std::time::{Duration, Instant};

use sealane::{
    Client, Codec, DataType, Error, PublishedMessage, PublisherProgress, ScheduledMessage, Value,
};
use tokio::sync::mpsc;

use crate::args::PubArgs;
use crate::config::{SettingKey, SettingsFile};
use crate::limits::{MAX_LINES_AHEAD, PUBLISH_PROGRESS_MS};
use crate::times::count;
use crate::{CliFailure, Terminal, envelope, sealed};

/// Publishes one message, or with the body `-` one for each line of standard input.
///
/// # Errors
/// The hub's refusal, or a body that cannot be sent.
pub async fn run(
    args: &PubArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let codec = file.setting(SettingKey::Codec, args.codec.as_ref()).codec()?;
    let client = file.client(args.hub.server.as_ref(), args.codec.as_ref())?;
    if args.body.as_deref() == Some("-") {
        let is_single = args.delay.is_some() || args.expect.is_some() || args.once;
        if is_single || args.idempotency_key.is_some() {
            let lines = "`-` goes without --delay, --expect, --once and --idempotency-key";
            return Err(CliFailure::Usage(lines));
        }
        return lines(&client, args, file, codec, terminal).await;
    }
    let envelope = match &args.body {
        Some(body) => envelope::encode(body, codec)?,
        None => envelope::encode("{}", codec)?,
    };
    // A person waits: a hub that is not there is said at once.
    let client = client.patience(args.retry.unwrap_or_default());
    let group = match &args.group {
        Some(name) => Some(sealed::open(&client, &args.keys, name, file).await?),
        None => None,
    };
    let mut publish = match &group {
        Some(group) => group.publish_raw(&args.topic, data_type(args), codec, envelope),
        None => client.publish_raw(&args.topic, codec, envelope),
    };
    if let Some(key) = &args.idempotency_key {
        publish = publish.key(key);
    }
    if args.once {
        publish = publish.once();
    }
    match (args.delay, args.expect) {
        (Some(delay), _) => scheduled(&publish.delay(delay).await?, terminal),
        (None, Some(offset)) => published(&publish.expect(offset).await?, terminal),
        (None, None) => published(&publish.await?, terminal),
    }?;
    match &group {
        Some(group) => sealed::settle(group).await,
        None => Ok(()),
    }
}

fn published(done: &PublishedMessage, terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(vec![
            ("id", done.id.as_str().into()),
            ("stream", done.stream.as_str().into()),
            ("offset", done.offset.into()),
            ("generation", done.generation.into()),
            ("level", done.level.name().into()),
            ("replayed", done.replayed.into()),
        ]);
    }
    let replayed = if done.replayed { ", stored before" } else { "" };
    let PublishedMessage { stream, offset, id, level, .. } = done;
    terminal.line(format_args!("{stream} offset {offset} id {id} level {level}{replayed}"))
}

fn scheduled(done: &ScheduledMessage, terminal: &mut Terminal) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(vec![
            ("id", done.id.as_str().into()),
            ("stream", done.stream.as_str().into()),
            ("dueMs", done.due_ms.into()),
            ("level", done.level.name().into()),
            ("replayed", done.replayed.into()),
        ]);
    }
    let due = crate::times::show_time(done.due_ms);
    let ScheduledMessage { stream, id, level, .. } = done;
    terminal.line(format_args!("{stream} due {due} id {id} level {level}"))
}

fn data_type(args: &PubArgs) -> DataType {
    args.data_type.unwrap_or(DataType::UNKNOWN)
}

async fn lines(
    client: &Client,
    args: &PubArgs,
    file: &SettingsFile,
    codec: Codec,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    client.clone().patience(args.retry.unwrap_or_default()).health().await?;
    let client = &match args.retry {
        Some(retry) => client.clone().patience(retry),
        None => client.clone(),
    };
    let topic = args.topic.as_str();
    let group = match &args.group {
        Some(name) => Some(sealed::open(client, &args.keys, name, file).await?),
        None => None,
    };
    let publisher = match &group {
        Some(group) => group.publisher(topic, data_type(args))?,
        None => client.publisher(topic)?,
    };
    let mut input = read_lines();
    let mut progress = PublishProgress::new(terminal.interactive());
    let sent = async {
        let mut number = 0;
        while let Some(line) = input.recv().await {
            number += 1;
            let of_line = |cause| CliFailure::Line { number, cause: Box::new(cause) };
            let line = line.map_err(|cause| of_line(CliFailure::Input(cause)))?;
            let envelope = envelope::encode(&line, codec).map_err(of_line)?;
            // The hub reads many lines at once, and cannot tell which of them was too deep for
            // that. If the lines before are stored, it is the next one.
            if envelope::is_too_deep(&line) && publisher.flush().await.is_err() {
                break;
            }
            publisher.send_raw(envelope).await.map_err(|cause| match cause {
                Error::TooLarge { .. } | Error::NoEnvelope => of_line(cause.into()),
                other => other.into(),
            })?;
            progress.one();
        }
        Ok::<(), CliFailure>(())
    }
    .await;
    // Messages that were sent before a wrong line are stored. The flush says why the publisher
    // ended.
    let ended = publisher.flush().await;
    progress.end();
    // The hub stores lines in their order, and none behind one that it refuses.
    let stored = publisher.progress().await?;
    let ended = ended.map_err(|cause| match cause {
        Error::Refused(_) => {
            CliFailure::Line { number: stored.messages + 1, cause: Box::new(cause.into()) }
        }
        cause => cause.into(),
    });
    if let Some(group) = &group {
        sealed::settle(group).await?;
    }
    if ended.is_ok() || stored.messages > 0 {
        say_stored(topic, &stored, terminal)?;
    }
    // A publisher that has ended takes no further lines; why it ended says the flush.
    ended?;
    sent
}

/// Says how many lines are stored.
fn say_stored(
    topic: &str,
    stored: &PublisherProgress,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    if terminal.json() {
        return terminal.record(vec![
            ("stream", topic.into()),
            ("count", stored.messages.into()),
            ("next", stored.next.map_or(Value::Null, Value::from)),
            ("generation", stored.generation.map_or(Value::Null, Value::from)),
        ]);
    }
    let next = stored.next.map(|next| format!(", next offset {next}")).unwrap_or_default();
    let messages = count(stored.messages, "messages");
    terminal.line(format_args!("{topic}: {messages} stored{next}"))
}

/// The lines of standard input, read on a thread of their own: reading blocks.
fn read_lines() -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, lines) = mpsc::channel(MAX_LINES_AHEAD);
    tokio::task::spawn_blocking(move || {
        for (at, line) in std::io::stdin().lock().lines().enumerate() {
            let line = line.map(|line| if at == 0 { without_mark(line) } else { line });
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// A first line without the byte order mark that programs of Windows write before it. The other
/// ends of their lines, `\r\n`, are those of lines already.
fn without_mark(line: String) -> String {
    line.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(line)
}

/// A line on standard error that is written over, where somebody watches.
struct PublishProgress {
    shown: bool,
    began: Instant,
    last: Instant,
    count: u64,
}

impl PublishProgress {
    fn new(shown: bool) -> Self {
        let now = Instant::now();
        Self { shown, began: now, last: now, count: 0 }
    }

    fn one(&mut self) {
        self.count += 1;
        if self.shown && self.last.elapsed() >= Duration::from_millis(PUBLISH_PROGRESS_MS) {
            self.last = Instant::now();
            let rate = self.count as f64 / self.began.elapsed().as_secs_f64();
            eprint!("\r{} messages, {rate:.0}/s ", self.count);
        }
    }

    fn end(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}
