//! Memory that is given back when a crowd has gone.
//!
//! glibc's allocator keeps what was freed for the next one that asks, between what others still
//! use. After 2,000 connections that is 36 MiB, twice the size of an idle node, for good. Handing
//! it back takes some milliseconds in which nobody allocates. So it happens once for each crowd.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::stopped;
use crate::limits::{CROWD_LOOK_MS, MIN_CROWD};
use crate::peer::ConnectionPermits;

/// The part of a crowd that may still be there when it counts as gone.
const LEFT_PART: usize = 8;

/// Gives memory back whenever a crowd has gone, until the node stops.
pub(crate) async fn follow(
    permits: Arc<ConnectionPermits>,
    give_back: fn(),
    mut stopping: watch::Receiver<bool>,
) {
    let mut watch = CrowdWatch::default();
    loop {
        tokio::select! {
            () = stopped(&mut stopping) => return,
            () = tokio::time::sleep(Duration::from_millis(CROWD_LOOK_MS)) => {}
        }
        if watch.has_gone(permits.taken()) {
            // Nobody who is served by this thread waits for it.
            let _ = tokio::task::spawn_blocking(give_back).await;
        }
    }
}

/// The largest number of connections since the last crowd went.
#[derive(Default)]
struct CrowdWatch {
    most: usize,
}

impl CrowdWatch {
    /// Whether a crowd has gone that was there at an earlier look, now that there are so many.
    fn has_gone(&mut self, connections: usize) -> bool {
        self.most = self.most.max(connections);
        let has_gone = self.most >= MIN_CROWD && connections <= self.most / LEFT_PART;
        if has_gone {
            self.most = connections;
        }
        has_gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_that_has_gone_is_seen_once() {
        let looks = |counts: &[usize]| {
            let mut watch = CrowdWatch::default();
            counts.iter().filter(|count| watch.has_gone(**count)).count()
        };
        assert_eq!(looks(&[0, MIN_CROWD - 1, 0, 0]), 0, "few are no crowd");
        assert_eq!(looks(&[0, MIN_CROWD, 0, 0, 3, 0]), 1);
        assert_eq!(looks(&[2000, 1000, 300, 251, 250, 200, 0]), 1, "it goes bit by bit");
        assert_eq!(looks(&[2000, 10, 2000, 10, 5]), 2, "the next one too");
        assert_eq!(looks(&[2000, 1500, 2000, 1500]), 0, "most of it stays");
    }
}
