//! The way to a bucket: through a proxy where the environment names one, with TLS to a server that
//! the certificates speak for, and no longer than a server may be silent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::s3::Server;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sealane_vault::{Error, S3Store, VaultStore};

const PATIENCE: Duration = Duration::from_millis(200);
/// A name that this machine cannot look up.
const HOST: &str = "bucket.invalid";
const CONTENT: &[u8] = b"carried";

fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(client));
        }
    });
    port
}

fn head(client: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && client.read_line(&mut head).unwrap_or(0) > 0 {}
    head
}

fn answer(length: usize) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\netag: \"0\"\r\n\
         last-modified: Sun, 22 Nov 2026 00:00:00 GMT\r\n\r\n"
    )
}

/// A server with TLS for [`HOST`] that has [`CONTENT`] under every key, and its certificate in a
/// file of `home`.
fn encrypted(home: &Path) -> u16 {
    let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
    std::fs::write(home.join("roots.pem"), made.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    listen(move |client| {
        let session = ServerConnection::new(config.clone()).unwrap();
        let mut client = BufReader::new(StreamOwned::new(session, client));
        while head(&mut client).starts_with("GET /bucket/") {
            let answer = [answer(CONTENT.len()).as_bytes(), CONTENT].concat();
            client.get_mut().write_all(&answer).unwrap();
        }
    })
}

/// A proxy that leads to `port` whatever it is asked for, and keeps what it was asked.
fn proxy(port: u16, asked: Arc<Mutex<Vec<String>>>) -> u16 {
    listen(move |client| {
        let mut from = BufReader::new(client.try_clone().unwrap());
        asked.lock().unwrap().push(head(&mut from));
        let mut to = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut back, mut client) = (to.try_clone().unwrap(), client);
        client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
        std::thread::spawn(move || std::io::copy(&mut back, &mut client));
        let _ = std::io::copy(&mut from, &mut to);
    })
}

fn store(endpoint: &str, home: &Path, more: &[(&str, &str)]) -> VaultStore {
    let mut variables = Server::environment(0, home);
    variables.push(("AWS_ENDPOINT_URL".to_owned(), endpoint.to_owned()));
    variables.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let bucket = S3Store::with_patience("s3://bucket/some/vault", variables, PATIENCE);
    VaultStore::S3(Box::new(bucket.unwrap()))
}

#[test]
fn a_proxy_is_asked_for_the_bucket_and_sees_nothing_of_it() {
    let home = tempfile::tempdir().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let port = proxy(encrypted(home.path()), asked.clone());
    let (endpoint, proxy) = (format!("https://{HOST}"), format!("http://me:word@127.0.0.1:{port}"));
    let roots = home.path().join("roots.pem");
    let trust = ("AWS_CA_BUNDLE", roots.to_str().unwrap());
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        let store = store(&endpoint, home.path(), &[(name, &proxy), trust]);
        assert_eq!(store.get("a", 100).unwrap(), CONTENT);
        let asked = std::mem::take(&mut *asked.lock().unwrap());
        let [head] = &asked[..] else { panic!("{name}: {asked:?}") };
        assert!(head.starts_with(&format!("CONNECT {HOST}:443 HTTP/1.1\r\n")), "{head}");
        let credentials = "proxy-authorization: Basic bWU6d29yZA==";
        assert!(head.to_ascii_lowercase().contains(&credentials.to_ascii_lowercase()), "{head}");
    }
    let around = [("HTTPS_PROXY", &*proxy), ("NO_PROXY", "invalid"), trust];
    let failed = refused(&store(&endpoint, home.path(), &around));
    assert!(failed.contains("dns error"), "{failed}");
    assert_eq!(asked.lock().unwrap().len(), 0);
}

#[test]
fn a_server_for_which_no_certificate_speaks_is_not_believed() {
    let home = tempfile::tempdir().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let proxy = format!("http://127.0.0.1:{}", proxy(encrypted(home.path()), asked));
    let other = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
    let file = home.path().join("other.pem");
    std::fs::write(&file, other.cert.pem()).unwrap();
    let with = [("HTTPS_PROXY", &*proxy), ("AWS_CA_BUNDLE", file.to_str().unwrap())];
    let failed = refused(&store(&format!("https://{HOST}"), home.path(), &with));
    assert!(failed.contains("invalid peer certificate"), "{failed}");
    let roots = home.path().join("roots.pem");
    let with = [("HTTPS_PROXY", &*proxy), ("AWS_CA_BUNDLE", roots.to_str().unwrap())];
    let failed = refused(&store("https://another.invalid", home.path(), &with));
    assert!(failed.contains("invalid peer certificate"), "{failed}");
}

#[test]
fn nothing_is_sent_unencrypted_to_another_machine() {
    let home = tempfile::tempdir().unwrap();
    let port = listen(|_| panic!("it was reached"));
    let begun = Instant::now();
    let failed = refused(&store(&format!("http://127.0.0.2:{port}"), home.path(), &[]));
    assert!(failed.contains("plain HTTP"), "{failed}");
    // A request that cannot succeed is not tried again.
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn an_answer_that_stops_is_continued_where_it_stopped() {
    let home = tempfile::tempdir().unwrap();
    let port = listen(|client| {
        let mut client = BufReader::new(client);
        let (length, half) = (CONTENT.len(), CONTENT.len() / 2);
        if head(&mut client).contains(&format!("range: bytes={half}-")) {
            let range = format!("content-range: bytes {half}-{}/{length}\r\n\r\n", length - 1);
            let answer = answer(length - half).replace("200 OK", "206 Partial Content");
            let answer = answer.replace("\r\n\r\n", "\r\n") + &range;
            client.get_mut().write_all(answer.as_bytes()).unwrap();
            client.get_mut().write_all(&CONTENT[half..]).unwrap();
            return;
        }
        client.get_mut().write_all(answer(length).as_bytes()).unwrap();
        client.get_mut().write_all(&CONTENT[..half]).unwrap();
        // Until the client leaves.
        let _ = client.read_to_end(&mut Vec::new());
    });
    let begun = Instant::now();
    let store = store(&format!("http://127.0.0.1:{port}"), home.path(), &[]);
    assert_eq!(store.get("a", 100).unwrap(), CONTENT);
    assert!((PATIENCE..20 * PATIENCE).contains(&begun.elapsed()));
}

#[test]
fn a_server_that_answers_nothing_is_given_up() {
    let home = tempfile::tempdir().unwrap();
    let port = listen(|client| drop(BufReader::new(client).read_to_end(&mut Vec::new())));
    let failed = refused(&store(&format!("http://127.0.0.1:{port}"), home.path(), &[]));
    assert!(failed.contains("silent for 200ms"), "{failed}");
}

/// The error for a bucket that gives nothing.
fn refused(store: &VaultStore) -> String {
    match store.get("a", 100) {
        Err(Error::Store { cause, .. }) => cause.to_string(),
        other => panic!("{other:?}"),
    }
}
