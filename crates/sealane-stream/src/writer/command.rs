//! The writer's commands, and its answers.

use std::sync::Arc;

use bytes::Bytes;
use sealane_frame::GroupTag;
use sealane_message::Topic;
use sealane_protocol::Position;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::manage::Manage;
use crate::envelope::Envelope;
use crate::publishing::{Answered, Outbox, Placed};
use crate::store::{Fault, Key};
use crate::stream::Stream;
use crate::{Change, Error, Level};

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// A command to the writer. It names its stream by topic. The order of the queue decides which
/// stream that is.
pub(crate) enum Command {
    Append(Append),
    Publish(Publish),
    Configure(Configure),
    Remove(Remove),
    Manage(Manage),
    /// Note that offsets, both ends included, cannot be read.
    Damage(Arc<Stream>, (u64, u64)),
    /// Consumers have changed.
    Dirty,
    Stop(Reply<()>),
}

/// Messages for one stream, all or none.
pub(crate) struct Append {
    pub(crate) topic: Topic,
    pub(crate) envelopes: Vec<Envelope>,
    /// The group of the messages; none: they are open.
    pub(crate) group: Option<GroupTag>,
    pub(crate) expect: Option<u64>,
    pub(crate) due_ms: Option<u64>,
    pub(crate) key: Option<Key>,
    /// The keys of the messages, if each is to be stored once by itself.
    pub(crate) each: Vec<Key>,
    pub(crate) reply: Reply<Appended>,
    /// The append's share of the queue, given back when the append is planned.
    pub(crate) _share: OwnedSemaphorePermit,
}

/// Numbered messages of a session, each accepted or refused by itself.
pub(crate) struct Publish {
    /// The key under which the session is stored.
    pub(crate) key: Arc<[u8]>,
    pub(crate) outbox: Arc<Outbox>,
    /// How many places of messages of one stream are remembered: as many as may be unanswered.
    pub(crate) keep: u64,
    pub(crate) items: Vec<Item>,
    /// Their share of the queue, given back when they are planned.
    pub(crate) share: OwnedSemaphorePermit,
}

/// One message of a session.
#[derive(Debug, Clone)]
pub struct Item {
    /// The stream.
    pub topic: Topic,
    /// The message's number in the session and the stream, from 1.
    pub n: u64,
    /// The message.
    pub envelope: Envelope,
    /// The offset that it must get.
    pub expect: Option<u64>,
    /// How long it is held back.
    pub delay_ms: Option<u64>,
}

impl Item {
    /// The answer that its session gets for it.
    pub(crate) fn told(&self, result: Result<Placed, Error>) -> Answered {
        Answered { stream: self.topic.clone(), from: self.n, to: self.n, result }
    }
}

/// A stream that is to be there, with settings.
pub(crate) struct Configure {
    pub(crate) topic: Topic,
    pub(crate) change: Change,
    /// The stream, and whether it was made.
    pub(crate) reply: Reply<(Arc<Stream>, bool)>,
}

/// A stream that is to go.
pub(crate) struct Remove {
    pub(crate) topic: Topic,
    /// It goes only if nothing came to it behind this place, nothing is held back for it and nobody
    /// reads it.
    pub(crate) idle_since: Option<Position>,
    /// Whether it went.
    pub(crate) reply: Reply<bool>,
}

/// The result of an append.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
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
pub(crate) enum Refusal {
    /// `expect` is not the next offset.
    OffsetMismatch {
        next: u64,
    },
    KeyReused,
    TooMany {
        what: &'static str,
        limit: u64,
    },
    UnknownStream(Topic),
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
    Unstorable(Fault),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::OffsetMismatch { next } => Error::OffsetMismatch { next },
            Refusal::KeyReused => Error::KeyReused,
            Refusal::TooMany { what, limit } => Error::TooMany { what, limit },
            Refusal::UnknownStream(topic) => Error::UnknownStream(topic.to_string()),
            Refusal::UnknownConsumer { stream, consumer } => {
                Error::UnknownConsumer { stream: stream.to_string(), consumer }
            }
            Refusal::BeyondEnd { next } => Error::BeyondEnd { next },
            Refusal::NotGivenYet => {
                Error::parameter("skip", "begins beyond the consumer's next offset")
            }
            Refusal::NotDelayed { stream, id } => {
                Error::NotDelayed { stream: stream.to_string(), id }
            }
            Refusal::NotSealed { group } => Error::NotSealed { group },
            Refusal::SealMismatch { stream, asked } => Error::SealMismatch { stream, asked },
            Refusal::Unstorable(fault) => fault.into(),
        }
    }
}

