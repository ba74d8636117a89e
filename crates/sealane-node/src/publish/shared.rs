//! A connection whose answers are sent by whichever thread has them: its task, or the hub's writer.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use parking_lot::Mutex;
use sealane_protocol::Error;
use sealane_stream::DirectAnswer;
use tokio::runtime::Handle;

use super::PublishConnection;
use crate::access::ConnectionGrant;
use crate::clock::stopped;
use crate::frames::ConnectionEnd;

/// A connection that its task looks after, and that the writer may use while the task does not.
/// Nothing that is done while it is locked waits for anything.
struct SharedConnection {
    /// None, once it has ended.
    connection: Mutex<Option<PublishConnection>>,
    /// A socket that takes nothing is timed, and timers belong to a runtime.
    runtime: Handle,
}

/// Serves a connection until its end; returns it, unless a defect has spoilt it.
pub(super) async fn run(
    connection: PublishConnection,
    mut grant: ConnectionGrant,
) -> (Option<PublishConnection>, ConnectionEnd) {
    let mut stopping = connection.app.stopping.clone();
    let shared = Arc::new_cyclic(|shared: &Weak<SharedConnection>| {
        // The writer gets a weak hold. A connection that has ended must not live on in the hub.
        connection.publishing.answer_by(shared.clone());
        SharedConnection { connection: Mutex::new(Some(connection)), runtime: Handle::current() }
    });
    let mut allowed = pin!(async {
        tokio::select! {
            refused = shared.keep_granted(&mut grant) => refused,
            () = stopped(&mut stopping) => Error::Draining.into(),
        }
    });
    // The token is looked at first, so that nothing more is done for one that was just revoked.
    let end = poll_fn(|cx| match allowed.as_mut().poll(cx) {
        Poll::Ready(end) => Poll::Ready(end),
        Poll::Pending => shared.poll(cx),
    });
    let end = end.await;
    let connection = shared.connection.lock().take();
    (connection, end)
}

impl SharedConnection {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        match self.connection.lock().as_mut() {
            Some(connection) => connection.poll(cx),
            None => Poll::Ready(ConnectionEnd::Gone),
        }
    }

    /// Keeps the connection's pass as the tokens change, until it is granted no more.
    async fn keep_granted(&self, grant: &mut ConnectionGrant) -> ConnectionEnd {
        loop {
            if let Err(refusal) = grant.changed().await {
                return ConnectionEnd::Refused(refusal);
            }
            if let Some(connection) = self.connection.lock().as_mut() {
                // Each message asks the pass for its topic, so that a narrowed token counts from
                // the next message on.
                connection.pass = grant.pass().clone();
            }
        }
    }
}

impl DirectAnswer for SharedConnection {
    fn answer(&self) -> bool {
        // The task that has it looks for answers before it lets go, or is woken.
        let Some(mut held) = self.connection.try_lock() else { return false };
        let Some(connection) = held.as_mut() else { return false };
        // This is the writer's thread, which belongs to no runtime. A timer that is set here needs
        // one.
        let _runtime = self.runtime.enter();
        // A defect ends this one connection, as it does in a task, and not the hub's writer.
        let answered = catch_unwind(AssertUnwindSafe(|| connection.answer_now()));
        answered.unwrap_or_else(|_| {
            // After a panic the connection's state is unknown. Its task finds nothing and ends.
            *held = None;
            false
        })
    }
}
