//! Step 4 of a message's way: *sealed bytes to frame and back*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                             ^^^^^             ^^^^^
//!            ┌ changed by relays ┬ authenticated ───────────────────┐
//!   full     │ next │ prev │ hops │ 47 bytes │ SFrame │ text │ tag  │
//!   compact                    │ prefix 4-5 │ SFrame │ text │ tag  │
//! ```
//!
//! This crate takes a body and what its sender says about it, and gives a frame: [`seal_frame`] and
//! [`open_frame`] in the full form, [`seal_compact`] and [`open_compact`] in the compact one, which
//! [`to_full`] and [`to_compact`] turn into each other without loss. [`FrameDraft`] seals a body
//! where it was written. [`forward_in_place`] sends a frame on in the buffer it arrived in,
//! [`forward_batch`] a whole [`SlotRing`] of them. [`Fragment`], [`Reassembly`] and [`FrameBatch`]
//! fit frames to links. `spec/frame.md` is the specification.
//!
//! It has no I/O, no clock, no randomness and no `unsafe`. Nothing is allocated per message once
//! buffers are warm.
//!
//! ```
//! use sealane_frame::*;
//! use sealane_seal::*;
//!
//! let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
//! let secret = EpochSecret::new([1; 32]);
//! let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
//! let context = SenderContext([5; 8]); // 8 random bytes, drawn at each start
//! let mut sealer = Sealer::new(group, Slot::new(1).unwrap(), context, &epochs, 0)?;
//!
//! let [car, relay, base] = [1, 2, 3].map(|n| PeerTag::from_hash([n; 8]));
//! let fields = HeaderFields {
//!     next_hop: relay,
//!     destination: base,
//!     ..HeaderFields::new(GroupTag::from_bytes([9; 4]), car, 1)
//! };
//! let (binding, mut buf) = (Binding::stream("fleet/7"), FrameBuf::new());
//! let frame = seal_frame(&mut sealer, &fields, &binding, b"52.5 N 13.4 E", &mut buf)?;
//! forward_in_place(frame, base, relay)?;
//!
//! let mut opener = Opener::new(group, Slot::new(2), epochs)?;
//! let read = open_stored(&mut opener, Epoch(0), &binding, frame)?;
//! assert_eq!((read.header.source(), read.body), (car, &b"52.5 N 13.4 E"[..]));
//! # Ok::<(), FrameError>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod compact;
mod compact_unit;
mod dictionary;
mod draft;
mod error;
mod flags;
mod forward;
mod fragment;
mod header;
pub mod limits;
pub mod machine;
mod open;
mod reassembly;
mod ring;
mod room;
mod short;
mod tag;
mod unit;
mod view;
mod vocabulary;

pub use compact::{
    COMPACT_HEADER_BYTES_MAX, CompactView, LinkContext, forward_compact_in_place,
    set_compact_hop_limit, to_compact, to_full,
};
pub use compact_unit::{CompactUnit, Definition, LongFrame};
pub use dictionary::{
    DictionaryEntry, ENTRY_BYTES, FrameAnnouncement, FrameDictionary, FrameRoster,
};
pub use draft::{FrameBuf, FrameDraft, HEAD_ROOM_BYTES, seal_compact, seal_frame};
pub use error::{ERRORS, FrameError};
pub use flags::{FrameCompression, FrameKind, Priority};
pub use forward::{FrameAtHop, forward_batch, forward_in_place};
pub use fragment::{FRAGMENT_HEADER_BYTES, Fragment};
pub use header::{
    AUTHENTICATED_BYTES, HEADER_BYTES, Header, HeaderFields, RELAY_BYTES, VERSION, hop_bytes,
    set_hop_limit,
};
pub use open::{
    ANNOUNCEMENT_TYPE, ReceivedFrame, StoredFrame, open_announcement, open_compact, open_frame,
    open_stored,
};
pub use reassembly::{Losses, Reassembly, ReassemblyProgress};
pub use ring::SlotRing;
pub use room::{FrameRoom, seal_in_room};
pub use short::{SHORT_FRAGMENT_HEADER_BYTES, ShortFragment, ShortReassembly};
pub use tag::{GroupTag, PeerTag};
pub use unit::{FrameBatch, FrameUnit};
pub use view::{FrameMut, FrameView};
pub use vocabulary::{Vocabulary, Word};
