//! The vectors of frames: made here, written by an example, compared by a test.

use sealane_frame::{
    Batch, Entry, Fragment, FrameBuf, FrameError, HeaderFields, LinkContext, PeerTag, Priority,
    Progress, Reassembly, Unit, forward_in_place, open_compact, open_frame, seal_compact,
    seal_frame,
};
use sealane_seal::{Class, Suite};
use serde::Serialize;

use super::members::{self, CLASSES, GROUP_TAG, Members, READER, RELAY, SENDER};

/// The files and their cases.
pub(crate) fn files() -> Vec<(&'static str, String)> {
    vec![
        ("frames.json", lines(&frames())),
        ("relayed.json", lines(&relayed())),
        ("units.json", lines(&units())),
    ]
}

fn lines(cases: &[impl Serialize]) -> String {
    let mut text = serde_json::to_string_pretty(cases).unwrap();
    text.push('\n');
    text
}

/// A frame to open.
#[derive(Serialize)]
struct Case {
    name: String,
    form: &'static str,
    suite: u16,
    /// Group, secret and signer.
    keys: Keys,
    /// What the link adds to a compact frame.
    link: Option<Link>,
    frame: String,
    /// The body, and what the header says; none if it is refused.
    opened: Option<Fields>,
    error: Option<String>,
}

#[derive(Serialize)]
struct Keys {
    group_id: String,
    is_pair: bool,
    own_slot: u16,
    /// The provisioned secret, from which epoch 0 follows.
    secret: String,
    signers: Vec<(u16, String)>,
}

#[derive(Serialize)]
struct Link {
    next_hop: String,
    previous_hop: String,
    dictionary: Vec<(u8, String)>,
    roster: Vec<(String, u16, String)>,
}

#[derive(Serialize)]
struct Fields {
    body: String,
    header: String,
    class: char,
    slot: u16,
    epoch: u64,
    sequence: u64,
}

/// A frame before and after a relay.
#[derive(Serialize)]
struct Relayed {
    name: String,
    frame: String,
    own: String,
    next_hop: String,
    forwarded: Option<String>,
    error: Option<String>,
}

/// What a link hands over in turn, and the frames that come of it.
#[derive(Serialize)]
struct Units {
    name: String,
    units: Vec<String>,
    frames: Vec<String>,
    error: Option<String>,
}

