//! Step 3 of a message's way: *bytes to sealed bytes and back*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                     ^^^^
//!
//!   epoch secret ──► key of (slot, class, epoch) ──┐
//!                                                  ▼
//!   body, meta ─────────────────────────────► [header│ciphertext│tag]      classes C, S, P
//!                                             [body│header│tag]            class A
//! ```
//!
//! This crate takes the bytes of a body and the part of the frame that is to be authenticated, and
//! gives the SFrame form (RFC 9605) of it, in place. A [`Sealer`] is one start of a member that
//! sends, under keys of its own [`SenderContext`]; an [`Opener`] one that reads, live or from a
//! store. [`Epochs`] holds the secrets, a [`Binding`] says where a message belongs. [`policy`]
//! decides the class. `spec/seal.md` and `spec/policy.md` specify it.
//!
//! It has no I/O, no clock, no randomness and no `unsafe`. Nothing is allocated per message once a
//! sender is known.
//!
//! ```
//! use sealane_seal::*;
//!
//! let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
//! let secret = EpochSecret::new([1; 32]);
//! let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
//! let context = SenderContext([5; 8]); // 8 random bytes, drawn at each start
//! let mut sealer = Sealer::new(group, Slot::new(1).unwrap(), context, &epochs, 0)?;
//!
//! let (binding, mut sealed) = (Binding::stream("fleet/7"), Vec::new());
//! sealer.append(Class::Group, Form::Full, &binding, b"meta", b"hello", &mut sealed)?;
//! let mut opener = Opener::new(group, Slot::new(2), epochs)?;
//! let attached = Attached { context, binding: &binding, meta: b"meta" };
//! let opened = opener.open_stored(Epoch(0), Form::Full, &attached, &mut sealed, 0)?;
//! assert_eq!(&sealed[opened.body()], b"hello");
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod aead;
mod announcement;
mod associated;
mod binding;
mod context;
mod derive;
mod epoch;
mod error;
mod group;
mod header;
pub mod limits;
mod opener;
pub mod policy;
mod sealer;
mod session;
mod sign;
mod window;

pub use announcement::Announcement;
pub use binding::{Attached, Binding};
pub use context::SenderContext;
pub use epoch::{EpochSecret, Epochs, History};
pub use error::{ERRORS, Error};
pub use group::{Class, Epoch, Group, GroupId, Slot, Suite};
pub use header::{Encoded, Form, KeyId, SframeHeader};
pub use opener::{OpenedMessage, Opener, PendingAnnouncement, PendingOpen, Term};
pub use sealer::Sealer;
pub use session::SessionState;
pub use sign::{SigningKey, verifies_open};
