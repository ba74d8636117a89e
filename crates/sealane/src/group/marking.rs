//! Where a fresh secret begins to hold in the streams of a group, by what the authority has itself
//! opened there.

use std::collections::HashSet;

use futures_util::StreamExt;
use sealane_group::RemovalMark;

use super::{DEAD, GroupClient, mark};
use crate::limits::{MAX_MARK_LOOK, MAX_OPEN_MARKS};
use crate::{Error, StartPosition, StreamState};

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
/// what nobody opens needs no place before it. If none of the last frames opens, the mark stands
/// before all of these.
async fn look(group: &GroupClient, state: StreamState) -> StreamLook {
    let start = state.next.saturating_sub(MAX_MARK_LOOK as u64);
    let (topic, from) = (state.stream.as_str(), StartPosition::Offset(start));
    let Ok(page) = group.client().read(topic, from, MAX_MARK_LOOK).await else {
        // Without the right to read it, the hub's word is all there is.
        let mark = mark(&state.stream, state.generation, state.next);
        return StreamLook { mark, has_opened: false };
    };
    let mut reader = group.reader();
    let opened = page.messages.iter().filter(|message| reader.open(message).is_ok());
    let (generation, next) = match (opened.last(), page.messages.first()) {
        (Some(last), _) => {
            let mark = mark(&state.stream, last.generation, last.offset.saturating_add(1));
            return StreamLook { mark, has_opened: true };
        }
        (None, Some(first)) => (first.generation, first.offset),
        (None, None) => (state.generation, state.next),
    };
    StreamLook { mark: mark(&state.stream, generation, next), has_opened: false }
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
