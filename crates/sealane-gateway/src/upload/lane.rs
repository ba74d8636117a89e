//! The frames of one origin in one stream, one after the other.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sealane::{Client, Codec};
use sealane_frame::PeerTag;
use sealane_protocol::write_sealed;

use crate::hub::Trouble;
use crate::limits::MAX_UPLOAD_TURN_MS;
use crate::queue::Queued;
use crate::stream::MeshStream;

/// Frames of one origin and stream, in the order in which they came. The next one is brought when
/// the hub has the one before, so that they stand there in that order.
#[derive(Debug)]
pub(super) struct Lane {
    stream: MeshStream,
    frames: Vec<Queued>,
}

/// What a lane has brought.
#[derive(Debug)]
pub(super) struct LaneEnd {
    pub(super) stream: MeshStream,
    /// The numbers of the frames that the hub has.
    pub(super) stored: Vec<i64>,
    /// How many of them it had already.
    pub(super) replayed: u64,
    /// The frame at which it stopped, and why.
    pub(super) stopped: Option<(i64, Trouble)>,
}

/// Lanes in the order of their first frames.
pub(super) fn split(frames: Vec<Queued>) -> Vec<Lane> {
    let mut places: HashMap<(MeshStream, PeerTag), usize> = HashMap::new();
    let mut lanes: Vec<Lane> = Vec::new();
    for frame in frames {
        let place = *places.entry((frame.stream, frame.source)).or_insert(lanes.len());
        match lanes.get_mut(place) {
            Some(lane) => lane.frames.push(frame),
            None => lanes.push(Lane { stream: frame.stream, frames: vec![frame] }),
        }
    }
    lanes
}

impl Lane {
    /// Brings frames until all are stored, something stands in the way, or others are to have
    /// their turn.
    pub(super) async fn bring(self, client: &Client) -> LaneEnd {
        let (topic, began) = (self.stream.to_string(), Instant::now());
        let mut end =
            LaneEnd { stream: self.stream, stored: Vec::new(), replayed: 0, stopped: None };
        for Queued { number, bytes, .. } in self.frames {
            if began.elapsed() >= Duration::from_millis(MAX_UPLOAD_TURN_MS) {
                break;
            }
            let mut envelope = Vec::with_capacity(bytes.len() + 16);
            write_sealed(Codec::MsgPack, None, &bytes, &mut envelope);
            match client.publish_raw(&topic, Codec::MsgPack, envelope).once().await {
                Ok(published) => {
                    end.stored.push(number);
                    end.replayed += u64::from(published.replayed);
                }
                Err(error) => {
                    end.stopped = Some((number, Trouble::of(&error)));
                    break;
                }
            }
        }
        end
    }
}
