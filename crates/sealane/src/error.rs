use sealane_codec::CodecError;
use sealane_frame::FrameError;
use sealane_message::{ErrorInfo, TopicError};
use sealane_protocol::{Malformed, WireError};
use sealane_seal::Error as SealError;
use sealane_seal::policy::PolicyRefusal;

use crate::HubError;

sealane_message::errors! {
    /// The error codes of the client library.
    pub const ERRORS;

    /// Why a client could not do something.
    #[derive(Debug, Clone, PartialEq, thiserror::Error)]
    #[non_exhaustive]
    pub enum Error {
        /// A text that is no address of a hub.
        #[error("`{address}` {cause}")]
        #[code("SL-CLIENT-01", "InvalidAddress", exit = Usage)]
        #[cause("the text is no address of a hub")]
        #[hint("Write HOST:PORT or http://HOST:PORT, for example 127.0.0.1:9087.")]
        Address {
            /// The text.
            address: String,
            /// The fault of the text.
            cause: &'static str,
        },
        /// No connection could be made: nothing of the request has reached the hub.
        #[error("no hub answers at {address}: {cause}")]
        #[code("SL-CLIENT-02", "NotReachable", retry = Reconnect, exit = NotReachable)]
        #[cause("no connection to the hub could be made")]
        #[hint("Start a hub with `sealane up`, or name the one to use with --server or \
                SEALANE_SERVER.")]
        NotReachable {
            /// The hub's address.
            address: String,
            /// The system's own words.
            cause: String,
        },
        /// The connection was lost before the answer came, each time: the hub may have done it.
        #[error("{address} did not answer (asked {attempts}x): {cause}")]
        #[code("SL-CLIENT-03", "NoAnswer", retry = Reconnect, exit = NotReachable)]
        #[cause("the connection was lost before the hub answered")]
        #[hint("Repeat it with the same idempotency key: what was stored already is not stored \
                twice.")]
        NoAnswer {
            /// The hub's address.
            address: String,
            /// How often it was asked.
            attempts: u32,
            /// The end of the last attempt.
            cause: String,
        },
        /// The hub refused; the error is its own.
        #[error("{}", .0.message)]
        #[code("SL-CLIENT-04", "Refused", exit = Refused)]
        #[cause("the hub refused the request")]
        #[hint("The hub's own code and hint stand beside it.")]
        Refused(WireError),
        /// The hub said something that is not the protocol.
        #[error("the hub's answer is not the protocol: {0}")]
        #[code("SL-CLIENT-05", "NotTheProtocol")]
        #[cause("what answered does not speak version 1 of the hub protocol")]
        #[hint("Check that the address is a Sealane hub, not a proxy or another service.")]
        Protocol(String),
        /// A value that cannot be encoded, or bytes that cannot be decoded.
        #[error(transparent)]
        #[inner(0)]
        Codec(#[from] CodecError),
        /// A name that is no topic or pattern.
        #[error(transparent)]
        #[inner(0)]
        Topic(#[from] TopicError),
        /// A message over the limit of an envelope.
        #[error("the envelope has {bytes} bytes, {limit} are allowed")]
        #[code("SL-CLIENT-06", "EnvelopeTooLarge", exit = Refused)]
        #[cause("the envelope is over MAX_ENVELOPE_BYTES")]
        #[hint("Split the data, or send a reference to it.")]
        TooLarge {
            /// Its size.
            bytes: usize,
            /// The limit.
            limit: usize,
        },
        /// Keys or orders of a group, a seal or a frame.
        #[error("{message}")]
        #[inner(info)]
        Group {
            /// The row of an error table.
            info: &'static ErrorInfo,
            /// The key folder's or group's own words.
            message: String,
        },
        /// The policy does not let a message be sealed so.
        #[error(transparent)]
        #[inner(0)]
        Policy(#[from] PolicyRefusal),
        /// The body to be sealed, or the one that was opened, is no envelope.
        #[error("the sealed body is no map within the limits of an envelope")]
        #[code("SL-CLIENT-09", "NoEnvelope")]
        #[cause("what was sealed is no message: no map of its codec within the limits of an \
                 envelope")]
        #[hint("Seal maps of JSON, MessagePack or CBOR; other frames are for links, not for \
                streams.")]
        NoEnvelope,
        /// The key folder was copied or restored. It is told, and nothing is refused for it.
        #[error("the key folder was copied or restored: two may speak under this name")]
        #[code("SL-CLIENT-19", "CopiedKeys")]
        #[cause("the key folder was copied or restored since the group was written there")]
        #[hint("If the other copy is still in use, give this one keys of its own: `sealane key \
                new`, and have the new card invited.")]
        CopiedKeys,
        /// The publisher or subscription has ended.
        #[error("the {0} has ended")]
        #[code("SL-CLIENT-07", "Ended")]
        #[cause("the publisher or subscription has ended")]
        #[hint("Its first error says why, if the runtime that it was made in is there; make a new \
                one to go on.")]
        Ended(&'static str),
        /// `msgpack-records` belongs to one connection; messages of this library outlive theirs.
        #[error("msgpack-records cannot be used here")]
        #[code("SL-CLIENT-08", "RecordsCodec", exit = Usage)]
        #[cause("msgpack-records has a dictionary that belongs to one connection")]
        #[hint("Use msgpack, which the hub translates to and from.")]
        RecordsCodec,
        /// A text that cannot be a token.
        #[error("the token has characters that no token has")]
        #[code("SL-CLIENT-14", "Token", exit = Usage)]
        #[cause("the token has characters that no token has")]
        #[hint("A token is `sealane_` and 43 letters, digits, `-` and `_`, on one line.")]
        Token,
        /// Certificates that cannot be trusted, because there are none.
        #[error("no certificate to trust: {0}")]
        #[code("SL-CLIENT-15", "NothingToTrust", exit = Usage)]
        #[cause("there is no certificate by which a hub could be trusted")]
        #[hint("Name a PEM file of certificates with SEALANE_CA, or install the system's.")]
        Trust(String),
        /// The hub's certificate is not trusted, or it does not speak the TLS that is asked for.
        #[error("{address} is not trusted: {why}")]
        #[inner(why)]
        Untrusted {
            /// The hub's address.
            address: String,
            /// Why it is not trusted.
            why: TlsTrustError,
        },
        /// Nobody answered a request in time.
        #[error("no answer to the request on {topic} came within {waited:?}")]
        #[code("SL-CLIENT-17", "NoReply")]
        #[cause("no answer to a request came before its deadline")]
        #[hint("See with `sealane stream info` whether anybody reads the topic; the request is \
                kept there.")]
        NoReply {
            /// Where it was asked.
            topic: String,
            /// How long was waited.
            waited: std::time::Duration,
        },
        /// The message asks for no answer, or the body cannot be a request.
        #[error("no request: {0}")]
        #[code("SL-CLIENT-18", "NotARequest")]
        #[cause("a message asks for no answer, or a body is no map")]
        #[hint("A request is a map with `id` and `replyTo`, as `Client::request` publishes it.")]
        NotARequest(&'static str),
    }

    /// Why a hub is not trusted that was to speak TLS.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum TlsTrustError {
        /// The certificate has expired, by the clock of this machine.
        #[error("its certificate has expired{since}")]
        #[code("SL-CLIENT-20", "CertificateExpired", exit = Usage)]
        #[cause("the certificate of the hub has expired")]
        #[hint("Renew the certificate at the hub; `sealane cert self-signed` makes one. If it has \
                not expired, correct the clock of this machine.")]
        Expired {
            /// How long ago, as it follows the sentence; empty if that is not known.
            since: String,
        },
        /// The certificate is not valid yet, by the clock of this machine.
        #[error("its certificate is not valid yet")]
        #[code("SL-CLIENT-21", "CertificateNotYetValid", exit = Usage)]
        #[cause("the certificate of the hub is not valid yet")]
        #[hint("Correct the clock of this machine, or of the one that made the certificate.")]
        NotYetValid,
        /// The certificate is for other names than that of the address.
        #[error("its certificate is not for {name}{names}")]
        #[code("SL-CLIENT-22", "CertificateForOtherName", exit = Usage)]
        #[cause("the certificate of the hub is for another name than that of the address")]
        #[hint("Use a name of the certificate in the address, or make a certificate for this \
                name: `sealane cert self-signed NAME`.")]
        OtherName {
            /// The name of the address.
            name: String,
            /// Those of the certificate, as they follow the sentence.
            names: String,
        },
        /// The certificate is not signed by whom this client trusts.
        #[error("its certificate is from an issuer that is not known here")]
        #[code("SL-CLIENT-23", "UnknownIssuer", exit = Usage)]
        #[cause("the issuer of the hub's certificate is not known")]
        #[hint("Name the issuer's certificate, or the hub's self-signed one, with SEALANE_CA or \
                in a context: `sealane context add NAME --server ADDRESS --ca FILE`.")]
        UnknownIssuer,
        /// The certificate is one of an authority, as `openssl req -x509` makes them.
        #[error("its certificate is one of an authority, not one of a hub")]
        #[code("SL-CLIENT-24", "AuthorityAsHub", exit = Usage)]
        #[cause("the hub shows a certificate that is for signing others")]
        #[hint("Make one for the hub: `sealane cert self-signed NAME`, or `openssl req -x509` \
                with `-addext basicConstraints=critical,CA:FALSE`.")]
        Authority,
        /// The server does not speak TLS.
        #[error("it does not speak TLS")]
        #[code("SL-CLIENT-25", "NoTls", exit = Usage)]
        #[cause("TLS was begun with a server that does not speak it")]
        #[hint("Begin the address with http://, or start the node with --tls-cert and --tls-key.")]
        NoTls,
        /// Anything else.
        #[error("{0}")]
        #[code("SL-CLIENT-16", "Untrusted", exit = Usage)]
        #[cause("the certificate of the hub is not trusted, or it does not speak TLS 1.3")]
        #[hint("Look at the certificate of the hub: `openssl s_client -connect HOST:PORT` shows \
                it.")]
        Other(String),
    }

    /// Why a delivery is not shown.
    #[derive(Debug, thiserror::Error)]
    #[error("{}", self.info().cause)]
    pub(crate) enum DeliveryRejection {
        /// It may open when the group's next orders are known: of a later epoch, or by a new
        /// member.
        #[error(transparent)]
        #[inner(0)]
        Early(SealError),
        /// An open message.
        #[code("SL-CLIENT-10", "ReadOpen")]
        #[cause("an open message came where only sealed ones are read")]
        #[hint("Read open streams without a group. Into a sealed one, the hub or somebody who \
                reaches it may have put the message.")]
        NotSealed,
        /// A frame of another group.
        #[code("SL-CLIENT-11", "ReadOtherGroup")]
        #[cause("a frame is of another group")]
        #[hint("Read it with the keys of its group; `sealane stream info` shows the stream's.")]
        OtherGroup,
        /// A frame of another kind, or with a body that is no envelope.
        #[chosen_by(no_envelope)]
        NoEnvelope,
        /// A message that was shown before, from another place.
        #[code("SL-CLIENT-12", "Repeated")]
        #[cause("a message that was shown came again at another place, and was dropped")]
        #[hint("A single one may be a retry after the hub lost its memory. Many show that the hub \
                replays messages.")]
        Repeated,
        /// Of an epoch before a removal, at a place behind it.
        #[code("SL-CLIENT-13", "AfterRemoval")]
        #[cause("a message of an epoch from before a removal stands behind the place where the \
                 removal began")]
        #[hint("Drop it: a removed member still has the keys of the past. An honest sender that \
                was late seals the message again.")]
        Posthumous,
        /// The policy does not let it be shown.
        #[error(transparent)]
        #[inner(0)]
        Policy(#[from] PolicyRefusal),
        /// The frame does not open.
        #[error(transparent)]
        #[inner(0)]
        Frame(FrameError),
        /// Something else failed.
        #[error(transparent)]
        #[inner(0)]
        Other(#[from] Error),
    }
}

impl Error {
    /// The stable code: the hub's where it refused, otherwise this library's.
    pub fn code(&self) -> &str {
        match self {
            Error::Refused(wire) if !wire.reference.is_empty() => &wire.reference,
            other => other.info().code,
        }
    }

    /// How to mend the failure.
    pub fn hint(&self) -> &str {
        match self {
            Error::Refused(wire) if !wire.hint.is_empty() => &wire.hint,
            other => other.info().hint,
        }
    }

    /// The hub's name for its refusal, for example `OffsetMismatch`.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Error::Refused(wire) => Some(&wire.code),
            _ => None,
        }
    }

    /// The hub's refusal, where this version of the library knows its name.
    pub fn hub_error(&self) -> Option<HubError> {
        self.refusal().and_then(HubError::named)
    }
}

impl DeliveryRejection {
    fn no_envelope(&self) -> &'static ErrorInfo {
        Error::NoEnvelope.info()
    }

    /// Whether it may be shown another time.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, DeliveryRejection::Early(_))
    }
}

impl From<FrameError> for DeliveryRejection {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Seal(SealError::NotMember) => {
                DeliveryRejection::Early(SealError::NotMember)
            }
            other => DeliveryRejection::Frame(other),
        }
    }
}

impl From<Malformed> for Error {
    fn from(error: Malformed) -> Self {
        Error::Protocol(error.to_string())
    }
}

#[cfg(feature = "group")]
impl From<sealane_group::Error> for Error {
    fn from(error: sealane_group::Error) -> Self {
        Error::Group { info: error.info(), message: error.to_string() }
    }
}

impl From<SealError> for Error {
    fn from(error: SealError) -> Self {
        Error::Group { info: error.info(), message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_speaks_with_the_words_of_the_hub() {
        let wire = WireError::from(&sealane_protocol::Error::KeyReused);
        let error = Error::Refused(wire);
        assert_eq!(error.code(), "SL-HUB-10");
        assert_eq!(error.refusal(), Some("KeyReused"));
        assert_eq!(error.hub_error(), Some(HubError::KeyReused));
        assert!(error.hint().starts_with("Use a new key"));
    }
}
