use sealane_frame::GroupTag;
use sealane_message::Topic;
use tokio::sync::broadcast;

#[cfg(feature = "group")]
use crate::Error;

/// An event of a subscription or a group, beside its messages.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The subscription stands again.
    Connected,
    /// The connection was lost; it is being made again.
    Disconnected {
        /// Why the connection ended.
        cause: String,
    },
    /// Messages of a stream that will not come.
    Gap {
        /// The stream.
        stream: Topic,
        /// The first offset that is missing.
        from: u64,
        /// The last offset that is missing.
        to: u64,
        /// `retention` or `damaged`; a newer hub may give other reasons.
        reason: String,
    },
    /// The place where the reading should have gone on is no more: acknowledged messages may
    /// have been lost between.
    NotRecovered {
        /// The stream.
        stream: Topic,
        /// The generation that is being written.
        generation: u64,
        /// Where the reading goes on.
        offset: u64,
    },
    /// A message of a sealed stream that is not shown, or an order that is not obeyed.
    Refused {
        /// The stream.
        stream: Topic,
        /// Its offset.
        offset: u64,
        /// The code of why: `sealane explain` knows it.
        code: &'static str,
        /// The name of why, for example `NotAuthentic`, `BelowFloor` or `Repeated`.
        name: &'static str,
        /// Why, in a sentence.
        cause: String,
    },
    /// A message that this client sealed stands behind a removal that it had not learned of: no
    /// reader takes it. It is sealed again and published behind the others.
    Superseded {
        /// The stream.
        stream: Topic,
        /// The offset of the message that counts no more.
        offset: u64,
    },
    /// The keys of a group have changed by an order of its authority.
    Keys {
        /// The group.
        group: GroupTag,
        /// The epoch that is sealed in from now on.
        epoch: u64,
        /// Whether this member was removed: it reads what it could, and seals nothing more.
        removed: bool,
    },
}

impl ClientEvent {
    #[cfg(feature = "group")]
    pub(crate) fn refused(stream: &Topic, offset: u64, error: &Error) -> ClientEvent {
        let (info, cause) = (error.info(), error.to_string());
        ClientEvent::Refused {
            stream: stream.clone(),
            offset,
            code: info.code,
            name: info.name,
            cause,
        }
    }

    pub(crate) fn log(&self) {
        match self {
            ClientEvent::Connected => tracing::debug!("subscribed"),
            ClientEvent::Disconnected { cause } => tracing::info!(cause, "subscription lost"),
            ClientEvent::Gap { stream, from, to, reason } => {
                tracing::warn!(%stream, from, to, reason, "gap");
            }
            ClientEvent::NotRecovered { stream, generation, offset } => {
                tracing::warn!(%stream, generation, offset, "not recovered");
            }
            ClientEvent::Refused { stream, offset, code, cause, .. } => {
                tracing::warn!(%stream, offset, code, cause, "refused");
            }
            ClientEvent::Superseded { stream, offset } => {
                tracing::info!(%stream, offset, "superseded")
            }
            ClientEvent::Keys { group, epoch, removed } => {
                tracing::info!(%group, epoch, removed, "keys");
            }
        }
    }
}

/// The events of a subscription from the moment on at which this was made.
#[derive(Debug)]
pub struct ClientEvents(pub(crate) broadcast::Receiver<ClientEvent>);

impl ClientEvents {
    /// The next event; `None` when the subscription has ended.
    pub async fn next(&mut self) -> Option<ClientEvent> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
