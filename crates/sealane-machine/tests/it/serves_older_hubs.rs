//! A hub that does not know batches whose messages are stored once each is brought frames one by
//! one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sealane::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::scene::{Field, TELEMETRY, any, gateway, hub, read, until_brought};

const NEW: &[u8] = b"idempotency-scope: message";
const UNKNOWN: &[u8] = b"idempotency-scope: massage";
const FRAMES: usize = 50;

/// Before a hub, as if the hub were older: it counts what that one would refuse.
async fn older(hub: SocketAddr) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::<AtomicU64>::default());
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(carry(client, hub, Arc::clone(&counted)));
        }
    });
    (address, count)
}

async fn carry(client: TcpStream, hub: SocketAddr, count: Arc<AtomicU64>) {
    let hub = TcpStream::connect(hub).await.unwrap();
    let ((mut from, mut back), (mut answers, mut to)) = (client.into_split(), hub.into_split());
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut answers, &mut back).await;
    });
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let part = &mut bytes[..length];
        if let Some(at) = part.windows(NEW.len()).position(|window| window == NEW) {
            part[at..at + NEW.len()].copy_from_slice(UNKNOWN);
            count.fetch_add(1, Ordering::Relaxed);
        }
        if to.write_all(part).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_hub_is_brought_frames_one_by_one() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let (address, refused) = older(node.address()).await;
    let (gateway, _) = gateway(&address.to_string(), &field.path("queue"));
    let frames = field.origin("car", TELEMETRY).some(FRAMES);
    // All at once, so that there are batches.
    let intake = gateway.intake();
    frames.iter().for_each(|frame| intake.take(frame));
    until_brought(&gateway, FRAMES as u64).await;
    assert!(refused.load(Ordering::Relaxed) > 0, "no batch came");
    let client = Client::connect(&node.address().to_string()).unwrap();
    let all = read(&client, field.member("base"), &field.topic(TELEMETRY), FRAMES).await;
    assert!(all.iter().map(|(_, number)| *number).eq(0..FRAMES as u64));
}
