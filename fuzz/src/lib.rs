//! The laws that hold for every input, one function per fuzz target.
//!
//! The ordinary tests replay the committed corpus through the same functions.

pub mod agent;
pub mod codec;
pub mod document;
pub mod frame;
pub mod group;
pub mod hub;
pub mod link;
pub mod mesh;
pub mod policy;
pub mod seal;
pub mod sim;
pub mod vault;
