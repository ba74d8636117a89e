//! `[[motion]]`.

use super::file;
use super::plan::{MotionKind, MotionPlan, StreetPlan};
use super::text::ScenarioSpot;
use super::{MAX_SECONDS, place};
use crate::SimError;
use crate::limits::{MAX_CROSSINGS, MAX_WAY_POINTS};
use crate::place::SimPlace;

/// Of vehicles in a city, 50 km/h, and of people on foot.
const STREET_SPEED_MPS: f64 = 13.9;
const WALK_SPEED_MPS: f64 = 1.4;

/// A motion as it is written, checked.
pub(super) fn motion(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioMotionTable,
) -> Result<MotionPlan, SimError> {
    let name = file.kind.as_str();
    spot.known("kind", name, &["streets", "trace", "wander", "way-points"])?;
    let is_walk = matches!(name, "way-points" | "wander");
    let unfit = [
        ("points", file.points.is_some(), name == "way-points"),
        ("repeats", file.repeats.is_some(), name == "way-points"),
        ("pause_s", file.pause_s.is_some(), is_walk),
        ("speed_mps", file.speed_mps.is_some(), is_walk || name == "streets"),
        ("at", file.at.is_some(), matches!(name, "wander" | "streets")),
        ("area", file.area.is_some(), name == "wander"),
        ("columns", file.columns.is_some(), name == "streets"),
        ("rows", file.rows.is_some(), name == "streets"),
        ("block_m", file.block_m.is_some(), name == "streets"),
        ("file", file.file.is_some(), name == "trace"),
    ];
    spot.none_of(name, &unfit.map(|(key, is_there, fits)| (key, is_there && !fits)))?;
    let speed = |usual| spot.number("speed_mps", file.speed_mps, usual, 0.01..=100.0);
    let pause_s = spot.number("pause_s", file.pause_s, 0.0, 0.0..=MAX_SECONDS)?;
    let at = place(spot, "at", file.at.unwrap_or_default())?;
    let kind = match name {
        "way-points" => MotionKind::WayPoints {
            points: points(spot, file)?,
            speed_mps: speed(WALK_SPEED_MPS)?,
            pause_s,
            repeats: file.repeats.unwrap_or(false),
        },
        "wander" => {
            let area = file.area.ok_or_else(|| spot.refuses("area is missing"))?;
            let area = rectangle(spot, area)?;
            MotionKind::Wander { at, area, speed_mps: speed(WALK_SPEED_MPS)?, pause_s }
        }
        "streets" => MotionKind::Streets(streets(spot, file, at, speed(STREET_SPEED_MPS)?)?),
        _ => {
            let file = file.file.clone().ok_or_else(|| spot.refuses("file is missing"))?;
            MotionKind::Trace { file }
        }
    };
    Ok(MotionPlan { name: file.name.clone(), kind })
}

fn points(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioMotionTable,
) -> Result<Vec<SimPlace>, SimError> {
    let points = file.points.as_deref().unwrap_or_default();
    if !(2..=MAX_WAY_POINTS).contains(&points.len()) {
        let count = points.len();
        return Err(spot.refuses(format!("{count} points are not 2 to {MAX_WAY_POINTS}")));
    }
    let points: Vec<_> =
        points.iter().map(|point| place(spot, "points", *point)).collect::<Result<_, _>>()?;
    // Somebody who walks round a ring of no length would never arrive.
    let first = points.first().copied().unwrap_or_default();
    if points.iter().all(|point| first.metres_to(*point) < 0.01) {
        return Err(spot.refuses("all points are one place"));
    }
    Ok(points)
}

fn streets(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioMotionTable,
    at: SimPlace,
    speed_mps: f64,
) -> Result<StreetPlan, SimError> {
    let block_m = spot.number("block_m", file.block_m, 100.0, 20.0..=10_000.0)?;
    let crossings = |key, value: Option<u32>| {
        let value = spot.needed(key, value.map(f64::from), 2.0..=f64::from(u16::MAX))?;
        Ok::<u32, SimError>(value as u32)
    };
    let (columns, rows) = (crossings("columns", file.columns)?, crossings("rows", file.rows)?);
    if columns as usize * rows as usize > MAX_CROSSINGS {
        return Err(spot.refuses(format!("columns times rows is more than {MAX_CROSSINGS}")));
    }
    Ok(StreetPlan { at, columns, rows, block_m, speed_mps })
}

/// The width and height of an area.
pub(super) fn rectangle(spot: &ScenarioSpot<'_>, area: [f64; 2]) -> Result<SimPlace, SimError> {
    let [x, y] = area;
    let bounds = 1.0..=super::MAX_METRES;
    Ok(SimPlace {
        x: spot.number("area", Some(x), x, bounds.clone())?,
        y: spot.number("area", Some(y), y, bounds)?,
    })
}
