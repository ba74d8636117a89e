//! npm's `cbor-x` in a real Node.js process reads our CBOR, and we read its.

use crate::shared::five::FIVE;
use crate::shared::node::{Line, converse};
use crate::shared::order::ordered;
use sealane_codec::{Codec, Transcoder, decode};
use sealane_testing::{npm_package, unhex};

const PEER: &str = r#"
const { Encoder } = require(process.argv[1]);
const cbor = new Encoder({ useRecords: false, mapsAsObjects: true });
const answer = (kind, bytes) => kind == 'read'
    ? JSON.stringify(cbor.decode(bytes))
    : cbor.encode(JSON.parse(bytes.toString())).toString('hex');
"#;

fn messages() -> Vec<String> {
    let mut messages: Vec<String> = FIVE.iter().map(|(_, json)| (*json).to_owned()).collect();
    messages.push(r#"[0,23,24,255,256,65535,65536,4294967295,-1,-24,-25,-257,null,true]"#.into());
    messages.push(r#"[0.5,-1.5,65504.5,100000.25,1.1,3e-324,1e+300,"\u0000ü水𐅑"]"#.into());
    messages.push(format!(r#"{{"{}":["{}"]}}"#, "k".repeat(300), "ü".repeat(40_000)));
    messages
}

#[test]
#[ignore = "lab: needs Node.js and npm packages"]
fn cbor_goes_both_ways() {
    let mut lines = Vec::new();
    for json in messages() {
        let mut out = Vec::new();
        let mut transcoder = Transcoder::new();
        transcoder.transcode(Codec::Json, json.as_bytes(), Codec::Cbor, &mut out).unwrap();
        lines.push(Line::Read(out));
    }
    lines.extend(messages().into_iter().map(|json| Line::Write(json.into_bytes())));
    let answers = converse(PEER, &[&npm_package("cbor-x")], &lines);
    let (read, written) = answers.split_at(messages().len());
    for ((json, read), written) in messages().iter().zip(read).zip(written) {
        let value = decode(Codec::Json, json.as_bytes()).unwrap();
        let reread = decode(Codec::Json, read.as_bytes()).unwrap();
        assert_eq!(ordered(reread), ordered(value.clone()));
        assert_eq!(decode(Codec::Cbor, &unhex(written)).unwrap(), value);
    }
}
