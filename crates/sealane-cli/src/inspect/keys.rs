//! Keys of groups, to open frames with: `--group-keys`.

use std::path::Path;

use sealane_frame::{FrameError, FrameKind, FrameView, GroupTag, open_stored};
use sealane_message::InputError;
use sealane_seal::limits::MAX_SLOT;
use sealane_seal::{
    Binding, Class, Epoch, EpochSecret, Epochs, Group, GroupId, History, Opener, Slot, Suite, Term,
};
use toml::{Table, Value};

use super::account::InspectRefusal;
use super::body::{self, InspectBody};
use super::hex;
use crate::CliFailure;

/// The groups whose keys are held.
#[derive(Debug)]
pub(super) struct CaptureKeys {
    groups: Vec<HeldGroupKeys>,
    /// The stream that the frames were kept in, if they were.
    topic: Option<String>,
}

/// The outcome of opening a frame.
#[derive(Debug)]
pub(super) enum FrameOpening {
    /// It is authentic.
    Opened { epoch: u64, slot: u16, counter: u64, body: InspectBody },
    /// No keys of its group are held.
    NoKeys,
    /// It did not open.
    Refused(InspectRefusal),
}

/// One group's keys of one epoch.
#[derive(Debug)]
struct HeldGroupKeys {
    tag: GroupTag,
    start: Epoch,
    opener: Opener,
    /// For class S: it knows the signers, and nobody else as a member.
    signed: Opener,
}

impl CaptureKeys {
    /// Reads a file of keys. What it says of a fault never holds a value of the file.
    ///
    /// # Errors
    /// [`CliFailure::File`].
    pub(super) fn read(path: &Path, topic: Option<&str>) -> Result<CaptureKeys, CliFailure> {
        let file = |cause: String| CliFailure::File { file: path.to_owned(), cause };
        let text = std::fs::read_to_string(path).map_err(|error| file(error.to_string()))?;
        let keys = CaptureKeys::parse(&text).map_err(|cause| file(cause.to_string()))?;
        Ok(CaptureKeys { topic: topic.map(str::to_owned), ..keys })
    }

    fn parse(text: &str) -> Result<CaptureKeys, InputError> {
        let table: Table = text.parse().map_err(|error| syntax(text, &error))?;
        if let Some(name) = table.keys().find(|name| *name != "group") {
            return Err(format!("`{name}` is no key of this file; it has [[group]] tables").into());
        }
        let groups = table.get("group").and_then(Value::as_array);
        let groups = groups.ok_or("there is no [[group]]")?.iter().enumerate();
        let held = |(index, group): (usize, &Value)| {
            let group = group.as_table().ok_or_else(|| InputError::from("a group is a table"));
            let held = group.and_then(HeldGroupKeys::read);
            held.map_err(|cause| {
                InputError::from(format!("[[group]] number {}: {cause}", index + 1))
            })
        };
        Ok(CaptureKeys { groups: groups.map(held).collect::<Result<_, _>>()?, topic: None })
    }

