//! Connections to a bucket: with TLS or without, straight or through a proxy.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fs;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use sealane_message::InputError;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

type S3DialError = Box<dyn StdError + Send + Sync>;
type S3Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type S3DialFuture = Pin<Box<dyn Future<Output = Result<S3Stream, S3DialError>> + Send>>;

/// How buckets are reached and whose certificates are trusted, from the environment.
#[derive(Debug, Clone)]
pub(super) struct S3DialConfig {
    proxies: Arc<Matcher>,
    /// None: what the system trusts.
    trusted: Option<Arc<ClientConfig>>,
}

impl S3DialConfig {
    /// `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` as curl reads them, and `AWS_CA_BUNDLE`.
    pub(super) fn new(variables: &BTreeMap<String, String>) -> io::Result<S3DialConfig> {
        let value = |name: &str| {
            let value = variables.get(name).or_else(|| variables.get(&name.to_ascii_lowercase()));
            value.filter(|value| !value.is_empty()).cloned()
        };
        let https = value("HTTPS_PROXY").or_else(|| value("ALL_PROXY")).unwrap_or_default();
        let proxies = Matcher::builder().https(https).no(value("NO_PROXY").unwrap_or_default());
        let trusted = value("AWS_CA_BUNDLE").map(|file| bundle(&file)).transpose()?;
        Ok(S3DialConfig { proxies: Arc::new(proxies.build()), trusted })
    }

    fn tls(&self) -> io::Result<Arc<ClientConfig>> {
        self.trusted.clone().map_or_else(system, Ok)
    }

    /// The proxy on the way to `to`. A tunnel through it is opened in plain HTTP.
    fn proxy(&self, to: &Uri) -> io::Result<Option<Intercept>> {
        let proxy = self.proxies.intercept(to);
        match proxy.as_ref().and_then(|proxy| proxy.uri().scheme_str()) {
            None | Some("http") => Ok(proxy),
            Some(scheme) => Err(io::Error::other(format!("no proxy is reached by {scheme}://"))),
        }
    }
}

/// Trusts the certificates in this file, PEM, and no others.
fn bundle(file: &str) -> io::Result<Arc<ClientConfig>> {
    let wrong = |cause: String| io::Error::other(format!("AWS_CA_BUNDLE: {file}: {cause}"));
    let pem = fs::read(file).map_err(|cause| wrong(cause.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|cause| wrong(cause.to_string()))?;
        roots.add(certificate).map_err(|cause| wrong(cause.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("there is no certificate in PEM".to_owned()));
    }
    config(roots).map_err(io::Error::other)
}

/// The certificates that the system trusts, read once.
fn system() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, InputError>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        if roots.add_parsable_certificates(found.certs).0 == 0 {
            return Err("the system has no certificates that it trusts".into());
        }
        config(roots).map_err(|cause| cause.to_string().into())
    };
    CONFIG.get_or_init(read).clone().map_err(io::Error::other)
}

/// TLS 1.2 too: buckets are not ours, and what they are sent is sealed.
fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Makes the connections of one client.
#[derive(Debug, Clone)]
pub(super) struct S3Dialer {
    road: S3DialConfig,
    http: HttpConnector,
    /// How long a connection may take, with its proxy and TLS.
    within: Duration,
}

impl S3Dialer {
    pub(super) fn new(road: S3DialConfig, within: Duration) -> S3Dialer {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(within));
        S3Dialer { road, http, within }
    }

    fn connecting(&self, to: Uri) -> io::Result<S3DialFuture> {
        let mut http = self.http.clone();
        if to.scheme() != Some(&Scheme::HTTPS) {
            let connecting = http.call(to);
            return Ok(Box::pin(async { Ok(MaybeHttpsStream::Http(connecting.await?)) }));
        }
        let tls = self.road.tls()?;
        Ok(match self.road.proxy(&to)? {
            None => HttpsConnector::from((http, tls)).call(to),
            Some(proxy) => {
                let mut tunnel = Tunnel::new(proxy.uri().clone(), http);
                if let Some(credentials) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(credentials.clone());
                }
                HttpsConnector::from((tunnel, tls)).call(to)
            }
        })
    }
}

impl Service<Uri> for S3Dialer {
    type Response = S3Stream;
    type Error = S3DialError;
    type Future = S3DialFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S3DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> S3DialFuture {
        let within = self.within;
        let late = move || io::Error::new(io::ErrorKind::TimedOut, format!("none in {within:?}"));
        match self.connecting(to) {
            Ok(connecting) => {
                Box::pin(async move { timeout(within, connecting).await.map_err(|_| late())? })
            }
            Err(cause) => Box::pin(async { Err(cause.into()) }),
        }
    }
}
