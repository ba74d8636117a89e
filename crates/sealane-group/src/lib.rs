//! Beside step 3 of a message's way: *who holds the keys of the seal*.
//!
//! ```text
//!  write ─► encode ─► seal ─► frame ─► carry ─► relay ─► keep ─► read
//!                     ^^^^
//!   identity ──card──► authority ──invitation──► member ──► epoch secrets ──► seal
//!                          └──────── orders ───────▲
//! ```
//!
//! This crate takes identities and gives epoch secrets. A [`KeyFolder`] holds an [`Identity`] and
//! its groups. An authority invites who shows a [`IdentityCard`], and tells the members of
//! admissions, removals and fresh secrets by [`GroupNotice`]s. A [`GroupMember`] is an
//! [`EpochSource`]; its [`GroupSender`] seals under keys of its own start, and nothing while it
//! knows of orders that it has not obeyed. `spec/group.md` is the specification.
//!
//! It uses the system's files, clock and randomness.
//!
//! ```
//! use sealane_frame::{FrameBuf, open_stored};
//! use sealane_group::{IdentityCard, EpochSource, KeyFolder, NewGroup, PastSecrets};
//! use sealane_seal::{Binding, Class, Epoch};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let (one, two) = (folder.path().join("one"), folder.path().join("two"));
//! let base = KeyFolder::create(&one, "base", None)?;
//! let car = KeyFolder::create(&two, "car", None)?;
//! let mut fleet = base.new_group("fleet", NewGroup::default())?;
//! let invited = fleet.invite(&IdentityCard::from_bytes(&car.card()?)?, PastSecrets::All)?;
//! let member = car.join(&invited.invitation, Some(fleet.authority()), None)?;
//!
//! let (mut sender, mut buf) = (member.sender()?, FrameBuf::new());
//! let (fields, log) = (sender.fields(Class::Group, 1), Binding::stream("log"));
//! let frame = sender.seal(&fields, &log, b"52.5 N 13.4 E", &mut buf)?;
//! let mut opener = fleet.opener()?;
//! let stored = open_stored(&mut opener, Epoch(0), &log, frame)?;
//! assert_eq!(stored.body, b"52.5 N 13.4 E");
//! # Ok::<(), sealane_group::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

#[cfg(feature = "test-kind")]
mod agreed;
mod card;
mod certificate;
mod charter;
mod clock;
mod crypto;
mod document;
mod error;
mod examine;
mod folder;
mod identity;
mod invitation;
mod kind;
pub mod limits;
mod live;
mod marks;
mod member;
mod names;
mod notice;
mod order;
mod removal;
mod renewal;
mod roster;
mod sender;
mod source;
mod state;
mod text;
#[cfg(test)]
mod vectors;
mod wire;

#[cfg(feature = "test-kind")]
pub use agreed::{AgreedMember, AgreedPresence};
pub use card::IdentityCard;
pub use clock::now_ms;
pub use document::GroupDocument;
pub use error::{ERRORS, Error};
pub use examine::examine;
pub use folder::KeyFolder;
pub use identity::{Fingerprint, Identity, PublicKey, seal_to};
pub use invitation::PastSecrets;
pub use kind::GroupMembership;
pub use live::{LiveMessage, LiveReader, LiveSender};
pub use marks::RemovalMark;
pub use member::{
    BeaterView, ControlCursor, GroupMember, HealOutcome, IssuedInvitation, NewGroup, control_topic,
};
pub use notice::{GroupHeartbeat, GroupNotice, read_orders, write_orders};
pub use removal::{AnnouncedRemoval, MemberRemoval, RemovalNotice};
pub use roster::{GroupRoster, RosterEntry};
pub use sender::{GroupSender, SealRun};
pub use source::{EpochSource, GroupChange};
pub use text::{from_text, is_text, to_text};
