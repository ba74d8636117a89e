//! The cases of `vectors/seal`, made by this crate. `vectors/README.md` says what the fields mean.

use sealane_seal::*;
use serde_json::{Value, json};

use super::world::*;

/// Each file's name and text.
pub(crate) fn files() -> [(&'static str, String); 4] {
    [
        ("opened.json", text(opened())),
        ("refused.json", text(refused())),
        ("live.json", text(live())),
        ("epochs.json", text(ratchet())),
    ]
}

fn text(cases: Vec<Value>) -> String {
    format!("{:#}\n", Value::Array(cases))
}

/// What a reader has, and a message for it.
struct Case {
    name: String,
    group: Group,
    secrets: Vec<(u64, [u8; 32])>,
    near: u64,
    signers: Vec<u16>,
    message: Sealed,
}

impl Case {
    fn json(&self, outcome: Value) -> Value {
        let mut all = json!({
            "name": self.name,
            "suite": self.group.suite().number(),
            "group": hex(&self.group.id().0),
            "pair": self.group.is_pair(),
            "secrets": self.secrets.iter().map(|(epoch, secret)| json!({
                "epoch": epoch,
                "secret": hex(secret),
            })).collect::<Vec<_>>(),
            "near": self.near,
            "signers": signers(&self.signers),
        });
        merge(&mut all, message(&self.message));
        merge(&mut all, outcome);
        all
    }

    /// Opens it as a reader must, and writes down what came of it.
    fn outcome(&self) -> Result<Value, Error> {
        let (first, secret) = self.secrets[0];
        let secret = EpochSecret::new(secret);
        let epochs = Epochs::agreed(self.group.id(), History::Kept, Epoch(first), secret);
        let mut reader = Opener::new(self.group, None, epochs).unwrap();
        for (epoch, secret) in &self.secrets[1..] {
            reader.insert(Epoch(*epoch), EpochSecret::new(*secret)).unwrap();
        }
        for signer in &self.signers {
            let key = signing_key(slot(*signer)).verifying_key();
            reader.set_signer(slot(*signer), &key).unwrap();
        }
        let (opened, body) = self.message.stored(&mut reader, self.near)?;
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

fn merge(all: &mut Value, more: Value) {
    let (Value::Object(all), Value::Object(more)) = (all, more) else { panic!("not objects") };
    all.extend(more);
}

fn message(message: &Sealed) -> Value {
    json!({
        "form": if message.form == Form::Full { "full" } else { "compact" },
        "meta": hex(&message.meta),
        "clear": message.clear,
        "sealed": hex(&message.bytes),
    })
}

fn signers(slots: &[u16]) -> Value {
    let keys = slots.iter().map(|number| {
        let key = signing_key(slot(*number)).verifying_key();
        (number.to_string(), Value::String(hex(&key)))
    });
    Value::Object(keys.collect())
}

/// A message of that place, in a reader's hands.
fn case(suite: Suite, class: Class, form: Form, (number, epoch): (u16, u64), body: &[u8]) -> Case {
    let group = group_of(suite, class);
    let epochs = epochs_at(group, epoch);
    let mut sender = sealer(group, slot(number), &epochs);
    // A counter that differs from case to case and takes 0 to 2 bytes.
    for _ in 0..(body.len() * 7) % 300 {
        seal(&mut sender, class, form, b"", b"");
    }
    Case {
        name: format!("{suite:?}, class {}, {form:?}, {} bytes", class.letter(), body.len()),
        group,
        secrets: vec![(epoch, *epochs.secret(Epoch(epoch)).unwrap().expose())],
        near: epoch,
        signers: if class == Class::Signed { vec![number] } else { vec![] },
        message: seal(&mut sender, class, form, META, body),
    }
}

fn opened() -> Vec<Value> {
    let mut cases = vec![];
    for suite in Suite::ALL {
        for class in Class::ALL {
            for form in [Form::Full, Form::Compact] {
                let number = if class == Class::Peer { 1 } else { 300 };
                cases.push(case(suite, class, form, (number, 21), BODY).must_open());
            }
            cases.push(case(suite, class, Form::Full, (0, 0), b"").must_open());
        }
        let mut later = case(suite, Class::Group, Form::Compact, (1023, 300), &[0xab; 100]);
        later.name += ", read seven epochs before";
        later.near = 293;
        cases.push(later.must_open());
    }
    cases
}

fn refused() -> Vec<Value> {
    let mut cases = vec![];
    for suite in Suite::ALL {
        changed(suite, &mut cases);
        misplaced(suite, &mut cases);
        misread(suite, &mut cases);
    }
    cases
}

/// One byte of a message is not what it was.
fn changed(suite: Suite, cases: &mut Vec<Value>) {
    let good = || case(suite, Class::Group, Form::Full, (300, 21), BODY);
    let mut bad = |name: &str, mut case: Case, change: &dyn Fn(&mut Sealed), error| {
        case.name = format!("{suite:?}: {name}");
        change(&mut case.message);
        cases.push(case.must_fail(error));
    };
    bad("a bit of the tag", good(), &|m| *m.bytes.last_mut().unwrap() ^= 1, Error::NotAuthentic);
    bad("a bit of the ciphertext", good(), &|m| m.bytes[10] ^= 0x80, Error::NotAuthentic);
    bad("a bit of the meta", good(), &|m| m.meta[0] ^= 1, Error::NotAuthentic);
    bad("a byte less of meta", good(), &|m| m.meta.truncate(14), Error::NotAuthentic);
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
    let clear = || case(suite, Class::Authenticated, Form::Full, (300, 21), BODY);
    bad("a bit of a body in clear", clear(), &|m| m.bytes[0] ^= 1, Error::NotAuthentic);
    let signed = || case(suite, Class::Signed, Form::Full, (300, 21), BODY);
    bad("the tag of a signed message", signed(), &|m| m.bytes[60] ^= 1, Error::NotAuthentic);
}

/// What is authentic and does not belong there.
fn misplaced(suite: Suite, cases: &mut Vec<Value>) {
    let mut posing = case(suite, Class::Signed, Form::Full, (2, 0), BODY);
    let epochs = epochs(posing.group);
    let mut sender = sealer(posing.group, slot(2), &epochs);
    sender.set_signing_key(signing_key(slot(3)));
    posing.message = seal(&mut sender, Class::Signed, Form::Full, META, BODY);
    posing.name = format!("{suite:?}: signed with the key of slot 3, as slot 2");
    cases.push(posing.must_fail(Error::Signature));

    let mut unknown = case(suite, Class::Signed, Form::Compact, (2, 0), BODY);
    unknown.signers.clear();
    unknown.name = format!("{suite:?}: nobody's key is known for slot 2");
    cases.push(unknown.must_fail(Error::UnknownSigner));

    let mut stranger = case(suite, Class::Peer, Form::Full, (1, 0), BODY);
    let key = KeyId::new(slot(2), Class::Peer, Epoch(0));
    let header = SframeHeader { key, counter: 0 }.encode(Form::Full);
    stranger.message.bytes = [&header[..], &[0; 40]].concat();
    stranger.name = format!("{suite:?}: slot 2 of a pair");
    cases.push(stranger.must_fail(Error::Class));

    let mut both = case(suite, Class::Group, Form::Full, (300, 0), BODY);
    both.message.bytes.splice(0..0, *b"clear");
    both.message.clear = 5;
    both.name = format!("{suite:?}: a body in clear before class C");
    cases.push(both.must_fail(Error::Class));

    let mut stuffed = case(suite, Class::Authenticated, Form::Full, (300, 0), BODY);
    stuffed.message.bytes.push(0);
    stuffed.name = format!("{suite:?}: a byte too many behind class A");
    cases.push(stuffed.must_fail(Error::Class));
}

/// The reader holds something else.
fn misread(suite: Suite, cases: &mut Vec<Value>) {
    let good = |name: &str| {
        let mut case = case(suite, Class::Group, Form::Full, (300, 21), BODY);
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
    let mut other = case(suite, Class::Group, Form::Compact, (300, 21), BODY);
    other.name = format!("{suite:?}: read in the compact form from 16 epochs away");
    other.near = 37;
    cases.push(other.must_fail(Error::EpochUnknown));
}

/// Messages one after the other to one live reader, which accepts what opens.
fn live() -> Vec<Value> {
    let mut cases = vec![];
    for suite in Suite::ALL {
        let group = group(suite);
        let at = |epoch| sealer(group, slot(1), &epochs_at(group, epoch));
        let send = |sender: &mut Sealer| seal(sender, Class::Group, Form::Full, META, BODY);
        let mut sender = at(0);
        lease(&mut sender, 1000);
        let all: Vec<_> = (0..1026).map(|_| send(&mut sender)).collect();
        let pick = |picked: &[usize]| picked.iter().map(|at| all[*at].clone()).collect::<Vec<_>>();
        let mut add = |name: &str, own, steps: Vec<Sealed>| {
            cases.push(sequence(&format!("{suite:?}: {name}"), group, own, &steps));
        };
        add("out of order and again", None, pick(&[2, 0, 1, 2, 0]));
        add("at the edges of the window", None, pick(&[1, 1025, 1, 2, 1, 0]));
        add("of the own slot", Some(1), pick(&[0]));
        let later = |epoch| send(&mut at(epoch));
        add("replayed after the epoch", None, vec![all[0].clone(), later(1), all[0].clone()]);
        add("too far ahead, then ahead", None, vec![later(1280), later(1024), later(3)]);
        add("an epoch late, then two", None, vec![later(2), later(1), later(0)]);
    }
    cases
}

fn sequence(name: &str, group: Group, own: Option<u16>, steps: &[Sealed]) -> Value {
    let epochs = epochs(group);
    let first = *epochs.secret(Epoch(0)).unwrap().expose();
    let mut reader = Opener::new(group, own.map(slot), epochs).unwrap();
    let steps = steps.iter().map(|step| {
        let mut all = message(step);
        let outcome = match step.live(&mut reader) {
            Ok((_, body)) => json!({ "body": hex(&body) }),
            Err(error) => json!({ "error": error.info().code }),
        };
        merge(&mut all, outcome);
        merge(&mut all, json!({ "newest": reader.epochs().newest().0 }));
        all
    });
    let steps: Vec<_> = steps.collect();
    json!({
        "name": name,
        "suite": group.suite().number(),
        "group": hex(&group.id().0),
        "pair": group.is_pair(),
        "own": own,
        "secrets": [{ "epoch": 0, "secret": hex(&first) }],
        "steps": steps,
    })
}

fn ratchet() -> Vec<Value> {
    let groups = [group(Suite::Aes256Gcm), pair(Suite::Aes256Gcm)];
    let cases = groups.into_iter().map(|group| {
        let epochs = epochs_at(group, 1024);
        let secret = |epoch| {
            let secret = hex(epochs.secret(Epoch(epoch)).unwrap().expose());
            json!({ "epoch": epoch, "secret": secret })
        };
        let secrets = [0, 1, 2, 255, 256, 1024].map(secret);
        json!({
            "name": if group.is_pair() { "the ratchet of a pair" } else { "that of a group" },
            "group": hex(&group.id().0),
            "provisioned": hex(&[1; 32]),
            "secrets": secrets,
        })
    });
    cases.collect()
}
