//! The cases of `vectors/seal/live.json`: what one live reader meets, one after the other.

use std::collections::BTreeMap;

use sealane_seal::*;
use serde_json::{Value, json};

use super::cases::{Place, group_json, merge, message, reader, secret, terms_json};
use super::world::*;

const HERE: Place = Place::Stream(TOPIC);

/// A live reader, and what it has met so far.
struct Sequence {
    name: String,
    group: Group,
    own: Option<u16>,
    terms: Vec<Term>,
    /// All epochs that senders know.
    epochs: Epochs,
    reader: Opener,
    secrets: Vec<(u64, [u8; 32])>,
    disk: BTreeMap<Slot, [u8; SessionState::BYTES]>,
    now_ms: u64,
    steps: Vec<Value>,
}

impl Sequence {
    fn new(suite: Suite, name: &str) -> Sequence {
        Sequence::of(group(suite), name, None)
    }

    fn of(group: Group, name: &str, own: Option<u16>) -> Sequence {
        let terms: Vec<_> = (0..4).map(term).collect();
        let epochs = epochs_at(group, 4);
        let secrets = vec![secret(&epochs, 0)];
        let name = format!("{:?}: {name}", group.suite());
        let (disk, now_ms, steps) = (BTreeMap::new(), 1000, vec![]);
        let mut reader = reader(group, own, &secrets);
        reader.set_terms(terms.iter().copied()).unwrap();
        Sequence { name, group, own, terms, epochs, reader, secrets, disk, now_ms, steps }
    }

    /// A sender in an epoch. Its context says the start.
    fn sender(&self, number: u16, epoch: u64, start: u8) -> Sealer {
        let epochs = epochs_at(self.group, epoch);
        let context = SenderContext([start; 8]);
        sealer_of(self.group, slot(number), &epochs, context, 0)
    }

    fn step(&mut self, mut step: Value, outcome: Value) {
        merge(&mut step, outcome);
        self.steps.push(step);
    }

    /// The announcement of the sender's next counter.
    fn announces(&mut self, sender: &mut Sealer, start: u64) -> Sealed {
        let sealed = announcement(sender, start);
        self.announced(&sealed);
        sealed
    }

    fn announced(&mut self, sealed: &Sealed) {
        let (mut bytes, attached) = (sealed.bytes.clone(), sealed.attached());
        let outcome = match self.reader.open_announcement(&attached, &mut bytes) {
            Ok(mut announced) => {
                let Announcement { start, orders } = announced.announcement();
                let stored = announced.to_store(self.now_ms);
                let _ = announced.accept();
                store(&mut self.disk, stored, json!({ "start": start, "orders": orders }))
            }
            Err(error) => json!({ "error": error.info().code }),
        };
        let mut step = json!({ "do": "announcement", "now": self.now_ms });
        merge(&mut step, message(sealed, &Place::Link));
        self.step(step, outcome);
    }

    fn sends(&mut self, sender: &mut Sealer, form: Form) -> Sealed {
        let sealed = seal(sender, Class::Group, form, META, BODY);
        self.comes(&sealed);
        sealed
    }

    fn comes(&mut self, sealed: &Sealed) {
        self.comes_and(sealed, true);
    }

    /// A message that the reader accepts or, after it has stored what it must, does not.
    fn comes_and(&mut self, sealed: &Sealed, is_accepted: bool) {
        let (mut bytes, attached) = (sealed.bytes.clone(), sealed.attached());
        let (form, clear) = (sealed.form, sealed.clear);
        let outcome = match self.reader.open_live(form, &attached, &mut bytes, clear) {
            Ok(mut pending) => {
                let stored = pending.to_store(self.now_ms);
                let body = pending.opened().body();
                if is_accepted {
                    let _ = pending.accept();
                }
                let opened = json!({ "body": hex(&bytes[body]), "accepted": is_accepted });
                store(&mut self.disk, stored, opened)
            }
            Err(error) => json!({ "error": error.info().code }),
        };
        let mut step = json!({ "do": "message", "now": self.now_ms });
        merge(&mut step, message(sealed, &HERE));
        self.step(step, outcome);
    }

