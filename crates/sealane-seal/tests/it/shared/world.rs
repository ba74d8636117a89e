//! Groups, members and messages that the tests share.
#![allow(dead_code, reason = "each test uses its part")]

use sealane_seal::*;

pub(crate) const META: &[u8] = b"type 7, codec 3";
pub(crate) const BODY: &[u8] = b"unit 4 is 200 m north of the bridge";

pub(crate) fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

pub(crate) fn group(suite: Suite) -> Group {
    Group::new(GroupId([7; 32]), suite)
}

pub(crate) fn pair(suite: Suite) -> Group {
    Group::pair(GroupId([8; 32]), suite)
}

/// The group that a class belongs to.
pub(crate) fn group_of(suite: Suite, class: Class) -> Group {
    if class == Class::Peer { pair(suite) } else { group(suite) }
}

pub(crate) fn epochs(group: Group) -> Epochs {
    epochs_of(group, History::Kept)
}

pub(crate) fn epochs_of(group: Group, history: History) -> Epochs {
    Epochs::provisioned(group.id(), history, &EpochSecret::new([1; 32])).unwrap()
}

pub(crate) fn epochs_at(group: Group, epoch: u64) -> Epochs {
    let mut epochs = epochs(group);
    while epochs.newest().0 < epoch {
        epochs.advance(Epoch(epoch.min(epochs.newest().0 + 1024))).unwrap();
    }
    epochs
}

pub(crate) fn signing_key(slot: Slot) -> SigningKey {
    let mut seed = [9; 32];
    seed[..2].copy_from_slice(&slot.number().to_be_bytes());
    SigningKey::from_seed(&seed).unwrap()
}

/// A sender with a thousand counters and a signing key.
pub(crate) fn sealer(group: Group, slot: Slot, epochs: &Epochs) -> Sealer {
    let mut sealer = Sealer::fresh(group, slot, epochs, Witness([4; 32])).unwrap();
    sealer.set_signing_key(signing_key(slot));
    lease(&mut sealer, 1000);
    sealer
}

pub(crate) fn lease(sealer: &mut Sealer, count: u64) {
    let reservation = sealer.reserve(count).unwrap();
    sealer.confirm(reservation).unwrap();
}

/// A reader that knows the signers of slots 0 to 3 and sends nothing.
pub(crate) fn opener(group: Group, epochs: &Epochs) -> Opener {
    let mut opener = Opener::new(group, None, epochs.clone()).unwrap();
    for number in 0..4 {
        opener.set_signer(slot(number), &signing_key(slot(number)).verifying_key()).unwrap();
    }
    opener
}

/// A message and how to read it.
#[derive(Clone)]
pub(crate) struct Sealed {
    pub(crate) class: Class,
    pub(crate) form: Form,
    pub(crate) meta: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) clear: usize,
}

pub(crate) fn seal(
    sealer: &mut Sealer,
    class: Class,
    form: Form,
    meta: &[u8],
    body: &[u8],
) -> Sealed {
    let mut bytes = Vec::new();
    let place = sealer.append(class, form, meta, body, &mut bytes).unwrap();
    assert_eq!(place, 0..bytes.len());
    let clear = if class == Class::Authenticated { body.len() } else { 0 };
    Sealed { class, form, meta: meta.to_vec(), bytes, clear }
}

impl Sealed {
    /// Opens it live and accepts it.
    pub(crate) fn live(&self, opener: &mut Opener) -> Result<(Opened, Vec<u8>), Error> {
        let mut bytes = self.bytes.clone();
        let opened = opener.open_live(self.form, &self.meta, &mut bytes, self.clear)?.accept();
        let body = bytes[opened.body()].to_vec();
        Ok((opened, body))
    }

    pub(crate) fn stored(
        &self,
        opener: &mut Opener,
        near: u64,
    ) -> Result<(Opened, Vec<u8>), Error> {
        let mut bytes = self.bytes.clone();
        let (near, clear) = (Epoch(near), self.clear);
        let opened = opener.open_stored(near, self.form, &self.meta, &mut bytes, clear)?;
        let body = bytes[opened.body()].to_vec();
        Ok((opened, body))
    }
}

/// All that a reader would store, to see that it did not move.
pub(crate) fn state(opener: &Opener) -> (Epoch, usize, Vec<WindowState>) {
    (opener.epochs().newest(), opener.epochs().held().count(), opener.windows().collect())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
