//! The vectors of frames: made here, written by an example, compared by a test.

use sealane_frame::{
    DictionaryEntry, Fragment, FrameBatch, FrameBuf, FrameError, FrameUnit, FrameView, Header,
    HeaderFields, LinkContext, PeerTag, Priority, Reassembly, ReassemblyProgress, forward_in_place,
    open_announcement, open_stored, seal_compact, seal_frame, to_full,
};
use sealane_seal::{Announcement, Binding, Class, OpenedMessage, SenderContext, Suite};
pub(crate) use sealane_testing::hex;
use serde::Serialize;

use super::compact_vectors;
use super::members::{self, CLASSES, EPOCH, GROUP_TAG, Members, READER, RELAY, SENDER, TOPIC};

/// The files and their cases.
pub(crate) fn files() -> Vec<(&'static str, String)> {
    vec![
        ("frames.json", lines(&frames())),
        ("relayed.json", lines(&relayed())),
        ("units.json", lines(&units())),
        ("compact_units.json", lines(&compact_vectors::cases())),
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
    /// How it is read: from a store, or as an announcement by a reader that knows nobody.
    read: &'static str,
    suite: u16,
    /// Group, secret and members.
    keys: Keys,
    binding: Place,
    /// The link's additions to a compact frame.
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
    /// The one epoch of which the reader holds the secret, and in which it stands.
    epoch: u64,
    secret: String,
    terms: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    slot: u16,
    since: u64,
    until: Option<u64>,
    key: String,
}

/// Where the frame is read from.
#[derive(Serialize)]
struct Place {
    kind: &'static str,
    name: &'static str,
    bytes: String,
}

#[derive(Serialize)]
struct Link {
    next_hop: String,
    previous_hop: String,
    dictionary: Vec<(u8, String)>,
    roster: Vec<Slot>,
    /// Near which epoch the group is.
    epoch: u64,
}

/// The knowledge of the link about a slot.
#[derive(Serialize)]
struct Slot {
    group: String,
    slot: u16,
    tag: String,
    context: Option<String>,
    orders: Option<u8>,
}

#[derive(Serialize)]
struct Fields {
    body: String,
    header: String,
    class: char,
    slot: u16,
    epoch: u64,
    sequence: u64,
    context: String,
    orders: u8,
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

/// The units of a link in turn, and the frames that come of them.
#[derive(Serialize)]
struct Units {
    name: String,
    units: Vec<String>,
    frames: Vec<String>,
    error: Option<String>,
}

/// A change to a good frame.
type Change = (&'static str, fn(&mut Vec<u8>));

const FULL_CHANGES: [Change; 17] = [
    ("cut in its header", |frame| frame.truncate(63)),
    ("version 1", |frame| frame[17] = 1),
    ("version 3", |frame| frame[17] = 3),
    ("kind 4", |frame| frame[18] = 4),
    ("compression 3", |frame| frame[19] |= 0x30),
    ("a flag without meaning", |frame| frame[19] |= 0x80),
    ("a byte longer", |frame| frame.push(0)),
    ("a byte shorter", |frame| frame.truncate(frame.len() - 1)),
    ("another sequence", |frame| frame[47] ^= 1),
    ("another priority", |frame| frame[19] ^= 4),
    ("another data type", |frame| frame[21] ^= 1),
    ("another codec", |frame| frame[20] = 1),
    ("another source", |frame| frame[27] ^= 1),
    ("another context, by its first byte", |frame| frame[55] ^= 1),
    ("another context, by its last byte", |frame| frame[62] ^= 1),
    ("other orders", |frame| frame[63] ^= 1),
    ("another tag", |frame| *frame.last_mut().unwrap() ^= 1),
];

const COMPACT_CHANGES: [Change; 9] = [
    ("cut in its prefix", |frame| frame.truncate(3)),
    ("a first byte of a later version", |frame| frame[0] &= 0x7f),
    ("an undefined dictionary byte", |frame| frame[1] = 200),
    ("another entry's dictionary byte", |frame| frame[1] = 5),
    ("another kind", |frame| frame[0] ^= 0x10),
    ("another context's last byte", |frame| frame[2] ^= 1),
    ("another data type", |frame| frame[3] ^= 1),
    ("a data type of two bytes for no reason", |frame| {
        frame[0] |= 0x40;
        frame.insert(4, 0);
    }),
    ("another tag", |frame| *frame.last_mut().unwrap() ^= 1),
];

/// Another start of the sender, by a context of the same last byte.
const OTHER_START: SenderContext = SenderContext(*b"START 01");

fn frames() -> Vec<Case> {
    let mut cases = vec![];
    for suite in Suite::ALL {
        for class in CLASSES {
            for (is_compact, body) in
                [(false, &b"52.52 N 13.40 E"[..]), (true, b"all well"), (false, b"")]
            {
                cases.push(good(class, suite, is_compact, body).case);
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
    for class in CLASSES {
        cases.push(moved(class));
        cases.extend(of_another_start(class));
    }
    cases.extend(announcements());
    cases
}

/// A frame that opens, and who sent and reads it.
struct Good {
    case: Case,
    members: Members,
    frame: Vec<u8>,
}

fn good(class: Class, suite: Suite, is_compact: bool, body: &[u8]) -> Good {
    let mut members = Members::starting_at(class, suite, 300);
    let other = HeaderFields { priority: Priority::High, ..members.fields };
    members.dictionary.define(5, DictionaryEntry::of(&other)).unwrap();
    let frame = sealed(&mut members, is_compact, body);
    let form = if is_compact { "compact" } else { "full" };
    let name = format!("class {}, {form}, {} bytes", class.letter(), body.len());
    let case = case(name, &mut members, suite, is_compact, &frame);
    assert!(case.opened.is_some());
    Good { case, members, frame }
}

fn sealed(members: &mut Members, is_compact: bool, body: &[u8]) -> Vec<u8> {
    let (mut buf, binding) = (FrameBuf::new(), members::binding());
    let link = members::link(&members.dictionary, &members.roster);
    let (sealer, fields) = (&mut members.sealer, &members.fields);
    let frame = if is_compact {
        seal_compact(sealer, fields, &binding, body, &link, &mut buf)
    } else {
        seal_frame(sealer, fields, &binding, body, &mut buf)
    };
    frame.unwrap().to_vec()
}

fn refused(case: Case) -> Case {
    assert!(case.error.is_some(), "{}", case.name);
    case
}

fn changed(class: Class, is_compact: bool, what: &str, change: fn(&mut Vec<u8>)) -> Case {
    let suite = Suite::Aes256Gcm;
    let mut good = good(class, suite, is_compact, b"all well");
    change(&mut good.frame);
    let name = format!("{}: {what}", good.case.name);
    refused(case(name, &mut good.members, suite, is_compact, &good.frame))
}

/// A frame of one stream, read from another.
fn moved(class: Class) -> Case {
    let mut good = good(class, Suite::Aes256Gcm, false, b"all well");
    let name = format!("{}: read from another stream", good.case.name);
    let place = Place {
        kind: "stream",
        name: "fleet/8",
        bytes: hex(Binding::stream("fleet/8").as_bytes()),
    };
    let opened = stored(&mut good.members, &Binding::stream("fleet/8"), &good.frame);
    refused(Case { binding: place, ..written(name, &good.members, false, &good.frame, opened) })
}

/// Compact frames where the link has heard another start than the one that made them.
fn of_another_start(class: Class) -> [Case; 2] {
    let suite = Suite::Aes256Gcm;
    let [mut older, mut newer] = [0, 1].map(|_| good(class, suite, true, b"all well"));
    let slot = older.members.sealer.slot();
    let heard = |context| sealane_frame::FrameAnnouncement { context, orders: members::ORDERS };
    older.members.roster.announce(GROUP_TAG, slot, heard(OTHER_START)).unwrap();
    let name = format!("{}: another start of the same last byte was heard", older.case.name);
    let older = case(name, &mut older.members, suite, true, &older.frame);
    let obeyed = sealane_frame::FrameAnnouncement { orders: 9, ..heard(members::CONTEXT) };
    newer.members.roster.announce(GROUP_TAG, slot, obeyed).unwrap();
    let name = format!("{}: other orders were announced", newer.case.name);
    let newer = case(name, &mut newer.members, suite, true, &newer.frame);
    [older, newer].map(refused)
}

/// Announcements, and what is none.
fn announcements() -> Vec<Case> {
    let mut cases = vec![];
    for suite in Suite::ALL {
        let mut members = Members::strangers(Class::Signed, suite, 300);
        let frame = members.announcement(Announcement { start: 1_790_000_000_000, orders: 519 });
        let name = "an announcement".to_owned();
        let good = announced(name, &mut members, suite, &frame);
        assert!(good.opened.is_some());
        cases.push(good);
    }
    let good = members::announcing(&Members::new(Class::Signed).fields);
    let body = Announcement { start: 1_790_000_000_000, orders: 519 }.to_bytes();
    let message = sealane_frame::FrameKind::Message;
    let odd = [
        ("a message of its body", HeaderFields { kind: message, ..good }, Binding::link(), 17),
        ("another data type", HeaderFields { data_type: 4, ..good }, Binding::link(), 17),
        ("class C", HeaderFields { class: Class::Group, ..good }, Binding::link(), 17),
        ("bound to a stream", good, members::binding(), 17),
        ("a byte short", good, Binding::link(), 16),
    ];
    for (what, fields, binding, len) in odd {
        let mut members = Members::strangers(Class::Signed, Suite::Aes256Gcm, 300);
        let (mut buf, sealer) = (FrameBuf::new(), &mut members.sealer);
        let frame = seal_frame(sealer, &fields, &binding, &body[..len], &mut buf).unwrap();
        let name = format!("no announcement: {what}");
        cases.push(refused(announced(name, &mut members, Suite::Aes256Gcm, frame)));
    }
    cases
}

/// A frame as a reader takes it that knows nobody on the link yet.
fn announced(name: String, members: &mut Members, suite: Suite, frame: &[u8]) -> Case {
    let mut opening = frame.to_vec();
    let opened = open_announcement(&mut members.opener, &mut opening).map(|announced| {
        let opened = announced.opened().clone();
        let header = *FrameView::parse(frame).unwrap().header();
        fields(&header, &announced.announcement().to_bytes(), &opened)
    });
    let binding = Place { kind: "link", name: "", bytes: hex(Binding::link().as_bytes()) };
    let case = written(name, members, false, frame, opened);
    Case { read: "announcement", binding, suite: suite.number(), ..case }
}

fn case(name: String, members: &mut Members, suite: Suite, is_compact: bool, frame: &[u8]) -> Case {
    let mut full = vec![];
    let link = members::link(&members.dictionary, &members.roster);
    let full = if is_compact {
        to_full(frame, &link, &mut full).map(|()| full)
    } else {
        Ok(frame.to_vec())
    };
    let opened = full.and_then(|full| stored(members, &members::binding(), &full));
    Case { suite: suite.number(), ..written(name, members, is_compact, frame, opened) }
}

/// Opens a full frame from a store.
fn stored(members: &mut Members, binding: &Binding, frame: &[u8]) -> Result<Fields, FrameError> {
    let mut opening = frame.to_vec();
    let stored = open_stored(&mut members.opener, EPOCH, binding, &mut opening)?;
    Ok(fields(&stored.header, stored.body, &stored.opened))
}

fn fields(header: &Header, body: &[u8], opened: &OpenedMessage) -> Fields {
    Fields {
        body: hex(body),
        header: hex(header.as_bytes()),
        class: opened.class().letter(),
        slot: opened.slot().number(),
        epoch: opened.epoch().0,
        sequence: opened.counter(),
        context: hex(&opened.context().0),
        orders: header.orders(),
    }
}

/// A case of the stream that frames are made for.
fn written(
    name: String,
    members: &Members,
    is_compact: bool,
    frame: &[u8],
    opened: Result<Fields, FrameError>,
) -> Case {
    let is_pair = members.fields.class == Class::Peer;
    let term = members::term(members.sealer.slot());
    let link = members::link(&members.dictionary, &members.roster);
    let error = opened.as_ref().err().map(|error| error.info().code.to_owned());
    Case {
        name,
        form: if is_compact { "compact" } else { "full" },
        read: "stored",
        suite: Suite::Aes256Gcm.number(),
        keys: Keys {
            group_id: hex(&[7; 32]),
            is_pair,
            own_slot: if is_pair { 0 } else { 2 },
            epoch: EPOCH.0,
            secret: hex(&[1; 32]),
            terms: vec![Member {
                slot: term.slot.number(),
                since: term.since.0,
                until: term.until.map(|until| until.0),
                key: hex(&term.verifying_key),
            }],
        },
        binding: Place { kind: "stream", name: TOPIC, bytes: hex(members::binding().as_bytes()) },
        link: is_compact.then(|| of_link(&link, term.slot)),
        frame: hex(frame),
        opened: opened.ok(),
        error,
    }
}

fn of_link(link: &LinkContext<'_>, sender: sealane_seal::Slot) -> Link {
    let entry = |byte| Some((byte, hex(&link.dictionary.entry(byte)?.to_bytes())));
    let announced = link.roster.announced(GROUP_TAG, sender);
    Link {
        next_hop: hex(&link.next_hop.to_bytes()),
        previous_hop: hex(&link.previous_hop.to_bytes()),
        dictionary: (0..=u8::MAX).filter_map(entry).collect(),
        roster: vec![Slot {
            group: hex(&GROUP_TAG.to_bytes()),
            slot: sender.number(),
            tag: hex(&SENDER.to_bytes()),
            context: announced.map(|announced| hex(&announced.context.0)),
            orders: announced.map(|announced| announced.orders),
        }],
        epoch: EPOCH.0,
    }
}

fn relayed() -> Vec<Relayed> {
    let Good { frame, .. } = good(Class::Group, Suite::Aes256Gcm, false, b"all well");
    let changes: [Change; 8] = [
        ("as it is", |_| ()),
        ("to everybody", |frame| frame[..8].fill(0xff)),
        ("a hop limit of 255", |frame| frame[16] = 255),
        ("its last hop", |frame| frame[16] = 1),
        ("no hop left", |frame| frame[16] = 0),
        ("for another relay", |frame| frame[0] ^= 1),
        ("version 1", |frame| frame[17] = 1),
        ("other orders, which no relay can tell", |frame| frame[63] ^= 1),
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
    FrameBatch::append(&mut batch, &frame).unwrap();
    FrameBatch::append(&mut batch, &[0x5a; 200]).unwrap();
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
    match FrameUnit::parse(unit)? {
        FrameUnit::Frame(frame) => frames.push(hex(frame)),
        FrameUnit::Batch(batch) => {
            batch.into_iter().try_for_each(|item| take(reassembly, item, frames))?;
        }
        FrameUnit::Fragment(fragment) => {
            let peer = PeerTag::from_hash([9; 8]);
            if let ReassemblyProgress::Whole(frame) = reassembly.push(peer, 0, &fragment)? {
                frames.push(hex(frame));
            }
        }
    }
    Ok(())
}
