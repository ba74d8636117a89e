//! A few lines that follow from the figures, each with its reason.

use sealane_codec::Codec;
use sealane_frame::Compression;
use sealane_protocol::Level;
use sealane_seal::{Class, Form, Suite};

use super::report::Row;
use super::step::Step;
use super::way::{Link, Way};

/// A saving below this is not worth a line.
const WORTH: f64 = 0.05;

fn of_the_way(ratio: f64) -> String {
    format!("(the other takes {ratio:.2} times the CPU of the whole way)")
}

/// The advice that the rows give on the choices that a user has.
pub(super) fn of(ways: &[Row]) -> Vec<String> {
    let found = Found { ways };
    let lines = [found.codec(), found.compression(), found.cipher(), found.form(), found.level()];
    lines.into_iter().flatten().collect()
}

struct Found<'a> {
    ways: &'a [Row],
}

impl Found<'_> {
    fn way(&self, way: Way) -> Option<&Row> {
        self.ways.iter().find(|row| row.way == way)
    }

    fn codec(&self) -> Option<String> {
        let json = self.way(Way { codec: Codec::Json, ..Way::USUAL })?;
        let others = [Codec::MsgPack, Codec::Cbor, Codec::MsgPackRecords];
        let rows = others.iter().filter_map(|codec| self.way(Way { codec: *codec, ..Way::USUAL }));
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
        let plain = self.way(Way::USUAL)?;
        let pressed = |compression| self.way(Way { compression, ..Way::USUAL });
        let (lz4, zstd) = (pressed(Compression::Lz4)?, pressed(Compression::Zstd)?);
        let saved = |row: &Row| 1.0 - row.wire / plain.wire;
        let dearer = |row: &Row| row.cpu_ns.median / plain.cpu_ns.median;
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
        let aes = self.way(Way::USUAL)?;
        let suite = Suite::ChaCha20Poly1305;
        let chacha = self.way(Way { seal: Some((Class::Group, suite)), ..Way::USUAL })?;
        let signed = Some((Class::Signed, Suite::Aes256Gcm));
        let signed = self.way(Way { seal: signed, ..Way::USUAL })?;
        let best = match chacha.cpu_ns.median / aes.cpu_ns.median {
            _ if chacha.cpu_ns.meets(&aes.cpu_ns) => {
                "either cipher, they differ by less than their spread,".into()
            }
            ratio if ratio > 1.0 => format!("AES-256-GCM {}", of_the_way(ratio)),
            ratio => format!("ChaCha20-Poly1305 {}", of_the_way(1.0 / ratio)),
        };
        let share = (aes.share(Step::Seal) + aes.share(Step::Open)) * 100.0;
        let cost = (signed.cpu_ns.median - aes.cpu_ns.median).max(0.0) / 1e3;
        Some(format!(
            "Seal: {best} on this machine. Sealing, framing and opening are {share:.0} % of the \
             whole way in memory. A signature adds {cost:.0} µs: keep class S for what must be \
             provable."
        ))
    }

    fn form(&self) -> Option<String> {
        let full = self.way(Way::USUAL)?;
        let compact = self.way(Way { form: Form::Compact, ..Way::USUAL })?;
        let saved = full.wire - compact.wire;
        Some(format!(
            "Frame: the compact form saves {saved:.0} of {:.0} bytes ({:.0} %) wherever the link \
             has a dictionary.",
            full.wire,
            saved / full.wire * 100.0
        ))
    }

    fn level(&self) -> Option<String> {
        let at = |level| self.way(Way { link: Link::WebSocket(level), ..Way::USUAL });
        let (os, disk) = (at(Level::Os)?, at(Level::Disk)?);
        let (os_ns, disk_ns) = (os.latency_ns?.0, disk.latency_ns?.0);
        let rest = (disk.share(Step::Carry) + disk.share(Step::Keep)) * 100.0;
        Some(format!(
            "Level: disk. It costs one message alone {:.2} ms against {:.2} ms at os: publish in \
             batches rather than give up fsync. Carrying and keeping are {rest:.0} % of all CPU \
             over the hub.",
            disk_ns / 1e6,
            os_ns / 1e6
        ))
    }
}