    /// Opens a frame of the full form.
    pub(super) fn open(&mut self, frame: &[u8]) -> FrameOpening {
        let (tag, kind) = match FrameView::parse(frame) {
            Ok(view) => (view.header().group(), view.header().kind()),
            Err(error) => return FrameOpening::Refused(error.into()),
        };
        let bindings = match &self.topic {
            Some(topic) => vec![Binding::stream(topic)],
            // An order is made for the control stream of its group, however it travels.
            None if kind == FrameKind::Control => {
                vec![Binding::stream(&sealane_group::control_topic(tag)), Binding::link()]
            }
            None => vec![Binding::link()],
        };
        let mut refusal = None;
        for held in self.groups.iter_mut().filter(|held| held.tag == tag) {
            match held.open(frame, &bindings) {
                Ok(opened) => return opened,
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        refusal.map_or(FrameOpening::NoKeys, |error| FrameOpening::Refused(error.into()))
    }
}

impl HeldGroupKeys {
    fn read(table: &Table) -> Result<HeldGroupKeys, InputError> {
        if let Some(name) = table.keys().find(|name| !NAMES.contains(&name.as_str())) {
            return Err(
                format!("`{name}` is no key of a group; they are {}", NAMES.join(", ")).into()
            );
        }
        let tag = GroupTag::from_bytes(bytes(table, "tag")?.ok_or("`tag` is missing")?);
        let id = GroupId(bytes(table, "id")?.ok_or("`id` is missing")?);
        let suite = suite(table.get("suite"))?;
        let is_pair = flag(table, "pair")?.unwrap_or(false);
        let group = if is_pair { Group::pair(id, suite) } else { Group::new(id, suite) };
        let epochs = epochs(table, id)?;
        let start = epochs.newest();
        let opener = |epochs| Opener::new(group, None, epochs).map_err(|error| error.to_string());
        let mut signed = opener(epochs.clone())?;
        let mut terms = Vec::new();
        for (slot, key) in table.get("signers").map_or(Ok(&Table::new()), signers)? {
            let number = slot.parse().ok().and_then(Slot::new);
            let number = number.ok_or(format!("a signer's slot is 0 to {MAX_SLOT}"))?;
            let key = key.as_str().and_then(hex::array);
            let key = key.ok_or(format!("the key of signer {slot} has 64 digits"))?;
            terms.push(Term { slot: number, since: Epoch(0), until: None, verifying_key: key });
            let set = signed.set_terms(terms.iter().copied());
            set.map_err(|_| format!("the key of signer {slot} is no Ed25519 key"))?;
        }
        Ok(HeldGroupKeys { tag, start, opener: opener(epochs)?, signed })
    }

    /// Tries the places that the frame may be made for.
    fn open(&mut self, frame: &[u8], bindings: &[Binding]) -> Result<FrameOpening, FrameError> {
        let class = FrameView::parse(frame)?.header().class();
        let opener = if class == Class::Signed { &mut self.signed } else { &mut self.opener };
        let mut refusal = None;
        for binding in bindings {
            let mut copy = frame.to_vec();
            match open_stored(opener, self.start, binding, &mut copy) {
                Ok(stored) => {
                    let header = stored.header;
                    return Ok(FrameOpening::Opened {
                        epoch: stored.opened.epoch().0,
                        slot: stored.opened.slot().number(),
                        counter: stored.opened.counter(),
                        body: InspectBody::read(body::BodyHeader::of(&header), stored.body),
                    });
                }
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        Err(refusal.unwrap_or(FrameError::Seal(sealane_seal::Error::EpochUnknown)))
    }
}

const NAMES: &[&str] = &["tag", "id", "suite", "pair", "secret", "epoch", "signers"];

/// The secret of one epoch.
fn epochs(table: &Table, id: GroupId) -> Result<Epochs, InputError> {
    let secret = bytes(table, "secret")?.ok_or("`secret` is missing")?;
    let epoch = table.get("epoch").ok_or("`secret` needs `epoch`: the one that it is of")?;
    let epoch = epoch.as_integer().and_then(|epoch| u64::try_from(epoch).ok());
    let epoch = Epoch(epoch.ok_or("`epoch` is no number from 0 up")?);
    Ok(Epochs::new(id, History::Kept, epoch, EpochSecret::new(secret)))
}

fn suite(value: Option<&Value>) -> Result<Suite, InputError> {
    let [aes, chacha] = Suite::ALL.map(Suite::name);
    let names = || InputError::from(format!("`suite` is {aes:?} or {chacha:?}"));
    match value {
        None => Ok(Suite::Aes256Gcm),
        Some(Value::String(name)) => Suite::from_name(name).ok_or_else(names),
        Some(Value::Integer(number)) => {
            let suite = u16::try_from(*number).ok().and_then(Suite::from_number);
            suite.ok_or_else(|| "`suite` is 5 or 0xf001".into())
        }
        Some(_) => Err(names()),
    }
}

fn signers(value: &Value) -> Result<&Table, InputError> {
    value.as_table().ok_or_else(|| "`signers` is a table of slots".into())
}

fn flag(table: &Table, name: &str) -> Result<Option<bool>, InputError> {
    let wrong = || InputError::from(format!("`{name}` is neither true nor false"));
    let flag = |value: &Value| value.as_bool().ok_or_else(wrong);
    table.get(name).map(flag).transpose()
}

/// Hexadecimal digits of exactly `N` bytes.
fn bytes<const N: usize>(table: &Table, name: &str) -> Result<Option<[u8; N]>, InputError> {
    let fault = || InputError::from(format!("`{name}` is no text of {} hexadecimal digits", 2 * N));
    let read = |value: &Value| value.as_str().and_then(hex::array).ok_or_else(fault);
    table.get(name).map(read).transpose()
}

/// A fault of the syntax. The library's own text would show the line, which may hold a key.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: this is no TOML", before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";

    fn file(rest: &str) -> String {
        format!("[[group]]\ntag = \"a1a2a3a4\"\nid = \"{}\"\n{rest}", "07".repeat(32))
    }

    #[test]
    fn groups_are_read() {
        let secret = format!("secret = \"{SECRET}\"\nepoch = 7\nsuite = 0xf001");
        let keys = CaptureKeys::parse(&file(&secret)).unwrap();
        assert_eq!(keys.groups[0].start, Epoch(7));
        assert!(!format!("{keys:?}").contains("c0ffee"));
        let named = format!(
            "secret = \"{SECRET}\"\nepoch = 0\npair = true\nsuite = \"{}\"",
            Suite::Aes256Gcm.name()
        );
        assert_eq!(CaptureKeys::parse(&file(&named)).unwrap().groups[0].start, Epoch(0));
    }

    #[test]
    fn faults_are_named_and_show_no_key() {
        let secret = format!("secret = \"{SECRET}\"\n");
        let of_0 = format!("{secret}epoch = 0\n");
        for (text, cause) in [
            (file(&secret), "needs `epoch`"),
            (file("epoch = 0"), "`secret` is missing"),
            (file(&format!("{secret}epoch = -1")), "from 0 up"),
            (file(&format!("{of_0}suite = 7")), "`suite` is 5 or 0xf001"),
            (file(&format!("{of_0}suite = \"AES\"")), "`suite` is \"AES_256"),
            (file(&format!("{of_0}signers = {{ 5 = \"{SECRET}00\" }}")), "signer 5"),
            (file(&format!("{of_0}signers = {{ 2000 = \"\" }}")), "0 to 1023"),
            (file(&format!("secret = \"{SECRET}ff\"\nepoch = 0")), "64 hexadecimal digits"),
            (file(&format!("secret = {SECRET}\n")), "line 4: this is no TOML"),
            (file(&format!("secrets = \"{SECRET}\"\n")), "`secrets` is no key of a group"),
            ("x = 1".into(), "`x` is no key of this file"),
            (String::new(), "no [[group]]"),
        ] {
            let said = CaptureKeys::parse(&text).unwrap_err();
            assert!(said.to_string().contains(cause), "{said} should be about {cause}");
            assert!(!said.to_string().contains("c0ffee"), "{said}");
        }
    }
}
