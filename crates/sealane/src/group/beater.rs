//! A machine that says that a group's orders go on, and can open nothing.

use std::sync::Arc;

use sealane_group::{BeaterView, Identity};

use super::control::{self, ControlPage, ControlReader};
use crate::request::now_ms;
use crate::{Client, Error};

/// Publishes heartbeats of a group of which it is no member: it counts the orders by the
/// authority's signatures.
///
/// It sees what the hub shows it. A hub that holds orders back from everybody, from the beater too,
/// is noticed by nobody: let it read another way to the authority than the members do.
#[derive(Debug)]
pub struct GroupBeater {
    client: Client,
    beater: BeaterView,
    identity: Arc<Identity>,
    reader: ControlReader,
    orders: u64,
}

impl GroupBeater {
    /// A beater that publishes through that client, by the key that the authority has named.
    pub fn new(client: &Client, beater: BeaterView, identity: Arc<Identity>) -> GroupBeater {
        let (client, reader) = (client.clone(), ControlReader::of(&beater.control_topic()));
        GroupBeater { client, beater, identity, reader, orders: 0 }
    }

    /// Reads the orders that have come, publishes one heartbeat, and gives how many orders it
    /// names.
    ///
    /// # Errors
    /// As [`Client::publish`] and [`Client::read`].
    pub async fn beat(&mut self) -> Result<u64, Error> {
        self.read().await?;
        let notice = self.beater.beat(&self.identity, self.orders, now_ms())?;
        control::publish_to(&self.client, self.reader.topic(), &[notice]).await?;
        Ok(self.orders)
    }

    async fn read(&mut self) -> Result<(), Error> {
        loop {
            match self.reader.page(&self.client).await? {
                ControlPage::Nothing => return Ok(()),
                ControlPage::Anew => {}
                ControlPage::Messages { messages, is_last } => {
                    for message in &messages {
                        let notice = control::notice(message).ok();
                        let shown = notice.and_then(|notice| self.beater.shown_by(&notice));
                        self.orders = self.orders.max(shown.unwrap_or(0));
                    }
                    if is_last {
                        return Ok(());
                    }
                }
            }
        }
    }
}
