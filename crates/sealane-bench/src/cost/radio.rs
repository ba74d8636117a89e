//! The cost of a message on a radio: bytes, units, air time, and the share of the duty cycle of one
//! sender. Air times are those of the simulator's media, by the formulas of the standards.

use sealane_codec::Codec;
use sealane_frame::limits::MAX_SHORT_UNIT_BYTES;
use sealane_frame::{FRAGMENT_HEADER_BYTES, SHORT_FRAGMENT_HEADER_BYTES};
use sealane_mesh::HOP_SEAL_BYTES;
use sealane_message::Value;
use sealane_seal::{Class, Form, Suite};
use sealane_sim::{BleRate, LoraProfile, SimMediumProfile, SimSpan};

use super::table;

/// A radio that messages may travel over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RadioLink {
    /// A connection of Bluetooth Low Energy at 1 Mbit/s, MTU 247.
    Ble1m,
    /// LoRa at spreading factor 7, 1 % of each hour.
    LoraSf7,
    /// IEEE 802.11p at 6 Mbit/s.
    Dot11p,
}

/// The cost of a message on a radio, on average.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RadioRow {
    pub(crate) link: RadioLink,
    pub(crate) codec: Codec,
    pub(crate) class: Class,
    /// The bytes that one transmission carries.
    pub(crate) unit_bytes: usize,
    /// Bytes of a message that the radio carries: the compact frame, its hop seal, and headers of
    /// parts.
    pub(crate) bytes: f64,
    pub(crate) units: f64,
    /// Seconds that a message occupies the radio for one hop, with what the radio acknowledges.
    pub(crate) air_s: f64,
    /// The part of an hour in which one sender may send, from 0 to 1.
    pub(crate) duty: f64,
}

/// How bodies are encoded and sealed in the rows of each radio.
const KINDS: [(Codec, Class); 4] = [
    (Codec::Json, Class::Group),
    (Codec::MsgPack, Class::Group),
    (Codec::Cbor, Class::Group),
    (Codec::Cbor, Class::Signed),
];
const HOUR_S: f64 = 3600.0;
/// When the two ends of a connection meet matters for latency, and not for air time.
const BLE_INTERVAL: SimSpan = SimSpan::from_ms(30);

impl RadioLink {
    /// All of them.
    pub(crate) const ALL: [RadioLink; 3] =
        [RadioLink::Ble1m, RadioLink::LoraSf7, RadioLink::Dot11p];

    /// Its name in flags and reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RadioLink::Ble1m => "ble-1m",
            RadioLink::LoraSf7 => "lora-sf7",
            RadioLink::Dot11p => "11p",
        }
    }

    fn profile(self) -> SimMediumProfile {
        match self {
            RadioLink::Ble1m => SimMediumProfile::BleConnection {
                rate: BleRate::OneM,
                mtu: 247,
                interval: BLE_INTERVAL,
            },
            RadioLink::LoraSf7 => SimMediumProfile::Lora(LoraProfile::eu868(7)),
            RadioLink::Dot11p => SimMediumProfile::Dot11p,
        }
    }
}

impl RadioRow {
    /// The part of what one sender may send in an hour that one message takes, from 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        self.air_s / (HOUR_S * self.duty)
    }

    /// How many messages one sender may send in an hour.
    pub(crate) fn messages_an_hour(&self) -> f64 {
        1.0 / self.share()
    }
}

/// The cost of messages on these radios; no row for a kind that cannot be sealed.
pub(super) fn rows(links: &[RadioLink], sample: &[Value]) -> Vec<RadioRow> {
    if links.is_empty() {
        return vec![];
    }
    let kinds = KINDS.into_iter().filter_map(|(codec, class)| {
        let frames = table::frame_lengths(codec, class, Suite::Aes256Gcm, Form::Compact, sample)?;
        Some((codec, class, frames))
    });
    let kinds: Vec<_> = kinds.collect();
    let of_link = |link: &RadioLink| {
        let link = *link;
        let of_kind = kinds.iter().map(move |(codec, class, frames)| {
            let (codec, class) = (*codec, *class);
            row(RadioKind { link, codec, class }, frames)
        });
        of_kind.collect::<Vec<_>>()
    };
    links.iter().flat_map(of_link).collect()
}

#[derive(Clone, Copy)]
struct RadioKind {
    link: RadioLink,
    codec: Codec,
    class: Class,
}

