//! A token with `admin` copies the node and changes its tokens over the wire; no other one does.

use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_testing::{PATIENCE, until_async};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::http::{self, Reply};
use crate::running::Running;

fn secret(byte: u8) -> String {
    TokenSecret::new([byte; 32]).reveal().to_owned()
}

/// A hub with messages, a token that may do everything with topics and see the node, and one that
/// administers.
async fn guarded(messages: u64) -> Running {
    let hub = Running::start().await;
    hub.enqueue_numbered("a", 0, messages).await;
    let all = || vec!["**".parse().unwrap()];
    let (read, publish, manage) = (all(), all(), all());
    let orders = vec!["groups/*".parse().unwrap()];
    let most = TokenRights { read, publish, manage, orders, observe: true, admin: false };
    let admin = TokenRights { admin: true, ..TokenRights::default() };
    for (byte, name, rights) in [(1, "ops", most), (2, "root", admin)] {
        let secret = TokenSecret::new([byte; 32]);
        TokenFile::add(hub.folder.path(), name, &secret, rights, None).unwrap();
    }
    hub.node.reload().unwrap();
    hub
}

async fn ask(hub: &Running, token: &str, method: &str, path: &str, body: Value) -> Reply {
    let bearer = format!("Bearer {token}");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers = [("authorization", bearer.as_str())];
    http::request(hub.address(), method, path, &headers, body.as_bytes()).await
}

#[tokio::test]
async fn only_a_token_with_admin_copies_the_node_and_changes_its_tokens() {
    let hub = guarded(3).await;
    let new = json!({"read": ["**"]});
    for (method, path, body) in [
        ("GET", "/v1/tokens", Value::Null),
        ("POST", "/v1/tokens?name=x", new.clone()),
        ("DELETE", "/v1/tokens?name=root", Value::Null),
        ("GET", "/v1/backup/streams.db", Value::Null),
        ("GET", "/v1/backup/tokens.toml", Value::Null),
    ] {
        let refused = ask(&hub, &secret(1), method, path, body.clone()).await;
        assert_eq!(
            (refused.status, refused.error().as_str()),
            (403, "Forbidden"),
            "{method} {path}"
        );
        assert!(refused.text().contains("admin on the node"), "{}", refused.text());
        assert_eq!(ask(&hub, &secret(9), method, path, body).await.status, 401);
    }
    let root = &secret(2);
    assert_eq!(ask(&hub, root, "GET", "/v1/streams/a?from=first", Value::Null).await.status, 403);
    assert_eq!(ask(&hub, root, "GET", "/v1/backup/lock", Value::Null).await.status, 404);
    let read = |path: &str| std::fs::read(hub.folder.path().join(path)).unwrap();
    let tokens = ask(&hub, root, "GET", "/v1/backup/tokens.toml", Value::Null).await;
    assert_eq!(tokens.body, read("tokens.toml"));
}

#[tokio::test]
async fn a_token_holds_as_soon_as_it_is_made_and_no_longer_than_it_is_revoked() {
    let hub = guarded(3).await;
    let root = &secret(2);
    let asked = json!({"read": ["a"], "shares": {"streams": 7}, "expiresAfterMs": 86_400_000});
    let made = ask(&hub, root, "POST", "/v1/tokens?name=new", asked.clone()).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let path = "/v1/streams/a?from=first";
    assert_eq!(ask(&hub, &token, "GET", path, Value::Null).await.status, 200);
    let listed = ask(&hub, root, "GET", "/v1/tokens", Value::Null).await;
    let hash = TokenFile::read(&TokenFile::path(hub.folder.path())).unwrap();
    assert_eq!(hash.iter().count(), 3);
    let file = std::fs::read_to_string(TokenFile::path(hub.folder.path())).unwrap();
    assert!(!listed.text().contains(&token) && !file.contains(&token));
    for line in file.lines().filter_map(|line| line.strip_prefix("hash = \"")) {
        assert!(!listed.text().contains(line.trim_end_matches('"')), "a hash is shown");
    }
    let new = listed.json()["tokens"][2].clone();
    assert_eq!((&new["name"], &new["read"]), (&json!("new"), &json!(["a"])));
    assert_eq!(new["shares"][0], json!({"kind": "streams", "held": 0, "limit": 7, "chosen": true}));
    assert!(new["valid"] == true && new["expiresMs"].as_u64() > Some(1 << 40));
    let again = ask(&hub, root, "POST", "/v1/tokens?name=new", asked).await;
    assert_eq!((again.status, again.error().as_str()), (400, "InvalidParameter"));
    assert_eq!(ask(&hub, root, "DELETE", "/v1/tokens?name=new", Value::Null).await.status, 200);
    assert_eq!(ask(&hub, &token, "GET", path, Value::Null).await.status, 401);
    let unknown = ask(&hub, root, "DELETE", "/v1/tokens?name=new", Value::Null).await;
    assert!(unknown.status == 400 && unknown.text().contains("no token `new`"));
    for (query, body) in [
        ("", json!({"read": ["a"]})),
        ("?name=", json!({"read": ["a"]})),
        ("?name=%0a", json!({"read": ["a"]})),
        ("?name=y&to=z", json!({"read": ["a"]})),
        ("?name=y", json!({})),
        ("?name=y", json!({"read": ["a//b"]})),
        ("?name=y", json!({"observe": true, "shares": {"streams": -1}})),
        ("?name=y", json!({"observe": true, "hash": "0"})),
    ] {
        let wrong = ask(&hub, root, "POST", &format!("/v1/tokens{query}"), body.clone()).await;
        assert!((400..=422).contains(&wrong.status), "{query} {body}: {}", wrong.text());
    }
    assert_eq!(TokenFile::read(&TokenFile::path(hub.folder.path())).unwrap().iter().count(), 2);
}

