//! The `sealane` binary.
fn main() {}
