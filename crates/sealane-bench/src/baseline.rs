//! The programs that the reports measured, written again from the reports: slow on purpose, and
//! nowhere else.

pub(crate) mod forward;
pub(crate) mod map16;
pub(crate) mod mesh;
pub(crate) mod packet;
pub(crate) mod triple;
