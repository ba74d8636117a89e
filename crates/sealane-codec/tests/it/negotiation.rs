//! Negotiation agrees on what both sides know, and says so where there is nothing.

use sealane_codec::Codec::{self, Cbor, Json, MsgPack, MsgPackRecords};
use sealane_codec::CodecError;
use sealane_codec::negotiate::{accept, content_type, query, subprotocols};

#[test]
fn a_query_is_exact() {
    for codec in Codec::ALL {
        assert_eq!(query(codec.name()), Ok(codec));
    }
    for name in ["", "JSON", "msgpack ", "protobuf"] {
        let unknown = query(name).unwrap_err();
        let message = unknown.to_string();
        for codec in Codec::ALL {
            assert!(message.contains(codec.name()), "{message}");
        }
        assert_eq!(CodecError::from(unknown).info().code, "SL-CODEC-15");
    }
}

#[test]
fn the_first_known_subprotocol_wins() {
    assert_eq!(subprotocols([]), Ok(None));
    assert_eq!(subprotocols(["cbor", "msgpack"]), Ok(Some(Cbor)));
    assert_eq!(subprotocols(["token.abc", "msgpack-records", "json"]), Ok(Some(MsgPackRecords)));
    let unknown = subprotocols(["mqtt", "MSGPACK"]).unwrap_err();
    assert_eq!(unknown.asked, "mqtt, MSGPACK");
}

#[test]
fn accept_follows_the_rfc() {
    let agreed: [(&str, Option<Codec>); 20] = [
        ("", None),
        ("  ", None),
        ("*/*", Some(Json)),
        ("application/*", Some(Json)),
        ("application/*;q=0.5, application/cbor", Some(Cbor)),
        ("application/json, application/msgpack", Some(Json)),
        ("application/json;q=0.9, application/msgpack", Some(MsgPack)),
        ("application/msgpack, application/cbor", Some(MsgPack)),
        ("application/cbor;q=0.8,application/x-msgpack;q=0.81", Some(MsgPack)),
        ("application/json;q=0, */*", Some(MsgPack)),
        ("application/json;q=0, application/msgpack;q=0, */*;q=0.1", Some(Cbor)),
        ("text/html, */*;q=0.1", Some(Json)),
        ("text/html,application/problem+json", Some(Json)),
        ("APPLICATION/CBOR ; Q=0.3", Some(Cbor)),
        ("application/json; charset=utf-8; q=0.2, application/cbor;q=0.1", Some(Json)),
        ("application/vnd.msgpack-records", Some(MsgPackRecords)),
        ("application/vnd.msgpack-records, */*;q=0.5", Some(MsgPackRecords)),
        ("text/*", Some(Json)),
        ("application/x-msgpack;q=0, application/msgpack", Some(MsgPack)),
        ("image/png, application/vnd.msgpack", Some(MsgPack)),
    ];
    for (header, codec) in agreed {
        assert_eq!(accept(header), Ok(codec), "{header}");
    }
    for header in ["text/html", "application/json;q=0", "*/*;q=0", "application/json;q=high", ","] {
        assert!(accept(header).is_err(), "{header}");
    }
}

#[test]
fn content_types_have_many_names() {
    let known = [
        ("application/json", Json),
        ("Application/JSON; charset=utf-8", Json),
        ("text/json", Json),
        ("application/problem+json", Json),
        ("application/msgpack", MsgPack),
        ("application/x-msgpack", MsgPack),
        ("application/vnd.msgpack", MsgPack),
        (" application/cbor ", Cbor),
        ("application/vnd.msgpack-records", MsgPackRecords),
    ];
    for (header, codec) in known {
        assert_eq!(content_type(header), Ok(codec), "{header}");
        assert_eq!(content_type(codec.content_type()), Ok(codec));
    }
    for header in ["", "text/plain", "application/octet-stream", "application/+json", "x+json"] {
        assert!(content_type(header).is_err(), "{header}");
    }
}
