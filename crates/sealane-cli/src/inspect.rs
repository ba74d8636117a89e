//! `sealane inspect`: captured frames, explained byte by byte, without keys or with.
//!
//! ```text
//!  file ─► input ─► unit ─► fragment, batch ─► frame ─► account ─► text, JSON
//!          pcap             units              full     (rows)
//!          packet                              compact
//! ```

use std::path::Path;

use sealane_frame::{CompactView, Fragment, FrameView, HEADER_BYTES, Unit};
use sealane_link::Note;

use crate::args::Inspect;
use crate::{Failure, Terminal};

mod account;
mod body;
mod capture;
mod compact;
mod dictionary;
mod form;
mod full;
mod hex;
mod input;
mod keys;
mod packet;
mod pcap;
mod record;
mod seal;
mod show;
mod tally;
mod units;
mod walk;
mod words;

pub use capture::CaptureError;
pub use form::{FORMATS, FrameForm, Holding};

use account::{Account, Origin, What};
use dictionary::Known;
use input::{Input, Item};
use keys::{CaptureKeys, Opening};
use show::Show;
use tally::Tally;
use units::Gathering;

/// Why what the ends of a link tell each other is not explained.
const NOTE: &str = "asks for announcements, and is no frame";

/// Explains all that a capture holds.
///
/// # Errors
/// [`Failure::Refused`] if something was, [`Failure::Capture`], [`Failure::File`].
pub fn run(args: &Inspect, terminal: &mut Terminal) -> Result<(), Failure> {
    let known = args.dictionary.as_deref().map(Known::read).transpose()?;
    let keys = match args.group_keys.as_deref() {
        Some(path) => Some(CaptureKeys::read(path, args.topic.as_deref())?),
        None => None,
    };
    let opened = Input::open(&args.file, args.holding);
    let (mut input, holding) = opened.map_err(|cause| failure(&args.file, cause))?;
    let mut inspection = Inspection {
        form: args.form,
        is_full: holding == Holding::Full,
        known,
        keys,
        gathering: Gathering::default(),
        tally: Tally::default(),
        show: Show::standard(),
        terminal,
    };
    let read = inspection.all(&mut input, args.file == Path::new("-"));
    inspection.finish()?;
    read?.map_err(|cause| failure(&args.file, cause))?;
    let (refused, seen) = (inspection.tally.refused(), inspection.tally.seen());
    if refused > 0 { Err(Failure::Refused { refused, seen }) } else { Ok(()) }
}

fn failure(file: &Path, cause: CaptureError) -> Failure {
    match cause {
        CaptureError::Read(error) if file == Path::new("-") => Failure::Input(error),
        CaptureError::Read(error) => {
            Failure::File { file: file.to_owned(), cause: error.to_string() }
        }
        cause => Failure::Capture { file: file.to_owned(), cause },
    }
}

/// The facts that are known beforehand, and the counts so far.
struct Inspection<'t> {
    form: Option<FrameForm>,
    /// Whether the input was said to be one frame, whatever its first byte.
    is_full: bool,
    known: Option<Known>,
    keys: Option<CaptureKeys>,
    gathering: Gathering,
    tally: Tally,
    show: Show,
    terminal: &'t mut Terminal,
}