    /// The reader stops and starts again with what it has stored.
    fn restarts(&mut self) {
        self.reader = reader(self.group, self.own, &self.secrets);
        self.reader.set_terms(self.terms.iter().copied()).unwrap();
        for state in self.disk.values() {
            self.reader.restore(&SessionState::from_bytes(state).unwrap());
        }
        let sessions: Vec<_> = self.disk.values().map(|state| hex(state)).collect();
        self.steps.push(json!({ "do": "restart", "sessions": sessions }));
    }

    fn enters(&mut self, epoch: u64) {
        let secret = secret(&self.epochs, epoch);
        self.reader.insert(Epoch(epoch), EpochSecret::new(secret.1)).unwrap();
        self.secrets.push(secret);
        self.steps.push(json!({ "do": "secret", "epoch": epoch, "secret": hex(&secret.1) }));
    }

    fn floor(&mut self, epoch: u64) {
        self.reader.set_live_floor(Epoch(epoch));
        self.steps.push(json!({ "do": "floor", "epoch": epoch }));
    }

    fn allows_trials(&mut self) {
        self.reader.allow_trials();
        self.steps.push(json!({ "do": "allow trials" }));
    }

    fn json(self) -> Value {
        let mut all = group_json(&self.name, self.group, &self.secrets[..1]);
        let more = json!({
            "own": self.own,
            "terms": terms_json(&self.terms),
            "steps": self.steps,
        });
        merge(&mut all, more);
        all
    }
}

/// Puts a state on the disk, and says so.
fn store(
    disk: &mut BTreeMap<Slot, [u8; SessionState::BYTES]>,
    stored: Option<SessionState>,
    mut outcome: Value,
) -> Value {
    merge(&mut outcome, json!({ "stored": stored.map(|state| hex(&state.to_bytes())) }));
    if let Some(state) = stored {
        disk.insert(state.slot(), state.to_bytes());
    }
    outcome
}

pub(crate) fn cases() -> Vec<Value> {
    let of_suite = |suite| {
        [
            out_of_order(suite),
            edges_of_the_window(suite),
            own_slot(suite),
            unannounced(suite),
            starts(suite),
            recorded(suite),
            ceilings(suite),
            epochs_pass(suite),
            lost_sessions(suite),
            slots_change_hands(suite),
            pair_of_two(suite),
        ]
    };
    let mut cases: Vec<_> = Suite::ALL.into_iter().flat_map(of_suite).collect();
    cases.push(trials());
    cases.into_iter().map(Sequence::json).collect()
}

fn out_of_order(suite: Suite) -> Sequence {
    let mut it = Sequence::new(suite, "out of order, again, and in the other form");
    let mut sender = it.sender(1, 0, 0xa1);
    it.announces(&mut sender, 5000);
    let all: Vec<_> =
        (0..3).map(|_| seal(&mut sender, Class::Group, Form::Full, META, BODY)).collect();
    for index in [2, 0, 1, 2, 0] {
        it.comes(&all[index]);
    }
    it.comes(&all[1].with_header(all[1].header(), Form::Compact));
    it.sends(&mut sender, Form::Compact);
    it
}

fn edges_of_the_window(suite: Suite) -> Sequence {
    let mut it = Sequence::new(suite, "at the edges of the window");
    let mut sender = it.sender(1, 0, 0xa1);
    it.announces(&mut sender, 5000);
    let all: Vec<_> =
        (0..1026).map(|_| seal(&mut sender, Class::Group, Form::Full, META, BODY)).collect();
    for index in [1, 1025, 1, 2, 1, 0] {
        it.comes(&all[index]);
    }
    it
}

