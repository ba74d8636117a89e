//! Many machines in virtual time over modelled radio: the code that is shipped, one seed, one run.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod medium;
mod random;
mod time;

pub use medium::{BleRate, Fading, Lora, dot11p_air_time};
pub use random::Random;
pub use time::{Span, Time};