/// Checks that a message of `group`, or an open one, is for what `stream` is.
pub(crate) fn check_seal(stream: Option<GroupTag>, group: Option<GroupTag>) -> Result<(), Refusal> {
    match (stream, group) {
        // The header's group is all that the hub can check. Members check the rest with their keys.
        (stream, Some(asked)) if stream != group => Err(Refusal::SealMismatch { stream, asked }),
        (Some(group), None) => Err(Refusal::NotSealed { group }),
        _ => Ok(()),
    }
}

/// Bytes of the store that an append takes beside its messages: the pages that it touches.
const APPEND_BYTES: u64 = 16 << 10;

/// Bytes of a message beside its id and body, with its idempotency key.
const MESSAGE_BYTES: u64 = 64;

impl Command {
    /// The one topic that it asks for.
    pub(super) fn topic(&self) -> Option<&Topic> {
        match self {
            Command::Append(append) => Some(&append.topic),
            Command::Configure(configure) => Some(&configure.topic),
            Command::Remove(remove) => Some(&remove.topic),
            Command::Manage(manage) => Some(&manage.topic),
            Command::Publish(_) | Command::Damage(..) | Command::Dirty | Command::Stop(_) => None,
        }
    }

    /// Messages that it brings; what brings none counts as one.
    pub(super) fn messages(&self) -> usize {
        match self {
            Command::Append(append) => append.envelopes.len(),
            Command::Publish(publish) => publish.items.len(),
            _ => 1,
        }
    }

    /// About how many bytes it adds to the store.
    pub(super) fn bytes(&self) -> u64 {
        let size =
            |envelope: &Envelope| (envelope.body.len() + envelope.id.len()) as u64 + MESSAGE_BYTES;
        let messages: u64 = match self {
            Command::Append(append) => append.envelopes.iter().map(size).sum(),
            Command::Publish(publish) => {
                publish.items.iter().map(|item| size(&item.envelope)).sum()
            }
            _ => return 0,
        };
        APPEND_BYTES + messages
    }

    /// Tells whoever asked that the store failed.
    pub(super) fn fail(self, fault: &Fault) {
        let error = Error::from(fault.clone());
        // A client that does not wait any more is not told.
        let _ = match self {
            Command::Append(append) => append.reply.send(Err(error)).is_ok(),
            Command::Publish(publish) => {
                let all = publish.items.iter().map(|item| item.told(Err(error.clone())));
                // Each message of a session has a number, and so needs an answer of its own.
                publish.outbox.tell(all);
                true
            }
            Command::Configure(configure) => configure.reply.send(Err(error)).is_ok(),
            Command::Manage(manage) => manage.reply.send(Err(error)).is_ok(),
            Command::Remove(remove) => remove.reply.send(Err(error)).is_ok(),
            Command::Stop(reply) => reply.send(Err(error)).is_ok(),
            Command::Damage(..) | Command::Dirty => true,
        };
    }
}

/// The answer to a command when its commit has ended.
pub(super) enum Answer {
    Append(Reply<Appended>, Result<Appended, Refusal>),
    Publish(Arc<Outbox>, Answered),
    Configure(Reply<(Arc<Stream>, bool)>, Result<(Arc<Stream>, bool), Refusal>),
    Remove(Reply<bool>, Result<bool, Refusal>),
    Manage {
        reply: Reply<u64>,
        result: Result<u64, Refusal>,
        /// Whether it only takes something off the store.
        removes: bool,
    },
}

impl Answer {
    /// The commit stands. Returns the session whose connection is to be told of its answers.
    pub(super) fn send(self) -> Option<Arc<Outbox>> {
        match self {
            Answer::Append(reply, result) => drop(reply.send(result.map_err(Error::from))),
            Answer::Publish(outbox, answered) => {
                // The connection is told once for all its answers of this commit. One send costs
                // more than planning a message.
                return outbox.add([answered]).then_some(outbox);
            }
            Answer::Configure(reply, result) => drop(reply.send(result.map_err(Error::from))),
            Answer::Remove(reply, result) => drop(reply.send(result.map_err(Error::from))),
            Answer::Manage { reply, result, .. } => {
                drop(reply.send(result.map_err(Error::from)));
            }
        }
        None
    }

    /// The commit was given up. What was refused in it may have been for what did not come to be.
    pub(super) fn fail(self, fault: &Fault) {
        let error = Error::from(fault.clone());
        match self {
            Answer::Append(reply, _) => drop(reply.send(Err(error))),
            Answer::Publish(outbox, answered) => {
                // Even what was placed is answered as failed: the commit that held it does not
                // exist.
                outbox.tell([Answered { result: Err(error), ..answered }]);
            }
            Answer::Configure(reply, _) => drop(reply.send(Err(error))),
            Answer::Remove(reply, _) => drop(reply.send(Err(error))),
            Answer::Manage { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}
