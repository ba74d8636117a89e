//! `sealane inspect`: captured frames, explained byte by byte, without keys or with.
//!
//! ```text
//!  file ─► input ─► unit ─► fragment, batch ─► frame ─► account ─► text, JSON
//!          pcap             units              full     (rows)
//!          packet                              compact
//! ```

use std::path::Path;

use sealane_frame::{CompactView, Fragment, FrameUnit, FrameView, HEADER_BYTES};
use sealane_link::LinkNote;

use crate::args::InspectArgs;
use crate::{CliFailure, Terminal};

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
pub use form::{FORMATS, FrameForm, InspectInputKind};

use account::{InspectAccount, InspectOrigin, InspectedKind};
use dictionary::LinkKnowledge;
use input::{InspectInput, InspectItem};
use keys::{CaptureKeys, FrameOpening};
use show::AccountPrinter;
use tally::InspectTally;
use units::FragmentGathering;

/// Why what the ends of a link tell each other is not explained.
const NOTE: &str = "asks for announcements, and is no frame";

/// Explains all that a capture holds.
///
/// # Errors
/// [`CliFailure::Refused`] if something was, [`CliFailure::Capture`],
/// [`CliFailure::File`].
pub fn run(args: &InspectArgs, terminal: &mut Terminal) -> Result<(), CliFailure> {
    let known = args.dictionary.as_deref().map(LinkKnowledge::read).transpose()?;
    let keys = match args.group_keys.as_deref() {
        Some(path) => Some(CaptureKeys::read(path, args.topic.as_deref())?),
        None => None,
    };
    let opened = InspectInput::open(&args.file, args.holding);
    let (mut input, holding) = opened.map_err(|cause| failure(&args.file, cause))?;
    let mut inspection = InspectSession {
        form: args.form,
        is_full: holding == InspectInputKind::Full,
        known,
        keys,
        gathering: FragmentGathering::default(),
        tally: InspectTally::default(),
        show: AccountPrinter::standard(),
        terminal,
    };
    let read = inspection.all(&mut input, args.file == Path::new("-"));
    inspection.finish()?;
    read?.map_err(|cause| failure(&args.file, cause))?;
    let (refused, seen) = (inspection.tally.refused(), inspection.tally.seen());
    if refused > 0 { Err(CliFailure::Refused { refused, seen }) } else { Ok(()) }
}

fn failure(file: &Path, cause: CaptureError) -> CliFailure {
    match cause {
        CaptureError::Read(error) if file == Path::new("-") => CliFailure::Input(error),
        CaptureError::Read(error) => {
            CliFailure::File { file: file.to_owned(), cause: error.to_string() }
        }
        cause => CliFailure::Capture { file: file.to_owned(), cause },
    }
}

/// The facts that are known beforehand, and the counts so far.
struct InspectSession<'t> {
    form: Option<FrameForm>,
    /// Whether the input was said to be one frame, whatever its first byte.
    is_full: bool,
    known: Option<LinkKnowledge>,
    keys: Option<CaptureKeys>,
    gathering: FragmentGathering,
    tally: InspectTally,
    show: AccountPrinter,
    terminal: &'t mut Terminal,
}

impl InspectSession<'_> {
    /// Goes through the input. What was read before a fault is shown.
    fn all(
        &mut self,
        input: &mut InspectInput,
        is_live: bool,
    ) -> Result<Result<(), CaptureError>, CliFailure> {
        loop {
            match input.next() {
                Ok(Some(InspectItem::Unit(_, bytes))) if LinkNote::parse(&bytes).is_some() => {
                    self.tally.skip(NOTE);
                }
                Ok(Some(InspectItem::Unit(origin, bytes))) => self.unit(&origin, &bytes)?,
                Ok(Some(InspectItem::Skipped(reason))) => self.tally.skip(reason),
                Ok(None) => return Ok(Ok(())),
                Err(cause) => return Ok(Err(cause)),
            }
            if is_live {
                self.terminal.flush()?;
            }
        }
    }

    fn finish(&mut self) -> Result<(), CliFailure> {
        let (incomplete, crowded_out) = self.gathering.finish();
        self.tally.lose(incomplete, crowded_out);
        if self.terminal.json() {
            return self.terminal.record(self.tally.fields());
        }
        let lines = self.tally.lines(self.keys.is_some());
        self.terminal.write(self.show.end(&lines).as_bytes())
    }

    fn unit(&mut self, origin: &InspectOrigin, bytes: &[u8]) -> Result<(), CliFailure> {
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

    fn batch(&mut self, origin: &InspectOrigin, bytes: &[u8]) -> Result<(), CliFailure> {
        let (account, items) = units::batch(bytes, origin);
        self.tell(&account)?;
        for (index, item) in items.into_iter().enumerate() {
            self.unit(&InspectOrigin { item: Some(index + 1), ..origin.clone() }, item)?;
        }
        Ok(())
    }

    fn fragment(&mut self, origin: &InspectOrigin, bytes: &[u8]) -> Result<(), CliFailure> {
        let mut account = units::fragment(bytes, origin);
        let Ok(fragment) = Fragment::parse(bytes) else { return self.tell(&account) };
        let gathered = self.gathering.push(origin, &fragment);
        if let Err(error) = gathered {
            account.refusal = Some(error.into());
        }
        self.tell(&account)?;
        match gathered {
            Ok(Some((frame, parts))) => {
                let origin = InspectOrigin { parts: Some((fragment.id, parts)), ..origin.clone() };
                self.frame(&origin, &frame)
            }
            _ => Ok(()),
        }
    }

    fn frame(&mut self, origin: &InspectOrigin, bytes: &[u8]) -> Result<(), CliFailure> {
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
        mut account: InspectAccount,
        full: Option<Vec<u8>>,
    ) -> Result<(), CliFailure> {
        if let (Some(keys), Some(full)) = (&mut self.keys, full) {
            let opening = keys.open(&full);
            if matches!(opening, FrameOpening::Opened { .. }) {
                // The opened body is the same, and is to be trusted.
                account.body = None;
            }
            account.opening = Some(opening);
        }
        self.tell(&account)
    }

    /// The form that a frame has, as far as it can be told.
    fn form(&self, origin: &InspectOrigin, bytes: &[u8]) -> FrameForm {
        let is_compact = || {
            let link = self.known.as_ref().map(LinkKnowledge::link);
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

    fn tell(&mut self, account: &InspectAccount) -> Result<(), CliFailure> {
        let number = self.tally.add(account);
        debug_assert!(account.what == InspectedKind::Frame || account.form.is_none());
        if self.terminal.json() {
            return self.terminal.record(record::fields(account, number));
        }
        self.terminal.write(self.show.account(account, number).as_bytes())
    }
}

/// A full frame may begin like a fragment or batch if nobody has chosen its next hop yet.
fn is_frame(bytes: &[u8]) -> bool {
    FrameView::parse(bytes).is_ok() || FrameUnit::parse(bytes).is_err() && full::is_likely(bytes)
}
