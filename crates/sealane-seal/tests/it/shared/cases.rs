//! The cases of `vectors/seal`, made by this crate. `vectors/README.md` says what the fields mean.

use sealane_seal::*;
use serde_json::{Value, json};

use super::live;
use super::world::*;

/// Each file's name and text.
pub(crate) fn files() -> [(&'static str, String); 4] {
    [
        ("opened.json", text(opened())),
        ("refused.json", text(refused())),
        ("live.json", text(live::cases())),
        ("epochs.json", text(steps())),
    ]
}

fn text(cases: Vec<Value>) -> String {
    format!("{:#}\n", Value::Array(cases))
}

/// A place, in clear and as the bytes that are authenticated.
#[derive(Clone)]
pub(crate) enum Place {
    Link,
    Stream(&'static str),
    Conversation(GroupId),
}

impl Place {
    pub(crate) fn binding(&self) -> Binding {
        match self {
            Place::Link => Binding::link(),
            Place::Stream(topic) => Binding::stream(topic),
            Place::Conversation(group) => Binding::conversation(*group),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let (kind, name) = match self {
            Place::Link => ("link", String::new()),
            Place::Stream(topic) => ("stream", (*topic).to_owned()),
            Place::Conversation(group) => ("conversation", hex(&group.0)),
        };
        json!({ "kind": kind, "name": name, "bytes": hex(self.binding().as_bytes()) })
    }
}

/// Where messages are read from where a case does not say another place.
const HERE: Place = Place::Stream(TOPIC);

/// The state of a reader, and a message for it.
struct Case {
    name: String,
    group: Group,
    secrets: Vec<(u64, [u8; 32])>,
    near: u64,
    terms: Option<Vec<Term>>,
    place: Place,
    message: Sealed,
}

impl Case {
    fn json(&self, outcome: Value) -> Value {
        let mut all = group_json(&self.name, self.group, &self.secrets);
        let more = json!({ "near": self.near, "terms": self.terms.as_deref().map(terms_json) });
        merge(&mut all, more);
        merge(&mut all, message(&self.message, &self.place));
        merge(&mut all, outcome);
        all
    }

    /// Opens it as a reader must, and writes down what came of it.
    fn outcome(&self) -> Result<Value, Error> {
        let mut reader = reader(self.group, None, &self.secrets);
        if let Some(terms) = &self.terms {
            reader.set_terms(terms.iter().copied()).unwrap();
        }
        let message = Sealed { binding: self.place.binding(), ..self.message.clone() };
        let (opened, body) = message.stored(&mut reader, self.near)?;
        Ok(json!({
            "class": opened.class().letter().to_string(),
            "slot": opened.slot().number(),
            "epoch": opened.epoch().0,
            "counter": opened.counter(),
            "body": hex(&body),
        }))
    }

    fn must_open(self) -> Value {
        self.json(self.outcome().unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }

    fn must_fail(self, error: Error) -> Value {
        assert_eq!(self.outcome().err(), Some(error), "{}", self.name);
        self.json(json!({ "error": error.info().code }))
    }
}

pub(crate) fn reader(group: Group, own: Option<u16>, secrets: &[(u64, [u8; 32])]) -> Opener {
    let (first, secret) = secrets[0];
    let secret = EpochSecret::new(secret);
    let epochs = Epochs::new(group.id(), History::Kept, Epoch(first), secret);
    let mut reader = Opener::new(group, own.map(slot), epochs).unwrap();
    for (epoch, secret) in &secrets[1..] {
        reader.insert(Epoch(*epoch), EpochSecret::new(*secret)).unwrap();
    }
    reader
}

pub(crate) fn merge(all: &mut Value, more: Value) {
    let (Value::Object(all), Value::Object(more)) = (all, more) else { panic!("not objects") };
    all.extend(more);
}

pub(crate) fn group_json(name: &str, group: Group, secrets: &[(u64, [u8; 32])]) -> Value {
    json!({
        "name": name,
        "suite": group.suite().number(),
        "group": hex(&group.id().0),
        "pair": group.is_pair(),
        "secrets": secrets.iter().map(|(epoch, secret)| json!({
            "epoch": epoch,
            "secret": hex(secret),
        })).collect::<Vec<_>>(),
    })
}

pub(crate) fn message(message: &Sealed, place: &Place) -> Value {
    json!({
        "form": if message.form == Form::Full { "full" } else { "compact" },
        "context": hex(&message.context.0),
        "binding": place.json(),
        "meta": hex(&message.meta),
        "clear": message.clear,
        "sealed": hex(&message.bytes),
    })
}

pub(crate) fn terms_json(terms: &[Term]) -> Value {
    let term = |term: &Term| {
        json!({
            "slot": term.slot.number(),
            "since": term.since.0,
            "until": term.until.map(|until| until.0),
            "key": hex(&term.verifying_key),
        })
    };
    Value::Array(terms.iter().map(term).collect())
}

pub(crate) fn secret(epochs: &Epochs, epoch: u64) -> (u64, [u8; 32]) {
    (epoch, *epochs.secret(Epoch(epoch)).unwrap().expose())
}

/// The sender of a message, and its epoch.
#[derive(Clone, Copy)]
struct From {
    slot: u16,
    epoch: u64,
}

/// A message of that sender, in a reader's hands.
fn case(suite: Suite, class: Class, form: Form, from: From, body: &[u8]) -> Case {
    let group = group_of(suite, class);
    let epochs = epochs_at(group, from.epoch);
    // A counter that differs from case to case and takes 0 to 2 bytes.
    let counter = (body.len() as u64 * 7) % 300;
    let mut sender = sealer_of(group, slot(from.slot), &epochs, CONTEXT, counter);
    Case {
        name: format!("{suite:?}, class {}, {form:?}, {} bytes", class.letter(), body.len()),
        group,
        secrets: vec![secret(&epochs, from.epoch)],
        near: from.epoch,
        terms: (class == Class::Signed).then(|| vec![term(from.slot)]),
        place: HERE,
        message: seal(&mut sender, class, form, META, body),
    }
}

fn opened() -> Vec<Value> {
    let mut cases = vec![];
    for suite in Suite::ALL {
        for class in Class::ALL {
            for form in [Form::Full, Form::Compact] {
                let slot = if class == Class::Peer { 1 } else { 300 };
                cases.push(case(suite, class, form, From { slot, epoch: 21 }, BODY).must_open());
            }
            let from = From { slot: 0, epoch: 0 };
            cases.push(case(suite, class, Form::Full, from, b"").must_open());
        }
        let from = From { slot: 1023, epoch: 300 };
        let mut later = case(suite, Class::Group, Form::Compact, from, &[0xab; 100]);
        later.name += ", read seven epochs before";
        later.near = 293;
        cases.push(later.must_open());
        bound(suite, &mut cases);
        of_terms(suite, &mut cases);
    }
    cases
}

/// One message for each kind of place, under contexts of their own.
fn bound(suite: Suite, cases: &mut Vec<Value>) {
    let conversation = Place::Conversation(GroupId([0x5c; 32]));
    let places = [Place::Link, Place::Stream("mesh/a1a2a3a4/location"), conversation];
    for (number, place) in places.into_iter().enumerate() {
        let mut case = case(suite, Class::Group, Form::Full, From { slot: 1, epoch: 0 }, BODY);
        let context = SenderContext([0xc0 + number as u8; 8]);
        let mut sender = sealer_of(case.group, slot(1), &epochs(case.group), context, 9);
        let (class, form) = (Class::Group, Form::Full);
        case.message = seal_for(&mut sender, &place.binding(), class, form, META, BODY);
        case.name = format!("{suite:?}, bound to {}", place.json()["kind"].as_str().unwrap());
        case.place = place;
        cases.push(case.must_open());
    }
}

/// A slot of two members, one after the other.
fn two_terms() -> Vec<Term> {
    let first = Term { until: Some(Epoch(3)), ..term(2) };
    let verifying_key = signing_key_of(slot(2), 77).verifying_key();
    vec![first, Term { since: Epoch(5), until: None, verifying_key, ..first }]
}

fn of_member(suite: Suite, class: Class, epoch: u64, member: u8) -> Case {
    let mut case = case(suite, class, Form::Full, From { slot: 2, epoch }, BODY);
    let mut sender = sealer(case.group, slot(2), &epochs_at(case.group, epoch));
    sender.set_signing_key(signing_key_of(slot(2), member));
    case.message = seal(&mut sender, class, Form::Full, META, BODY);
    case.terms = Some(two_terms());
    case.name = format!(
        "{suite:?}, class {} in epoch {epoch} of a slot of two members, one in \
                         epochs 0 to 2, one from 5 on",
        class.letter()
    );
    case
}

fn of_terms(suite: Suite, cases: &mut Vec<Value>) {
    for (epoch, member) in [(2, 9), (5, 77)] {
        for class in [Class::Group, Class::Signed] {
            cases.push(of_member(suite, class, epoch, member).must_open());
        }
    }
}

fn refused() -> Vec<Value> {
    let mut cases = vec![];
    for suite in Suite::ALL {
        changed(suite, &mut cases);
        misplaced(suite, &mut cases);
        misread(suite, &mut cases);
        no_member(suite, &mut cases);
    }
    cases
}

/// One byte of a message is not what it was.
fn changed(suite: Suite, cases: &mut Vec<Value>) {
    let from = From { slot: 300, epoch: 21 };
    let good = || case(suite, Class::Group, Form::Full, from, BODY);
    let mut bad = |name: &str, mut case: Case, change: &dyn Fn(&mut Sealed), error| {
        case.name = format!("{suite:?}: {name}");
        change(&mut case.message);
        cases.push(case.must_fail(error));
    };
    bad("a bit of the tag", good(), &|m| *m.bytes.last_mut().unwrap() ^= 1, Error::NotAuthentic);
    bad("a bit of the ciphertext", good(), &|m| m.bytes[10] ^= 0x80, Error::NotAuthentic);
    bad("a bit of the meta", good(), &|m| m.meta[0] ^= 1, Error::NotAuthentic);
    bad("a byte less of meta", good(), &|m| m.meta.truncate(14), Error::NotAuthentic);
    bad("257 bytes of meta", good(), &|m| m.meta.resize(257, 0), Error::TooLarge);
    bad("a bit of the context", good(), &|m| m.context.0[7] ^= 1, Error::NotAuthentic);
    bad("the counter", good(), &|m| m.bytes[4] ^= 1, Error::NotAuthentic);
    bad("the slot", good(), &|m| m.bytes[1] ^= 1, Error::NotAuthentic);
    bad("the class: C to S", good(), &|m| m.bytes[2] ^= 3, Error::Truncated);
    bad("the class: C to P", good(), &|m| m.bytes[2] ^= 2, Error::Class);
    bad("the last byte is missing", good(), &|m| m.bytes.truncate(55), Error::NotAuthentic);
    bad("only header and 15 bytes", good(), &|m| m.bytes.truncate(20), Error::Truncated);
    bad("only half a header", good(), &|m| m.bytes.truncate(2), Error::Truncated);
    bad("nothing", good(), &|m| m.bytes.clear(), Error::Truncated);
    let wide = |m: &mut Sealed| {
        m.bytes[0] = 0xb9;
        m.bytes.insert(1, 0);
    };
    bad("a key id that is not the shortest", good(), &wide, Error::Header);
    let far = |m: &mut Sealed| drop(m.bytes.splice(..5, [0xad, 4, 0xb1, 0x15, 1, 0, 0, 0, 0, 0]));
    bad("a counter of 2^40", good(), &far, Error::Header);
    let clear = || case(suite, Class::Authenticated, Form::Full, from, BODY);
    bad("a bit of a body in clear", clear(), &|m| m.bytes[0] ^= 1, Error::NotAuthentic);
    let signed = || case(suite, Class::Signed, Form::Full, from, BODY);
    bad("the tag of a signed message", signed(), &|m| m.bytes[60] ^= 1, Error::NotAuthentic);
}

/// Messages that are authentic and do not belong there.
fn misplaced(suite: Suite, cases: &mut Vec<Value>) {
    let from = From { slot: 2, epoch: 0 };
    let mut posing = case(suite, Class::Signed, Form::Full, from, BODY);
    let mut sender = sealer(posing.group, slot(2), &epochs(posing.group));
    sender.set_signing_key(signing_key(slot(3)));
    posing.message = seal(&mut sender, Class::Signed, Form::Full, META, BODY);
    posing.name = format!("{suite:?}: signed with the key of slot 3, as slot 2");
    cases.push(posing.must_fail(Error::Signature));

    let mut unknown = case(suite, Class::Signed, Form::Compact, from, BODY);
    unknown.terms = None;
    unknown.name = format!("{suite:?}: nobody has told who the members are");
    cases.push(unknown.must_fail(Error::NotMember));

    let from = From { slot: 1, epoch: 0 };
    let mut stranger = case(suite, Class::Peer, Form::Full, from, BODY);
    let key = KeyId::new(slot(2), Class::Peer, Epoch(0));
    let header = SframeHeader { key, counter: 0 }.encode(Form::Full);
    stranger.message.bytes = [&header[..], &[0; 40]].concat();
    stranger.name = format!("{suite:?}: slot 2 of a pair");
    cases.push(stranger.must_fail(Error::Class));

    let mut both = case(suite, Class::Group, Form::Full, from, BODY);
    both.message.bytes.splice(0..0, *b"clear");
    both.message.clear = 5;
    both.name = format!("{suite:?}: a body in clear before class C");
    cases.push(both.must_fail(Error::Class));

    let mut stuffed = case(suite, Class::Authenticated, Form::Full, from, BODY);
    stuffed.message.bytes.push(0);
    stuffed.name = format!("{suite:?}: a byte too many behind class A");
    cases.push(stuffed.must_fail(Error::Class));

    let conversation = Place::Conversation(group(suite).id());
    for class in Class::ALL {
        for place in [Place::Link, Place::Stream("fleet/8"), conversation.clone()] {
            let mut moved = case(suite, class, Form::Full, from, BODY);
            let place_name = place.json()["kind"].as_str().unwrap().to_owned();
            let class = class.letter();
            moved.name = format!("{suite:?}: class {class} of {TOPIC}, read from a {place_name}");
            moved.place = place;
            cases.push(moved.must_fail(Error::NotAuthentic));
        }
    }
}

/// The reader holds something else.
fn misread(suite: Suite, cases: &mut Vec<Value>) {
    let from = From { slot: 300, epoch: 21 };
    let good = |name: &str| {
        let mut case = case(suite, Class::Group, Form::Full, from, BODY);
        case.name = format!("{suite:?}: {name}");
        case
    };
    let mut other = good("another secret");
    other.secrets[0].1[31] ^= 1;
    cases.push(other.must_fail(Error::NotAuthentic));
    let mut other = good("another group");
    other.group = Group::new(GroupId([9; 32]), suite);
    cases.push(other.must_fail(Error::NotAuthentic));
    let mut other = good("another suite");
    let turned = if suite == Suite::Aes256Gcm { Suite::ChaCha20Poly1305 } else { Suite::Aes256Gcm };
    other.group = Group::new(other.group.id(), turned);
    cases.push(other.must_fail(Error::NotAuthentic));
    let mut other = good("no secret of the epoch");
    other.secrets[0].0 = 22;
    cases.push(other.must_fail(Error::EpochUnknown));
    let mut other = case(suite, Class::Group, Form::Compact, from, BODY);
    other.name = format!("{suite:?}: read in the compact form from 16 epochs away");
    other.near = 37;
    cases.push(other.must_fail(Error::EpochUnknown));
}

/// Of slots and epochs in which nobody had them, and of the other of two members.
fn no_member(suite: Suite, cases: &mut Vec<Value>) {
    for (epoch, member) in [(3, 9), (4, 77)] {
        for class in [Class::Authenticated, Class::Group, Class::Signed] {
            cases.push(of_member(suite, class, epoch, member).must_fail(Error::NotMember));
        }
    }
    for (epoch, member) in [(2, 77), (5, 9)] {
        let mut other = of_member(suite, Class::Signed, epoch, member);
        other.name += ", signed by the other one";
        cases.push(other.must_fail(Error::Signature));
    }
    let mut nobody = of_member(suite, Class::Group, 0, 9);
    nobody.terms = Some(vec![]);
    nobody.name = format!("{suite:?}: nobody is a member");
    cases.push(nobody.must_fail(Error::NotMember));
}

/// Each case is one step.
fn steps() -> Vec<Value> {
    let mut cases = vec![];
    for (name, group) in [("a group", [7; 32]), ("another group", [8; 32])] {
        let group = GroupId(group);
        for epoch in [0, 1, 254, 255, u64::from(u32::MAX), u64::MAX - 1] {
            let first = [epoch.to_le_bytes()[0] ^ 0x35; 32];
            let next = EpochSecret::new(first).next(group, Epoch(epoch + 1)).unwrap();
            cases.push(json!({
                "name": format!("{name}, from epoch {epoch} to the next"),
                "group": hex(&group.0),
                "epoch": epoch,
                "secret": hex(&first),
                "next": hex(next.expose()),
            }));
        }
    }
    cases
}
