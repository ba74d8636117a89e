//! How many documents a second a node builds, and how many it builds and seals.

use std::hint::black_box;

use sealane_seal::{Class, Suite};

use super::super::{BookRow, BookTable};
use super::CompactSealBench;
use super::sync::SyncChain;
use crate::baseline::mesh::document::{CHATS_SENT, GossipDocument};
use crate::baseline::mesh::{BaselineAes, ChaCha};
use crate::failure::{BenchFailure, Result};
use crate::measure::{BenchFigure, FigureUnit, MeasurePlan, medians, timed};

/// Lines of chat that the document holds, of which it sends eight.
const CHATS: u64 = 10;
const BYTES: usize = 632;
/// The report's figures for a document in the open, and for an encrypted document.
const PUBLISHED_PLAIN: f64 = 247_743.0;
const PUBLISHED_ENCRYPTED: f64 = 7_148.0;

pub(super) fn table(plan: &MeasurePlan) -> Result<BookTable> {
    let document = GossipDocument::with_chats(CHATS);
    let build = || black_box(&document).build(CHATS_SENT);
    let broken = || BenchFailure::broken("the recipe");
    let (chacha, aes) = (ChaCha::new().ok_or_else(broken)?, BaselineAes::new().ok_or_else(broken)?);
    let mut ours = CompactSealBench::new(Class::Group, Suite::ChaCha20Poly1305)?;
    let mut ours_aes = CompactSealBench::new(Class::Group, Suite::Aes256Gcm)?;
    let mut registers = SyncChain::new(1)?;
    let works = ours.seal(&build()).is_some() && ours_aes.seal(&build()).is_some();
    if build().len() != BYTES || !works || registers.build(CHATS_SENT as u64)? == 0 {
        return Err(BenchFailure::broken("building a document"));
    }
    let variants = [
        timed(|| _ = black_box(build())),
        timed(|| _ = black_box(chacha.seal(&build()))),
        timed(|| _ = black_box(ours.seal(&build()).is_some())),
        timed(|| _ = black_box(aes.seal(&build()))),
        timed(|| _ = black_box(ours_aes.seal(&build()).is_some())),
        timed(|| _ = black_box(registers.build(CHATS_SENT as u64).is_ok())),
    ];
    let rate = |ns: f64| BenchFigure::of(1e9 / ns, FigureUnit::PerSecond);
    let [plain, recipe, sealed, recipe_aes, sealed_aes, registers] =
        medians(plan, variants).map(rate);
    let published = |per_second| BenchFigure::of(per_second, FigureUnit::PerSecond);
    let encrypted = |name: &str| BookRow::new(format!("built and sealed, {name}"));
    let rows = vec![
        BookRow::new("built, plain").published(published(PUBLISHED_PLAIN)).baseline(plain),
        encrypted("ChaCha20")
            .published(published(PUBLISHED_ENCRYPTED))
            .baseline(recipe)
            .sealane(sealed),
        encrypted("AES-256-GCM").baseline(recipe_aes).sealane(sealed_aes),
        encrypted("as registers of its origin").baseline(recipe).sealane(registers).note(REGISTERS),
    ];
    let note = "The report's document is built anew each time, and then sealed. Baseline: its \
                format and recipe. Sealane: the same document in one frame of class C, but for \
                the last row. What is not encrypted has no class here.";
    Ok(BookTable::new(format!("Documents a second, {BYTES} bytes"), note, rows))
}

const REGISTERS: &str = "a status and eight lines, a frame of class C each";
