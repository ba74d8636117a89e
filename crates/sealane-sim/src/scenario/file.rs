//! A scenario as it is written: the keys and their types, and nothing of what they mean.

use serde::Deserialize;
use toml::Spanned;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub(super) version: u64,
    pub(super) name: Option<String>,
    pub(super) seed: Option<u64>,
    pub(super) duration_s: f64,
    pub(super) step_ms: Option<u64>,
    pub(super) mesh: Option<Spanned<ScenarioMeshTable>>,
    #[serde(default, rename = "medium")]
    pub(super) media: Vec<Spanned<ScenarioMediumTable>>,
    #[serde(default, rename = "motion")]
    pub(super) motions: Vec<Spanned<ScenarioMotionTable>>,
    #[serde(default, rename = "node")]
    pub(super) nodes: Vec<Spanned<ScenarioNodeTable>>,
    #[serde(default, rename = "link")]
    pub(super) links: Vec<Spanned<ScenarioLinkTable>>,
    #[serde(default, rename = "flow")]
    pub(super) flows: Vec<Spanned<ScenarioFlowTable>>,
    #[serde(default, rename = "event")]
    pub(super) events: Vec<Spanned<ScenarioEventTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioMeshTable {
    pub(super) group: String,
    pub(super) ends: Option<String>,
    pub(super) keys: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioMediumTable {
    pub(super) name: String,
    pub(super) profile: String,
    pub(super) spreading_factor: Option<u32>,
    pub(super) listens: Option<bool>,
    pub(super) rate: Option<String>,
    pub(super) mtu: Option<usize>,
    pub(super) interval_ms: Option<f64>,
    pub(super) megabits_per_second: Option<f64>,
    pub(super) links: Option<String>,
    pub(super) range_m: Option<f64>,
    pub(super) fading: Option<u32>,
    pub(super) exponent: Option<f64>,
    pub(super) loss: Option<f64>,
    pub(super) delay_ms: Option<f64>,
    pub(super) jitter_ms: Option<f64>,
    pub(super) duplicates: Option<f64>,
    pub(super) asymmetry: Option<f64>,
    pub(super) duty_percent: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioMotionTable {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) points: Option<Vec<[f64; 2]>>,
    pub(super) speed_mps: Option<f64>,
    pub(super) pause_s: Option<f64>,
    pub(super) repeats: Option<bool>,
    pub(super) at: Option<[f64; 2]>,
    pub(super) area: Option<[f64; 2]>,
    pub(super) columns: Option<u32>,
    pub(super) rows: Option<u32>,
    pub(super) block_m: Option<f64>,
    pub(super) file: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioNodeTable {
    pub(super) name: String,
    pub(super) count: Option<usize>,
    pub(super) kind: String,
    pub(super) media: Vec<String>,
    pub(super) at: Option<[f64; 2]>,
    pub(super) line: Option<[f64; 2]>,
    pub(super) columns: Option<u32>,
    pub(super) spacing_m: Option<f64>,
    pub(super) area: Option<[f64; 2]>,
    pub(super) ring_m: Option<f64>,
    pub(super) motion: Option<String>,
    pub(super) joins_s: Option<f64>,
    pub(super) joins_every_s: Option<f64>,
    pub(super) leaves_s: Option<f64>,
    pub(super) battery_j: Option<f64>,
    pub(super) awake_s: Option<f64>,
    pub(super) asleep_s: Option<f64>,
    pub(super) beacon_ms: Option<u64>,
    pub(super) beacon_bytes: Option<usize>,
    pub(super) hops: Option<u8>,
    pub(super) role: Option<String>,
    pub(super) command: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioLinkTable {
    pub(super) medium: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) one_way: Option<bool>,
    pub(super) loss: Option<f64>,
    pub(super) delay_ms: Option<f64>,
    pub(super) jitter_ms: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFlowTable {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) every_ms: f64,
    pub(super) bytes: usize,
    pub(super) from_s: Option<f64>,
    pub(super) until_s: Option<f64>,
    pub(super) random: Option<bool>,
    pub(super) urgent: Option<bool>,
    pub(super) answered_ms: Option<f64>,
    pub(super) document: Option<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioEventTable {
    pub(super) at_s: f64,
    #[serde(rename = "do")]
    pub(super) act: String,
    pub(super) who: Option<Vec<String>>,
    pub(super) sides: Option<Vec<Vec<String>>>,
    #[serde(rename = "as")]
    pub(super) behaviour: Option<String>,
    pub(super) to: Option<[f64; 2]>,
    pub(super) medium: Option<String>,
    pub(super) loss: Option<f64>,
}
