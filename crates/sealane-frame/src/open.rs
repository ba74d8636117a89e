//! A frame to its body, where it stands.

use sealane_seal::{Epoch, Form, Opened, Opener, Pending};

use crate::header::{HEADER_BYTES, Header};
use crate::{CompactView, FrameError, FrameView, LinkContext};

/// A live frame that is authentic and not accepted yet.
///
/// The replay window moves with [`Received::accept`], which belongs into the transaction of the
/// message's effect. Dropped instead, the message may come again.
#[must_use = "the replay window moves only when the message is accepted"]
#[derive(Debug)]
pub struct Received<'o, 'f> {
    /// The header in the full form, whichever form travelled. All but the hops are authentic.
    pub header: Header,
    /// The body, in the buffer the frame arrived in.
    pub body: &'f [u8],
    /// Sender, epoch and window.
    pub pending: Pending<'o>,
}

impl Received<'_, '_> {
    /// Moves the sender's window. The message cannot come again.
    pub fn accept(self) -> Opened {
        self.pending.accept()
    }
}

/// A frame from a store that is authentic.
#[derive(Debug)]
pub struct Stored<'f> {
    /// The header. All but the hops are authentic.
    pub header: Header,
    /// The body, in the buffer the frame was read into.
    pub body: &'f [u8],
    /// Sender, epoch and counter: with the group, the message's identity.
    pub opened: Opened,
}

/// Opens a frame of the full form that came over a link, in the buffer it arrived in.
///
/// # Errors
///
/// What [`FrameView::parse`] and [`Opener::open_live`] refuse. The opener's state is as before; if
/// a key was applied, the body is zeroed.
pub fn open_frame<'o, 'f>(
    opener: &'o mut Opener,
    frame: &'f mut [u8],
) -> Result<Received<'o, 'f>, FrameError> {
    let (header, clear, sealed) = parts(frame)?;
    let pending = opener.open_live(Form::Full, header.authenticated(), sealed, clear)?;
    let body = sealed.get(pending.opened().body()).unwrap_or_default();
    Ok(Received { header, body, pending })
}

/// Opens a frame of the full form from a store, in the buffer it was read into. `near` is the epoch
/// that the reader's cursor stands in. Nothing moves.
///
/// # Errors
///
/// What [`FrameView::parse`] and [`Opener::open_stored`] refuse.
pub fn open_stored<'f>(
    opener: &mut Opener,
    near: Epoch,
    frame: &'f mut [u8],
) -> Result<Stored<'f>, FrameError> {
    let (header, clear, sealed) = parts(frame)?;
    let opened = opener.open_stored(near, Form::Full, header.authenticated(), sealed, clear)?;
    let body = sealed.get(opened.body()).unwrap_or_default();
    Ok(Stored { header, body, opened })
}

/// Opens a frame of the compact form that came over `link`, in the buffer it arrived in.
///
/// # Errors
///
/// What [`CompactView::parse`], [`CompactView::header`] and [`Opener::open_live`] refuse. The
/// opener's state is as before; if a key was applied, the body is zeroed.
pub fn open_compact<'o, 'f>(
    opener: &'o mut Opener,
    frame: &'f mut [u8],
    link: &LinkContext<'_>,
) -> Result<Received<'o, 'f>, FrameError> {
    let view = CompactView::parse(frame, link)?;
    let (header, layout) = (view.header(link)?, view.layout());
    let sealed = frame.get_mut(layout.prefix_bytes..).ok_or(FrameError::TooShort)?;
    // The seal has the body of class A before its header.
    let turned = sealed.get_mut(..layout.seal_bytes + layout.clear_bytes);
    if layout.clear_bytes > 0 {
        turned.ok_or(FrameError::LengthMismatch)?.rotate_left(layout.seal_bytes);
    }
    let pending =
        opener.open_live(Form::Compact, header.authenticated(), sealed, layout.clear_bytes)?;
    let body = sealed.get(pending.opened().body()).unwrap_or_default();
    Ok(Received { header, body, pending })
}

/// A copy of the header, the length of a body in clear, and all behind the header.
fn parts(frame: &mut [u8]) -> Result<(Header, usize, &mut [u8]), FrameError> {
    let view = FrameView::parse(frame)?;
    let (header, clear) = (*view.header(), view.clear_body().map_or(0, <[u8]>::len));
    let sealed = frame.get_mut(HEADER_BYTES..).ok_or(FrameError::TooShort)?;
    Ok((header, clear, sealed))
}
