//! How long a transmission occupies the air.

use crate::time::SimSpan;

/// LoRa as a channel plan sets it: what decides the air time of a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoraProfile {
    /// 7 to 12: one more doubles the time of a symbol.
    pub spreading_factor: u32,
    /// 125,000, 250,000 or 500,000.
    pub bandwidth_hz: u32,
    /// 1 to 4, for 4/5 to 4/8.
    pub coding_rate: u32,
    /// Symbols before the header; 8 in LoRaWAN.
    pub preamble_symbols: u32,
    /// Whether the radio listens before it sends, and waits while it hears others.
    pub listens: bool,
}

impl LoraProfile {
    /// LoRaWAN in Europe, 125 kHz and coding rate 4/5, at a spreading factor, with a radio that
    /// listens before it sends.
    pub const fn eu868(spreading_factor: u32) -> LoraProfile {
        LoraProfile {
            spreading_factor,
            bandwidth_hz: 125_000,
            coding_rate: 1,
            preamble_symbols: 8,
            listens: true,
        }
    }

    fn symbol_us(&self) -> u64 {
        (1_u64 << self.spreading_factor) * 1_000_000 / u64::from(self.bandwidth_hz)
    }

    /// How long the radio listens: two symbols, as Semtech advises for SX1262 (AN1200.48, channel
    /// activity detection). It finds the symbols of a preamble and those of data alike.
    pub(crate) fn listening_time(&self) -> SimSpan {
        SimSpan(LISTENING_SYMBOLS * self.symbol_us())
    }

    /// Semtech SX1276 datasheet, section 4.1.1.7, with explicit header and CRC; low data rate
    /// optimisation where a symbol takes more than 16 ms.
    pub fn air_time(&self, bytes: usize) -> SimSpan {
        let sf = i64::from(self.spreading_factor);
        let symbol_us = self.symbol_us();
        let is_slow = symbol_us > 16_000;
        let bits = 8 * i64::try_from(bytes).unwrap_or(i64::MAX / 16) - 4 * sf + 28 + 16;
        let per_block = 4 * (sf - 2 * i64::from(is_slow));
        let blocks = u64::try_from(bits.max(0)).unwrap_or(0).div_ceil(per_block.max(1) as u64);
        let payload_symbols = 8 + blocks * u64::from(self.coding_rate + 4);
        // The preamble is 4.25 symbols longer than it says.
        let quarters = (u64::from(self.preamble_symbols) + payload_symbols) * 4 + 17;
        SimSpan(quarters * symbol_us / 4)
    }
}

const LISTENING_SYMBOLS: u64 = 2;

/// The two rates of Bluetooth Low Energy without coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BleRate {
    /// 1 Mbit/s.
    OneM,
    /// 2 Mbit/s.
    TwoM,
}

/// Between two packets of a connection event: T_IFS (Bluetooth Core 5.4, Vol 6, Part B, 4.1).
pub(crate) const BLE_GAP: SimSpan = SimSpan(150);

impl BleRate {
    /// A packet of the link layer with so many bytes of payload: preamble 1 or 2, access address
    /// 4, header 2, check 3 (Bluetooth Core 5.4, Vol 6, Part B, 2.1 and 2.2).
    pub fn air_time(self, payload_bytes: usize) -> SimSpan {
        let payload = payload_bytes as u64;
        match self {
            BleRate::OneM => SimSpan::of_bits((1 + 4 + 2 + payload + 3) * 8, 1_000_000),
            BleRate::TwoM => SimSpan::of_bits((2 + 4 + 2 + payload + 3) * 8, 2_000_000),
        }
    }
}

/// The longest random wait before an advertising event (Bluetooth Core 5.4, Vol 6, Part B,
/// 4.4.2.2).
pub(crate) const BLE_ADVERTISING_DELAY: SimSpan = SimSpan(10_000);

/// An extended advertisement: on each of the three primary channels a packet of 9 bytes that points
/// to the packet with the data, which has 14 bytes of headers of its own and of the maker
/// (Bluetooth Core 5.4, Vol 6, Part B, 2.3.4). The gaps between them count, 150 us each.
pub fn ble_advertising_air_time(rate: BleRate, unit_bytes: usize) -> SimSpan {
    // The primary channels are always at 1 Mbit/s.
    let pointer = BleRate::OneM.air_time(9) + BLE_GAP;
    pointer + pointer + pointer + rate.air_time(14 + unit_bytes)
}

