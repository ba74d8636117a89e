//! What the reports measured, written again from what they say: slow on purpose, and nowhere else.

pub(crate) mod forward;
pub(crate) mod map16;
pub(crate) mod mesh;
pub(crate) mod packet;
pub(crate) mod triple;
