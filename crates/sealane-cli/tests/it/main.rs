//! The promises of `sealane`, each in a file of its own: the real binary, in temporary folders and
//! on free ports.

mod bounds_the_node;
mod cli;
mod crosses_a_blind_hub;
mod durable;
mod outlives_a_filled_disk;
mod pages;
mod survives_full_disk;
mod survives_kill;
mod survives_power_cut;
mod vault;
mod vault_outlives_kill;
mod vault_survives_its_store;
mod withstands;

/// The turns of tests that others would disturb, or that disturb others.
static TURN: Turn = Turn(tokio::sync::RwLock::const_new(()));

/// A test that measures a node, or takes all that the machine has, is alone among those that ask
/// for a turn. Laboratories and loads that measure nothing run beside each other: each has folders,
/// ports and namespaces of its own.
struct Turn(tokio::sync::RwLock<()>);

impl Turn {
    /// Waits until the test is alone.
    fn blocking_lock(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.0.blocking_write()
    }

    /// The same in an async test.
    async fn lock(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.0.write().await
    }

    /// Waits until nobody measures.
    fn beside(&self) -> tokio::sync::RwLockReadGuard<'_, ()> {
        self.0.blocking_read()
    }
}
