//! A frame to its body, where it stands.

use sealane_seal::{
    Attached, Binding, Class, Epoch, Form, OpenedMessage, Opener, PendingAnnouncement, PendingOpen,
};

use crate::header::{HEADER_BYTES, Header};
use crate::{CompactView, FrameError, FrameKind, FrameView, LinkContext};

/// A live frame that is authentic and not accepted yet.
///
/// The replay window moves with [`ReceivedFrame::accept`], which belongs into the transaction of
/// the message's effect. Dropped instead, the message may come again.
#[must_use = "the replay window moves only when the message is accepted"]
#[derive(Debug)]
pub struct ReceivedFrame<'o, 'f> {
    /// The header in the full form, whichever form travelled. All but the hops are authentic.
    pub header: Header,
    /// The body, in the buffer the frame arrived in.
    pub body: &'f [u8],
    /// Sender, epoch and window.
    pub pending: PendingOpen<'o>,
}

impl ReceivedFrame<'_, '_> {
    /// Moves the sender's window. The message cannot come again.
    pub fn accept(self) -> OpenedMessage {
        self.pending.accept()
    }
}

/// A frame from a store that is authentic.
#[derive(Debug)]
pub struct StoredFrame<'f> {
    /// The header. All but the hops are authentic.
    pub header: Header,
    /// The body, in the buffer the frame was read into.
    pub body: &'f [u8],
    /// Sender, epoch and counter: with the group, the message's identity.
    pub opened: OpenedMessage,
}

/// Opens a frame of the full form that came over a link, in the buffer it arrived in. Its sender
/// has announced itself.
///
/// # Errors
///
/// As [`FrameView::parse`] and [`Opener::open_live`]. The opener's state is as before; if a key was
/// applied, the body is zeroed.
pub fn open_frame<'o, 'f>(
    opener: &'o mut Opener,
    binding: &Binding,
    frame: &'f mut [u8],
) -> Result<ReceivedFrame<'o, 'f>, FrameError> {
    let (header, clear, sealed) = parts(frame)?;
    let attached = attached(&header, binding);
    let pending = opener.open_live(Form::Full, &attached, sealed, clear)?;
    let body = sealed.get(pending.opened().body()).unwrap_or_default();
    Ok(ReceivedFrame { header, body, pending })
}

/// Opens a frame of the full form from a store, in the buffer it was read into. `near` is the epoch
/// that the reader's cursor stands in. Nothing moves.
///
/// # Errors
///
/// As [`FrameView::parse`] and [`Opener::open_stored`].
pub fn open_stored<'f>(
    opener: &mut Opener,
    near: Epoch,
    binding: &Binding,
    frame: &'f mut [u8],
) -> Result<StoredFrame<'f>, FrameError> {
    let (header, clear, sealed) = parts(frame)?;
    let attached = attached(&header, binding);
    let opened = opener.open_stored(near, Form::Full, &attached, sealed, clear)?;
    let body = sealed.get(opened.body()).unwrap_or_default();
    Ok(StoredFrame { header, body, opened })
}

/// Opens a frame of the compact form that came over `link`, in the buffer it arrived in.
///
/// # Errors
///
/// As [`CompactView::parse`], [`CompactView::header`] and [`Opener::open_live`]. The opener's state
/// is as before; if a key was applied, the body is zeroed.
pub fn open_compact<'o, 'f>(
    opener: &'o mut Opener,
    binding: &Binding,
    frame: &'f mut [u8],
    link: &LinkContext<'_>,
) -> Result<ReceivedFrame<'o, 'f>, FrameError> {
    let view = CompactView::parse(frame, link)?;
    let (header, layout) = (view.header(link)?, view.layout());
    let sealed = frame.get_mut(layout.prefix_bytes..).ok_or(FrameError::TooShort)?;
    // The seal has the body of class A before its header.
    let turned = sealed.get_mut(..layout.seal_bytes + layout.clear_bytes);
    if layout.clear_bytes > 0 {
        turned.ok_or(FrameError::LengthMismatch)?.rotate_left(layout.seal_bytes);
    }
    let attached = attached(&header, binding);
    let pending = opener.open_live(Form::Compact, &attached, sealed, layout.clear_bytes)?;
    let body = sealed.get(pending.opened().body()).unwrap_or_default();
    Ok(ReceivedFrame { header, body, pending })
}

/// Opens a sender's announcement, a control frame of the full form that is bound to the link. When
/// it is accepted, tell the link's roster ([`crate::FrameRoster::announce`]).
///
/// # Errors
///
/// As [`FrameView::parse`] and [`Opener::open_announcement`]; [`FrameError::HeadersDisagree`] for a
/// frame that is no announcement.
pub fn open_announcement<'o>(
    opener: &'o mut Opener,
    frame: &mut [u8],
) -> Result<PendingAnnouncement<'o>, FrameError> {
    let (header, _, sealed) = parts(frame)?;
    let what = (header.kind(), header.data_type(), header.class());
    if what != (FrameKind::Control, ANNOUNCEMENT_TYPE, Class::Signed) {
        return Err(FrameError::HeadersDisagree);
    }
    let binding = Binding::link();
    Ok(opener.open_announcement(&attached(&header, &binding), sealed)?)
}

/// The data type of a control frame whose body is an announcement.
pub const ANNOUNCEMENT_TYPE: u16 = 3;

fn attached<'a>(header: &'a Header, binding: &'a Binding) -> Attached<'a> {
    Attached { context: header.context(), binding, meta: header.authenticated() }
}

/// A copy of the header, the length of a body in clear, and all behind the header.
fn parts(frame: &mut [u8]) -> Result<(Header, usize, &mut [u8]), FrameError> {
    let view = FrameView::parse(frame)?;
    let (header, clear) = (*view.header(), view.clear_body().map_or(0, <[u8]>::len));
    let sealed = frame.get_mut(HEADER_BYTES..).ok_or(FrameError::TooShort)?;
    Ok((header, clear, sealed))
}