impl Inspection<'_> {
    /// Goes through the input. What was read before a fault is shown.
    fn all(
        &mut self,
        input: &mut Input,
        is_live: bool,
    ) -> Result<Result<(), CaptureError>, Failure> {
        loop {
            match input.next() {
                Ok(Some(Item::Unit(_, bytes))) if Note::parse(&bytes).is_some() => {
                    self.tally.skip(NOTE);
                }
                Ok(Some(Item::Unit(origin, bytes))) => self.unit(&origin, &bytes)?,
                Ok(Some(Item::Skipped(reason))) => self.tally.skip(reason),
                Ok(None) => return Ok(Ok(())),
                Err(cause) => return Ok(Err(cause)),
            }
            if is_live {
                self.terminal.flush()?;
            }
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let (incomplete, crowded_out) = self.gathering.finish();
        self.tally.lose(incomplete, crowded_out);
        if self.terminal.json() {
            return self.terminal.record(self.tally.fields());
        }
        let lines = self.tally.lines(self.keys.is_some());
        self.terminal.write(self.show.end(&lines).as_bytes())
    }

    fn unit(&mut self, origin: &Origin, bytes: &[u8]) -> Result<(), Failure> {
        if self.is_full || is_frame(bytes) {
            return self.frame(origin, bytes);
        }
        match bytes.first() {
            Some(&units::FRAGMENT) => self.fragment(origin, bytes),
            Some(&units::BATCH) => self.batch(origin, bytes),
            Some(&units::LONG) if full::is_long(bytes) => {
                let (account, full) = full::explain_long(bytes, origin);
                self.open_and_tell(account, full)
            }
            _ => self.frame(origin, bytes),
        }
    }

    fn batch(&mut self, origin: &Origin, bytes: &[u8]) -> Result<(), Failure> {
        let (account, items) = units::batch(bytes, origin);
        self.tell(&account)?;
        for (index, item) in items.into_iter().enumerate() {
            self.unit(&Origin { item: Some(index + 1), ..origin.clone() }, item)?;
        }
        Ok(())
    }

    fn fragment(&mut self, origin: &Origin, bytes: &[u8]) -> Result<(), Failure> {
        let mut account = units::fragment(bytes, origin);
        let Ok(fragment) = Fragment::parse(bytes) else { return self.tell(&account) };
        let gathered = self.gathering.push(origin, &fragment);
        if let Err(error) = gathered {
            account.refusal = Some(error.into());
        }
        self.tell(&account)?;
        match gathered {
            Ok(Some((frame, parts))) => {
                let origin = Origin { parts: Some((fragment.id, parts)), ..origin.clone() };
                self.frame(&origin, &frame)
            }
            _ => Ok(()),
        }
    }

    fn frame(&mut self, origin: &Origin, bytes: &[u8]) -> Result<(), Failure> {
        let (account, full) = match self.form(origin, bytes) {
            FrameForm::Full => {
                let account = full::explain(bytes, origin);
                let full = account.refusal.is_none().then(|| bytes.to_vec());
                (account, full)
            }
            FrameForm::Compact => compact::explain(bytes, origin, self.known.as_ref()),
        };
        self.open_and_tell(account, full)
    }

    /// Opens a frame where there are keys, and tells all that is known of it.
    fn open_and_tell(
        &mut self,
        mut account: Account,
        full: Option<Vec<u8>>,
    ) -> Result<(), Failure> {
        if let (Some(keys), Some(full)) = (&mut self.keys, full) {
            let opening = keys.open(&full);
            if matches!(opening, Opening::Opened { .. }) {
                // The opened body is the same, and is to be trusted.
                account.body = None;
            }
            account.opening = Some(opening);
        }
        self.tell(&account)
    }

    /// The form that a frame has, as far as it can be told.
    fn form(&self, origin: &Origin, bytes: &[u8]) -> FrameForm {
        let is_compact = || {
            let link = self.known.as_ref().map(Known::link);
            link.is_some_and(|link| CompactView::parse(bytes, &link).is_ok())
        };
        match self.form {
            Some(form) => form,
            None if self.is_full || FrameView::parse(bytes).is_ok() => FrameForm::Full,
            None if bytes.first().is_none_or(|first| first & 0x80 == 0) => FrameForm::Full,
            None if is_compact() || !full::is_likely(bytes) => FrameForm::Compact,
            // Nobody cuts a datagram off: it is too short for the full form.
            None if origin.is_whole_packet() && bytes.len() < HEADER_BYTES => FrameForm::Compact,
            None => FrameForm::Full,
        }
    }

    fn tell(&mut self, account: &Account) -> Result<(), Failure> {
        let number = self.tally.add(account);
        debug_assert!(account.what == What::Frame || account.form.is_none());
        if self.terminal.json() {
            return self.terminal.record(record::fields(account, number));
        }
        self.terminal.write(self.show.account(account, number).as_bytes())
    }
}

/// A full frame may begin like a fragment or batch if nobody has chosen its next hop yet.
fn is_frame(bytes: &[u8]) -> bool {
    FrameView::parse(bytes).is_ok() || Unit::parse(bytes).is_err() && full::is_likely(bytes)
}
