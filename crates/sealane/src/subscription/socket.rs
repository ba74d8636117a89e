//! The frames of a subscription on its WebSocket.

use sealane_protocol::{Op, ServerFrame};

use crate::Error;
use crate::socket::{SocketFailure, SocketReader, SocketWriter};

impl SocketReader {
    /// The next frame that is known here, and the bytes on the wire until its end.
    pub(super) async fn next(&mut self) -> Result<(ServerFrame, u64), SocketFailure> {
        let mut bytes = 0;
        loop {
            let (codec, payload) = self.frame().await?;
            bytes += wire_bytes(payload.len());
            return match ServerFrame::read(codec, &payload) {
                Ok(ServerFrame::Error(wire)) => Err(SocketFailure::Refused(wire)),
                Ok(ServerFrame::Unknown(status)) => {
                    tracing::debug!(status, "a frame that only a newer hub knows");
                    continue;
                }
                Ok(frame) => Ok((frame, bytes)),
                Err(error) => Err(SocketFailure::Failed(Error::Protocol(error.to_string()))),
            };
        }
    }
}

impl SocketWriter {
    /// Sends these with one system call where they fit.
    pub(super) async fn send(&mut self, ops: &[Op]) -> Result<(), SocketFailure> {
        for op in ops {
            let mut frame = Vec::with_capacity(64);
            op.write(self.codec(), &mut frame);
            self.feed(frame).await?;
        }
        self.flush().await
    }
}

/// A payload and the header of its unmasked frame (RFC 6455 §5.2).
fn wire_bytes(payload: usize) -> u64 {
    let header = match payload {
        0..=125 => 2,
        126..=0xFFFF => 4,
        _ => 10,
    };
    u64::try_from(payload + header).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_headers_count() {
        assert_eq!(wire_bytes(125), 127);
        assert_eq!(wire_bytes(126), 130);
        assert_eq!(wire_bytes(65_536), 65_546);
    }
}
