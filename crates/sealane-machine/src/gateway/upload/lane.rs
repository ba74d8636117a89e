//! The frames of one origin in one stream, one after the other.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sealane::{Client, Codec, Error, HubError};
use sealane_frame::PeerTag;
use sealane_protocol::write_sealed;

use crate::gateway::hub::HubObstacle;
use crate::gateway::queue::GatewayQueuedFrame;
use crate::gateway::stream::MeshStream;
use crate::limits::{MAX_UPLOAD_BATCH, MAX_UPLOAD_BATCH_BYTES, MAX_UPLOAD_TURN_MS};

/// Frames of one origin and stream, in the order in which they came. The next ones are brought when
/// the hub has those before, so that they stand there in that order.
#[derive(Debug)]
pub(super) struct UploadLane {
    stream: MeshStream,
    frames: Vec<GatewayQueuedFrame>,
}

/// The result of a lane.
#[derive(Debug)]
pub(super) struct LaneEnd {
    pub(super) stream: MeshStream,
    /// The numbers of the frames that the hub has.
    pub(super) stored: Vec<i64>,
    /// How many of them it had already.
    pub(super) replayed: u64,
    /// The frame at which it stopped, and why.
    pub(super) stopped: Option<(i64, HubObstacle)>,
    /// Whether the hub takes frames one by one only: it is an older one.
    pub(super) is_one_by_one: bool,
}

/// How many frames go in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UploadBatching {
    Batches,
    OneByOne,
}

/// Lanes in the order of their first frames.
pub(super) fn split(frames: Vec<GatewayQueuedFrame>) -> Vec<UploadLane> {
    let mut places: HashMap<(MeshStream, PeerTag), usize> = HashMap::new();
    let mut lanes: Vec<UploadLane> = Vec::new();
    for frame in frames {
        // Order is promised by origin and stream, so that a lane is exactly that pair.
        let place = *places.entry((frame.stream, frame.source)).or_insert(lanes.len());
        match lanes.get_mut(place) {
            Some(lane) => lane.frames.push(frame),
            None => lanes.push(UploadLane { stream: frame.stream, frames: vec![frame] }),
        }
    }
    lanes
}

impl UploadLane {
    /// Brings frames until all are stored, something stands in the way, or others are to have
    /// their turn.
    pub(super) async fn bring(self, client: &Client, requests: UploadBatching) -> LaneEnd {
        let (topic, began, mut requests) = (self.stream.to_string(), Instant::now(), requests);
        let mut end = LaneEnd {
            stream: self.stream,
            stored: Vec::new(),
            replayed: 0,
            stopped: None,
            is_one_by_one: requests == UploadBatching::OneByOne,
        };
        let mut left = self.frames.as_slice();
        let turn = Duration::from_millis(MAX_UPLOAD_TURN_MS);
        // A lane ends after its turn, so that urgent frames that came meanwhile are seen in the
        // next window.
        while !left.is_empty() && began.elapsed() < turn {
            let (batch, behind) = left.split_at(fitting(left, requests));
            // One request at a time: of two, the later could be stored before the earlier.
            let Err(error) = store(client, &topic, batch, &mut end).await else {
                left = behind;
                continue;
            };
            let trouble = HubObstacle::of(&error);
            // A hub that does not know the scope `message` refuses the parameter, since requests
            // are read strictly (decision 9).
            let is_unknown = error.hub_error() == Some(HubError::InvalidParameter);
            let is_of_one = matches!(trouble, HubObstacle::Frame(_) | HubObstacle::Unclear(_));
            if batch.len() > 1 && (is_unknown || is_of_one) {
                // An older hub knows no such batches; and of a batch it is to be found which frame
                // the hub does not take.
                (requests, end.is_one_by_one) = (UploadBatching::OneByOne, is_unknown);
                continue;
            }
            // The lane stops here. A later frame of this origin must not stand before this one.
            end.stopped = batch.first().map(|first| (first.number, trouble));
            break;
        }
        end
    }
}

/// How many of the next frames go in one request: one at least.
fn fitting(left: &[GatewayQueuedFrame], requests: UploadBatching) -> usize {
    if requests == UploadBatching::OneByOne {
        return 1;
    }
    let sums = left.iter().take(MAX_UPLOAD_BATCH).scan(0, |sum, frame| {
        *sum += frame.bytes.len();
        Some(*sum)
    });
    // A frame larger than the bound goes alone, or it would never go.
    sums.take_while(|sum| *sum <= MAX_UPLOAD_BATCH_BYTES).count().clamp(1, left.len())
}

/// Has the hub store frames, each once, and takes note of them.
async fn store(
    client: &Client,
    topic: &str,
    frames: &[GatewayQueuedFrame],
    end: &mut LaneEnd,
) -> Result<(), Error> {
    let envelope = |frame: &GatewayQueuedFrame| {
        let mut envelope = Vec::with_capacity(frame.bytes.len() + 16);
        write_sealed(Codec::MsgPack, None, &frame.bytes, &mut envelope);
        envelope
    };
    let mut envelopes: Vec<_> = frames.iter().map(envelope).collect();
    let replayed = match (envelopes.pop(), envelopes.is_empty()) {
        (None, _) => 0,
        // One frame goes with the scope `stream`, which older hubs know as well.
        (Some(alone), true) => {
            u64::from(client.publish_raw(topic, Codec::MsgPack, alone).once().await?.replayed)
        }
        (Some(last), false) => {
            envelopes.push(last);
            let batch = client.publish_batch(topic, Codec::MsgPack, &envelopes);
            // The hub counts those that this request stored. It had the rest already.
            (frames.len() as u64).saturating_sub(batch.once().await?.count)
        }
    };
    // The frames are noted only after the answer. An answer that is lost brings them again, which
    // the hub recognises.
    end.stored.extend(frames.iter().map(|frame| frame.number));
    end.replayed += replayed;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::frame::SealedFrame;
    use crate::gateway::frame::tests::frame;

    fn queued(number: i64, source: u8, bytes: usize) -> GatewayQueuedFrame {
        let SealedFrame { stream, source, .. } =
            SealedFrame::read(&frame(1, source, 72, number as u64)).unwrap();
        GatewayQueuedFrame { number, stream, source, bytes: vec![0; bytes] }
    }

    #[test]
    fn each_origin_has_a_lane_of_its_own_in_order() {
        let frames = [(1, 7), (2, 8), (3, 7), (4, 7), (5, 8)];
        let frames = frames.map(|(number, source)| queued(number, source, 9)).to_vec();
        let lanes = split(frames);
        let numbers =
            |lane: &UploadLane| lane.frames.iter().map(|one| one.number).collect::<Vec<_>>();
        assert_eq!(lanes.iter().map(numbers).collect::<Vec<_>>(), [vec![1, 3, 4], vec![2, 5]]);
    }

    #[test]
    fn a_request_is_bounded_by_frames_and_bytes() {
        let of = |bytes: &[usize], requests| {
            let frames: Vec<_> = bytes.iter().map(|bytes| queued(1, 7, *bytes)).collect();
            fitting(&frames, requests)
        };
        assert_eq!(of(&[9; 1000], UploadBatching::Batches), MAX_UPLOAD_BATCH);
        assert_eq!(of(&[9; 1000], UploadBatching::OneByOne), 1);
        assert_eq!(of(&[9; 3], UploadBatching::Batches), 3);
        let half = MAX_UPLOAD_BATCH_BYTES / 2;
        assert_eq!(of(&[half; 3], UploadBatching::Batches), 2);
        assert_eq!(of(&[3 * half, 9], UploadBatching::Batches), 1, "a long one goes alone");
    }
}