/// Bytes of headers of 802.11p around a unit: MAC 26 (with QoS), LLC and SNAP 8, check 4.
pub(crate) const DOT11P_HEADER_BYTES: u64 = 38;
/// IEEE 802.11-2020, table 17-21, for channels of 10 MHz.
pub(crate) const DOT11P_SLOT: SimSpan = SimSpan(13);
/// The same.
pub(crate) const DOT11P_SIFS: SimSpan = SimSpan(32);

/// How long the channel is to be free before anybody sends: SIFS and six slots. All units are of
/// best effort, the access category of data without a priority, with its values for stations
/// outside of a network (IEEE 802.11-2020, 9.4.2.28, the defaults with dot11OCBActivated).
pub(crate) const DOT11P_AIFS: SimSpan = SimSpan(DOT11P_SIFS.0 + 6 * DOT11P_SLOT.0);
/// The slots of the first back-off: aCWmin of 15 and 0 (the same). Those of broadcasts stay so
/// many.
pub(crate) const DOT11P_WINDOW: u64 = 16;
/// The slots of a back-off at most: aCWmax of 1023 and 0 (the same).
pub(crate) const DOT11P_WINDOW_MOST: u64 = 1024;
/// How often a unit to one machine is sent until it is acknowledged: dot11ShortRetryLimit (the
/// same, C.3).
pub(crate) const DOT11P_TRIES: u32 = 7;
/// An acknowledgement: 14 bytes at 6 Mbit/s, without the headers of data (the same, 9.3.1.4).
pub(crate) const DOT11P_ACK: SimSpan = SimSpan(40 + (16 + 6 + 8 * 14_u64).div_ceil(48) * 8);
/// How long an acknowledgement is waited for: SIFS, a slot, and what a receiver needs to notice a
/// preamble, 49 us (the same, 10.3.2.11 and table 17-21).
pub(crate) const DOT11P_ACK_TIMEOUT: SimSpan = SimSpan(DOT11P_SIFS.0 + DOT11P_SLOT.0 + 49);

/// A frame of 802.11p at 6 Mbit/s in 10 MHz: preamble 32 us, SIGNAL 8 us, then symbols of 8 us
/// with 48 bits each, 16 of service and 6 of tail among them (IEEE 802.11-2020, 17.3 and 17.4.3).
pub fn dot11p_air_time(unit_bytes: usize) -> SimSpan {
    let bits = 16 + 6 + 8 * (DOT11P_HEADER_BYTES + unit_bytes as u64);
    SimSpan(40 + bits.div_ceil(48) * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lora_is_as_the_calculators_say() {
        // LoRaWAN regional parameters and the Semtech calculator: 51 bytes at SF12 take 2.466 s,
        // 222 bytes at SF7 take 0.348 s; 10 bytes at SF7 41.2 ms.
        assert_eq!(LoraProfile::eu868(12).air_time(51), SimSpan(2_465_792));
        assert_eq!(LoraProfile::eu868(7).air_time(222), SimSpan(348_416));
        assert_eq!(LoraProfile::eu868(7).air_time(10), SimSpan(41_216));
    }

    #[test]
    fn bluetooth_is_as_the_standard_says() {
        // An empty packet takes 80 us at 1M and 44 us at 2M; 251 bytes take 2,088 and 1,048 us.
        let times = |rate: BleRate| [0, 251].map(|bytes| rate.air_time(bytes).0);
        assert_eq!(times(BleRate::OneM), [80, 2_088]);
        assert_eq!(times(BleRate::TwoM), [44, 1_048]);
    }

    #[test]
    fn an_advertisement_is_three_pointers_and_the_data() {
        // 9 bytes at 1M take (10 + 9) * 8 us; 114 with headers at 2M (11 + 114) * 4 us.
        let known = 3 * (152 + 150) + 500;
        assert_eq!(ble_advertising_air_time(BleRate::TwoM, 100), SimSpan(known));
    }

    #[test]
    fn a_vehicle_s_radio_is_as_the_standard_says() {
        // 100 bytes of MAC frame: (22 + 800) bits in 18 symbols.
        assert_eq!(dot11p_air_time(62), SimSpan(40 + 18 * 8));
        assert_eq!(dot11p_air_time(1_500), SimSpan(40 + 257 * 8));
        // 134 bits of an acknowledgement in three symbols; nobody who waits for the channel to be
        // free for AIFS comes between.
        assert_eq!(DOT11P_ACK, SimSpan(64));
        assert!(DOT11P_SIFS + DOT11P_ACK < DOT11P_AIFS, "{DOT11P_AIFS:?}");
    }
}