/// What changes a good frame.
type Change = (&'static str, fn(&mut Vec<u8>));

const FULL_CHANGES: [Change; 15] = [
    ("cut in its header", |frame| frame.truncate(63)),
    ("version 2", |frame| frame[17] = 2),
    ("kind 4", |frame| frame[18] = 4),
    ("compression 3", |frame| frame[19] |= 0x30),
    ("a flag without meaning", |frame| frame[19] |= 0x80),
    ("spare byte 1", |frame| frame[63] = 1),
    ("a byte longer", |frame| frame.push(0)),
    ("a byte shorter", |frame| frame.truncate(frame.len() - 1)),
    ("another sequence", |frame| frame[47] ^= 1),
    ("another priority", |frame| frame[19] ^= 4),
    ("another data type", |frame| frame[21] ^= 1),
    ("another codec", |frame| frame[20] = 1),
    ("another source", |frame| frame[27] ^= 1),
    ("a time", |frame| frame[55] = 1),
    ("another tag", |frame| *frame.last_mut().unwrap() ^= 1),
];

const COMPACT_CHANGES: [Change; 7] = [
    ("cut in its prefix", |frame| frame.truncate(2)),
    ("a first byte of a later version", |frame| frame[0] &= 0x7f),
    ("an undefined dictionary byte", |frame| frame[1] = 200),
    ("another entry's dictionary byte", |frame| frame[1] = 5),
    ("another kind", |frame| frame[0] ^= 0x10),
    ("another data type", |frame| frame[2] ^= 1),
    ("another tag", |frame| *frame.last_mut().unwrap() ^= 1),
];

fn frames() -> Vec<Case> {
    let mut cases = vec![];
    for suite in Suite::ALL {
        for class in CLASSES {
            for (is_compact, body) in
                [(false, &b"52.52 N 13.40 E"[..]), (true, b"all well"), (false, b"")]
            {
                cases.push(good(class, suite, is_compact, body).0);
            }
        }
    }
    let classes = CLASSES.into_iter().cycle();
    for ((what, change), class) in FULL_CHANGES.into_iter().zip(classes.clone()) {
        cases.push(changed(class, false, what, change));
    }
    for ((what, change), class) in COMPACT_CHANGES.into_iter().zip(classes) {
        cases.push(changed(class, true, what, change));
    }
    cases
}

fn good(class: Class, suite: Suite, is_compact: bool, body: &[u8]) -> (Case, Members, Vec<u8>) {
    let mut members = Members::starting_at(class, suite, 300);
    let other = HeaderFields { priority: Priority::High, ..members.fields };
    members.dictionary.define(5, Entry::of(&other)).unwrap();
    let mut buf = FrameBuf::new();
    let link = members::link(&members.dictionary, &members.roster);
    let (sealer, fields) = (&mut members.sealer, &members.fields);
    let frame = if is_compact {
        seal_compact(sealer, fields, body, &link, &mut buf).unwrap().to_vec()
    } else {
        seal_frame(sealer, fields, body, &mut buf).unwrap().to_vec()
    };
    let form = if is_compact { "compact" } else { "full" };
    let name = format!("class {}, {form}, {} bytes", class.letter(), body.len());
    let case = case(name, &mut members, suite, is_compact, &frame);
    assert!(case.opened.is_some());
    (case, members, frame)
}

fn changed(class: Class, is_compact: bool, what: &str, change: fn(&mut Vec<u8>)) -> Case {
    let suite = Suite::Aes256Gcm;
    let (good, mut members, mut frame) = good(class, suite, is_compact, b"all well");
    change(&mut frame);
    let case = case(format!("{}: {what}", good.name), &mut members, suite, is_compact, &frame);
    assert!(case.error.is_some(), "{}", case.name);
    case
}

fn case(name: String, members: &mut Members, suite: Suite, is_compact: bool, frame: &[u8]) -> Case {
    let link = members::link(&members.dictionary, &members.roster);
    let mut opening = frame.to_vec();
    let opened = if is_compact {
        open_compact(&mut members.opener, &mut opening, &link)
    } else {
        open_frame(&mut members.opener, &mut opening)
    };
    let opened = opened.map(|received| {
        let opened = received.pending.opened();
        Fields {
            body: hex(received.body),
            header: hex(received.header.as_bytes()),
            class: opened.class().letter(),
            slot: opened.slot().number(),
            epoch: opened.epoch().0,
            sequence: opened.counter(),
        }
    });
    let error = opened.as_ref().err().map(|error| error.info().code.to_owned());
    let is_pair = members.fields.class == Class::Peer;
    let (own, sender) = if is_pair { (0, 1) } else { (2, 700) };
    Case {
        name,
        form: if is_compact { "compact" } else { "full" },
        suite: suite.number(),
        keys: Keys {
            group_id: hex(&[7; 32]),
            is_pair,
            own_slot: own,
            secret: hex(&[1; 32]),
            signers: vec![(sender, hex(&members::verifying_key()))],
        },
        link: is_compact.then(|| written(&link, sender)),
        frame: hex(frame),
        opened: opened.ok(),
        error,
    }
}

fn written(link: &LinkContext<'_>, sender: u16) -> Link {
    let entry = |byte| Some((byte, hex(&link.dictionary.entry(byte)?.to_bytes())));
    Link {
        next_hop: hex(&link.next_hop.to_bytes()),
        previous_hop: hex(&link.previous_hop.to_bytes()),
        dictionary: (0..=u8::MAX).filter_map(entry).collect(),
        roster: vec![(hex(&GROUP_TAG.to_bytes()), sender, hex(&SENDER.to_bytes()))],
    }
}

fn relayed() -> Vec<Relayed> {
    let (_, _, frame) = good(Class::Group, Suite::Aes256Gcm, false, b"all well");
    let changes: [Change; 7] = [
        ("as it is", |_| ()),
        ("to everybody", |frame| frame[..8].fill(0xff)),
        ("a hop limit of 255", |frame| frame[16] = 255),
        ("its last hop", |frame| frame[16] = 1),
        ("no hop left", |frame| frame[16] = 0),
        ("for another relay", |frame| frame[0] ^= 1),
        ("a spare byte of 1", |frame| frame[63] = 1),
    ];
    let relay = |(name, change): Change| {
        let mut frame = frame.clone();
        change(&mut frame);
        let mut forwarded = frame.clone();
        let result = forward_in_place(&mut forwarded, READER, RELAY);
        Relayed {
            name: name.to_owned(),
            frame: hex(&frame),
            own: hex(&RELAY.to_bytes()),
            next_hop: hex(&READER.to_bytes()),
            forwarded: result.is_ok().then(|| hex(&forwarded)),
            error: result.err().map(|error| error.info().code.to_owned()),
        }
    };
    changes.map(relay).into()
}

fn units() -> Vec<Units> {
    let frame: Vec<u8> = (2..60).collect();
    let other: Vec<u8> = (3..61).collect();
    let (a, b) = (parts(&frame, 7, 28), parts(&other, 7, 28));
    let mut batch = vec![];
    Batch::append(&mut batch, &frame).unwrap();
    Batch::append(&mut batch, &[0x5a; 200]).unwrap();
    let with = |unit: &[u8], at: usize, byte: u8| {
        let mut unit = unit.to_vec();
        unit[at] = byte;
        unit
    };
    let narrow = parts(&frame, 7, 20);
    vec![
        joined("a frame alone", vec![frame.clone()]),
        joined("in order", a.clone()),
        joined("the other way round", a.iter().rev().cloned().collect()),
        joined("one comes twice", vec![a[0].clone(), a[0].clone(), a[1].clone(), a[2].clone()]),
        joined("one is missing", vec![a[0].clone(), a[2].clone()]),
        joined("a batch of two frames", vec![batch.clone()]),
        joined("other bytes for one part", vec![a[0].clone(), b[0].clone()]),
        joined("another stride", vec![a[0].clone(), narrow[1].clone()]),
        joined("another length", vec![a[0].clone(), with(&a[1], 5, 59)]),
        joined("an index beyond the end", vec![with(&a[0], 3, 9)]),
        joined("a last part that does not fit", vec![with(&a[2], 3, 3)]),
        joined("a header without a part", vec![a[0][..8].to_vec()]),
        joined("an empty batch", vec![vec![1]]),
        joined("a batch in a batch", vec![vec![1, 2, 1, 9]]),
        joined("a batch that ends early", vec![batch[..batch.len() - 1].to_vec()]),
        joined("a length in the long form for no reason", vec![vec![1, 0x80, 2, 8, 8]]),
    ]
}

fn parts(frame: &[u8], id: u16, unit_bytes: usize) -> Vec<Vec<u8>> {
    let fragments = Fragment::split(frame, id, unit_bytes).unwrap();
    fragments.map(|part| [&part.header()[..], part.part()].concat()).collect()
}

fn joined(name: &str, units: Vec<Vec<u8>>) -> Units {
    let (mut reassembly, mut frames, mut error) = (Reassembly::new(), vec![], None);
    for unit in &units {
        if let Err(refused) = take(&mut reassembly, unit, &mut frames) {
            error = Some(refused.info().code.to_owned());
        }
    }
    let units = units.iter().map(|unit| hex(unit)).collect();
    Units { name: name.to_owned(), units, frames, error }
}

fn take(
    reassembly: &mut Reassembly,
    unit: &[u8],
    frames: &mut Vec<String>,
) -> Result<(), FrameError> {
    match Unit::parse(unit)? {
        Unit::Frame(frame) => frames.push(hex(frame)),
        Unit::Batch(batch) => {
            batch.into_iter().try_for_each(|item| take(reassembly, item, frames))?;
        }
        Unit::Fragment(fragment) => {
            let peer = PeerTag::from_hash([9; 8]);
            if let Progress::Whole(frame) = reassembly.push(peer, 0, &fragment)? {
                frames.push(hex(frame));
            }
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
