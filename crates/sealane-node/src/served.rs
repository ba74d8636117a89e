//! How many are served with a subscription or an event source.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::MAX_SUBSCRIPTIONS;
use sealane_protocol::Error;

/// A count of those who are served.
#[derive(Debug, Default)]
pub(crate) struct ServedCount(Arc<AtomicUsize>);

impl ServedCount {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more, until what is given is dropped, however its task ends.
    ///
    /// # Errors
    /// [`Error::TooMany`].
    pub(crate) fn enter(&self) -> Result<ServedClient, Error> {
        // The guard is made before the count rises, so that every way out takes the count back.
        let served = ServedClient(self.0.clone());
        if self.0.fetch_add(1, Ordering::Relaxed) >= MAX_SUBSCRIPTIONS {
            // Dropping `served` here takes its count back.
            let limit = MAX_SUBSCRIPTIONS as u64;
            return Err(Error::TooMany { what: "subscriptions", limit });
        }
        Ok(served)
    }
}

/// One client that counts among those who are served.
#[derive(Debug)]
pub(crate) struct ServedClient(Arc<AtomicUsize>);

impl Drop for ServedClient {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_served_no_more_is_not_counted_whatever_ended_it() {
        let serving = ServedCount::default();
        let (done, broken) = (serving.enter().unwrap(), serving.enter().unwrap());
        assert_eq!(serving.count(), 2);
        drop(done);
        let task = tokio::spawn(async move {
            let _served = broken;
            panic!("a defect in the task");
        });
        assert!(task.await.is_err());
        assert_eq!(serving.count(), 0);
        serving.0.store(MAX_SUBSCRIPTIONS, Ordering::Relaxed);
        assert!(matches!(serving.enter(), Err(Error::TooMany { .. })));
        assert_eq!(serving.count(), MAX_SUBSCRIPTIONS);
    }
}