/// A stranger who reaches a node that has no token must not shut its owner out.
#[tokio::test]
async fn the_first_token_is_made_on_the_nodes_machine() {
    let hub = Running::start().await;
    let made = hub.post("/v1/tokens?name=mine", json!({"read": ["**"]})).await;
    assert_eq!((made.status, made.error().as_str()), (403, "Forbidden"));
    assert_eq!(hub.get("/v1/backup/tokens.toml").await.status, 204);
    assert_eq!(hub.get("/v1/tokens").await.json(), json!({"tokens": [], "guarded": false}));
}

#[tokio::test]
async fn a_backup_has_what_was_acknowledged_and_leaves_nothing_beside_the_store() {
    let hub = guarded(500).await;
    std::fs::create_dir(hub.folder.path().join("backup.part")).unwrap();
    std::fs::write(hub.folder.path().join("backup.part/streams.db.part"), "of a kill").unwrap();
    let copy = ask(&hub, &secret(2), "GET", "/v1/backup/streams.db", Value::Null).await;
    assert_eq!(copy.status, 200);
    assert!(!hub.folder.path().join("backup.part").exists());
    let to = tempfile::tempdir().unwrap();
    let from = to.path().join("received");
    std::fs::write(&from, &copy.body).unwrap();
    let stored = sealane_stream::receive(&from, to.path()).unwrap();
    assert_eq!((stored.messages, from.exists()), (500, false));
    // One that was cut off is none, whatever it was cut at.
    let to = tempfile::tempdir().unwrap();
    let from = to.path().join("received");
    std::fs::write(&from, &copy.body[..copy.body.len() - 8192]).unwrap();
    assert!(sealane_stream::receive(&from, to.path()).is_err());
    assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0, "no half file is left");
}

#[tokio::test]
async fn one_backup_is_under_way_at_once_and_waits_for_its_client() {
    let hub = guarded(1).await;
    for _ in 0..24 {
        let text = "x".repeat(1_000_000);
        let one = json!({"to": "a", "envelope": {"text": text}});
        assert_eq!(ask(&hub, &secret(1), "POST", "/v1/enqueue", one).await.status, 200);
    }
    let (slow, status) = begin(&hub).await;
    assert_eq!(status, "HTTP/1.1 200");
    let refused = ask(&hub, &secret(2), "GET", "/v1/backup/streams.db", Value::Null).await;
    assert_eq!((refused.status, refused.error().as_str()), (429, "TooMany"));
    assert!(refused.text().contains("backups at once"), "{}", refused.text());
    // The client that goes leaves its turn.
    drop(slow);
    until_async("another backup begins", async || begin(&hub).await.1 == "HTTP/1.1 200").await;
}

/// A client that asks for a backup with room for little of it, and reads the first of the answer.
async fn begin(hub: &Running) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut client = socket.connect(hub.address()).await.unwrap();
    let head = "GET /v1/backup/streams.db HTTP/1.1\r\nhost: localhost\r\n";
    let head = format!("{head}authorization: Bearer {}\r\n\r\n", secret(2));
    client.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    tokio::time::timeout(PATIENCE, client.read_exact(&mut first)).await.unwrap().unwrap();
    (client, String::from_utf8_lossy(&first).into_owned())
}
