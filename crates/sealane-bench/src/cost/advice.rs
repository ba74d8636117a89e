//! A few lines that follow from the figures, each with its reason.

use sealane_codec::Codec;
use sealane_frame::FrameCompression;
use sealane_protocol::Level;
use sealane_seal::{Class, Form, Suite};

use super::report::WayRow;
use super::step::CostStep;
use super::way::{CostLink, CostWay};

/// A saving below this is not worth a line.
const WORTH: f64 = 0.05;

fn of_the_way(ratio: f64) -> String {
    format!("(the other takes {ratio:.2} times the CPU of the whole way)")
}

/// The advice that the rows give on the choices that a user has.
pub(super) fn of(ways: &[WayRow]) -> Vec<String> {
    let found = CostAdvice { ways };
    let lines = [found.codec(), found.compression(), found.cipher(), found.form(), found.level()];
    lines.into_iter().flatten().collect()
}

struct CostAdvice<'a> {
    ways: &'a [WayRow],
}

impl CostAdvice<'_> {
    fn way(&self, way: CostWay) -> Option<&WayRow> {
        self.ways.iter().find(|row| row.way == way)
    }

    fn codec(&self) -> Option<String> {
        let json = self.way(CostWay { codec: Codec::Json, ..CostWay::USUAL })?;
        let others = [Codec::MsgPack, Codec::Cbor, Codec::MsgPackRecords];
        let rows =
            others.iter().filter_map(|codec| self.way(CostWay { codec: *codec, ..CostWay::USUAL }));
        let best = rows.min_by(|a, b| a.wire.total_cmp(&b.wire))?;
        let saved = 1.0 - best.wire / json.wire;
        let cpu = best.cpu_ns.median / json.cpu_ns.median;
        let name = best.way.codec.name();
        let note = match best.way.codec {
            Codec::MsgPackRecords => " It needs whole, ordered connections: else take CBOR.",
            _ => "",
        };
        Some(match saved > WORTH {
            true => format!(
                "Codec: {name}. Frames are {:.0} % smaller than with JSON, and both ends take \
                 {cpu:.2} times its CPU.{note}",
                saved * 100.0
            ),
            false => format!(
                "Codec: JSON, or what reads it best. {name} makes frames less than {:.0} % \
                 smaller here and takes {cpu:.2} times its CPU.",
                WORTH * 100.0
            ),
        })
    }

    fn compression(&self) -> Option<String> {
        let plain = self.way(CostWay::USUAL)?;
        let pressed = |compression| self.way(CostWay { compression, ..CostWay::USUAL });
        let (lz4, zstd) = (pressed(FrameCompression::Lz4)?, pressed(FrameCompression::Zstd)?);
        let saved = |row: &WayRow| 1.0 - row.wire / plain.wire;
        let dearer = |row: &WayRow| row.cpu_ns.median / plain.cpu_ns.median;
        let best = if saved(zstd) - saved(lz4) > WORTH { zstd } else { lz4 };
        let name = super::way::compression_name(best.way.compression);
        Some(match saved(best) > WORTH {
            true => format!(
                "Compression: {name} makes frames {:.0} % smaller for {:.1} times the CPU; worth \
                 it where bytes cost more than that, as on radio.",
                saved(best) * 100.0,
                dearer(best)
            ),
            false => format!(
                "Compression: none. These messages are too short or too dense: {name} saves \
                 {:.0} % for {:.1} times the CPU.",
                saved(best).max(0.0) * 100.0,
                dearer(best)
            ),
        })
    }

    fn cipher(&self) -> Option<String> {
        let aes = self.way(CostWay::USUAL)?;
        let suite = Suite::ChaCha20Poly1305;
        let chacha = self.way(CostWay { seal: Some((Class::Group, suite)), ..CostWay::USUAL })?;
        let signed = Some((Class::Signed, Suite::Aes256Gcm));
        let signed = self.way(CostWay { seal: signed, ..CostWay::USUAL })?;
        let best = match chacha.cpu_ns.median / aes.cpu_ns.median {
            _ if chacha.cpu_ns.meets(&aes.cpu_ns) => {
                "either cipher, they differ by less than their spread,".into()
            }
            ratio if ratio > 1.0 => format!("AES-256-GCM {}", of_the_way(ratio)),
            ratio => format!("ChaCha20-Poly1305 {}", of_the_way(1.0 / ratio)),
        };
        let share = (aes.share(CostStep::Seal) + aes.share(CostStep::Open)) * 100.0;
        let cost = (signed.cpu_ns.median - aes.cpu_ns.median).max(0.0) / 1e3;
        Some(format!(
            "Seal: {best} on this machine. Sealing, framing and opening are {share:.0} % of the \
             whole way in memory. A signature adds {cost:.0} µs: keep class S for what must be \
             provable."
        ))
    }

    fn form(&self) -> Option<String> {
        let full = self.way(CostWay::USUAL)?;
        let compact = self.way(CostWay { form: Form::Compact, ..CostWay::USUAL })?;
        let saved = full.wire - compact.wire;
        Some(format!(
            "Frame: the compact form saves {saved:.0} of {:.0} bytes ({:.0} %) wherever the link \
             has a dictionary.",
            full.wire,
            saved / full.wire * 100.0
        ))
    }

    fn level(&self) -> Option<String> {
        let at = |level| self.way(CostWay { link: CostLink::WebSocket(level), ..CostWay::USUAL });
        let (os, disk) = (at(Level::Os)?, at(Level::Disk)?);
        let (os_ns, disk_ns) = (os.latency_ns?.0, disk.latency_ns?.0);
        let rest = (disk.share(CostStep::Carry) + disk.share(CostStep::Keep)) * 100.0;
        Some(format!(
            "Level: disk. It costs one message alone {:.2} ms against {:.2} ms at os: publish in \
             batches rather than give up fsync. Carrying and keeping are {rest:.0} % of all CPU \
             over the hub.",
            disk_ns / 1e6,
            os_ns / 1e6
        ))
    }
}
