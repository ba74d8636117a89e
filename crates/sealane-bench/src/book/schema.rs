//! The report's Task 7: a codec with a schema, beside JSON and CBOR, over the record of 21 fields.

use std::hint::black_box;

use sealane_codec::{Codec, decode, encode};

use super::{BookRow, BookTable};
use crate::baseline::triple::RichRecord;
use crate::failure::{BenchFailure, Result};
use crate::measure::{BenchFigure, MeasurePlan, medians, timed};

/// Sizes of the text in KiB: with little of it the fields are most of the record.
const KIB: [usize; 3] = [0, 8, 64];

pub(super) fn table(plan: &MeasurePlan) -> Result<BookTable> {
    let mut rows = vec![];
    for kib in KIB {
        rows.extend(beside(plan, kib)?);
    }
    Ok(BookTable::new(
        "A codec with a schema, beside JSON and CBOR",
        "The same record of 21 fields in three codecs. Baseline: serde_json, and postcard, \
               whose two ends both have to know the record, so that it writes neither names nor \
               kinds. Sealane: CBOR, which a reader without the record can read, decoded into a \
               value of any form.",
        rows,
    ))
}

fn beside(plan: &MeasurePlan, kib: usize) -> Result<Vec<BookRow>> {
    let rich = RichRecord::new(kib);
    let (json, postcard) = (rich.to_json(), rich.to_postcard());
    let value = decode(Codec::Json, &json).map_err(|_| BenchFailure::broken("JSON"))?;
    let (mut cbor, mut out) = (Vec::new(), Vec::new());
    encode(Codec::Cbor, &value, &mut cbor);
    if RichRecord::from_postcard(&postcard).as_ref() != Some(&rich) {
        return Err(BenchFailure::broken("postcard"));
    }
    let variants = [
        timed(|| _ = black_box(black_box(&rich).to_json())),
        timed(|| _ = black_box(RichRecord::from_json(black_box(&json)))),
        timed(|| _ = black_box(black_box(&rich).to_postcard())),
        timed(|| _ = black_box(RichRecord::from_postcard(black_box(&postcard)))),
        timed(|| {
            out.clear();
            encode(Codec::Cbor, black_box(&value), &mut out);
            black_box(&out);
        }),
        timed(|| _ = black_box(decode(Codec::Cbor, black_box(&cbor)).is_ok())),
    ];
    let ns = medians(plan, variants).map(BenchFigure::ns);
    let mut rows = vec![];
    for (codec, bytes, at) in [("JSON", json.len(), 0), ("postcard", postcard.len(), 2)] {
        for (step, what) in ["encode", "decode"].into_iter().enumerate() {
            let sizes = (BenchFigure::bytes(bytes), BenchFigure::bytes(cbor.len()));
            rows.push(
                BookRow::new(format!("{kib} KiB, {what}, beside {codec}"))
                    .baseline(ns[at + step])
                    .sealane(ns[4 + step])
                    .note(format!("{} beside {} in CBOR", sizes.0, sizes.1)),
            );
        }
    }
    Ok(rows)
}
