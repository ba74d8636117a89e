//! The kinds of media.

use super::{
    BLE_GAP, BleRate, DOT11P_ACK, DOT11P_SIFS, DOT11P_SLOT, LoraProfile, ble_advertising_air_time,
    dot11p_air_time,
};
use crate::SimSpan;

/// The kind of a medium.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SimMediumProfile {
    /// LoRa: everybody hears everybody, and listens first unless it is said not to.
    Lora(LoraProfile),
    /// 802.11p at 6 Mbit/s: everybody hears everybody, and listens first.
    Dot11p,
    /// Extended advertising of Bluetooth Low Energy: everybody hears everybody.
    BleAdvertising(BleRate),
    /// Connections of Bluetooth Low Energy, between every two that are near.
    BleConnection {
        /// The rate.
        rate: BleRate,
        /// The MTU of ATT, 23 to 247.
        mtu: usize,
        /// How often the two ends of a connection meet.
        interval: SimSpan,
    },
    /// A wire between two machines.
    Wire {
        /// Of each direction.
        bits_per_second: u64,
        /// The bytes that it carries at once.
        mtu: usize,
    },
}

/// The opcode and handle of ATT before each value (Bluetooth Core 5.4, Vol 3, Part F, 3.4.5.3).
const ATT_HEADER_BYTES: usize = 3;
/// Of a connection: the link layer's 4, around each value L2CAP's 4 and ATT's 3.
const L2CAP_HEADER_BYTES: usize = 4;
/// The room in an extended advertisement beside its own headers and the manufacturer's.
const BLE_ADVERTISEMENT_BYTES: usize = 229;
/// IPv4 and UDP.
const DATAGRAM_HEADER_BYTES: usize = 28;

impl SimMediumProfile {
    /// The bytes that one transmission carries.
    pub fn unit_bytes(&self) -> usize {
        match self {
            // LoRaWAN regional parameters RP002-1.0.4, EU868: data rates 0 to 2, 3, 4 and 5.
            SimMediumProfile::Lora(lora) => match lora.spreading_factor {
                ..=8 => 222,
                9 => 115,
                _ => 51,
            },
            SimMediumProfile::Dot11p => 1500,
            SimMediumProfile::BleAdvertising(_) => BLE_ADVERTISEMENT_BYTES,
            SimMediumProfile::BleConnection { mtu, .. } => mtu.saturating_sub(ATT_HEADER_BYTES),
            SimMediumProfile::Wire { mtu, .. } => mtu.saturating_sub(DATAGRAM_HEADER_BYTES),
        }
    }

    /// How long a unit occupies the medium.
    pub fn air_time(&self, unit_bytes: usize) -> SimSpan {
        match *self {
            SimMediumProfile::Lora(lora) => lora.air_time(unit_bytes),
            SimMediumProfile::Dot11p => dot11p_air_time(unit_bytes),
            SimMediumProfile::BleAdvertising(rate) => ble_advertising_air_time(rate, unit_bytes),
            SimMediumProfile::BleConnection { rate, .. } => {
                // A packet, the gap, the other end's empty packet as acknowledgement, the gap.
                let packet = unit_bytes + ATT_HEADER_BYTES + L2CAP_HEADER_BYTES;
                rate.air_time(packet) + BLE_GAP + rate.air_time(0) + BLE_GAP
            }
            SimMediumProfile::Wire { bits_per_second, .. } => {
                // Preamble, Ethernet's header and check, and the gap between packets: 38 bytes.
                let bytes = unit_bytes + DATAGRAM_HEADER_BYTES + 38;
                SimSpan::of_bits(8 * bytes as u64, bits_per_second)
            }
        }
    }

    /// How long a unit to one machine occupies the medium, with what its radio acknowledges.
    pub fn exchange_time(&self, unit_bytes: usize) -> SimSpan {
        let air_time = self.air_time(unit_bytes);
        match self {
            // That of a connection counts its acknowledgement already.
            SimMediumProfile::Dot11p => air_time + DOT11P_SIFS + DOT11P_ACK,
            _ => air_time,
        }
    }

    /// Whether one transmission reaches all that are near, and may collide. Otherwise each pair of
    /// machines has a link of its own.
    pub fn is_shared(&self) -> bool {
        !matches!(self, SimMediumProfile::BleConnection { .. } | SimMediumProfile::Wire { .. })
    }

    /// Whether the radio of the receiver acknowledges a unit for its machine alone, and that of the
    /// sender repeats it until then. Nobody acknowledges what is for everybody.
    pub fn acknowledges(&self) -> bool {
        matches!(self, SimMediumProfile::Dot11p | SimMediumProfile::BleConnection { .. })
    }

