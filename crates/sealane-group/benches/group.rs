//! The cost for a member of sealing and opening, with the counters reserved on disk. The cost of
//! joining and re-keying, too. `cargo bench -p sealane-group`
//!
//! Rounds are interleaved and the first are warm-up. Medians and the tenth and ninetieth of a
//! hundred are shown. The clock is the wall's, since reserving waits for the disk.

use std::hint::black_box;
use std::time::Instant;

use sealane_frame::{FrameBuf, open_stored};
use sealane_group::{EpochSource, GroupMember, IdentityCard, KeyFolder, NewGroup, PastSecrets};
use sealane_seal::{Binding, Class, Epoch, Suite};

const WARM_UP_ROUNDS: usize = 5;
const ROUNDS: usize = 41;
const MESSAGES: usize = 4096;
const BODY_BYTES: usize = 8192;

/// Microseconds per piece of work of each round.
#[derive(Default)]
struct Row(Vec<f64>);

impl Row {
    fn time(&mut self, count: usize, work: impl FnOnce()) {
        let started = Instant::now();
        work();
        self.0.push(started.elapsed().as_secs_f64() * 1e6 / count as f64);
    }

    fn show(&mut self, name: &str) {
        let warm = &mut self.0[WARM_UP_ROUNDS..];
        warm.sort_by(f64::total_cmp);
        let [low, median, high] =
            [10, 50, 90].map(|percent| warm[(warm.len() - 1) * percent / 100]);
        println!("{name:<44}{median:>10.2} µs  ({low:.2} to {high:.2})");
    }
}

fn messages(member: &GroupMember, suite: &str) {
    let (mut sender, mut opener) = (member.sender().unwrap(), member.opener().unwrap());
    let (fields, body) = (sender.fields(Class::Group, 1), vec![7; BODY_BYTES]);
    let (binding, mut buf, mut frame) = (Binding::stream("log"), FrameBuf::new(), Vec::new());
    let (mut seal, mut open) = (Row::default(), Row::default());
    for _ in 0..ROUNDS {
        seal.time(MESSAGES, || {
            for _ in 0..MESSAGES {
                black_box(sender.seal(&fields, &binding, &body, &mut buf).unwrap());
            }
        });
        let sealed = sender.seal(&fields, &binding, &body, &mut buf).unwrap().to_vec();
        open.time(MESSAGES, || {
            for _ in 0..MESSAGES {
                frame.clear();
                frame.extend_from_slice(&sealed);
                black_box(open_stored(&mut opener, Epoch(0), &binding, &mut frame).unwrap().body);
            }
        });
    }
    seal.show(&format!("seal 8 KiB, {suite}, reservations included"));
    open.show(&format!("open 8 KiB, {suite}, a copy included"));
}

fn members(base: &mut GroupMember, folder: &std::path::Path) {
    let (mut invite, mut join, mut rotate) = (Row::default(), Row::default(), Row::default());
    for at in 0..ROUNDS {
        let name = format!("m{at}");
        let keys = KeyFolder::create(&folder.join(&name), &name, None).unwrap();
        let card = IdentityCard::from_bytes(&keys.card().unwrap()).unwrap();
        let mut invited = None;
        invite.time(1, || invited = Some(base.invite(&card, PastSecrets::All).unwrap()));
        let invitation = invited.unwrap().invitation;
        join.time(1, || drop(keys.join(&invitation, None, None).unwrap()));
        rotate.time(1, || drop(base.rotate().unwrap()));
    }
    invite.show("invite a member, of up to 41");
    join.show("join");
    rotate.show("re-key, up to 41 members");
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFolder::create(&folder.path().join("base"), "base", None).unwrap();
    for (name, suite) in [("aes", Suite::Aes256Gcm), ("chacha", Suite::ChaCha20Poly1305)] {
        let group = keys.new_group(name, NewGroup { suite, ..NewGroup::default() }).unwrap();
        messages(&group, name);
    }
    members(&mut keys.new_group("members", NewGroup::default()).unwrap(), folder.path());
}
