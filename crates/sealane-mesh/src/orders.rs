//! The orders of groups, as a machine keeps them and gives them to neighbours that lack them.

mod collect;
mod keep;
mod messages;
mod pace;

pub(crate) use collect::Collections;
pub(crate) use keep::Keeper;
pub use messages::{Asked, Held, HeldOf, PIECE_BYTES, Pieces, RemovalMessage};
pub(crate) use pace::{Ask, Behind, Give, Giver, Giving, Range, Repeat, Trickle};
