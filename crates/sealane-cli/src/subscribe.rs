//! `sealane sub`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use sealane::{
    Client, ClientEvent, ClientEvents, GroupClient, GroupReader, HubError, ReceivedMessage,
    StartPosition, Subscription, Topic,
};

use crate::args::SubArgs;
use crate::config::{SettingKey, SettingsFile};
use crate::limits::MAX_PRINTED;
use crate::show::MessagePrinter;
use crate::terminal::harmless;
use crate::{CliFailure, Terminal, sealed, stream};

/// Prints messages, one per line, until the count is reached or Ctrl-C.
///
/// # Errors
/// The hub's refusal, or output that cannot be written.
pub async fn run(
    args: &SubArgs,
    file: &SettingsFile,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let client = file.client(args.hub.server.as_ref(), args.codec.as_ref())?;
    let group = match &args.group {
        Some(name) => Some(sealed::open(&client, &args.keys, name, file).await?),
        None => None,
    };
    if let Some(group) = &group {
        sealed::warn(group);
    }
    let printer = MessagePrinter::new(args.raw, terminal);
    let from = match args.last {
        Some(count) => Some(last(&client, &args.pattern, count).await?),
        None => args.from,
    };
    if args.until_end {
        let reader = group.as_ref().map(GroupClient::reader);
        let left = args.count.unwrap_or(u64::MAX);
        let mut kept =
            HistoryPrinter { printer, reader, left, not_shown: NotShownCount::default() };
        kept.print(&client, &args.pattern, from.unwrap_or(StartPosition::First), terminal).await?;
        return kept.not_shown.fails(args.strict);
    }
    follow(args, file, LiveSubscription { client, group, from, printer }, terminal).await
}

/// The place of the last messages of a topic.
async fn last(client: &Client, topic: &str, count: u64) -> Result<StartPosition, CliFailure> {
    if topic.parse::<Topic>().is_err() {
        return Err(CliFailure::Usage("--last is for one topic, not for a pattern"));
    }
    match client.stream(topic).await {
        Ok(state) => Ok(StartPosition::Offset(state.next.saturating_sub(count).max(state.first))),
        // Its first message is still to come.
        Err(error) if error.hub_error() == Some(HubError::UnknownStream) => {
            Ok(StartPosition::First)
        }
        Err(error) => Err(error.into()),
    }
}

/// The messages that are read as they come.
struct LiveSubscription {
    client: Client,
    group: Option<GroupClient>,
    from: Option<StartPosition>,
    printer: MessagePrinter,
}

