//! The writer's commands, and its answers.

use std::sync::Arc;

use bytes::Bytes;
use sealane_frame::GroupTag;
use sealane_message::Topic;
use sealane_protocol::StreamPosition;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::manage::ManageCommand;
use super::rule::RuleDeed;
use crate::envelope::StreamEnvelope;
use crate::publishing::{PublishAnswered, SessionOutbox, StoredPlace};
use crate::store::{StoreFault, StoredRequestKey};
use crate::stream::StreamEntry;
use crate::{Error, Level, StreamChange};

pub(crate) type CommandReply<T> = oneshot::Sender<Result<T, Error>>;

/// A command to the writer. It names its stream by topic. The order of the queue decides which
/// stream that is.
pub(crate) enum WriterCommand {
    Append(AppendCommand),
    Publish(PublishCommand),
    Configure(ConfigureCommand),
    Remove(RemoveCommand),
    Manage(ManageCommand),
    Rule(RuleCommand),
    /// Find the place of a session in a stream.
    FindSession(FindSessionCommand),
    /// Note that offsets, both ends included, cannot be read.
    Damage(Arc<StreamEntry>, (u64, u64)),
    /// Consumers have changed.
    Dirty,
    Stop(CommandReply<()>),
}

/// Messages for one stream, all or none.
pub(crate) struct AppendCommand {
    pub(crate) topic: Topic,
    pub(crate) envelopes: Vec<StreamEnvelope>,
    /// The group of the messages; none: they are open.
    pub(crate) group: Option<GroupTag>,
    pub(crate) expect: Option<u64>,
    pub(crate) due_ms: Option<u64>,
    pub(crate) key: Option<StoredRequestKey>,
    /// The keys of the messages, if each is to be stored once by itself.
    pub(crate) each: Vec<StoredRequestKey>,
    /// The owner of the shares that it counts to; empty: nobody.
    pub(crate) owner: Arc<str>,
    pub(crate) reply: CommandReply<AppendedMessages>,
    /// The append's share of the queue, given back when the append is planned.
    pub(crate) _share: OwnedSemaphorePermit,
}

/// Numbered messages of a session, each accepted or refused by itself.
pub(crate) struct PublishCommand {
    /// The key under which the session is stored.
    pub(crate) key: Arc<[u8]>,
    /// The owner of the shares that it counts to; empty: nobody.
    pub(crate) owner: Arc<str>,
    pub(crate) outbox: Arc<SessionOutbox>,
    /// How many places of messages of one stream are remembered: as many as may be unanswered.
    pub(crate) keep: u64,
    pub(crate) items: Vec<SessionItem>,
    /// Their share of the queue, given back when they are planned.
    pub(crate) share: OwnedSemaphorePermit,
}

/// One message of a session.
#[derive(Debug, Clone)]
pub struct SessionItem {
    /// The stream.
    pub topic: Topic,
    /// The message's number in the session and the stream, from 1.
    pub n: u64,
    /// The message.
    pub envelope: StreamEnvelope,
    /// The offset that it must get.
    pub expect: Option<u64>,
    /// How long it is held back.
    pub delay_ms: Option<u64>,
    /// [`SessionItem::digest_of`] the message as it came.
    pub digest: u32,
}

impl SessionItem {
    /// A digest of what a client sent, before an id was added. It tells a repeated message from
    /// another one of the same number. That is against mistakes: the numbers are the client's own.
    pub fn digest_of(raw: &[u8]) -> u32 {
        // The sum runs at memory's speed. A cryptographic hash of each message took more time than
        // reading it, and would stop nobody: only the session's token has its numbers.
        crc32fast::hash(raw)
    }

    /// The answer that its session gets for it.
    pub(crate) fn told(&self, result: Result<StoredPlace, Error>) -> PublishAnswered {
        PublishAnswered { stream: self.topic.clone(), from: self.n, to: self.n, result }
    }
}

/// A stream that is to be there, with settings.
pub(crate) struct ConfigureCommand {
    pub(crate) topic: Topic,
    pub(crate) change: StreamChange,
    /// The owner of the share that a stream counts to which is made; empty: nobody.
    pub(crate) owner: Arc<str>,
    /// The stream, and whether it was made.
    pub(crate) reply: CommandReply<(Arc<StreamEntry>, bool)>,
}

/// A session that asks which of its numbers comes next in a stream. It stands in the queue behind
/// all that its earlier connection has sent.
pub(crate) struct FindSessionCommand {
    pub(crate) topic: Topic,
    /// The key under which the session is stored.
    pub(crate) key: Arc<[u8]>,
    pub(crate) reply: CommandReply<u64>,
}

/// A stream that is to go.
pub(crate) struct RemoveCommand {
    pub(crate) topic: Topic,
    /// It goes only if nothing came to it behind this place, nothing is held back for it and nobody
    /// reads it.
    pub(crate) idle_since: Option<StreamPosition>,
    /// Whether it went.
    pub(crate) reply: CommandReply<bool>,
}

