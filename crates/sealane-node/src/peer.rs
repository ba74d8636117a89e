//! How many connections there may be: so many of one node, and so many of one address.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use crate::limits::MAX_CONNECTIONS;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Whom a limit is for: an IPv4 address, or the 64 bits of an IPv6 address that name a network,
/// since whoever has one address there has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientPeer(IpAddr);

impl fmt::Display for ClientPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(network) => write!(f, "{network}/64"),
        }
    }
}

impl ClientPeer {
    pub(crate) fn new(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            IpAddr::V6(address) => {
                // A host of IPv6 usually has all of a /64, so that a bound for each address would
                // bound nothing.
                let network = u128::from(address) >> 64 << 64;
                Self(Ipv6Addr::from(network).into())
            }
        }
    }
}

/// The connections that there may be.
pub(crate) struct ConnectionPermits {
    all: Arc<Semaphore>,
    of_peers: Mutex<HashMap<ClientPeer, usize>>,
    max_of_peer: usize,
}

impl ConnectionPermits {
    pub(crate) fn new(max_of_peer: usize) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Arc::new(Self { all, of_peers: Mutex::default(), max_of_peer })
    }

    /// How many there are.
    pub(crate) fn taken(&self) -> usize {
        MAX_CONNECTIONS - self.all.available_permits()
    }

    /// A permit of the node, when one is free.
    pub(crate) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        self.all.clone().acquire_owned().await.ok()
    }

    /// Gives it to a peer, who may have enough of them.
    pub(crate) fn grant(
        self: &Arc<Self>,
        peer: ClientPeer,
        of_node: Option<OwnedSemaphorePermit>,
    ) -> Option<ConnectionPermit> {
        let mut of_peers = self.of_peers.lock();
        let count = of_peers.entry(peer).or_default();
        // The node's permit goes back with this return. One address cannot hold permits that it may
        // not use.
        if *count >= self.max_of_peer {
            return None;
        }
        *count += 1;
        Some(ConnectionPermit { permits: self.clone(), peer, _of_node: of_node })
    }
}

/// The permit of one connection, until it is dropped.
pub(crate) struct ConnectionPermit {
    permits: Arc<ConnectionPermits>,
    peer: ClientPeer,
    _of_node: Option<OwnedSemaphorePermit>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut of_peers = self.permits.of_peers.lock();
        if let Some(count) = of_peers.get_mut(&self.peer) {
            *count -= 1;
            // Addresses without a connection leave the map, which is then as large as the
            // connections.
            if *count == 0 {
                of_peers.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> ClientPeer {
        ClientPeer::new(text.parse().unwrap())
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
    }

    #[test]
    fn a_permit_comes_back_when_its_connection_has_gone() {
        let permits = ConnectionPermits::new(2);
        let (ours, other) = (peer("10.0.0.1"), peer("10.0.0.2"));
        let first = permits.grant(ours, None).unwrap();
        let second = permits.grant(ours, None).unwrap();
        assert!(permits.grant(ours, None).is_none());
        assert!(permits.grant(other, None).is_some());
        drop(first);
        let third = permits.grant(ours, None).unwrap();
        drop((second, third));
        assert!(permits.of_peers.lock().is_empty());
    }
}