fn own_slot(suite: Suite) -> Sequence {
    let mut it = Sequence::of(group(suite), "of the own slot", Some(1));
    let mut sender = it.sender(1, 0, 0xa1);
    it.announces(&mut sender, 5000);
    it.sends(&mut sender, Form::Full);
    it
}

fn unannounced(suite: Suite) -> Sequence {
    let mut it = Sequence::new(suite, "contexts that were not announced");
    let (mut first, mut second) = (it.sender(1, 0, 0xa1), it.sender(1, 0, 0xa2));
    let early = it.sends(&mut first, Form::Full);
    it.announces(&mut first, 5000);
    it.comes(&early);
    it.sends(&mut second, Form::Full);
    it.sends(&mut first, Form::Full);
    it
}

fn starts(suite: Suite) -> Sequence {
    let mut it = Sequence::new(suite, "starts that are later, and not");
    let (mut first, mut second) = (it.sender(1, 0, 0xa1), it.sender(1, 0, 0xa2));
    let announced = it.announces(&mut first, 5000);
    it.announces(&mut first, 5000);
    it.announced(&announced);
    it.announces(&mut second, 4999);
    it.announces(&mut second, 5000);
    it.announces(&mut second, 5001);
    it.sends(&mut first, Form::Full);
    it.sends(&mut second, Form::Full);
    it.announces(&mut first, 5000);
    let (class, binding) = (Class::Signed, Binding::link());
    let other = seal_for(&mut second, &binding, class, Form::Full, META, &[2; 17]);
    it.announced(&other);
    let other = seal_for(&mut second, &binding, Class::Group, Form::Full, META, &[1; 17]);
    it.announced(&other);
    it
}

/// Recorded, and played after the reader has started again, twice.
fn recorded(suite: Suite) -> Sequence {
    let mut it = Sequence::new(suite, "a recorded session");
    let mut first = it.sender(1, 0, 0xa1);
    let announced = it.announces(&mut first, 5000);
    let messages = [0, 1, 2].map(|_| it.sends(&mut first, Form::Full));
    it.restarts();
    it.announced(&announced);
    messages.iter().for_each(|message| it.comes(message));
    let mut second = it.sender(1, 0, 0xa2);
    it.announces(&mut second, 6000);
    it.announced(&announced);
    messages.iter().for_each(|message| it.comes(message));
    it.restarts();
    it.announced(&announced);
    messages.iter().for_each(|message| it.comes(message));
    it.sends(&mut second, Form::Full);
    it
}

/// Ceilings that lie ahead, are lowered, and are stored for messages that are not accepted.
fn ceilings(suite: Suite) -> Sequence {
    let mut it = Sequence::new(suite, "ceilings and restarts");
    let mut sender = it.sender(1, 0, 0xa1);
    it.announces(&mut sender, 5000);
    (0..5).for_each(|_| drop(it.sends(&mut sender, Form::Full)));
    it.restarts();
    (0..4).for_each(|_| drop(it.sends(&mut sender, Form::Full)));
    it.now_ms += 700;
    (0..2).for_each(|_| drop(it.sends(&mut sender, Form::Full)));
    it.now_ms += 499;
    (0..4).for_each(|_| drop(it.sends(&mut sender, Form::Full)));
    it.now_ms += 60_000;
    it.sends(&mut sender, Form::Full);
    let crash = seal(&mut sender, Class::Group, Form::Full, META, BODY);
    it.comes_and(&crash, false);
    it.restarts();
    it.comes(&crash);
    it.sends(&mut sender, Form::Full);
    it
}

