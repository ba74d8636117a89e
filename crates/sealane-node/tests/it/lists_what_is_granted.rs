//! A list is of what may be read and nothing else, however many streams there are beside: none of
//! the others is named, page by page everything comes once, and whoever may read little looks at
//! little.

use sealane_codec::{Codec, Transcoder};
use sealane_node::access::{TokenFile, TokenRights, TokenSecret};
use sealane_node::limits::MAX_LIST_LOOKS;
use sealane_stream::{Level, StreamEnqueue, StreamEnvelope};

use crate::http;
use crate::running::Running;

/// Beside these a list looks at all that it may.
const CROWD: usize = MAX_LIST_LOOKS + 1000;

/// A hub with a crowd of streams, `a` before and `zz/1` and `zz/2` behind them.
async fn crowded() -> Running {
    let hub = Running::over(tempfile::tempdir().unwrap(), Level::Memory).await;
    let crowd = (0..CROWD).map(|n| format!("crowd/{n:05}"));
    for name in ["a".to_owned(), "zz/1".to_owned(), "zz/2".to_owned()].into_iter().chain(crowd) {
        let (inner, mut scratch) = (hub.node.hub(), Transcoder::new());
        let envelope = StreamEnvelope::read(&mut scratch, inner.ids(), Codec::Json, b"{}").unwrap();
        let (topic, envelopes) = (name.parse().unwrap(), vec![envelope]);
        let one = StreamEnqueue {
            topic,
            envelopes,
            expect: None,
            delay_ms: None,
            key: None,
            owner: "".into(),
        };
        inner.enqueue(one).await.unwrap();
    }
    hub
}

/// The pages that a token is given, each as the topics in it and where it says to go on.
async fn pages(
    hub: &Running,
    token: &TokenSecret,
    query: &str,
) -> Vec<(Vec<String>, Option<String>)> {
    let bearer = format!("Bearer {}", token.reveal());
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/streams?{query}{after}");
        let headers = [("authorization", bearer.as_str())];
        let reply = http::request(hub.address(), "GET", &path, &headers, b"").await.json();
        let streams = reply["streams"].as_array().unwrap().iter();
        let topics = streams.map(|state| state["stream"].as_str().unwrap().to_owned()).collect();
        let next = reply["next"].as_str().map(str::to_owned);
        pages.push((topics, next.clone()));
        match next {
            Some(next) => after = format!("&after={next}"),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn of_few_among_many() {
    let hub = crowded().await;
    let reads: [&[&str]; 4] =
        [&[], &["zz/**", "none/**"], &["*/00007", "zz/*"], &["a", "zz/2", "crowd/00003"]];
    for (byte, patterns) in (1..).zip(reads) {
        let read = patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
        let rights = TokenRights { read, observe: true, ..TokenRights::default() };
        let secret = TokenSecret::new([byte; 32]);
        TokenFile::add(hub.folder.path(), &byte.to_string(), &secret, rights, None).unwrap();
    }
    hub.node.reload().unwrap();
    let pages = async |byte, query| pages(&hub, &TokenSecret::new([byte; 32]), query).await;
    let page = |topics: &[&str], next: Option<&str>| {
        (topics.iter().map(|topic| (*topic).to_owned()).collect(), next.map(str::to_owned))
    };
    assert_eq!(pages(1, "").await, [page(&[], None)]);
    assert_eq!(pages(2, "").await, [page(&["zz/1", "zz/2"], None)]);
    assert_eq!(pages(2, "pattern=crowd/**").await, [page(&[], None)]);
    assert_eq!(pages(2, "pattern=*/2").await, [page(&["zz/2"], None)]);
    let (first, last) = (page(&["zz/1"], Some("zz/1")), page(&["zz/2"], None));
    assert_eq!(pages(2, "limit=1").await, [first, last]);
    // All of the crowd has to be looked at. After the first bound the list ends with what it has,
    // and where it has nothing it goes on.
    let (first, last) =
        (page(&["crowd/00007"], Some("crowd/00007")), page(&["zz/1", "zz/2"], None));
    assert_eq!(pages(3, "").await, [first, last]);
    assert_eq!(pages(3, "after=crowd/00007").await, [page(&["zz/1", "zz/2"], None)]);
    assert_eq!(pages(4, "").await, [page(&["a", "crowd/00003", "zz/2"], None)]);
}