    /// If a radio listens before it sends, it cannot notice a transmission that began less than
    /// this ago. Nothing where the radio does not listen.
    pub(crate) fn notices(&self) -> Option<SimSpan> {
        match self {
            SimMediumProfile::Lora(lora) => lora.listens.then(|| lora.listening_time()),
            SimMediumProfile::Dot11p => Some(DOT11P_SLOT),
            SimMediumProfile::BleAdvertising(_)
            | SimMediumProfile::BleConnection { .. }
            | SimMediumProfile::Wire { .. } => None,
        }
    }

    /// Whether distance counts.
    pub fn is_radio(&self) -> bool {
        !matches!(self, SimMediumProfile::Wire { .. })
    }

    /// The distance, in metres, at which the mean power is just enough, unless a scenario says it.
    /// These are of what the literature measures in the open at usual powers: 14, 23 and 0 dBm.
    pub fn usual_range_m(&self) -> f64 {
        match self {
            SimMediumProfile::Lora(lora) => {
                2000.0 + 600.0 * f64::from(lora.spreading_factor.max(7) - 7)
            }
            SimMediumProfile::Dot11p => 300.0,
            SimMediumProfile::BleAdvertising(_) | SimMediumProfile::BleConnection { .. } => 50.0,
            SimMediumProfile::Wire { .. } => f64::INFINITY,
        }
    }

    /// How much of the time one machine may send, in parts of a million: 1 % of each hour for LoRa
    /// (ETSI EN 300 220-2, band M of 868.0 to 868.6 MHz).
    pub fn usual_duty_ppm(&self) -> u32 {
        if matches!(self, SimMediumProfile::Lora(_)) { 10_000 } else { 1_000_000 }
    }

    /// The power that a radio takes of a battery while it sends and while it listens, in
    /// milliwatts. Typical figures of data sheets: SX1276 at 14 dBm, an 802.11p modem, nRF52840 at
    /// 0 dBm.
    pub fn usual_power(&self) -> RadioPower {
        match self {
            SimMediumProfile::Lora(_) => RadioPower { sends_mw: 145.0, listens_mw: 38.0 },
            SimMediumProfile::Dot11p => RadioPower { sends_mw: 1500.0, listens_mw: 800.0 },
            SimMediumProfile::BleAdvertising(_) | SimMediumProfile::BleConnection { .. } => {
                RadioPower { sends_mw: 14.0, listens_mw: 14.0 }
            }
            SimMediumProfile::Wire { .. } => RadioPower { sends_mw: 0.0, listens_mw: 0.0 },
        }
    }
}

/// The power that a radio takes of a battery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadioPower {
    /// In milliwatts.
    pub sends_mw: f64,
    /// In milliwatts.
    pub listens_mw: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_what_the_mtu_leaves() {
        let connection = |mtu| SimMediumProfile::BleConnection {
            rate: BleRate::OneM,
            mtu,
            interval: SimSpan(1),
        };
        assert_eq!([23, 185, 247].map(|mtu| connection(mtu).unit_bytes()), [20, 182, 244]);
        let lora =
            [7, 8, 9, 10, 12].map(|sf| SimMediumProfile::Lora(LoraProfile::eu868(sf)).unit_bytes());
        assert_eq!(lora, [222, 222, 115, 51, 51]);
        assert_eq!(SimMediumProfile::Wire { bits_per_second: 1, mtu: 1500 }.unit_bytes(), 1472);
    }

    #[test]
    fn a_wire_and_a_connection_take_their_time() {
        // 1,538 bytes of a full Ethernet frame with preamble and gap, at 1 Gbit/s: 12.304 us.
        let wire = SimMediumProfile::Wire { bits_per_second: 1_000_000_000, mtu: 1500 };
        assert_eq!(wire.air_time(1472), SimSpan(13));
        // 244 bytes make the longest packet of 251: 2,088 us and 80, and two gaps of 150.
        let connection =
            SimMediumProfile::BleConnection { rate: BleRate::OneM, mtu: 247, interval: SimSpan(1) };
        assert_eq!(connection.air_time(244), SimSpan(2088 + 80 + 300));
        assert_eq!(connection.exchange_time(244), SimSpan(2088 + 80 + 300));
        assert_eq!(SimMediumProfile::Dot11p.exchange_time(62), SimSpan(40 + 18 * 8 + 32 + 64));
    }
}
