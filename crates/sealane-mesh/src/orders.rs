//! The orders of groups, as a machine keeps them and gives them to neighbours that lack them.

mod collect;
mod keep;
mod messages;
mod pace;

pub(crate) use collect::OrderCollections;
pub(crate) use keep::OrderKeeper;
pub use messages::{HeldOf, OrderPieces, OrdersHeld, PIECE_BYTES, PiecesAsked, RemovalMessage};
pub(crate) use pace::{
    EpochBehind, OrderAsk, OrderGiver, OrderRange, OrderTrickle, PieceQueue, PieceToSend,
    RemovalRepeat,
};
