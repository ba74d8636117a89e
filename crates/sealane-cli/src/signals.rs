//! The signals to a process that goes on.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The ways to ask a process to stop, or to read its files again.
pub(crate) struct ProcessSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl ProcessSignals {
    pub(crate) fn new() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let (interrupt, hang_up) = (SignalKind::interrupt(), SignalKind::hangup());
        Ok(Self { terminate, interrupt: signal(interrupt)?, hang_up: signal(hang_up)? })
    }

    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.hang_up.recv() => "SIGHUP",
        }
    }

    /// Waits for a signal that asks for the end.
    pub(crate) async fn end(&mut self) {
        while self.next().await == "SIGHUP" {}
    }
}
