//! The air: how long a transmission takes, whom it reaches, and who talks over whom.

mod airtime;
mod duty;
mod fading;
mod profile;

pub(crate) use airtime::{
    BLE_ADVERTISING_DELAY, BLE_GAP, DOT11P_ACK, DOT11P_ACK_TIMEOUT, DOT11P_AIFS, DOT11P_SIFS,
    DOT11P_SLOT, DOT11P_TRIES, DOT11P_WINDOW, DOT11P_WINDOW_MOST,
};
pub use airtime::{BleRate, LoraProfile, ble_advertising_air_time, dot11p_air_time};
pub(crate) use duty::RadioDutyWindow;
pub use fading::NakagamiFading;
pub use profile::{RadioPower, SimMediumProfile};
