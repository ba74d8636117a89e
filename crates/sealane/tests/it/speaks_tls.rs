use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedKey, IsCa, KeyPair, date_time_ymd,
    generate_simple_self_signed,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, NamedGroup, RootCertStore};
use sealane::{Client, Error, StartPosition, Subscription, TlsTrustError};
use sealane_node::{Config, HubNode, StartError, TlsFiles};
use sealane_testing::until_async;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{next, number, numbered, numbers};

/// A new certificate and key for `localhost`, as PEM.
fn pair() -> (String, String) {
    let names = ["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") }
}

fn write(folder: &Path, (certificate, key): &(String, String)) {
    std::fs::write(files(folder).certificate, certificate).unwrap();
    std::fs::write(files(folder).key, key).unwrap();
}

fn config(folder: &Path) -> Config {
    Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        data: folder.join("data"),
        tls: Some(files(folder)),
        ..Config::default()
    }
}

async fn secure_node() -> (tempfile::TempDir, HubNode, String) {
    let folder = tempfile::tempdir().unwrap();
    let pair = pair();
    write(folder.path(), &pair);
    let node = HubNode::start(config(folder.path())).await.unwrap();
    (folder, node, pair.0)
}

fn client(address: SocketAddr, ca: &str) -> Client {
    let client = Client::connect(&format!("https://localhost:{}", address.port())).unwrap();
    client.with_ca(ca.as_bytes()).unwrap().patience(Duration::from_secs(1))
}

async fn read(client: &Client) -> Subscription {
    client.subscribe("a").from(StartPosition::First).await.unwrap()
}

