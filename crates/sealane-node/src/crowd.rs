//! Memory that is given back when a crowd has gone.
//!
//! glibc's allocator keeps what was freed for the next one that asks, between what others still
//! use. After 2,000 connections that is 36 MiB, twice the size of an idle node, for good. Handing
//! it back takes some milliseconds in which nobody allocates. So it happens once for each crowd,
//! and then not for a while: strangers can make crowds as fast as the node looks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::clock::stopped;
use crate::limits::{CROWD_LOOK_MS, GIVE_BACK_REST, MIN_CROWD, MIN_GIVE_BACK_MS};
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
        let began = Instant::now();
        if watch.has_gone(permits.taken(), began) {
            // Nobody who is served by this thread waits for it.
            let _ = tokio::task::spawn_blocking(give_back).await;
            let now = Instant::now();
            watch.rest(now, now - began);
        }
    }
}

/// The crowds of a node.
#[derive(Default)]
struct CrowdWatch {
    /// The largest number of connections since memory was given back last.
    most: usize,
    /// When memory may be given back again; none: at once.
    rest_until: Option<Instant>,
}

impl CrowdWatch {
    /// Whether a crowd has gone that was there at an earlier look, now that there are so many. One
    /// that came and went during a rest is told of behind it.
    fn has_gone(&mut self, connections: usize, now: Instant) -> bool {
        self.most = self.most.max(connections);
        let is_resting = self.rest_until.is_some_and(|until| now < until);
        let is_left = self.most >= MIN_CROWD && connections <= self.most / LEFT_PART;
        let has_gone = is_left && !is_resting;
        if has_gone {
            self.most = connections;
        }
        has_gone
    }

    /// Rests, now that memory was given back. That took `took`.
    fn rest(&mut self, now: Instant, took: Duration) {
        let rest = took.saturating_mul(GIVE_BACK_REST);
        self.rest_until = now.checked_add(rest.max(Duration::from_millis(MIN_GIVE_BACK_MS)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_that_has_gone_is_seen_once() {
        let looks = |counts: &[usize]| {
            let (mut watch, now) = (CrowdWatch::default(), Instant::now());
            counts.iter().filter(|count| watch.has_gone(**count, now)).count()
        };
        assert_eq!(looks(&[0, MIN_CROWD - 1, 0, 0]), 0, "few are no crowd");
        assert_eq!(looks(&[0, MIN_CROWD, 0, 0, 3, 0]), 1);
        assert_eq!(looks(&[2000, 1000, 300, 251, 250, 200, 0]), 1, "it goes bit by bit");
        assert_eq!(looks(&[2000, 10, 2000, 10, 5]), 2, "the next one too");
        assert_eq!(looks(&[2000, 1500, 2000, 1500]), 0, "most of it stays");
    }

    #[test]
    fn crowds_that_come_all_the_time_have_memory_given_back_once_a_minute() {
        let (mut watch, began) = (CrowdWatch::default(), Instant::now());
        let mut given_back = Vec::new();
        // A crowd comes and goes every two seconds, and none comes in the last minute.
        for second in 0..240 {
            let now = began + Duration::from_secs(second);
            let is_there = second < 180 && u64::is_multiple_of(second, 2);
            let connections = if is_there { 2000 } else { 0 };
            if watch.has_gone(connections, now) {
                given_back.push(second);
                watch.rest(now, Duration::from_millis(5));
            }
        }
        assert_eq!(given_back, [1, 61, 121, 181], "the last one after its crowd has gone");
        // A slow one is done the more rarely.
        watch.has_gone(2000, began);
        let (now, took) = (began + Duration::from_secs(1000), Duration::from_millis(100));
        watch.rest(now, took);
        assert!(!watch.has_gone(0, now + took * GIVE_BACK_REST - Duration::from_millis(1)));
        assert!(watch.has_gone(0, now + took * GIVE_BACK_REST));
    }
}
