//! A machine that says that a group's orders go on, and can open nothing.

use std::sync::Arc;

use sealane_group::{Beater, Identity};

use super::control;
use super::keys::now_ms;
use crate::{Client, Error, HubError, Start};

/// Publishes heartbeats of a group of which it is no member: it counts the orders by the
/// authority's signatures.
///
/// It sees what the hub shows it. A hub that holds orders back from everybody, from the beater too,
/// is noticed by nobody: let it read another way to the authority than the members do.
#[derive(Debug)]
pub struct GroupBeater {
    client: Client,
    beater: Beater,
    identity: Arc<Identity>,
    /// Where the control stream was left, once it was read.
    next: Option<u64>,
    generation: u64,
    orders: u64,
}

impl GroupBeater {
    /// A beater that publishes through that client, by the key that the authority has named.
    pub fn new(client: &Client, beater: Beater, identity: Arc<Identity>) -> GroupBeater {
        let client = client.clone();
        GroupBeater { client, beater, identity, next: None, generation: 0, orders: 0 }
    }

    /// Reads the orders that have come, publishes one heartbeat, and gives how many orders it
    /// names.
    ///
    /// # Errors
    /// As [`Client::publish`] and [`Client::read`].
    pub async fn beat(&mut self) -> Result<u64, Error> {
        self.read().await?;
        let notice = self.beater.beat(&self.identity, self.orders, now_ms())?;
        control::publish_to(&self.client, &self.beater.control_topic(), &[notice]).await?;
        Ok(self.orders)
    }

    async fn read(&mut self) -> Result<(), Error> {
        let topic = self.beater.control_topic();
        loop {
            let start = self.next.map_or(Start::First, Start::Offset);
            let page = match self.client.read(&topic, start, control::PAGE).await {
                Ok(page) => page,
                Err(error) if error.hub_error() == Some(HubError::UnknownStream) => return Ok(()),
                Err(error) => return Err(error),
            };
            if self.next.is_some() && page.generation != self.generation {
                self.next = None;
                continue;
            }
            for message in &page.messages {
                let shown = control::notice(message).ok().and_then(|n| self.beater.shown_by(&n));
                self.orders = self.orders.max(shown.unwrap_or(0));
            }
            (self.next, self.generation) = (Some(page.next), page.generation);
            if page.end {
                return Ok(());
            }
        }
    }
}
