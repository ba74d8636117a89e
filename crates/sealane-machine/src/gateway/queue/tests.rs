use sealane_testing::check_damaged_copies;

use super::*;
use crate::gateway::frame::tests::frame;

fn sealed(source: u8, data_type: u16, sequence: u64) -> SealedFrame {
    // A counter of two bytes each, so that all frames have one length.
    SealedFrame::read(&frame(1, source, data_type, 256 + sequence)).unwrap()
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.queue");
    (folder, file)
}

/// The sequences of what waits, as they stand in the frames.
fn waiting(queue: &GatewayQueue) -> Vec<(u8, u64)> {
    let of = |queued: &GatewayQueuedFrame| {
        let sequence = u64::from_le_bytes(queued.bytes[47..55].try_into().unwrap());
        (queued.source.to_bytes()[7], sequence - 256)
    };
    queue.window(&HashSet::new()).unwrap().iter().map(of).collect()
}

fn lost(queue: &GatewayQueue, why: QueueLossReason) -> Vec<u64> {
    queue.status().lost.iter().filter(|lost| lost.why == why).map(|lost| lost.frames).collect()
}

/// The bytes that one of these frames counts for.
fn one() -> u64 {
    weight(sealed(1, 72, 1).bytes.len())
}

#[test]
fn frames_survive_their_process_in_order_and_none_twice() {
    let (_folder, file) = place();
    let queue = GatewayQueue::open(&file, 100 * one()).unwrap();
    queue.put(&[sealed(1, 72, 1), sealed(2, 72, 9), sealed(1, 72, 2)]).unwrap();
    queue.put(&[sealed(1, 72, 2), sealed(1, 7, 3)]).unwrap();
    let expected = [(1, 3), (1, 1), (2, 9), (1, 2)];
    assert_eq!(waiting(&queue), expected, "the call for help first");
    drop(queue);
    let queue = GatewayQueue::open(&file, 100 * one()).unwrap();
    assert_eq!(waiting(&queue), expected);
    let numbers: Vec<_> =
        queue.window(&HashSet::new()).unwrap().iter().map(|queued| queued.number).collect();
    queue.stored(&numbers[..2]).unwrap();
    assert_eq!((waiting(&queue).len(), queue.status().frames), (2, 2));
    assert_eq!(queue.status().bytes, 2 * one());
    queue.refused(numbers[2]).unwrap();
    queue.refused(numbers[2]).unwrap();
    assert_eq!(
        (waiting(&queue), lost(&queue, QueueLossReason::Refused)),
        (vec![(1, 2)], vec![0, 1, 0, 0])
    );
    queue.stored(&numbers).unwrap();
    assert_eq!((queue.status().frames, queue.status().bytes), (0, 0));
    queue.put(&[sealed(1, 72, 7)]).unwrap();
    let next = queue.window(&HashSet::new()).unwrap();
    assert!(next[0].number > *numbers.iter().max().unwrap(), "numbers never come again");
}

#[test]
fn the_least_urgent_go_first_and_of_the_origin_that_has_the_most() {
    let (_folder, file) = place();
    let queue = GatewayQueue::open(&file, 6 * one()).unwrap();
    queue.put(&[sealed(1, 7, 1), sealed(2, 2, 2), sealed(3, 72, 3)]).unwrap();
    // One who sends much, forged or not, pushes out what it has itself.
    let flood: Vec<_> = (10..15).map(|sequence| sealed(4, 72, sequence)).collect();
    queue.put(&flood).unwrap();
    assert_eq!(waiting(&queue), [(1, 1), (3, 3), (4, 11), (4, 12), (4, 13), (4, 14)]);
    assert_eq!(lost(&queue, QueueLossReason::Crowded), [1, 1, 0, 0]);
    // More urgent ones push out all others, and in the end each other.
    let calls: Vec<_> = (20..27).map(|sequence| sealed(5, 7, sequence)).collect();
    queue.put(&calls).unwrap();
    assert_eq!(waiting(&queue), [(1, 1), (5, 22), (5, 23), (5, 24), (5, 25), (5, 26)]);
    assert_eq!(lost(&queue, QueueLossReason::Crowded), [1, 6, 0, 2]);
    drop(queue);
    let smaller = GatewayQueue::open(&file, 2 * one()).unwrap();
    assert_eq!(waiting(&smaller), [(1, 1), (5, 26)]);
    assert_eq!(lost(&smaller, QueueLossReason::Crowded), [1, 6, 0, 6], "counted over restarts");
}

