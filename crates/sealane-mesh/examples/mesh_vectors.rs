//! Makes `vectors/mesh`: messages that read, messages that are refused, and hop seals.

use sealane_frame::{GroupTag, PeerTag};
use sealane_mesh::{
    AdvertisedRoute, GatewayReport, HeldOf, HelloEcho, HelloMessage, HelloNeighbour, HopSender,
    HopWriter, INFINITE, MeshError, MissingParts, NeighbourProbe, OrderPieces, OrdersHeld,
    PiecesAsked, RemovalMessage, RouteDistance, RouteMessage, RouteRequest, RouteTrace, TraceHop,
    TraceWay,
};
use sealane_seal::{Epoch, EpochSecret, SenderContext, Slot};
use sealane_testing::hex;
use serde_json::{Value, json};

fn main() {
    for (name, text) in files() {
        let path = format!("{}/../../vectors/mesh/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::create_dir_all(std::path::Path::new(&path).parent().expect("a folder")).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// The files and their texts.
pub(crate) fn files() -> Vec<(&'static str, String)> {
    let text = |cases: &Value| format!("{:#}\n", cases);
    vec![("messages.json", text(&messages())), ("hop_seals.json", text(&hop_seals()))]
}

fn slot(number: u16) -> Slot {
    Slot::new(number).expect("a slot")
}

fn hello() -> HelloMessage {
    HelloMessage {
        sleeps: false,
        asks: true,
        sequence: 0x0102,
        sent: 0x0304_0506,
        interval: 50,
        load: 12,
        hop_counter: 0x07_0809,
        neighbours: vec![
            HelloNeighbour { slot: slot(3), heard: 15, told: 14 },
            HelloNeighbour { slot: slot(1023), heard: 1, told: 0 },
        ],
        echoes: vec![HelloEcho { index: 1, sent: 0x1112_1314, heard: 0x1516_1718 }],
        gateways: vec![RouteDistance { slot: slot(2), sequence: 0x2122, metric: 0x2324 }],
        digest: None,
    }
}

fn routes() -> RouteMessage {
    let distance =
        |number, sequence, metric| RouteDistance { slot: slot(number), sequence, metric };
    RouteMessage {
        sequence: 9,
        routes: vec![
            AdvertisedRoute { distance: distance(5, 7, 128), is_gateway: false, attached: None },
            AdvertisedRoute {
                distance: distance(6, 8, INFINITE),
                is_gateway: true,
                attached: Some(vec![PeerTag::from_bytes([0x31; 8])]),
            },
        ],
    }
}

fn messages() -> Value {
    let requests =
        [None, Some(slot(4))].map(|to| RouteRequest { slot: slot(5), sequence: 8, hops: 15, to });
    let report = GatewayReport {
        is_complete: true,
        start: 1_700_000_000_000,
        sequence: 3,
        counts: vec![(slot(1), 7), (slot(9), 65_535)],
    };
    let listed = |one: &HelloNeighbour| json!([one.slot.number(), one.heard, one.told]);
    let whole = hello();
    let mut cases = vec![json!({
        "name": "a hello", "type": 1, "body": hex(&whole.to_bytes()),
        "sequence": whole.sequence, "sent": whole.sent, "interval": whole.interval,
        "load": whole.load, "hop_counter": whole.hop_counter, "asks": true, "sleeps": false,
        "neighbours": whole.neighbours.iter().map(listed).collect::<Vec<_>>(),
        "echoes": [[1, 0x1112_1314, 0x1516_1718]], "gateways": [[2, 0x2122, 0x2324]],
    })];
    cases.push(json!({
        "name": "routes", "type": 2, "body": hex(&routes().to_bytes()), "sequence": 9,
        "routes": [[5, 7, 128, false, null], [6, 8, 65535, true, ["3131313131313131"]]],
    }));
    cases.push(json!({
        "name": "requests", "type": 3, "body": hex(&RouteRequest::write(&requests)),
        "requests": [[5, 8, 15, null], [5, 8, 15, 4]],
    }));
    let probe = NeighbourProbe { is_answer: true, to: slot(3), number: 0x4142_4344 };
    cases.push(json!({
        "name": "the answer to a probe", "type": 4, "body": hex(&probe.to_bytes()),
        "answer": true, "to": 3, "number": probe.number,
    }));
    let missing = MissingParts { to: slot(3), id: 0x5152, parts: 0b1010 };
    cases.push(json!({
        "name": "missing parts", "type": 5, "body": hex(&missing.to_bytes()),
        "to": 3, "id": missing.id, "parts": [1, 3],
    }));
    cases.push(json!({
        "name": "a report", "type": 6, "body": hex(&report.to_bytes()), "complete": true,
        "start": report.start, "sequence": 3, "counts": [[1, 7], [9, 65535]],
    }));
    cases.push(trace());
    cases.extend(of_orders());
    cases.extend(refused());
    Value::Array(cases)
}

fn of_orders() -> Vec<Value> {
    let group = GroupTag::from_bytes([0x61, 0x62, 0x63, 0x64]);
    let held = HeldOf { group, wants: 0x7172, first: 0x7071, removals: 0x0102_0304 };
    let asked = PiecesAsked { to: slot(3), group, number: 0x7171, first: 2, pieces: 0b101 };
    let pieces =
        OrderPieces { group, number: 0x7171, length: 300, first: 2, bytes: vec![0xab; 44] };
    let removal = RemovalMessage { group, notice: [4; 91] };
    let (tag, held_body) = (hex(&group.to_bytes()), OrdersHeld { groups: vec![held] }.to_bytes());
    vec![
        json!({
            "name": "which orders are held", "type": 9, "body": hex(&held_body),
            "groups": [[tag, held.wants, held.first, held.removals]],
        }),
        json!({
            "name": "which pieces are asked for", "type": 10, "body": hex(&asked.to_bytes()),
            "to": 3, "group": tag, "number": asked.number, "pieces": [2, 4],
        }),
        json!({
            "name": "the last piece of an order", "type": 11, "body": hex(&pieces.to_bytes()),
            "group": tag, "number": pieces.number, "length": 300, "first": 2,
            "bytes": hex(&pieces.bytes),
        }),
        json!({
            "name": "a notice of removal", "type": 12, "body": hex(&removal.to_bytes()),
            "group": tag, "notice": hex(&removal.notice),
        }),
        refused_held(&held_body),
        refused_pieces(&pieces),
    ]
}

/// A group that stands there twice.
fn refused_held(body: &[u8]) -> Value {
    let twice = [body, body.get(1..).unwrap_or_default()].concat();
    case("one group twice", 9, &twice, OrdersHeld::parse(&twice).err())
}

/// Pieces that end beside the end of a piece.
fn refused_pieces(pieces: &OrderPieces) -> Value {
    let odd = OrderPieces { length: 400, ..pieces.clone() }.to_bytes();
    case("half a piece", 11, &odd, OrderPieces::parse(&odd).err())
}

fn trace() -> Value {
    let way = |via, metric| TraceWay { via: slot(via), metric };
    let first =
        TraceHop { slot: slot(1), round_trip_us: Some(700), ways: vec![way(2, 128), way(4, 300)] };
    let last = TraceHop { slot: slot(2), round_trip_us: None, ways: vec![] };
    let trace = RouteTrace {
        is_answer: true,
        is_cut: true,
        to: slot(1),
        number: 0x6162_6364,
        origin: slot(1),
        target: slot(3),
        hops: vec![first, last],
    };
    json!({
        "name": "a trace that was turned back", "type": 7, "body": hex(&trace.to_bytes()),
        "answer": true, "cut": true, "to": 1, "number": trace.number, "origin": 1, "target": 3,
        "hops": [[1, 700, [[2, 128], [4, 300]]], [2, null, []]],
    })
}

fn refused() -> Vec<Value> {
    let good = hello().to_bytes();
    let changed = |at: usize, byte: u8| {
        let mut bad = good.clone();
        if let Some(place) = bad.get_mut(at) {
            *place = byte;
        }
        bad
    };
    let cut = good.get(..good.len() - 1).unwrap_or_default().to_vec();
    let hellos = [
        ("a hello of a later version", changed(0, 0x91)),
        ("a hello with an unknown bit", changed(1, 8)),
        ("a hello that comes every 80 ms", changed(8, 4)),
        ("a hello of more neighbours than may be", changed(14, 33)),
        ("a hello that ends early", cut),
        ("a hello with a byte behind it", [&good[..], &[0]].concat()),
        ("an echo for nobody that is listed", changed(21, 2)),
    ];
    let mut cases = vec![];
    for (name, body) in hellos {
        cases.push(case(name, 1, &body, HelloMessage::parse(&body).err()));
    }
    let mut stranger = routes().to_bytes();
    if let Some(high) = stranger.get_mut(4) {
        *high = 4;
    }
    let error = RouteMessage::parse(&stranger).err();
    cases.push(case("a route to slot 1029", 2, &stranger, error));
    let odd = [0x42, 3, 0, 1, 2, 3, 4];
    let trace = [&[0x40, 1, 0, 0, 0, 0, 0, 1, 0, 2, 0][..], &[1, 0, 0, 0, 0, 0, 4]].concat();
    let error = RouteTrace::parse(&trace).err();
    cases.push(case("a trace with four ways of one machine", 7, &trace, error));
    cases.push(case("a probe with an unknown bit", 4, &odd, NeighbourProbe::parse(&odd).err()));
    cases
}

fn case(name: &str, what: u16, body: &[u8], error: Option<MeshError>) -> Value {
    let error = error.map(|error| error.info().code);
    json!({ "name": name, "type": what, "body": hex(body), "error": error })
}

fn hop_seals() -> Value {
    let secret = [7; 32];
    let sender = HopSender { slot: slot(3), context: SenderContext([9; 8]), epoch: Epoch(258) };
    let case = |next: u64, frame: &[u8]| {
        let mut sealed = frame.to_vec();
        HopWriter::new(&EpochSecret::new(secret), sender, next).seal(&mut sealed);
        json!({
            "secret": hex(&secret), "epoch": 258, "slot": 3, "context": hex(&[9; 8]),
            "counter": next, "frame": hex(frame), "sealed": hex(&sealed),
        })
    };
    Value::Array(vec![case(0, b""), case(0x01_0203, b"a frame"), case(1 << 33, &[0xee; 100])])
}
