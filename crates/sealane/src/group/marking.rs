//! Where a fresh secret begins to hold in the streams of a group, by what the authority has itself
//! opened there.

use std::collections::HashSet;

use bytes::Bytes;
use futures_util::StreamExt;
use sealane_group::RemovalMark;

use super::{DEAD, GroupClient, GroupReader, mark};
use crate::error::DeliveryRejection;
use crate::limits::{MAX_MARK_LOOK, MAX_MARK_PAGES, MAX_OPEN_MARKS};
use crate::{Error, ReceivedMessage, StartPosition, StreamState};

/// The marks of the group's streams and of their dead letters. Those in which a frame opened come
/// first: anybody who may publish can fill streams with frames that nobody opens.
pub(super) async fn marks(group: &GroupClient) -> Result<Vec<RemovalMark>, Error> {
    let streams = streams_of_group(group).await?;
    let looks = streams.into_iter().map(|state| look(group, state));
    let found: Vec<StreamLook> =
        futures_util::stream::iter(looks).buffered(MAX_OPEN_MARKS).collect().await;
    let (opened, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|look| look.has_opened);
    Ok(opened.into_iter().chain(others).map(|look| look.mark).collect())
}

/// The end of a stream, as the authority has found it.
struct StreamLook {
    mark: RemovalMark,
    has_opened: bool,
}

/// Marks a stream behind the last frame that opens. The hub cannot put the mark beyond that, and
/// what nobody opens needs no place before it. Nor can the hub put the mark before it by saying
/// that the stream ends early: the stream is read to its end. If none of the last frames opens, the
/// mark stands before all of these.
async fn look(group: &GroupClient, state: StreamState) -> StreamLook {
    let mut from = state.next.saturating_sub(MAX_MARK_LOOK as u64);
    let mut frames = MarkedFrames { reader: group.reader(), refused: HashSet::new() };
    let (mut first, mut behind) = (None, None);
    for _ in 0..MAX_MARK_PAGES {
        let topic = state.stream.as_str();
        let page = group.client().read(topic, StartPosition::Offset(from), MAX_MARK_LOOK).await;
        // Without the right to read it, the hub's word is all there is.
        let Ok(page) = page else { break };
        let start = page
            .messages
            .first()
            .map_or((page.generation, page.next), |message| (message.generation, message.offset));
        first.get_or_insert(start);
        for message in &page.messages {
            if frames.is_of_member(message) {
                behind = Some((message.generation, message.offset.saturating_add(1)));
            }
        }
        if page.end || page.next <= from {
            break;
        }
        from = page.next;
    }
    let (generation, next) = behind.or(first).unwrap_or((state.generation, state.next));
    StreamLook { mark: mark(&state.stream, generation, next), has_opened: behind.is_some() }
}

/// Tells the frames of members from junk.
struct MarkedFrames {
    reader: GroupReader,
    /// Frames of members that the policy refuses. Nothing else remembers them.
    refused: HashSet<Bytes>,
}

impl MarkedFrames {
    /// Whether a member has sealed a frame, and it is no repeat. The policy of this reader may be
    /// stricter than those of others.
    fn is_of_member(&mut self, message: &ReceivedMessage) -> bool {
        match self.reader.reading.open(message) {
            Ok(_) => true,
            Err(DeliveryRejection::Policy(_)) => self.refused.insert(message.envelope.clone()),
            Err(_) => false,
        }
    }
}

/// Streams that are sealed for this group, and their dead letters.
async fn streams_of_group(group: &GroupClient) -> Result<Vec<StreamState>, Error> {
    let (mut names, mut streams, mut letters) = (HashSet::new(), Vec::new(), Vec::new());
    let mut list = group.client().streams();
    loop {
        let page = list.await?;
        for state in page.streams {
            if state.sealed == Some(group.tag()) {
                names.insert(state.stream.as_str().to_owned());
                streams.push(state);
            } else if state.stream.as_str().starts_with(DEAD) {
                letters.push(state);
            }
        }
        match page.next {
            Some(last) => list = group.client().streams().after(last),
            None => break,
        }
    }
    let is_of_group = |state: &StreamState| {
        state.stream.as_str().strip_prefix(DEAD).is_some_and(|of| names.contains(of))
    };
    streams.extend(letters.into_iter().filter(is_of_group));
    Ok(streams)
}
