//! If bytes are no frame of the WebSocket protocol, the connection ends as the protocol says (RFC
//! 6455 §7.4.1). The node counts it.

use serde_json::json;

use crate::running::Running;
use crate::socket::Ending;

#[tokio::test]
async fn whatever_is_wrong_with_a_frame() {
    let hub = Running::start().await;
    hub.enqueue("a", json!({})).await;
    let name = "sealane_carry_refused_total{code=\"WebSocketProtocol\"}";
    let long = [&b"\x89\xfe\0\x7e\0\0\0\0"[..], &[0; 126]].concat();
    let wrong: [(&str, &[u8]); 8] = [
        ("not masked", b"\x81\x02{}"),
        ("a reserved bit", b"\xc1\x82\0\0\0\0{}"),
        ("an unknown kind of data", b"\x83\x80\0\0\0\0"),
        ("an unknown kind of control", b"\x8b\x80\0\0\0\0"),
        ("a control frame in pieces", b"\x09\x80\0\0\0\0"),
        ("a control frame that is long", &long),
        ("nothing to go on with", b"\x80\x80\0\0\0\0"),
        ("a message within another", b"\x01\x81\0\0\0\0{\x81\x82\0\0\0\0{}"),
    ];
    assert_eq!(hub.metric(name).await, 0);
    for (what, bytes) in wrong {
        let mut socket = hub.subscribe("stream=a&from=new").await;
        socket.write_past(bytes).await;
        assert_eq!(socket.ending().await, Ending::new("WebSocketProtocol", 1002), "{what}");
    }
    assert_eq!(hub.metric(name).await, wrong.len() as u64);
    // A client that goes without a word has done nothing wrong.
    drop(hub.subscribe("stream=a&from=new").await);
    hub.subscribe("stream=a&from=new").await.close().await;
    assert_eq!(hub.metric(name).await, wrong.len() as u64);
}
