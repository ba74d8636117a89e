//! Damage is named where it is, and everything else is read.

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::running::Running;
use crate::socket::Socket;

/// Three commits of ten messages, stopped, and damaged by `harm`, which is given the stored bytes
/// of the second commit.
async fn damaged(harm: impl Fn(&mut Vec<u8>)) -> Running {
    let hub = Running::start().await;
    for commit in 0..3 {
        hub.enqueue_numbered("log", commit * 10, 10).await;
    }
    let folder = hub.stop().await;
    let store = Connection::open(folder.path().join("streams.db")).unwrap();
    let query = "SELECT key, data FROM block ORDER BY key LIMIT 1 OFFSET 1";
    let (key, mut data): (i64, Vec<u8>) =
        store.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let before = data.clone();
    harm(&mut data);
    assert_ne!(data, before, "nothing was harmed");
    store.execute("UPDATE block SET data = ?2 WHERE key = ?1", params![key, data]).unwrap();
    store.close().unwrap();
    Running::over(folder, sealane_stream::Level::Os).await
}

/// Flips a bit of the first occurrence of `needle`.
fn flip(data: &mut [u8], needle: &[u8]) {
    let at = data.windows(needle.len()).position(|part| part == needle).unwrap();
    data[at + needle.len() - 1] ^= 0x40;
}

/// All that comes of 30 messages: offsets, and gaps as (from, to).
async fn everything(socket: &mut Socket) -> (Vec<u64>, Vec<(u64, u64)>) {
    let (mut offsets, mut gaps, mut missing) = (Vec::new(), Vec::new(), 0);
    socket.credit(1000).await;
    while offsets.len() + missing < 30 {
        let frame = socket.frame().await;
        if frame["status"] == "gap" {
            assert_eq!(frame["reason"], "damaged");
            let (from, to) = (frame["from"].as_u64().unwrap(), frame["to"].as_u64().unwrap());
            gaps.push((from, to));
            missing += (to + 1 - from) as usize;
        } else {
            offsets.push(frame["offset"].as_u64().unwrap());
            assert_eq!(frame["deliver"]["n"], frame["offset"]);
        }
    }
    socket.is_silent().await;
    (offsets, gaps)
}

/// Checks that exactly `from..=to` is missing, for everybody, now and after a restart.
async fn check(mut hub: Running, from: u64, to: u64) {
    let whole: Vec<u64> = (0..30).filter(|offset| !(from..=to).contains(offset)).collect();
    for round in 0..2 {
        for query in ["from=first".to_owned(), format!("consumer=c{round}")] {
            let mut socket = hub.subscribe(&format!("stream=log&{query}")).await;
            let (offsets, gaps) = everything(&mut socket).await;
            assert_eq!(offsets, whole, "{query}");
            let missing: Vec<u64> = gaps.iter().flat_map(|(from, to)| *from..=*to).collect();
            assert_eq!(missing, (from..=to).collect::<Vec<_>>(), "{query}");
        }
        let page = hub.get("/v1/streams/log?from=0").await.json();
        assert_eq!(page["messages"].as_array().unwrap().len(), whole.len());
        assert_eq!((&page["gaps"][0]["from"], &page["gaps"][0]["to"]), (&json!(from), &json!(to)));
        let state = hub.state("log").await;
        assert_eq!(state["damaged"], json!([{"from": from, "to": to}]));
        assert_eq!((&state["first"], &state["next"]), (&json!(0), &json!(30)));
        hub = hub.restart().await;
        // Known before anybody reads.
        assert_eq!(hub.state("log").await["damaged"], state["damaged"]);
    }
    let folder = hub.stop().await;
    let store = Connection::open(folder.path().join("streams.db")).unwrap();
    let blocks: i64 = store.query_row("SELECT count(*) FROM block", [], |row| row.get(0)).unwrap();
    assert_eq!(blocks, 3, "something was deleted");
}

#[tokio::test]
async fn one_flipped_bit_of_a_body_is_one_missing_message() {
    check(damaged(|data| flip(data, br#""n":14"#)).await, 14, 14).await;
}

#[tokio::test]
async fn the_first_and_the_last_of_a_commit_can_be_missing_too() {
    check(damaged(|data| flip(data, b"m10")).await, 10, 10).await;
    check(damaged(|data| flip(data, b"m19")).await, 19, 19).await;
}

#[tokio::test]
async fn a_commit_that_is_cut_off_is_missing_from_there_on() {
    let cut = |data: &mut Vec<u8>| {
        let at = data.windows(6).position(|part| part == br#""n":17"#).unwrap();
        data.truncate(at);
    };
    check(damaged(cut).await, 17, 19).await;
}

#[tokio::test]
async fn a_commit_of_zeros_is_missing_whole() {
    check(damaged(|data| data.fill(0)).await, 10, 19).await;
}

#[tokio::test]
async fn a_commit_in_another_ones_place_is_missing_whole() {
    let hub = Running::start().await;
    hub.enqueue_numbered("log", 0, 10).await;
    hub.enqueue_numbered("log", 10, 10).await;
    hub.enqueue_numbered("log", 20, 10).await;
    let folder = hub.stop().await;
    let store = Connection::open(folder.path().join("streams.db")).unwrap();
    let copy = "UPDATE block SET data = (SELECT data FROM block ORDER BY key LIMIT 1 OFFSET 2)
                WHERE key = (SELECT key FROM block ORDER BY key LIMIT 1 OFFSET 1)";
    assert_eq!(store.execute(copy, []).unwrap(), 1);
    store.close().unwrap();
    check(Running::over(folder, sealane_stream::Level::Os).await, 10, 19).await;
}

#[tokio::test]
async fn a_commit_whose_row_has_gone_is_missing_whole() {
    let hub = damaged(|data| data.push(0)).await;
    let folder = hub.stop().await;
    let store = Connection::open(folder.path().join("streams.db")).unwrap();
    let remove = "DELETE FROM block WHERE key = (SELECT key FROM block ORDER BY key LIMIT 1
                  OFFSET 1)";
    assert_eq!(store.execute(remove, []).unwrap(), 1);
    store.close().unwrap();
    let hub = Running::over(folder, sealane_stream::Level::Os).await;
    let mut reader = hub.subscribe("stream=log&from=first").await;
    let (offsets, gaps) = everything(&mut reader).await;
    assert_eq!(offsets, (0..10).chain(20..30).collect::<Vec<u64>>());
    assert_eq!(gaps, [(10, 19)]);
    assert_eq!(hub.state("log").await["damaged"], Value::from(vec![json!({"from": 10, "to": 19})]));
}