/// A rule of retention that is to hold, or to hold no more.
pub(crate) struct RuleCommand {
    pub(crate) deed: RuleDeed,
    pub(crate) reply: CommandReply<()>,
}

/// The result of an append.
#[derive(Debug, Clone, PartialEq)]
pub struct AppendedMessages {
    /// The stream.
    pub stream: Topic,
    /// The messages' ids, in order.
    pub ids: Vec<Bytes>,
    /// The offset of the first; 0 where it is delayed.
    pub offset: u64,
    /// The generation; 0 where it is delayed.
    pub generation: u64,
    /// When a delayed message enters the stream.
    pub due_ms: Option<u64>,
    /// The level that was reached.
    pub level: Level,
    /// Whether this answers a repeated idempotency key; nothing was appended.
    pub replayed: bool,
}

/// Why one command is refused. Nobody else's is touched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CommandRefusal {
    /// `expect` is not the next offset.
    OffsetMismatch {
        next: u64,
    },
    KeyReused,
    /// The owner has its share.
    Share(Box<Error>),
    TooMany {
        what: &'static str,
        limit: u64,
    },
    UnknownStream(Topic),
    UnknownRule(String),
    /// For some topics neither of two rules is the more exact.
    RuleTie {
        pattern: String,
        other: String,
    },
    UnknownConsumer {
        stream: Topic,
        consumer: String,
    },
    /// The place is beyond the end of the stream.
    BeyondEnd {
        next: u64,
    },
    /// The range to be skipped begins beyond the next offset of the consumer.
    NotGivenYet,
    NotDelayed {
        stream: Topic,
        id: String,
    },
    NotSealed {
        group: GroupTag,
    },
    SealMismatch {
        stream: Option<GroupTag>,
        asked: GroupTag,
    },
    /// The store takes nothing that adds to it, for this reason.
    Unstorable(StoreFault),
}

impl From<CommandRefusal> for Error {
    fn from(refusal: CommandRefusal) -> Self {
        match refusal {
            CommandRefusal::OffsetMismatch { next } => Error::OffsetMismatch { next },
            CommandRefusal::KeyReused => Error::KeyReused,
            CommandRefusal::Share(error) => *error,
            CommandRefusal::TooMany { what, limit } => Error::TooMany { what, limit },
            CommandRefusal::UnknownStream(topic) => Error::UnknownStream(topic.to_string()),
            CommandRefusal::UnknownRule(pattern) => Error::UnknownRule(pattern),
            CommandRefusal::RuleTie { pattern, other } => Error::RuleTie { pattern, other },
            CommandRefusal::UnknownConsumer { stream, consumer } => {
                Error::UnknownConsumer { stream: stream.to_string(), consumer }
            }
            CommandRefusal::BeyondEnd { next } => Error::BeyondEnd { next },
            CommandRefusal::NotGivenYet => {
                Error::parameter("skip", "begins beyond the consumer's next offset")
            }
            CommandRefusal::NotDelayed { stream, id } => {
                Error::NotDelayed { stream: stream.to_string(), id }
            }
            CommandRefusal::NotSealed { group } => Error::NotSealed { group },
            CommandRefusal::SealMismatch { stream, asked } => Error::SealMismatch { stream, asked },
            CommandRefusal::Unstorable(fault) => fault.into(),
        }
    }
}

/// Checks that a message of `group`, or an open one, is for what `stream` is.
pub(crate) fn check_seal(
    stream: Option<GroupTag>,
    group: Option<GroupTag>,
) -> Result<(), CommandRefusal> {
    match (stream, group) {
        // The header's group is all that the hub can check. Members check the rest with their keys.
        (stream, Some(asked)) if stream != group => {
            Err(CommandRefusal::SealMismatch { stream, asked })
        }
        (Some(group), None) => Err(CommandRefusal::NotSealed { group }),
        _ => Ok(()),
    }
}

/// Bytes of the store that an append takes beside its messages: the pages that it touches.
const APPEND_BYTES: u64 = 16 << 10;

/// Bytes of a message beside its id and body, with its idempotency key.
const MESSAGE_BYTES: u64 = 64;

impl WriterCommand {
    /// The one topic that it asks for.
    pub(super) fn topic(&self) -> Option<&Topic> {
        match self {
            WriterCommand::Append(append) => Some(&append.topic),
            WriterCommand::Configure(configure) => Some(&configure.topic),
            WriterCommand::Remove(remove) => Some(&remove.topic),
            WriterCommand::Manage(manage) => Some(&manage.topic),
            WriterCommand::FindSession(find) => Some(&find.topic),
            WriterCommand::Publish(_)
            | WriterCommand::Rule(_)
            | WriterCommand::Damage(..)
            | WriterCommand::Dirty
            | WriterCommand::Stop(_) => None,
        }
    }

    /// Whether somebody waits for one answer.
    pub(super) fn asks(&self) -> bool {
        self.topic().is_some() || matches!(self, WriterCommand::Rule(_))
    }

