//! A hub that says what it was told to, so that clients meet what no hub says yet.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use sealane::Codec;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message as WsMessage;

/// The script's frames, as JSON; each client gets them in its own codec.
#[derive(Default)]
pub(crate) struct Script {
    /// The frames of each subscription. Those behind the first `null` wait for credit, and at
    /// another `null` or the end the connection stays until the client has said one thing more.
    pub(crate) frames: Vec<String>,
    /// The status and body of every other request.
    pub(crate) answer: (u16, String),
    /// The same for requests whose path begins so.
    pub(crate) by_path: Vec<(String, (u16, String))>,
}

pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (script, ears) = (Arc::new(script), Arc::clone(&heard));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&ears)));
            }
        });
        Self { address, heard }
    }

    /// All that subscribers have sent, as JSON.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>, heard: Arc<Mutex<Vec<String>>>) {
    let mut head = [0; 4096];
    let size = stream.peek(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..size]).to_lowercase();
    if !head.starts_with("get /v1/subscribe") {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let mut told = script.by_path.iter().filter(|(prefix, _)| path.starts_with(prefix));
        let told = told.next().map_or(&script.answer, |(_, answer)| answer);
        return answer(&mut stream, &head, told).await;
    }
    let codec = codec(&head, "codec=");
    let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
    for frame in script.frames.iter().map(String::as_str).chain(["null"]) {
        if frame != "null" {
            // A client that has heard enough goes.
            let _ = socket.send(in_codec(codec, frame)).await;
            continue;
        }
        match socket.next().await {
            Some(Ok(WsMessage::Text(text))) => heard.lock().unwrap().push(text.to_string()),
            Some(Ok(WsMessage::Binary(bytes))) => {
                heard.lock().unwrap().push(transcode(codec, &bytes, Codec::Json));
            }
            _ => return,
        }
    }
}

/// One answer, in the codec that is accepted.
async fn answer(stream: &mut TcpStream, head: &str, (status, body): &(u16, String)) {
    let codec = codec(head, "accept: application/");
    let mut bytes = Vec::new();
    let value = sealane_codec::decode(Codec::Json, body.as_bytes()).unwrap();
    sealane_codec::encode(codec, &value, &mut bytes);
    let head = format!(
        "HTTP/1.1 {status} As Told\r\ncontent-type: {}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        codec.content_type(),
        bytes.len()
    );
    let mut asked = [0; 4096];
    let _ = stream.read(&mut asked).await;
    stream.write_all(&[head.into_bytes(), bytes].concat()).await.unwrap();
}

/// The codec whose name stands behind `key` in a request's head.
fn codec(head: &str, key: &str) -> Codec {
    let name = head.split(key).nth(1).unwrap_or_default();
    let all = [Codec::MsgPack, Codec::Cbor];
    all.into_iter().find(|codec| name.starts_with(codec.name())).unwrap_or(Codec::Json)
}

fn in_codec(codec: Codec, frame: &str) -> WsMessage {
    if codec == Codec::Json {
        return WsMessage::Text(frame.into());
    }
    let value = sealane_codec::decode(Codec::Json, frame.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    sealane_codec::encode(codec, &value, &mut bytes);
    WsMessage::Binary(bytes.into())
}

fn transcode(codec: Codec, bytes: &[u8], to: Codec) -> String {
    let mut text = Vec::new();
    sealane_codec::encode(to, &sealane_codec::decode(codec, bytes).unwrap(), &mut text);
    String::from_utf8(text).unwrap()
}

/// The first frame of a subscription to one stream: `level` and a field more are strangers.
pub(crate) fn subscribed(codec: Codec, features: &str) -> String {
    format!(
        r#"{{"moon":{{"phase":[1,null]}},"status":"subscribed","stream":"a","generation":7,
            "offset":0,"recovered":true,"codec":"{}","level":"orbit","sealed":null,"time":1
            {features}}}"#,
        codec.name()
    )
}

/// A message at this offset.
pub(crate) fn deliver(offset: u64) -> String {
    format!(
        r#"{{"sky":"blue","deliver":{{"n":{offset}}},"stream":"a","offset":{offset},
            "generation":7,"attempt":1,"weight":1.5}}"#
    )
}

/// A subscription in which all that may come anew does: frames, fields, elements, a reason, and
/// in the end an error. Its messages are 0, 3 and 4.
pub(crate) fn strangers(codec: Codec) -> Vec<String> {
    let frames = [
        r#"{"status":"greeting"}"#,
        &subscribed(codec, r#","features":["teleport","seek"]"#),
        "null",
        r#"{"status":"weather","stream":"a","from":7}"#,
        r#"{"teleport":{"to":"b"}}"#,
        r#"{"status":["joined"]}"#,
        "{}",
        &deliver(0),
        r#"{"status":"gap","stream":"a","from":1,"to":2,"reason":"meteor","size":9}"#,
        &format!(r#"{{"count":2,"batch":[{{"note":"between"}},{}]}}"#, deliver(3)),
        r#"{"heartbeat":12,"pulse":60}"#,
        &deliver(4),
        r#"{"error":{"code":"OutOfOrbit","message":"the hub has left its orbit",
            "hint":"Wait for its return.","ref":"SL-HUB-99","back":true}}"#,
    ];
    frames.map(str::to_owned).into()
}
