//! The text of `/metrics`, read as Prometheus reads it.

use std::collections::{BTreeMap, BTreeSet};

use crate::running::Running;

/// One line: a name, its labels as they stand there, and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: String,
    pub(crate) value: f64,
}

#[derive(Debug)]
pub(crate) struct Exposition {
    /// The kind of each metric, by the name that counters have in the samples.
    pub(crate) kinds: BTreeMap<String, String>,
    pub(crate) samples: Vec<Sample>,
}

impl Exposition {
    pub(crate) async fn of(hub: &Running) -> Exposition {
        let reply = hub.get_as("/metrics", "application/openmetrics-text").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let kind = reply.header("content-type").unwrap();
        assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
        Exposition::read(&reply.text())
    }

    fn read(text: &str) -> Exposition {
        let text = text.strip_suffix("# EOF\n").expect("what ends early has no end");
        let (mut kinds, mut samples) = (BTreeMap::new(), Vec::new());
        for line in text.lines() {
            if let Some(typed) = line.strip_prefix("# TYPE ") {
                let (name, kind) = typed.split_once(' ').unwrap();
                let ending = if kind == "counter" { "_total" } else { "" };
                let before = kinds.insert(format!("{name}{ending}"), kind.to_owned());
                assert_eq!(before, None, "{name} stands there twice");
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                let (name, labels) =
                    (name.to_owned(), labels.strip_suffix('}').unwrap().to_owned());
                samples.push(Sample { name, labels, value: value.parse().unwrap() });
            }
        }
        Exposition { kinds, samples }
    }

    /// All series of a metric.
    pub(crate) fn all(&self, name: &str) -> Vec<&Sample> {
        self.samples.iter().filter(|sample| sample.name == name).collect()
    }

    /// The value of the one series that has these labels; none: there is no such series.
    pub(crate) fn value(&self, name: &str, labels: &str) -> Option<f64> {
        let all = self.all(name);
        all.into_iter().find(|sample| sample.labels == labels).map(|sample| sample.value)
    }

    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.all(name).iter().map(|sample| sample.value).sum()
    }

    /// The names of all series.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.samples.iter().map(|sample| sample.name.as_str()).collect()
    }
}
