//! The time of sealing, beside the time that the link is busy with the same document.

use std::hint::black_box;

use sealane_mesh::HOP_SEAL_BYTES;
use sealane_seal::{Class, Suite};
use sealane_sim::BleRate;

use super::super::{BookRow, BookTable};
use super::CompactSealBench;
use crate::baseline::mesh::{ChaCha, SAMPLES};
use crate::failure::{BenchFailure, Result};
use crate::field::FieldRadio;
use crate::measure::{self, BenchFigure, FigureUnit, MeasurePlan, VariantCost, timed};

/// The share of the link's time that classes without a signature may take.
const DEMANDED_PERCENT: f64 = 0.1;
const CLASSES: [Class; 4] = [Class::Authenticated, Class::Group, Class::Peer, Class::Signed];

pub(super) fn table(plan: &MeasurePlan) -> Result<BookTable> {
    let mut rows = vec![];
    let mut sizes: Vec<usize> = SAMPLES.iter().map(|sample| sample.bytes).collect();
    sizes.dedup();
    for bytes in sizes {
        rows.extend(of_size(plan, bytes)?);
    }
    Ok(BookTable::new(
        "Share of the cipher in the link's time",
        "The CPU that a document takes to be sealed, as a part of the time that Bluetooth LE \
               at 2 Mbit/s, its fastest rate, is busy with it for one hop: packets, gaps and the \
               other end's acknowledgements. Baseline: the report's recipe. Sealane: \
               ChaCha20-Poly1305, with frame and hop seal on the air.",
        rows,
    ))
}

fn of_size(plan: &MeasurePlan, bytes: usize) -> Result<Vec<BookRow>> {
    let document = &vec![7; bytes];
    let recipe = ChaCha::new().ok_or_else(|| BenchFailure::broken("the recipe"))?;
    let mut sealing = vec![];
    for class in CLASSES {
        let mut one = CompactSealBench::new(class, Suite::ChaCha20Poly1305)?;
        let frame = one.seal(document).ok_or_else(|| BenchFailure::broken("sealing"))?.len();
        sealing.push((class, one, frame + HOP_SEAL_BYTES));
    }
    let sizes: Vec<(Class, usize)> = sealing.iter().map(|(class, _, all)| (*class, *all)).collect();
    let mut variants = vec![timed(|| _ = black_box(recipe.seal(document)))];
    for (_, one, _) in &mut sealing {
        variants.push(timed(move || _ = black_box(one.seal(black_box(document)).is_some())));
    }
    let costs = measure::in_turns(plan, variants, &mut |_| ());
    let (baseline, ours) = costs.split_first().ok_or_else(|| BenchFailure::broken("the bench"))?;
    let baseline = share(baseline, bytes + super::RECIPE_BYTES);
    let row = |((class, all), cost): ((Class, usize), &VariantCost)| {
        let own = share(cost, all);
        let row = BookRow::new(format!("{bytes} B, class {}", class.letter()));
        let percent = |value| BenchFigure::of(value, FigureUnit::Percent);
        let row = row.baseline(percent(baseline)).sealane(percent(own));
        match class {
            Class::Signed => row.note("a signature; as it is"),
            _ => row.note(verdict(own)),
        }
    };
    Ok(sizes.into_iter().zip(ours).map(row).collect())
}

fn verdict(percent: f64) -> String {
    let is_met = if percent <= DEMANDED_PERCENT { "met" } else { "MISSED" };
    format!("demanded <= {DEMANDED_PERCENT} %: {is_met}")
}

/// In percent.
fn share(cost: &VariantCost, bytes: usize) -> f64 {
    let air_ns = FieldRadio::ble(BleRate::TwoM, 0.0).air_time(bytes).0 as f64 * 1e3;
    cost.ns.median / air_ns * 100.0
}
