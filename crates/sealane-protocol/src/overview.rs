//! The figures that a node pushes to a page that watches it: `GET /v1/overview`.

use crate::{Health, StreamsPage};

/// The figures of a node and of some of its streams at one moment.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeOverview {
    /// The node itself, as `GET /health` tells it.
    pub node: Health,
    /// Its counters since its start; none: the token may not observe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<OverviewCounters>,
    /// The streams that were asked for, as `GET /v1/streams` lists them.
    #[serde(flatten)]
    pub page: StreamsPage,
}

/// Counters of a node since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OverviewCounters {
    /// Messages stored.
    pub stored: u64,
    /// Deliveries.
    pub delivered: u64,
    /// Acknowledgements.
    pub acked: u64,
    /// Redeliveries.
    pub redelivered: u64,
}

#[cfg(test)]
mod tests {
    use sealane_codec::{Codec, DatumWriter};

    use super::*;
    use crate::Level;

    #[test]
    fn what_is_written_is_read_back() {
        let node = Health {
            ok: true,
            version: "0.1.0".to_owned(),
            status: "healthy".to_owned(),
            cause: None,
            level: Level::Os.into(),
            streams: 1,
            store: None,
        };
        let page = StreamsPage { streams: Vec::new(), next: Some("a/b".parse().unwrap()) };
        let counted = OverviewCounters { stored: 1, delivered: 2, acked: 3, redelivered: 4 };
        for counters in [None, Some(counted)] {
            let overview = NodeOverview { node: node.clone(), counters, page: page.clone() };
            for codec in Codec::AT_REST {
                let mut body = Vec::new();
                overview.write(&mut DatumWriter::new(codec, &mut body));
                assert_eq!(NodeOverview::read(codec, &body).as_ref(), Ok(&overview));
            }
        }
    }
}
