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
//! gives the SFrame form (RFC 9605) of it, in place. A [`Sealer`] is one member that sends; an
//! [`Opener`] one that reads, live with a replay window or from a store without. [`Epochs`] holds
//! the secrets. [`policy`] decides the class. `spec/seal.md` and `spec/policy.md` specify it.
//!
//! It has no I/O, no clock, no randomness and no `unsafe`. Nothing is allocated per message once a
//! sender is known.
//!
//! ```
//! use sealane_seal::*;
//!
//! let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
//! let secret = EpochSecret::new([1; 32]);
//! let epochs = Epochs::provisioned(group.id(), History::Kept, &secret)?;
//! let mut sealer = Sealer::fresh(group, Slot::new(1).unwrap(), &epochs, Witness([0; 32]))?;
//! let block = sealer.reserve(1000)?; // store block.state() durably here
//! sealer.confirm(block)?;
//!
//! let mut sealed = Vec::new();
//! sealer.append(Class::Group, Form::Full, b"meta", b"hello", &mut sealed)?;
//! let mut opener = Opener::new(group, Slot::new(2), epochs)?;
//! let opened = opener.open_live(Form::Full, b"meta", &mut sealed, 0)?.accept();
//! assert_eq!(&sealed[opened.body()], b"hello");
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod aead;
mod associated;
mod counter;
mod derive;
mod epoch;
mod error;
mod group;
mod header;
pub mod limits;
mod opener;
pub mod policy;
mod sealer;
mod sign;
mod window;

pub use counter::{CounterState, Reservation, Witness};
pub use epoch::{Advance, EpochSecret, Epochs, History};
pub use error::{ERRORS, Error};
pub use group::{Class, Epoch, Group, GroupId, Slot, Suite};
pub use header::{Encoded, Form, KeyId, SframeHeader};
pub use opener::{Opened, Opener, Pending};
pub use sealer::Sealer;
pub use sign::SigningKey;
pub use window::WindowState;
