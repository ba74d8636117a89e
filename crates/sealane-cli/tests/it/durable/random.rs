//! Random numbers that a seed repeats.

pub(crate) use sealane_testing::{SeededRandom as Random, seed_of_run as seed};
