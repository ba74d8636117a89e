//! A wire between client and node that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on in both directions.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    cut: watch::Sender<u32>,
    down: Arc<AtomicBool>,
    deaf: Arc<AtomicU32>,
}

impl Wire {
    pub(crate) async fn to(node: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, cuts) = watch::channel(0);
        let (down, deaf) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (is_down, is_deaf) = (Arc::clone(&down), Arc::clone(&deaf));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if is_down.load(Ordering::SeqCst) {
                    continue;
                }
                let node = TcpStream::connect(node).await.unwrap();
                tokio::spawn(pass(client, node, cuts.clone(), Arc::clone(&is_deaf)));
            }
        });
        Wire { address, cut, down, deaf }
    }

    /// Ends every connection; new ones can be made.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    /// Ends every connection, and each new one, until it is up again.
    pub(crate) fn down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
        if down {
            self.cut();
        }
    }

    /// The next answers of the node are lost together with their connections.
    pub(crate) fn lose_answers(&self, count: u32) {
        self.deaf.store(count, Ordering::SeqCst);
    }

    pub(crate) fn answers_to_lose(&self) -> u32 {
        self.deaf.load(Ordering::SeqCst)
    }
}

async fn pass(
    mut client: TcpStream,
    mut node: TcpStream,
    mut cuts: watch::Receiver<u32>,
    deaf: Arc<AtomicU32>,
) {
    cuts.mark_unchanged();
    let (mut from_client, mut from_node) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(n) if n > 0 => node.write_all(&from_client[..n]).await.unwrap(),
                _ => return,
            },
            read = node.read(&mut from_node) => match read {
                Ok(n) if n > 0 => {
                    let lose = |left: u32| left.checked_sub(1);
                    if deaf.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lose).is_ok() {
                        return;
                    }
                    if client.write_all(&from_node[..n]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
            _ = cuts.changed() => return,
        }
    }
}