async fn follow(
    args: &SubArgs,
    file: &SettingsFile,
    following: LiveSubscription,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let LiveSubscription { client, group, from, printer } = following;
    let codec = file.setting(SettingKey::Codec, args.codec.as_ref()).codec()?;
    let subscribe = match &group {
        Some(group) => group.subscribe(&args.pattern),
        None => client.subscribe(&args.pattern),
    };
    let mut subscribe = subscribe.codec(codec).batch(args.batch);
    if let Some(start) = from {
        subscribe = subscribe.from(start);
    }
    if let Some(name) = &args.consumer {
        subscribe = subscribe.consumer(name);
    }
    if args.inbox {
        subscribe = subscribe.inbox();
    }
    if let Some(count) = args.count {
        subscribe = subscribe.limit(count);
    }
    let mut subscription = subscribe.await?;
    let not_shown = Arc::new(NotShownCount::default());
    if terminal.interactive() {
        say_if_missing(&client, &args.pattern).await;
    }
    let events = tokio::spawn(tell(subscription.events(), not_shown.clone()));
    let orders = group.map(|group| tokio::spawn(tell(group.events(), not_shown.clone())));
    let outcome = tokio::select! {
        outcome = print(&mut subscription, !args.no_ack, printer, terminal) => outcome,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    // Also after a failure: what was printed is done, and what happened before is told.
    subscription.close().await;
    // It ends with the subscription, and fails only by panicking.
    let _ = events.await;
    if let Some(orders) = orders {
        orders.abort();
    }
    outcome?;
    not_shown.fails(args.strict)
}

/// The messages that were not shown.
#[derive(Debug, Default)]
pub(crate) struct NotShownCount {
    count: AtomicU64,
    /// Whether this member was removed from its group.
    is_removed: AtomicBool,
    /// The codes that were told since.
    told: Mutex<BTreeSet<String>>,
}

impl NotShownCount {
    fn note(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether to say that a message is not shown. A member that was removed opens none of what
    /// comes: one line for each kind of refusal says that.
    fn is_news(&self, code: &str) -> bool {
        let told = &mut *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        !self.is_removed.load(Ordering::Relaxed) || told.insert(code.to_owned())
    }

    /// Fails if there were any, and that is to be a failure.
    fn fails(&self, is_strict: bool) -> Result<(), CliFailure> {
        match self.count.load(Ordering::Relaxed) {
            count if count > 0 && is_strict => Err(CliFailure::NotShown(count)),
            _ => Ok(()),
        }
    }
}

/// A person who waits for a topic that nobody has used sees why nothing comes.
async fn say_if_missing(client: &Client, topic: &str) {
    let is_missing = |error: sealane::Error| error.hub_error() == Some(HubError::UnknownStream);
    if topic.parse::<Topic>().is_ok() && client.stream(topic).await.is_err_and(is_missing) {
        eprintln!("sealane: there is no stream {topic} yet; waiting for its first message");
    }
}

/// Messages that are there already, read without subscribing, stream by stream.
struct HistoryPrinter {
    printer: MessagePrinter,
    reader: Option<GroupReader>,
    /// How many more are printed.
    left: u64,
    not_shown: NotShownCount,
}

/// Messages that are asked for at once.
const PAGE_MESSAGES: usize = 1000;

impl HistoryPrinter {
    async fn print(
        &mut self,
        client: &Client,
        pattern: &str,
        from: StartPosition,
        terminal: &mut Terminal,
    ) -> Result<(), CliFailure> {
        let streams = stream::all(client, Some(pattern)).await?;
        if streams.is_empty() {
            eprintln!("sealane: no stream matches {}", harmless(pattern));
        }
        for state in streams {
            self.print_stream(client, &state.stream, from, state.next, terminal).await?;
        }
        terminal.flush()
    }

    /// A message from `end` on was not there at the beginning.
    async fn print_stream(
        &mut self,
        client: &Client,
        topic: &Topic,
        mut from: StartPosition,
        end: u64,
        terminal: &mut Terminal,
    ) -> Result<(), CliFailure> {
        while self.left > 0 {
            let page = client.read(topic.as_str(), from, PAGE_MESSAGES).await?;
            for message in page.messages.iter().filter(|message| message.offset < end) {
                self.print_message(message, terminal)?;
            }
            if page.end || page.next >= end {
                break;
            }
            from = StartPosition::Offset(page.next);
        }
        Ok(())
    }

    fn print_message(
        &mut self,
        message: &ReceivedMessage,
        terminal: &mut Terminal,
    ) -> Result<(), CliFailure> {
        if self.left == 0 {
            return Ok(());
        }
        let is_sealed = sealed::read(message)?.is_some();
        match self.reader.as_mut().filter(|_| is_sealed).map(|reader| reader.open(message)) {
            None => self.printer.print(message, terminal)?,
            Some(Ok(opened)) => self.printer.print(&opened, terminal)?,
            Some(Err(error)) => {
                let cause = error.to_string();
                self.not_shown.note();
                not_shown(&message.stream, message.offset, &cause, error.code());
                return Ok(());
            }
        }
        self.left -= 1;
        Ok(())
    }
}

async fn print(
    subscription: &mut Subscription,
    ack: bool,
    mut printer: MessagePrinter,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    let mut printed = Vec::with_capacity(MAX_PRINTED);
    loop {
        let next = match subscription.next().now_or_never() {
            Some(next) => next,
            None => {
                hand_on(&mut printed, ack, terminal)?;
                subscription.next().await
            }
        };
        let Some(message) = next else { break };
        let message = message?;
        printer.print(&message, terminal)?;
        printed.push(message);
        if printed.len() == MAX_PRINTED {
            hand_on(&mut printed, ack, terminal)?;
        }
    }
    hand_on(&mut printed, ack, terminal)
}

/// Acknowledges what was printed, once it has left this process.
fn hand_on(
    printed: &mut Vec<ReceivedMessage>,
    ack: bool,
    terminal: &mut Terminal,
) -> Result<(), CliFailure> {
    terminal.flush()?;
    printed.drain(..).filter(|_| ack).for_each(|message| message.ack());
    Ok(())
}

/// Says on standard error what happens beside the messages.
pub(crate) async fn tell(mut events: ClientEvents, counted: Arc<NotShownCount>) {
    let mut lost = false;
    while let Some(event) = events.next().await {
        match event {
            ClientEvent::Disconnected { cause } if !lost => {
                eprintln!("sealane: connection lost, connecting again: {}", harmless(&cause));
                lost = true;
            }
            ClientEvent::Connected if lost => {
                eprintln!("sealane: connected again");
                lost = false;
            }
            ClientEvent::Gap { stream, from, to, reason } => {
                eprintln!(
                    "sealane: {stream}: offsets {from} to {to} do not come: {}",
                    harmless(&reason)
                );
            }
            ClientEvent::NotRecovered { stream, generation, offset } => {
                eprintln!(
                    "sealane: {stream}: messages may be missing; \
                     going on at offset {offset} of generation {generation}"
                );
            }
            ClientEvent::Refused { stream, offset, code, cause, .. } => {
                counted.note();
                if counted.is_news(code) {
                    not_shown(&stream, offset, &cause, code);
                }
            }
            ClientEvent::Superseded { stream, offset } => {
                eprintln!(
                    "sealane: {stream} offset {offset} stands behind a removal that was not known \
                     yet; it was sealed again and published behind the others"
                );
            }
            ClientEvent::Keys { group, removed: true, .. } => {
                counted.is_removed.store(true, Ordering::Relaxed);
                eprintln!("sealane: this member was removed from group {group}");
            }
            ClientEvent::Keys { group, epoch, .. } => {
                eprintln!("sealane: group {group} is in epoch {epoch}");
            }
            _ => {}
        }
    }
}

fn not_shown(stream: &Topic, offset: u64, cause: &str, code: &str) {
    eprintln!("sealane: {stream} offset {offset} is not shown: {} [{code}]", harmless(cause));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_was_removed_is_told_once_of_each_kind() {
        let counted = NotShownCount::default();
        assert!(counted.is_news("A") && counted.is_news("A"));
        counted.is_removed.store(true, Ordering::Relaxed);
        let news = ["A", "A", "B", "A", "B"].map(|code| counted.is_news(code));
        assert_eq!(news, [true, false, true, false, false]);
    }

    #[test]
    fn what_was_not_shown_fails_only_where_that_was_asked_for() {
        let counted = NotShownCount::default();
        assert!(counted.fails(true).is_ok());
        counted.note();
        assert!(counted.fails(false).is_ok());
        assert!(matches!(counted.fails(true), Err(CliFailure::NotShown(1))));
    }
}
