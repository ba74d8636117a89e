//! A server in front of a hub may send an answer that nobody understands.

use std::net::SocketAddr;
use std::sync::Arc;

use sealane_machine::HubState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::scene::{Field, TELEMETRY, any, gateway, hub, until};

/// The head and the body of the next request or answer.
async fn whole(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    loop {
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if bytes.len() >= head + 4 + length {
                return Some(bytes);
            }
        }
        let mut part = [0; 4096];
        match from.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend(&part[..read]),
        }
    }
}

/// Passes requests on to a hub, but those that hold these bytes: they are too much for it.
async fn stands_before(hub: SocketAddr, hated: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind(any()).await.unwrap();
    let (address, hated) = (listener.local_addr().unwrap(), Arc::new(hated));
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let hated = Arc::clone(&hated);
            tokio::spawn(async move {
                while let Some(request) = whole(&mut client).await {
                    let answer = if request.windows(hated.len()).any(|some| some == *hated) {
                        let page = b"HTTP/1.1 413 Too Large\r\ncontent-length: 4\r\n\r\npage";
                        page.to_vec()
                    } else {
                        let mut behind = TcpStream::connect(hub).await.unwrap();
                        behind.write_all(&request).await.unwrap();
                        whole(&mut behind).await.unwrap()
                    };
                    if client.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_nobody_takes_holds_up_its_own_stream_alone() {
    let (field, folder) = (Field::new(), tempfile::tempdir().unwrap());
    let node = hub(folder.path(), any()).await;
    let (mut hated, mut others) = (field.origin("car", 7), field.origin("base", TELEMETRY));
    let frames = hated.some(3);
    let tag = frames[1][frames[1].len() - 16..].to_vec();
    let before = stands_before(node.address(), tag).await;
    let (gateway, _) = gateway(&before.to_string(), &field.path("queue"));
    // The most urgent one is refused, and stands in front of all others.
    frames.iter().for_each(|frame| gateway.intake().take(frame));
    for frame in others.some(40) {
        gateway.intake().take(&frame);
    }
    until("the others are brought", || gateway.status().stored == 41).await;
    let status = gateway.status();
    assert_eq!(status.queue.frames, 2, "the refused one, and the one behind it: {status:?}");
    assert!(status.queue.lost.iter().all(|lost| lost.frames == 0), "nothing is dropped");
    until("it is told", || !gateway.status().held.is_empty()).await;
    let told = &gateway.status().held[0];
    assert_eq!(told.stream.to_string(), field.topic(7));
    assert!(told.cause.contains("413"), "{}", told.cause);
    assert!(matches!(gateway.status().hub.state, HubState::Up | HubState::Away));
}