#[test]
fn a_stream_that_is_held_does_not_stand_in_the_way() {
    let (_folder, file) = place();
    let queue = GatewayQueue::open(&file, 10_000 * one()).unwrap();
    let many: Vec<_> = (0..2000).map(|sequence| sealed(1, 72, sequence)).collect();
    queue.put(&many).unwrap();
    queue.put(&[sealed(2, 4, 1)]).unwrap();
    assert_eq!(queue.window(&HashSet::new()).unwrap().len(), MAX_UPLOAD_WINDOW);
    let held = HashSet::from([sealed(1, 72, 0).stream]);
    let window = queue.window(&held).unwrap();
    assert_eq!(
        window.iter().map(|queued| queued.stream).collect::<Vec<_>>(),
        [sealed(2, 4, 1).stream]
    );
}

#[test]
fn a_queue_has_one_owner_and_is_only_a_queue() {
    let (folder, file) = place();
    let queue = GatewayQueue::open(&file, 100 * one()).unwrap();
    assert!(matches!(GatewayQueue::open(&file, 1), Err(GatewayError::InUse { .. })));
    queue.put(&[sealed(1, 72, 1)]).unwrap();
    drop(queue);
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    let newer = Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 9).unwrap();
    drop(newer);
    let refused = GatewayQueue::open(&file, 1).unwrap_err();
    assert!(matches!(refused, GatewayError::TooNew { found: 9, .. }), "{refused}");
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    assert!(matches!(GatewayQueue::open(&other, 1), Err(GatewayError::NotAQueue { .. })));
    let text = folder.path().join("text");
    std::fs::write(&text, "This is a text, which is no database at all. ".repeat(40)).unwrap();
    assert!(matches!(GatewayQueue::open(&text, 1), Err(GatewayError::NotAQueue { .. })));
    let nowhere = folder.path().join("no/where");
    assert!(matches!(GatewayQueue::open(&nowhere, 1), Err(GatewayError::Failed { .. })));
}

#[test]
fn places_outlive_the_process() {
    let (_folder, file) = place();
    let stream = sealed(1, 11, 1).stream;
    let queue = GatewayQueue::open(&file, 1000).unwrap();
    assert_eq!(queue.place(stream).unwrap(), None);
    let place = DownlinkPosition { generation: 1_795_000_000, next: 7 };
    queue.set_place(stream, place).unwrap();
    drop(queue);
    let queue = GatewayQueue::open(&file, 1000).unwrap();
    assert_eq!(queue.place(stream).unwrap(), Some(place));
    assert_eq!(queue.place(sealed(1, 5, 1).stream).unwrap(), None);
}

#[test]
fn a_store_is_followed_with_the_frames_that_it_gave() {
    let (_folder, file) = place();
    let queue = GatewayQueue::open(&file, 100 * one()).unwrap();
    let (store, other) = ([7; 16], [8; 16]);
    assert_eq!(queue.followed(store).unwrap(), 0);
    queue.put_followed(&[sealed(1, 72, 1)], FollowedStore { store, at: 5 }).unwrap();
    queue.put_followed(&[sealed(1, 72, 2)], FollowedStore { store, at: 9 }).unwrap();
    drop(queue);
    let queue = GatewayQueue::open(&file, 100 * one()).unwrap();
    assert_eq!((queue.followed(store).unwrap(), queue.followed(other).unwrap()), (9, 0));
    assert_eq!(waiting(&queue), [(1, 1), (1, 2)]);
    queue.put_followed(&[], FollowedStore { store: other, at: 1 }).unwrap();
    assert_eq!((queue.followed(store).unwrap(), queue.followed(other).unwrap()), (0, 1));
}

#[test]
fn a_damaged_queue_is_read_or_refused_by_name() {
    let (_folder, file) = place();
    let queue = GatewayQueue::open(&file, 1000 * one()).unwrap();
    let frames: Vec<_> = (0..40).map(|sequence| sealed(1, 72, sequence)).collect();
    queue.put(&frames).unwrap();
    drop(queue);
    check_damaged_copies(&file, |damaged| {
        if let Ok(queue) = GatewayQueue::open(damaged, 1000 * one()) {
            let _ = (queue.window(&HashSet::new()), queue.put(&frames), queue.status());
        }
    });
}

#[test]
fn what_is_no_queue_is_left_as_it_is() {
    let (folder, _) = place();
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    let before = std::fs::read(&other).unwrap();
    assert!(matches!(GatewayQueue::open(&other, 1), Err(GatewayError::NotAQueue { .. })));
    assert!(std::fs::read(&other).unwrap() == before, "not a byte of it has changed");
}
