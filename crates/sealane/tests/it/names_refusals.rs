//! A subscription that is refused ends with the hub's own name for it, whether the hub tells it on
//! the socket or by HTTP.

use sealane::{Client, Codec, Error, StartPosition};
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// How a subscription of this client is refused.
async fn refusal(client: Client, codec: Codec) -> (String, String) {
    let subscribe = client.subscribe("orders").from(StartPosition::First).codec(codec);
    let error = subscribe.await.expect_err("a refusal");
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
    assert!(!error.hint().is_empty() && !error.to_string().is_empty());
    (error.refusal().unwrap().to_owned(), error.code().to_owned())
}

fn named(name: &str, code: &str) -> (String, String) {
    (name.to_owned(), code.to_owned())
}

#[tokio::test]
async fn on_the_socket() {
    let (folder, node, client) = crate::node().await;
    let secret = TokenSecret::new([1; 32]);
    let rights = TokenRights { read: vec!["fleet/**".parse().unwrap()], ..TokenRights::default() };
    TokenFile::add(folder.path(), "reader", &secret, rights, None).unwrap();
    let crate::served::Served::Here(node) = node else { return };
    node.reload().unwrap();
    for codec in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
        let nobody = refusal(client.clone(), codec).await;
        assert_eq!(nobody, named("Unauthorized", "SL-NODE-06"), "{codec:?}");
        let known = client.clone().with_token(secret.reveal()).unwrap();
        let reader = refusal(known, codec).await;
        assert_eq!(reader, named("Forbidden", "SL-NODE-07"), "{codec:?}");
    }
}

#[tokio::test]
async fn by_http() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&listener.local_addr().unwrap().to_string()).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await.unwrap();
        let body = concat!(
            r#"{"error":{"code":"Unauthorized","message":"the request brings no token","#,
            r#""hint":"Set SEALANE_TOKEN","ref":"SL-NODE-06"}}"#
        );
        let answer = format!(
            "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        let _ = stream.read(&mut head).await;
    });
    let refused = refusal(client, Codec::Cbor).await;
    assert_eq!(refused, named("Unauthorized", "SL-NODE-06"));
}

/// Its dictionary would be of one request, and subscriptions agree on it by themselves.
#[tokio::test]
async fn records_are_no_codec_of_a_client() {
    let client = Client::connect("127.0.0.1:1").unwrap();
    let error = client.clone().with_codec(Codec::MsgPackRecords).unwrap_err();
    assert!(matches!(error, Error::RecordsCodec), "{error:?}");
    assert_eq!(error.code(), "SL-CLIENT-08");
    assert!(error.hint().contains("Use msgpack"));
    assert!(client.with_codec(Codec::MsgPack).is_ok());
}