fn row(kind: RadioKind, frames: &[usize]) -> RadioRow {
    let RadioKind { link, codec, class } = kind;
    let profile = link.profile();
    let unit_bytes = profile.unit_bytes();
    let (mut bytes, mut units, mut air_us) = (0, 0, 0);
    for frame in frames {
        for unit in cut(frame + HOP_SEAL_BYTES, unit_bytes) {
            bytes += unit;
            units += 1;
            air_us += profile.exchange_time(unit).0;
        }
    }
    let mean = |sum: f64| sum / frames.len().max(1) as f64;
    RadioRow {
        link,
        codec,
        class,
        unit_bytes,
        bytes: mean(bytes as f64),
        units: mean(f64::from(units)),
        air_s: mean(air_us as f64) / 1e6,
        duty: f64::from(profile.usual_duty_ppm()) / 1e6,
    }
}

/// The lengths of the units in which so many bytes go: `spec/frame.md`, *Fragments*.
fn cut(bytes: usize, unit_bytes: usize) -> impl Iterator<Item = usize> {
    let is_short = unit_bytes <= MAX_SHORT_UNIT_BYTES;
    let head = match bytes <= unit_bytes {
        true => 0,
        false if is_short => SHORT_FRAGMENT_HEADER_BYTES,
        false => FRAGMENT_HEADER_BYTES,
    };
    let stride = unit_bytes.saturating_sub(head).max(1);
    (0..bytes.div_ceil(stride).max(1)).map(move |part| head + stride.min(bytes - part * stride))
}

/// The advice for each radio: how often a sender may send, and what another codec would save.
pub(super) fn advice(rows: &[RadioRow]) -> Vec<String> {
    let find = |link, codec, class| {
        rows.iter().find(|row| row.link == link && row.codec == codec && row.class == class)
    };
    let line = |link: RadioLink| {
        let json = find(link, Codec::Json, Class::Group)?;
        let best = find(link, Codec::Cbor, Class::Group)?;
        let signed = find(link, Codec::Cbor, Class::Signed)?;
        let saved = (1.0 - best.air_s / json.air_s) * 100.0;
        let limit = match best.duty < 1.0 {
            true => {
                format!("{:.0} an hour within {} %", best.messages_an_hour(), best.duty * 100.0)
            }
            false => format!("{:.0} a second fill the channel", best.messages_an_hour() / HOUR_S),
        };
        Some(format!(
            "Radio {}: a message takes {} of air as CBOR, {limit}. JSON takes {:.0} % more, a \
             signature {:.1} times as much.",
            link.name(),
            crate::measure::BenchFigure::ns(best.air_s * 1e9),
            saved / (100.0 - saved) * 100.0,
            signed.air_s / best.air_s,
        ))
    };
    RadioLink::ALL.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::named;

    #[test]
    fn a_message_is_cut_as_the_specification_says() {
        let units = |bytes, unit| cut(bytes, unit).collect::<Vec<_>>();
        assert_eq!(units(222, 222), [222]);
        // 214 bytes and a header of 8 in each part.
        assert_eq!(units(223, 222), [222, 8 + 9]);
        assert_eq!(units(428, 222), [222, 222]);
        // Narrow links have headers of 2.
        assert_eq!(units(45, 20), [20, 20, 2 + 9]);
        assert_eq!(units(0, 20), [0]);
    }

    #[test]
    fn air_times_are_those_of_the_simulator() {
        let kind = RadioKind { link: RadioLink::LoraSf7, codec: Codec::Cbor, class: Class::Group };
        let one = row(kind, &[222 - HOP_SEAL_BYTES]);
        // Semtech's calculator: 222 bytes at SF 7 take 0.348 s; 36 s an hour are 103 of them.
        assert_eq!((one.units, one.bytes), (1.0, 222.0));
        assert!((one.air_s - 0.348_416).abs() < 1e-9, "{one:?}");
        assert_eq!(one.messages_an_hour().floor(), 103.0);
        let kind = RadioKind { link: RadioLink::Dot11p, ..kind };
        let one = row(kind, &[52]);
        // 184 us of data, SIFS of 32 and an acknowledgement of 64.
        assert!((one.air_s - 280e-6).abs() < 1e-9, "{one:?}");
        let two = row(kind, &[52, 1480, 1491]);
        assert_eq!(two.units, 4.0 / 3.0, "the last one is one byte too long");
    }

    #[test]
    fn each_radio_has_a_name_and_rows_of_each_kind() {
        for link in RadioLink::ALL {
            assert_eq!(named(&RadioLink::ALL, RadioLink::name, link.name()), Ok(link));
            let sample = [Value::from("a place, and a speed")];
            let rows = rows(&[link], &sample);
            assert_eq!(rows.len(), KINDS.len());
            let [json, _, cbor, signed] = &rows[..] else { panic!("four") };
            assert!(cbor.bytes <= json.bytes && signed.bytes >= cbor.bytes + 64.0, "{rows:?}");
            assert_eq!(advice(&rows).len(), 1);
        }
        assert!(super::rows(&[], &[]).is_empty());
        assert!(named(&RadioLink::ALL, RadioLink::name, "wifi").is_err());
    }
}
