//! The verbs of `sealane`.
