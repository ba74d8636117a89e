//! TLS of the hub's port: one certificate and its key, read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::followed::FollowedFiles;

/// The files of a node's certificate, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those that it is signed with, in this order.
    pub certificate: PathBuf,
    /// Its private key: PKCS #8, PKCS #1 or SEC 1.
    pub key: PathBuf,
}

/// Why a certificate was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or holds nothing of its kind.
    #[error("{}: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The fault of the file.
        cause: String,
    },
    /// The two files do not belong together, or the key is of a kind that is not known.
    #[error("{} and {}: {cause}", files.certificate.display(), files.key.display())]
    Pair {
        /// The files.
        files: TlsFiles,
        /// The fault of the two files.
        cause: rustls::Error,
    },
}

/// The TLS state of a node.
pub(crate) struct NodeTls {
    files: TlsFiles,
    certificate: Arc<ServedCertificate>,
    pub(crate) acceptor: TlsAcceptor,
}

/// The certificate of the next handshake.
#[derive(Debug)]
struct ServedCertificate(FollowedFiles<Arc<CertifiedKey>>);

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.current()))
    }
}

impl NodeTls {
    /// Reads the files.
    pub(crate) fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let paths = vec![files.certificate.clone(), files.key.clone()];
        let certificate = FollowedFiles::open(paths, || read(&files, &provider).map(Arc::new))?;
        let certificate = Arc::new(ServedCertificate(certificate));
        let failed = |cause| TlsError::Pair { files: files.clone(), cause };
        // TLS 1.3 alone, by decision 7: no client can talk the node down to an older suite.
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?
            .with_no_client_auth()
            .with_cert_resolver(certificate.clone());
        // A client that could choose HTTP/2 would meet a server that speaks none.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { files, certificate, acceptor })
    }

    /// Reads the files again. Handshakes from now on use them, connections that stand go on; what
    /// cannot be used changes nothing.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        let read = || read(&self.files, &aws_lc_rs::default_provider()).map(Arc::new);
        self.certificate.0.reload(read)
    }

    /// Follows the files. They are two, and written one after the other: what does not go
    /// together is looked at again until it does.
    pub(crate) async fn follow(self: Arc<Self>, stopping: watch::Receiver<bool>) {
        let reload = || self.reload();
        self.certificate.0.follow("the certificate", stopping, || {}, reload).await;
    }
}

fn read(files: &TlsFiles, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let wrong = |file: &Path, cause: String| TlsError::File { file: file.to_owned(), cause };
    let certificate = &files.certificate;
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(certificate).and_then(|all| all.collect());
    let chain = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "it holds no certificate in PEM".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| wrong(&files.key, error.to_string()))?;
    let failed = |cause| TlsError::Pair { files: files.clone(), cause };
    CertifiedKey::from_der(chain, key, provider).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_that_does_not_go_together_is_read_again_until_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name| folder.path().join(name);
        let files = TlsFiles { certificate: at("cert.pem"), key: at("key.pem") };
        let new = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (old, next) = (new(), new());
        std::fs::write(&files.certificate, old.cert.pem()).unwrap();
        std::fs::write(&files.key, old.signing_key.serialize_pem()).unwrap();
        let tls = NodeTls::open(files.clone()).unwrap();
        let look = || tls.certificate.0.has_changed().then(|| tls.reload());
        assert!(look().is_none());
        std::fs::write(&files.certificate, next.cert.pem() + "\n").unwrap();
        for _ in 0..3 {
            assert!(matches!(look(), Some(Err(TlsError::Pair { .. }))));
        }
        std::fs::write(&files.key, next.signing_key.serialize_pem()).unwrap();
        assert!(matches!(look(), Some(Ok(()))));
        assert!(look().is_none());
    }
}
