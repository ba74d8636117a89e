//! TLS of the hub's port: one certificate and its key, read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

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
        /// What is wrong with it.
        cause: String,
    },
    /// The two files do not belong together, or the key is of a kind that is not known.
    #[error("{} and {}: {cause}", files.certificate.display(), files.key.display())]
    Pair {
        /// The files.
        files: TlsFiles,
        /// What is wrong with them.
        cause: rustls::Error,
    },
}

/// What a node speaks TLS with.
pub(crate) struct Tls {
    files: TlsFiles,
    current: Arc<Current>,
    pub(crate) acceptor: TlsAcceptor,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let pair = read(&files, &provider)?;
        let current = Arc::new(Current(RwLock::new(Arc::new(pair))));
        let failed = |cause| TlsError::Pair { files: files.clone(), cause };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(failed)?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { files, current, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Reads the files again. Handshakes from now on use them, connections that stand go on; what
    /// cannot be used changes nothing.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        let pair = Arc::new(read(&self.files, &aws_lc_rs::default_provider())?);
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = pair;
        Ok(())
    }

    /// Follows the files. They are two, and written one after the other: what does not go
    /// together is looked at again until it does.
    pub(crate) async fn follow(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut seen = self.stamp();
        loop {
            tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let stamp = self.stamp();
            if stamp == seen {
                continue;
            }
            seen = stamp;
            match self.reload() {
                Ok(()) => tracing::info!("the certificate was read again"),
                Err(error) => tracing::error!(%error, "the certificate is as it was"),
            }
        }
    }

    /// What tells that the files are others.
    fn stamp(&self) -> [Option<(SystemTime, u64)>; 2] {
        [&self.files.certificate, &self.files.key].map(|file| {
            let metadata = std::fs::metadata(file).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }
}

/// The certificate of the next handshake.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
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
