//! Connections to the hub, with TLS or without.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::address::HubAddress;
use crate::limits::MAX_CONNECT_MS;
use crate::{Error, TlsTrustError};

/// The certificates that a client trusts.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsTrust {
    /// None: those that the system trusts.
    roots: Option<Arc<ClientConfig>>,
}

impl TlsTrust {
    /// Trusts these certificates, PEM, and no others.
    pub(crate) fn only(pem: &[u8]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| Error::Trust(error.to_string()))?;
            roots.add(certificate).map_err(|error| Error::Trust(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(Error::Trust("there is no certificate in PEM".to_owned()));
        }
        Ok(Self { roots: Some(Arc::new(config(roots)?)) })
    }

    fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        match &self.roots {
            Some(config) => Ok(config.clone()),
            None => system(),
        }
    }
}

/// The certificates that the system trusts, read once.
fn system() -> Result<Arc<ClientConfig>, Error> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, Error>> = OnceLock::new();
    let read = || {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            return Err(Error::Trust("the system has no certificates that it trusts".to_owned()));
        }
        config(roots).map(Arc::new)
    };
    CONFIG.get_or_init(read).clone()
}

/// TLS 1.3, with X25519MLKEM768 wherever the other side has it.
fn config(roots: RootCertStore) -> Result<ClientConfig, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error::Trust(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Why there is no connection.
pub(crate) enum ConnectFailure {
    /// Another attempt may help.
    Lost(String),
    /// No other attempt helps.
    Failed(Error),
}

/// Opens a connection to the hub.
pub(crate) async fn open(
    address: &HubAddress,
    trust: &TlsTrust,
) -> Result<HubConnection, ConnectFailure> {
    let lost = |error: io::Error| ConnectFailure::Lost(error.to_string());
    let patience = Duration::from_millis(MAX_CONNECT_MS);
    let late = || ConnectFailure::Lost(format!("no connection in {patience:?}"));
    let connecting = timeout(patience, TcpStream::connect(address.target()));
    let stream = connecting.await.map_err(|_| late())?.map_err(lost)?;
    stream.set_nodelay(true).map_err(lost)?;
    if !address.is_tls() {
        return Ok(HubConnection::Left(stream));
    }
    let connector = TlsConnector::from(trust.config().map_err(ConnectFailure::Failed)?);
    let name = ServerName::try_from(address.name().to_owned());
    let name = name.map_err(|error| ConnectFailure::Failed(Error::Trust(error.to_string())))?;
    let shaking = timeout(patience, connector.connect(name, stream));
    match shaking.await.map_err(|_| late())? {
        Ok(stream) => Ok(HubConnection::Right(Box::new(stream))),
        Err(error) => Err(refused(address, error)),
    }
}

/// A fault of the certificate or of the other side's TLS does not pass. A lost connection does.
fn refused(address: &HubAddress, error: io::Error) -> ConnectFailure {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match cause {
        Some(cause) => {
            let (address, why) = (address.to_string(), distrust(cause));
            ConnectFailure::Failed(Error::Untrusted { address, why })
        }
        None => ConnectFailure::Lost(format!("the TLS handshake was broken off ({error})")),
    }
}

/// Tells faults that a person can mend apart from all others.
fn distrust(cause: &rustls::Error) -> TlsTrustError {
    let certificate = match cause {
        rustls::Error::InvalidCertificate(certificate) => certificate,
        rustls::Error::InvalidMessage(_) => return TlsTrustError::NoTls,
        other => return TlsTrustError::Other(other.to_string()),
    };
    match certificate {
        CertificateError::Expired => TlsTrustError::Expired { since: String::new() },
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / 86_400;
            TlsTrustError::Expired {
                since: format!(", {days} full days ago by the clock of this machine"),
            }
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsTrustError::NotYetValid
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names =
                presented.iter().map(|name| plain_name(name)).collect::<Vec<_>>().join(", ");
            TlsTrustError::OtherName {
                name: expected.to_str().into_owned(),
                names: format!(", but for {}", if names.is_empty() { "no name" } else { &names }),
            }
        }
        // Another issuer of the same name signs otherwise, or with a key of another kind: a hub
        // with a new self-signed certificate.
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            TlsTrustError::UnknownIssuer
        }
        // The library of certificates has no name for it that could be matched.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => TlsTrustError::Authority,
        other => {
            let said = format!("{other:?}");
            let kind = said.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            TlsTrustError::Other(format!("its certificate is refused ({kind})"))
        }
    }
}

/// `DnsName("a")` and `IpAddress(::1)`, as the library of certificates writes them, without its
/// words.
fn plain_name(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

/// A connection, without TLS or with it.
pub(crate) type HubConnection = Either<TcpStream, Box<TlsStream<TcpStream>>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_certificate_are_shown_plainly() {
        assert_eq!(plain_name("DnsName(\"a.example\")"), "a.example");
        assert_eq!(plain_name("IpAddress(::1)"), "::1");
        assert_eq!(plain_name("a.example"), "a.example");
    }
}