fn epochs_pass(suite: Suite) -> Sequence {
    let mut it = Sequence::new(suite, "epochs pass");
    let (mut sender, mut quiet) = (it.sender(1, 0, 0xa1), it.sender(2, 0, 0xb1));
    it.announces(&mut sender, 5000);
    it.announces(&mut quiet, 5000);
    let old = it.sends(&mut sender, Form::Full);
    let unheard = seal(&mut sender, Class::Group, Form::Full, META, BODY);
    let [late, too_late] = [0, 1].map(|_| seal(&mut quiet, Class::Group, Form::Full, META, BODY));
    let mut sender = it.sender(1, 1, 0xa1);
    let next = it.sends(&mut sender, Form::Full);
    it.enters(1);
    it.comes(&old);
    it.comes(&next);
    it.comes(&old);
    it.comes(&unheard);
    it.comes(&late);
    it.restarts();
    it.comes(&next);
    it.comes(&unheard);
    it.sends(&mut sender, Form::Compact);
    it.enters(2);
    it.comes(&too_late);
    it.enters(4);
    let mut sender = it.sender(1, 3, 0xa1);
    it.sends(&mut sender, Form::Full);
    it
}

fn lost_sessions(suite: Suite) -> Sequence {
    let mut it = Sequence::new(suite, "a reader that has lost its sessions");
    let mut sender = it.sender(1, 0, 0xa1);
    it.floor(1);
    let announced = it.announces(&mut sender, 5000);
    it.sends(&mut sender, Form::Full);
    it.enters(1);
    it.announced(&announced);
    let mut sender = it.sender(1, 1, 0xa1);
    it.sends(&mut sender, Form::Full);
    it.announces(&mut sender, 5000);
    it.sends(&mut sender, Form::Full);
    it
}

/// One member leaves in epoch 1 and named the latest start there is; another has its slot then.
fn slots_change_hands(suite: Suite) -> Sequence {
    let mut it = Sequence::new(suite, "a slot that changes hands");
    let leaves = Term { until: Some(Epoch(1)), ..term(1) };
    let verifying_key = signing_key_of(slot(1), 77).verifying_key();
    it.terms = vec![leaves, Term { since: Epoch(1), until: None, verifying_key, ..leaves }];
    it.reader.set_terms(it.terms.iter().copied()).unwrap();
    let mut stranger = it.sender(2, 0, 0xb1);
    it.announces(&mut stranger, 5000);
    it.sends(&mut stranger, Form::Full);
    let mut first = it.sender(1, 0, 0xa1);
    let last = it.announces(&mut first, u64::MAX);
    it.enters(1);
    let mut posing = it.sender(1, 1, 0xa1);
    it.announces(&mut posing, u64::MAX);
    let mut second = it.sender(1, 1, 0xa2);
    second.set_signing_key(signing_key_of(slot(1), 77));
    it.announces(&mut second, 6000);
    it.announced(&last);
    it.sends(&mut first, Form::Full);
    it.sends(&mut second, Form::Full);
    it
}

fn pair_of_two(suite: Suite) -> Sequence {
    let mut it = Sequence::of(pair(suite), "a pair", Some(0));
    let mut sender = it.sender(1, 0, 0xa1);
    it.announces(&mut sender, 5000);
    for class in [Class::Peer, Class::Authenticated, Class::Signed] {
        let message = seal(&mut sender, class, Form::Full, META, BODY);
        it.comes(&message);
        it.comes(&message);
    }
    it
}

/// Made-up contexts use the trials up.
fn trials() -> Sequence {
    let mut it = Sequence::new(Suite::Aes256Gcm, "made-up contexts");
    let (mut known, mut unknown) = (it.sender(1, 0, 0xa1), it.sender(3, 0, 0xc1));
    it.announces(&mut known, 5000);
    for number in 1..=limits::MAX_TRIALS {
        let mut forged = it.sender(2, 0, number as u8);
        let mut forged = announcement(&mut forged, 5000);
        *forged.bytes.last_mut().unwrap() ^= 1;
        it.announced(&forged);
    }
    it.announces(&mut unknown, 5000);
    it.sends(&mut known, Form::Full);
    it.announces(&mut known, 5000);
    it.allows_trials();
    it.announces(&mut unknown, 5000);
    it.sends(&mut unknown, Form::Full);
    it
}
