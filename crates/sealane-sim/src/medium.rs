//! The air: how long a transmission takes, whom it reaches, and who talks over whom.

mod airtime;
mod fading;

pub use airtime::{BleRate, Lora, dot11p_air_time};
pub use fading::Fading;
