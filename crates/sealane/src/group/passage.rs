//! How far a consumer has come, by epochs, so that a forward-secret group erases what it has read.

use std::time::Duration;

use sealane_group::ConsumerId;
use sealane_message::{Pattern, Topic};
use sealane_protocol::StreamState;
use sealane_seal::{Epoch, History};
use tokio::time::{Instant, timeout};

use super::{DEAD, GroupClient};
use crate::Error;
use crate::limits::{CONSUMER_LOOK_MS, MAX_CONSUMER_LOOK_MS};

/// A consumer that reads with the keys of this process.
#[derive(Debug)]
pub(crate) struct ConsumerPassage {
    group: GroupClient,
    id: ConsumerId,
    pattern: Pattern,
    name: String,
    /// All that was sealed before it is read.
    passed: Epoch,
    /// Where its streams ended when an epoch had begun: what lies before is of that epoch or of
    /// earlier ones.
    ends: Option<(Epoch, Vec<StreamEnd>)>,
    looked: Instant,
}

#[derive(Debug)]
struct StreamEnd {
    stream: Topic,
    generation: u64,
    next: u64,
}

impl ConsumerPassage {
    /// Registers the consumer in the key folder, if its group erases anything.
    pub(crate) fn begin(
        group: &GroupClient,
        pattern: &Pattern,
        name: &str,
    ) -> Result<Option<ConsumerPassage>, Error> {
        if group.keys().known().history() != History::ForwardSecret {
            return Ok(None);
        }
        let id = ConsumerId::new(&group.client().address(), pattern.as_str(), name);
        group.keys().consumer_at(id, None)?;
        let (group, pattern, name) = (group.clone(), pattern.clone(), name.to_owned());
        let (passed, ends, looked) = (Epoch(0), None, Instant::now());
        Ok(Some(ConsumerPassage { group, id, pattern, name, passed, ends, looked }))
    }

    /// Looks from time to time.
    pub(crate) async fn go_on(&mut self) {
        if self.looked.elapsed() >= Duration::from_millis(CONSUMER_LOOK_MS) {
            self.look().await;
        }
    }

    /// Looks whether the consumer has read all that its streams had when the present epoch had
    /// begun. A failure erases nothing.
    pub(crate) async fn look(&mut self) {
        self.looked = Instant::now();
        let patience = Duration::from_millis(MAX_CONSUMER_LOOK_MS);
        match timeout(patience, self.pass()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(code = error.code(), %error, "nothing is erased"),
            Err(_) => tracing::debug!("the hub does not say how far a consumer is"),
        }
    }

    async fn pass(&mut self) -> Result<(), Error> {
        let newest = self.group.keys().newest();
        if self.ends.is_none() && self.passed >= newest {
            return Ok(());
        }
        let states = self.states().await?;
        let (epoch, ends) = self.ends.get_or_insert_with(|| {
            let end = |state: &StreamState| StreamEnd {
                stream: state.stream.clone(),
                generation: state.generation,
                next: state.next,
            };
            (newest, states.iter().map(end).collect())
        });
        for end in &*ends {
            let state = states.iter().find(|state| state.stream == end.stream);
            if let Some(state) = state.filter(|state| state.generation == end.generation)
                && !is_read(&self.group, state, &self.name, end.next).await?
            {
                return Ok(());
            }
        }
        let epoch = *epoch;
        self.group.keys().consumer_at(self.id, Some(epoch))?;
        (self.passed, self.ends) = (epoch, None);
        Ok(())
    }

    /// The streams that the consumer reads, as far as they can hold anything of the group.
    async fn states(&self) -> Result<Vec<StreamState>, Error> {
        let mut states = Vec::new();
        let mut list = self.group.client().streams().matching(self.pattern.as_str());
        loop {
            let page = list.await?;
            states.extend(page.streams.into_iter().filter(|state| {
                let is_ours = state.sealed == Some(self.group.tag());
                is_ours || state.stream.as_str().starts_with(DEAD)
            }));
            let Some(last) = page.next else { return Ok(states) };
            list = self.group.client().streams().matching(self.pattern.as_str()).after(last);
        }
    }
}

/// Whether a consumer has finished all messages before an offset.
async fn is_read(
    group: &GroupClient,
    state: &StreamState,
    name: &str,
    end: u64,
) -> Result<bool, Error> {
    if state.first >= end {
        return Ok(true);
    }
    let Some(consumer) = state.consumers.iter().find(|one| one.consumer == name) else {
        return Ok(false);
    };
    if consumer.next < end || consumer.in_flight == 0 {
        return Ok(consumer.next >= end);
    }
    let info = group.client().consumer(state.stream.as_str(), name)?.info().await?;
    let pending = info.pending.unwrap_or_default();
    Ok(pending.iter().map(|one| one.offset).min().is_some_and(|first| first >= end))
}
