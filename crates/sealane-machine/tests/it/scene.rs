//! A hub, a group in the field, and gateways that hear it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sealane::{Client, Codec, GroupMember, KeyFolder, StartPosition, Value};
use sealane_frame::FrameBuf;
use sealane_group::{GroupSender, IdentityCard, NewGroup, PastSecrets};
use sealane_machine::{Gateway, GatewaySettings, GatewayStatus, HubAccess};
use sealane_message::DataType;
use sealane_node::{Config, HubNode};
use sealane_seal::{Binding, Class};
pub(crate) use sealane_testing::PATIENCE;
use sealane_testing::until_async;

/// The data type of telemetry.
pub(crate) const TELEMETRY: u16 = 72;

/// The authority of a group and somebody in the field, each with a key folder.
pub(crate) struct Field {
    home: tempfile::TempDir,
}

/// Somebody in the field who sends.
pub(crate) struct Origin {
    sender: GroupSender,
    buf: FrameBuf,
    topic: String,
    data_type: u16,
    number: u64,
}

impl Field {
    pub(crate) fn new() -> Field {
        let field = Field { home: tempfile::tempdir().unwrap() };
        let (base, car) = (field.create("base"), field.create("car"));
        let mut base = base.new_group("fleet", NewGroup::default()).unwrap();
        let card = IdentityCard::from_bytes(&car.card().unwrap()).unwrap();
        let invited = base.invite(&card, PastSecrets::All).unwrap();
        car.join(&invited.invitation, None, None).unwrap();
        field
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join(name)
    }

    fn create(&self, who: &str) -> KeyFolder {
        KeyFolder::create(&self.path(who), who, None).unwrap()
    }

    pub(crate) fn member(&self, who: &str) -> GroupMember {
        KeyFolder::open(&self.path(who), None).unwrap().group("fleet").unwrap()
    }

    /// The stream of a data type.
    pub(crate) fn topic(&self, data_type: u16) -> String {
        format!("mesh/{}/{data_type}", self.member("base").tag())
    }

    pub(crate) fn origin(&self, who: &str, data_type: u16) -> Origin {
        let (sender, buf) = (self.member(who).sender().unwrap(), FrameBuf::new());
        Origin { sender, buf, topic: self.topic(data_type), data_type, number: 0 }
    }
}

impl Origin {
    /// The next frame: `{"n": 0}`, `{"n": 1}` and so on, sealed for its stream.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        let value = Value::Map(vec![("n".to_owned(), self.number.into())]);
        self.number += 1;
        sealane_codec::encode(Codec::Cbor, &value, &mut body);
        let fields = self.sender.fields(Class::Group, self.data_type);
        let binding = Binding::stream(&self.topic);
        self.sender.seal(&fields, &binding, &body, &mut self.buf).unwrap().to_vec()
    }

    pub(crate) fn some(&mut self, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// A node over a folder, at an address that is its own.
pub(crate) async fn hub(folder: &Path, listen: SocketAddr) -> HubNode {
    let began = Instant::now();
    loop {
        let data = folder.to_owned();
        match HubNode::start(Config { listen, data, ..Config::default() }).await {
            Ok(node) => return node,
            // The one before may not have let go of its folder yet.
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// The frames that a gateway has put into the mesh.
pub(crate) type Down = Arc<Mutex<Vec<Vec<u8>>>>;

/// A gateway of a hub, and what it puts into the mesh.
pub(crate) fn gateway(address: &str, queue: &Path) -> (Gateway, Down) {
    gateway_with(HubAccess { address: address.to_owned(), token: None, ca: None }, queue)
}

pub(crate) fn gateway_with(hub: HubAccess, queue: &Path) -> (Gateway, Down) {
    let types = |list: &[u16]| list.iter().map(|number| DataType::from_number(*number)).collect();
    let settings = GatewaySettings {
        hub,
        queue: queue.to_owned(),
        queue_bytes: 64 << 20,
        up: types(&[4, 5, 7, TELEMETRY]),
        down: types(&[5]),
    };
    let down = Down::default();
    let put = Arc::clone(&down);
    (Gateway::start(&settings, Arc::new(move |frame| put.lock().push(frame))).unwrap(), down)
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_async(what, async || is_so()).await;
}

/// Waits until a gateway has nothing more to bring.
pub(crate) async fn until_brought(gateway: &Gateway, frames: u64) -> GatewayStatus {
    until("the gateway brings all", || {
        let status = gateway.status();
        status.queue.frames == 0 && status.stored + status.replayed >= frames
    })
    .await;
    gateway.status()
}

/// The messages that a member reads of a stream: the senders' slots, and their numbers.
pub(crate) async fn read(
    client: &Client,
    member: GroupMember,
    topic: &str,
    count: usize,
) -> Vec<(u16, u64)> {
    let group = client.group(member).await.unwrap();
    let mut subscription = group.subscribe(topic).from(StartPosition::First).await.unwrap();
    let mut read = Vec::new();
    while read.len() < count {
        let next = tokio::time::timeout(PATIENCE, subscription.next()).await;
        let message = next.expect("a message in time").expect("no end").unwrap();
        let number = message.value().unwrap().field("n").and_then(Value::as_u64).unwrap();
        read.push((message.seal.unwrap().slot, number));
    }
    read
}
