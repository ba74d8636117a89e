//! A hub whose store another process holds is asked again when it said, and stores the message.

use sealane::{Client, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const BUSY: &str =
    r#"{"error":{"code":"StorageBusy","message":"busy","hint":"","ref":"SL-HUB-20"}}"#;
const STORED: &str = r#"{"id":"m","stream":"a","offset":7,"generation":1,"level":"disk"}"#;

/// Whether a request is there to the end of its body.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some(end) = text.find("\r\n\r\n") else { return false };
    let fields = text[..end].lines().filter_map(|line| line.split_once(": "));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = lengths.next().unwrap().1.parse().unwrap();
    request.len() >= end + 4 + length
}

#[tokio::test]
async fn a_message_is_stored_as_soon_as_it_can_be() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let hub = tokio::spawn(async move {
        let answers = [("503 Busy", BUSY), ("503 Busy", BUSY), ("200 OK", STORED)];
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !is_whole(&request) {
                assert!(stream.read_buf(&mut request).await.unwrap() > 0);
            }
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 retry-after: 0\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
        }
    });
    let client = Client::connect(&address.to_string()).unwrap();
    let stored = client.publish("a", &Value::Map(Vec::new())).await.unwrap();
    assert_eq!(stored.offset, 7);
    hub.await.unwrap();
}