/// A handshake with the node, as another program would do it.
async fn shake(address: SocketAddr, ca: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

#[tokio::test]
async fn requests_and_subscriptions_go_both_ways_through_tls() {
    let (_folder, node, ca) = secure_node().await;
    let client = client(node.address(), &ca);
    let mut reader = read(&client).await;
    for n in 0..100 {
        client.publish("a", &numbered(n)).await.unwrap();
    }
    assert!(numbers(&mut reader, 100).await.into_iter().eq(0..100));
    let stream = shake(node.address(), &ca).await.unwrap();
    let (_, session) = stream.get_ref();
    let group = session.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(group, NamedGroup::X25519MLKEM768);
    assert_eq!(session.alpn_protocol(), Some(b"http/1.1".as_slice()));
    assert_eq!(session.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
}

#[tokio::test]
async fn who_is_not_trusted_and_who_does_not_speak_tls_are_named() {
    let (_folder, node, ca) = secure_node().await;
    let (other, _) = pair();
    let error = client(node.address(), &other).health().await.unwrap_err();
    assert!(matches!(error, Error::Untrusted { why: TlsTrustError::UnknownIssuer, .. }), "{error}");
    assert_eq!(error.code(), "SL-CLIENT-23");
    let error = client(node.address(), &other).subscribe("a").await.unwrap_err();
    assert!(matches!(error, Error::Untrusted { .. }), "{error}");
    // The name must be the certificate's, too.
    let wrong = Client::connect(&format!("https://127.0.0.1:{}", node.address().port())).unwrap();
    let wrong = wrong.with_ca(ca.as_bytes()).unwrap();
    let error = wrong.health().await.unwrap_err();
    assert_eq!(error.code(), "SL-CLIENT-22");
    assert!(error.to_string().ends_with("is not for 127.0.0.1, but for localhost"), "{error}");
    let plain = Client::connect(&node.address().to_string()).unwrap();
    let error = plain.patience(Duration::ZERO).health().await.unwrap_err();
    assert_eq!(error.refusal(), Some("TlsRequired"), "{error}");
    assert!(matches!(plain_ca("no certificate"), Err(Error::Trust(_))));
    let (_folder, open, _) = crate::node().await;
    let error = client(open.address(), &ca).patience(Duration::ZERO).health().await.unwrap_err();
    assert!(matches!(error, Error::Untrusted { why: TlsTrustError::NoTls, .. }), "{error}");
}

/// A node with a certificate that was made with these parameters, and what a client says of it.
async fn said_of(change: impl FnOnce(&mut CertificateParams)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    write(folder.path(), &(certificate.clone(), key.serialize_pem()));
    let node = HubNode::start(config(folder.path())).await.unwrap();
    client(node.address(), &certificate).health().await.unwrap_err()
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_named() {
    let expired = said_of(|params| params.not_after = date_time_ymd(2000, 1, 1)).await;
    assert_eq!(expired.code(), "SL-CLIENT-20");
    assert!(expired.to_string().contains("full days ago"), "{expired}");
    let early = said_of(|params| params.not_before = date_time_ymd(3000, 1, 1)).await;
    assert_eq!(early.code(), "SL-CLIENT-21");
    let authority =
        said_of(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)).await;
    assert_eq!(authority.code(), "SL-CLIENT-24");
    for error in [expired, early, authority] {
        let said = error.to_string();
        assert!(!said.contains(['(', '{', '"']), "words of a library: {said}");
    }
}

fn plain_ca(pem: &str) -> Result<Client, Error> {
    Client::connect("https://localhost")?.with_ca(pem.as_bytes())
}

#[tokio::test]
async fn a_new_certificate_is_taken_and_what_stands_goes_on() {
    let (folder, node, ca) = secure_node().await;
    let before = client(node.address(), &ca);
    let mut reader = read(&before).await;
    before.publish("a", &numbered(0)).await.unwrap();
    assert_eq!(number(&next(&mut reader).await), 0);
    let renewed = pair();
    write(folder.path(), &renewed);
    let after = client(node.address(), &renewed.0);
    until_async("it is taken", async || after.health().await.is_ok()).await;
    assert!(shake(node.address(), &ca).await.is_err(), "the old one is shown no more");
    after.publish("a", &numbered(1)).await.unwrap();
    // The connection of before has not been made again: its client trusts the old one alone.
    assert_eq!(number(&next(&mut reader).await), 1);
}

#[tokio::test]
async fn a_broken_pair_leaves_the_old_one() {
    let (folder, node, ca) = secure_node().await;
    let old = std::fs::read_to_string(files(folder.path()).key).unwrap();
    let other = pair();
    let broken = [
        (other.0.clone(), old.clone()),
        (ca.clone(), other.1.clone()),
        ("nothing".to_owned(), old.clone()),
        (ca.clone(), String::new()),
    ];
    for pair in broken {
        write(folder.path(), &pair);
        assert!(matches!(node.reload(), Err(StartError::Tls(_))), "{pair:?}");
        client(node.address(), &ca).health().await.unwrap();
    }
    std::fs::remove_file(files(folder.path()).key).unwrap();
    assert!(matches!(node.reload(), Err(StartError::Tls(_))));
    client(node.address(), &ca).health().await.unwrap();
    // A node does not start with one.
    let refused = HubNode::start(config(folder.path())).await;
    assert!(matches!(refused, Err(StartError::Tls(_))));
    write(folder.path(), &other);
    node.reload().unwrap();
    client(node.address(), &other.0).health().await.unwrap();
}

#[tokio::test]
async fn handshakes_that_fail_or_last_are_counted_and_end() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (_folder, node, ca) = secure_node().await;
    let begun = |bytes: &'static [u8]| {
        let address = node.address();
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            let mut said = Vec::new();
            let reading = stream.read_to_end(&mut said);
            let _ = tokio::time::timeout(Duration::from_secs(60), reading).await.expect("an end");
        }
    };
    // A record that is none, and one that stays unfinished.
    let long = b"\x16\x03\x01\x01\x00\x01";
    tokio::join!(begun(b"\x16\x07\x07\xff\xff\x00"), begun(long));
    let mut stream = shake(node.address(), &ca).await.unwrap();
    let head = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    let line = "sealane_carry_refused_total{code=\"HandshakeFailed\"} 2\n";
    assert!(said.contains(line), "{said}");
}
