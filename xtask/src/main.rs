//! The commands that build, check and prove Sealane.
fn main() {}
