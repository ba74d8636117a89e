//! `[[medium]]`.

use super::file;
use super::plan::{LinkImpairments, MediumPlan, MediumTopology};
use super::text::ScenarioSpot;
use super::{MAX_METRES, milliseconds};
use crate::medium::{BleRate, LoraProfile, NakagamiFading};
use crate::{SimError, SimMediumProfile, SimSpan};

const PROFILES: [&str; 5] = ["11p", "ble", "ble-advertising", "lora", "wire"];
/// A street with some line of sight; `spec/scenario.md` gives the sources of both.
const USUAL_FADING: u32 = 3;
const USUAL_EXPONENT: f64 = 2.7;

/// A medium as it is written, checked.
pub(super) fn medium(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioMediumTable,
) -> Result<MediumPlan, SimError> {
    let profile = profile(spot, file)?;
    let usual_percent = f64::from(profile.usual_duty_ppm()) / 1e4;
    let percent = spot.number("duty_percent", file.duty_percent, usual_percent, 0.001..=100.0)?;
    let range_m = if profile.is_radio() {
        spot.number("range_m", file.range_m, profile.usual_range_m(), 1.0..=MAX_METRES)?
    } else {
        f64::INFINITY
    };
    let exponent = spot.number("exponent", file.exponent, USUAL_EXPONENT, 1.5..=6.0)?;
    Ok(MediumPlan {
        name: file.name.clone(),
        profile,
        shape: shape(spot, file, &profile)?,
        fading: fading(spot, file, range_m, exponent)?.filter(|_| profile.is_radio()),
        range_m,
        exponent,
        manners: LinkImpairments {
            loss: spot.number("loss", file.loss, 0.0, 0.0..=1.0)?,
            delay: milliseconds(spot.number("delay_ms", file.delay_ms, 0.0, 0.0..=60_000.0)?),
            jitter: milliseconds(spot.number("jitter_ms", file.jitter_ms, 0.0, 0.0..=60_000.0)?),
            duplicates: spot.number("duplicates", file.duplicates, 0.0, 0.0..=1.0)?,
        },
        asymmetry: spot.number("asymmetry", file.asymmetry, 0.0, 0.0..=1.0)?,
        duty_ppm: (percent * 1e4).round() as u32,
        power: profile.usual_power(),
    })
}

fn fading(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioMediumTable,
    range_m: f64,
    exponent: f64,
) -> Result<Option<NakagamiFading>, SimError> {
    match file.fading.unwrap_or(USUAL_FADING) {
        0 => Ok(None),
        m @ 1..=10 => Ok(Some(NakagamiFading { m, exponent, range_m })),
        m => Err(spot.refuses(format!("fading = {m} is not from 0 to 10"))),
    }
}

fn profile(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioMediumTable,
) -> Result<SimMediumProfile, SimError> {
    let name = file.profile.as_str();
    spot.known("profile", name, &PROFILES)?;
    let is_ble = matches!(name, "ble" | "ble-advertising");
    let unfit = [
        ("spreading_factor", file.spreading_factor.is_some(), name == "lora"),
        ("listens", file.listens.is_some(), name == "lora"),
        ("rate", file.rate.is_some(), is_ble),
        ("mtu", file.mtu.is_some(), matches!(name, "ble" | "wire")),
        ("interval_ms", file.interval_ms.is_some(), name == "ble"),
        ("megabits_per_second", file.megabits_per_second.is_some(), name == "wire"),
        ("links", file.links.is_some(), matches!(name, "ble" | "wire")),
        ("range_m", file.range_m.is_some(), name != "wire"),
        ("fading", file.fading.is_some(), name != "wire"),
        ("exponent", file.exponent.is_some(), name != "wire"),
    ];
    let unfit = unfit.map(|(key, is_there, fits)| (key, is_there && !fits));
    let profile = match name {
        "lora" => match file.spreading_factor.unwrap_or(7) {
            factor @ 7..=12 => {
                let listens = file.listens.unwrap_or(true);
                SimMediumProfile::Lora(LoraProfile { listens, ..LoraProfile::eu868(factor) })
            }
            other => {
                return Err(spot.refuses(format!("spreading_factor = {other} is not from 7 to 12")));
            }
        },
        "11p" => SimMediumProfile::Dot11p,
        "ble-advertising" => SimMediumProfile::BleAdvertising(rate(spot, file)?),
        "ble" => SimMediumProfile::BleConnection {
            rate: rate(spot, file)?,
            mtu: mtu(spot, file, 247, 23, 247)?,
            interval: interval(spot, file)?,
        },
        _ => {
            let megabits = file.megabits_per_second;
            let megabits =
                spot.number("megabits_per_second", megabits, 1000.0, 0.001..=1_000_000.0)?;
            let mtu = mtu(spot, file, 1500, 156, 9000)?;
            SimMediumProfile::Wire { bits_per_second: (megabits * 1e6).round() as u64, mtu }
        }
    };
    spot.none_of(name, &unfit)?;
    Ok(profile)
}

fn rate(spot: &ScenarioSpot<'_>, file: &file::ScenarioMediumTable) -> Result<BleRate, SimError> {
    match file.rate.as_deref() {
        None | Some("1m") => Ok(BleRate::OneM),
        Some("2m") => Ok(BleRate::TwoM),
        Some(other) => Err(spot.refuses(format!("rate `{other}` is neither 1m nor 2m"))),
    }
}

/// 7.5 ms to 4 s, as a connection may have it (Bluetooth Core 5.4, Vol 6, Part B, 4.5.1).
fn interval(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioMediumTable,
) -> Result<SimSpan, SimError> {
    Ok(milliseconds(spot.number("interval_ms", file.interval_ms, 30.0, 7.5..=4000.0)?))
}

fn mtu(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioMediumTable,
    usual: usize,
    least: usize,
    most: usize,
) -> Result<usize, SimError> {
    match file.mtu.unwrap_or(usual) {
        mtu if (least..=most).contains(&mtu) => Ok(mtu),
        mtu => Err(spot.refuses(format!("mtu = {mtu} is not from {least} to {most}"))),
    }
}

fn shape(
    spot: &ScenarioSpot<'_>,
    file: &file::ScenarioMediumTable,
    profile: &SimMediumProfile,
) -> Result<MediumTopology, SimError> {
    match file.links.as_deref() {
        None | Some("all") => Ok(MediumTopology::All),
        Some("chain") => Ok(MediumTopology::Chain),
        Some("star") => Ok(MediumTopology::Star),
        Some("listed") => Ok(MediumTopology::Listed),
        Some(other) => {
            debug_assert!(!profile.is_shared());
            Err(spot.refuses(format!("links `{other}` is none of all, chain, star, listed")))
        }
    }
}
