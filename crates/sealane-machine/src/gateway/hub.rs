//! The hub as a gateway sees it: how it is reached, and what its refusals mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sealane::{Client, Codec, Error, HubError};
use tokio::task::JoinError;

use crate::GatewayError;

/// Where the hub is, and what it is shown. The files are read at each connection anew, so that a
/// token that was replaced counts without a restart.
#[derive(Debug, Clone)]
pub struct HubAccess {
    /// Its address.
    pub address: String,
    /// The file whose first line is the token, if the hub wants one.
    pub token: Option<PathBuf>,
    /// The file of the certificates that are trusted, if those of the system are not.
    pub ca: Option<PathBuf>,
}

/// Why a gateway does not speak to its hub at present. The status tells it, and it is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubFault {
    /// The hub, the way to it, or what the gateway shows it.
    #[error(transparent)]
    Client(#[from] Error),
    /// The file of the token, or that of the certificates.
    #[error("{}: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The queue, which knows how far each stream was read.
    #[error(transparent)]
    Queue(#[from] GatewayError),
    /// A task that the runtime ended.
    #[error(transparent)]
    Task(#[from] JoinError),
    /// The hub has another stream of orders than before.
    #[error("the stream of orders begins anew")]
    BeginsAnew,
    /// The hub sends no more.
    #[error("the subscription has ended")]
    Ended,
}

/// An obstacle for a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HubObstacle {
    /// The hub is away, full or busy. Everything waits.
    Away(String),
    /// The hub does not let this gateway in. Everything waits, and a person is to look.
    Shut(String),
    /// The hub does not take what is for this stream. Other streams go on.
    Stream(String),
    /// The hub takes this frame never.
    Frame(String),
    /// Something has answered what nobody here understands: perhaps because of this frame.
    Unclear(String),
}

impl HubAccess {
    /// A client that tries once: the gateway has its own waits.
    ///
    /// # Errors
    /// The address, the token or the certificates cannot be used.
    pub fn client(&self) -> Result<Client, HubFault> {
        let client = Client::connect(&self.address)?.patience(Duration::ZERO);
        let mut client = client.with_codec(Codec::MsgPack)?;
        if let Some(file) = &self.token {
            let text = read(file)?;
            let token = text.lines().next().unwrap_or_default();
            client = client.with_token(token)?;
        }
        match &self.ca {
            Some(file) => Ok(client.with_ca(read(file)?.as_bytes())?),
            None => Ok(client),
        }
    }
}

fn read(file: &Path) -> Result<String, HubFault> {
    let failed = |cause| HubFault::File { file: file.to_owned(), cause };
    std::fs::read_to_string(file).map_err(failed)
}

impl HubObstacle {
    /// The meaning of an upload's error. An unknown error never drops a frame.
    pub(crate) fn of(error: &Error) -> HubObstacle {
        let told = match error.refusal() {
            Some(name) => format!("{name}: {error}"),
            None => error.to_string(),
        };
        match (error.refusal(), error.hub_error()) {
            (Some("Unauthorized" | "OriginRefused" | "TooManyGuesses" | "TlsRequired"), _) => {
                HubObstacle::Shut(told)
            }
            // A token may publish to some streams only. Others must not wait for one that it may
            // not.
            (Some("Forbidden"), _) => HubObstacle::Stream(told),
            (_, Some(HubError::SealMismatch | HubError::NotSealed | HubError::TooMany)) => {
                HubObstacle::Stream(told)
            }
            (
                _,
                Some(HubError::FrameMalformed | HubError::TooLarge | HubError::InvalidEnvelope),
            ) => HubObstacle::Frame(told),
            _ => match error {
                Error::Untrusted { .. } | Error::Trust(_) | Error::Token => HubObstacle::Shut(told),
                // Something in front of the hub may have answered. Its page says nothing about the
                // frame.
                Error::Refused(_) if error.hub_error().is_none() => HubObstacle::Unclear(told),
                Error::Protocol(_) => HubObstacle::Unclear(told),
                _ => HubObstacle::Away(told),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use sealane_protocol::WireError;

    use super::*;

    fn refused(name: &str) -> HubObstacle {
        let wire = WireError {
            code: name.to_owned().into(),
            message: "no".to_owned(),
            ..WireError::from(&sealane_protocol::Error::KeyReused)
        };
        HubObstacle::of(&Error::Refused(wire))
    }

    #[test]
    fn each_refusal_is_met_as_it_deserves() {
        for name in ["Unauthorized", "TooManyGuesses"] {
            assert!(matches!(refused(name), HubObstacle::Shut(_)), "{name}");
        }
        for name in ["Forbidden", "SealMismatch", "NotSealed", "TooMany"] {
            assert!(matches!(refused(name), HubObstacle::Stream(_)), "{name}");
        }
        for name in ["FrameMalformed", "TooLarge", "InvalidEnvelope"] {
            assert!(matches!(refused(name), HubObstacle::Frame(_)), "{name}");
        }
        for name in ["StorageFull", "StorageBusy", "Draining", "TooFast", "Crowded"] {
            assert!(matches!(refused(name), HubObstacle::Away(_)), "{name}");
        }
        assert!(matches!(refused("OutOfOrbit"), HubObstacle::Unclear(_)), "a name of a later hub");
        let page = Error::Protocol("status 413 without an error".into());
        assert!(
            matches!(HubObstacle::of(&page), HubObstacle::Unclear(_)),
            "something before the hub"
        );
        let away = Error::NotReachable { address: "a".into(), cause: "b".into() };
        assert!(matches!(HubObstacle::of(&away), HubObstacle::Away(_)));
        assert!(matches!(HubObstacle::of(&Error::Token), HubObstacle::Shut(_)));
    }
}