    /// Messages that it brings; what brings none counts as one.
    pub(super) fn messages(&self) -> usize {
        match self {
            WriterCommand::Append(append) => append.envelopes.len(),
            WriterCommand::Publish(publish) => publish.items.len(),
            _ => 1,
        }
    }

    /// About how many bytes it adds to the store.
    pub(super) fn bytes(&self) -> u64 {
        let size = |envelope: &StreamEnvelope| {
            (envelope.body.len() + envelope.id.len()) as u64 + MESSAGE_BYTES
        };
        let messages: u64 = match self {
            WriterCommand::Append(append) => append.envelopes.iter().map(size).sum(),
            WriterCommand::Publish(publish) => {
                publish.items.iter().map(|item| size(&item.envelope)).sum()
            }
            _ => return 0,
        };
        APPEND_BYTES + messages
    }

    /// Tells whoever asked that the store failed.
    pub(super) fn fail(self, fault: &StoreFault) {
        let error = Error::from(fault.clone());
        // A client that does not wait any more is not told.
        let _ = match self {
            WriterCommand::Append(append) => append.reply.send(Err(error)).is_ok(),
            WriterCommand::Publish(publish) => {
                let all = publish.items.iter().map(|item| item.told(Err(error.clone())));
                // Each message of a session has a number, and so needs an answer of its own.
                publish.outbox.tell(all);
                true
            }
            WriterCommand::Configure(configure) => configure.reply.send(Err(error)).is_ok(),
            WriterCommand::Manage(manage) => manage.reply.send(Err(error)).is_ok(),
            WriterCommand::Rule(rule) => rule.reply.send(Err(error)).is_ok(),
            WriterCommand::FindSession(find) => find.reply.send(Err(error)).is_ok(),
            WriterCommand::Remove(remove) => remove.reply.send(Err(error)).is_ok(),
            WriterCommand::Stop(reply) => reply.send(Err(error)).is_ok(),
            WriterCommand::Damage(..) | WriterCommand::Dirty => true,
        };
    }
}

/// The answer to a command when its commit has ended.
pub(super) enum CommandAnswer {
    Append(CommandReply<AppendedMessages>, Result<AppendedMessages, CommandRefusal>),
    Publish(Arc<SessionOutbox>, PublishAnswered),
    Configure(
        CommandReply<(Arc<StreamEntry>, bool)>,
        Result<(Arc<StreamEntry>, bool), CommandRefusal>,
    ),
    Remove(CommandReply<bool>, Result<bool, CommandRefusal>),
    /// The number that comes next in a session.
    FindSession(CommandReply<u64>, u64),
    Manage {
        reply: CommandReply<u64>,
        result: Result<u64, CommandRefusal>,
        /// Whether it only takes something off the store.
        removes: bool,
    },
    Rule {
        reply: CommandReply<()>,
        result: Result<(), CommandRefusal>,
        /// Whether it only takes something off the store.
        removes: bool,
    },
}

impl CommandAnswer {
    /// The commit stands. Returns the session whose connection is to be told of its answers.
    pub(super) fn send(self) -> Option<Arc<SessionOutbox>> {
        match self {
            CommandAnswer::Append(reply, result) => drop(reply.send(result.map_err(Error::from))),
            CommandAnswer::Publish(outbox, answered) => {
                // The connection is told once for all its answers of this commit. One send costs
                // more than planning a message.
                return outbox.add([answered]).then_some(outbox);
            }
            CommandAnswer::Configure(reply, result) => {
                drop(reply.send(result.map_err(Error::from)))
            }
            CommandAnswer::Remove(reply, result) => drop(reply.send(result.map_err(Error::from))),
            CommandAnswer::FindSession(reply, next) => drop(reply.send(Ok(next))),
            CommandAnswer::Manage { reply, result, .. } => {
                drop(reply.send(result.map_err(Error::from)));
            }
            CommandAnswer::Rule { reply, result, .. } => {
                drop(reply.send(result.map_err(Error::from)));
            }
        }
        None
    }

    /// The commit was given up. What was refused in it may have been for what did not come to be.
    pub(super) fn fail(self, fault: &StoreFault) {
        let error = Error::from(fault.clone());
        match self {
            CommandAnswer::Append(reply, _) => drop(reply.send(Err(error))),
            CommandAnswer::Publish(outbox, answered) => {
                // Even what was placed is answered as failed: the commit that held it does not
                // exist.
                outbox.tell([PublishAnswered { result: Err(error), ..answered }]);
            }
            CommandAnswer::Configure(reply, _) => drop(reply.send(Err(error))),
            CommandAnswer::Remove(reply, _) => drop(reply.send(Err(error))),
            CommandAnswer::FindSession(reply, _) => drop(reply.send(Err(error))),
            CommandAnswer::Manage { reply, .. } => drop(reply.send(Err(error))),
            CommandAnswer::Rule { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}
