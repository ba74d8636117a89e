use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::json;

/// The head of every result.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BenchHost {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// The commit that was measured, or `unknown`.
    pub(crate) commit: String,
    /// How this program was built: `ship` as it is shipped, `release`, or `debug`, whose figures
    /// say little.
    pub(crate) build: &'static str,
    pub(crate) time_s: u64,
}

/// One measurement.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadRow {
    pub(crate) name: String,
    /// The level of the stream; `-` where nothing is stored.
    pub(crate) level: &'static str,
    /// The codec of the connections.
    pub(crate) codec: String,
    pub(crate) connections: usize,
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    /// Seconds of CPU that the node spent; 0 where there is none.
    pub(crate) node_cpu_s: f64,
    /// Median and 99th percentile, in microseconds, where single things were timed.
    pub(crate) latency_us: Option<(f64, f64)>,
    pub(crate) note: String,
}

impl BenchHost {
    /// This machine.
    pub(crate) fn here() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo");
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name"));
        let cpu = cpu.and_then(|rest| rest.split_once(':')).map_or("unknown", |(_, name)| name);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            cpu: cpu.trim().to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            commit: env!("SEALANE_COMMIT").to_owned(),
            build: env!("SEALANE_PROFILE"),
            time_s: since.as_secs(),
        }
    }
}

impl fmt::Display for BenchHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, kernel, commit, build, .. } = self;
        write!(f, "{cpu}, {cores} cores, Linux {kernel}, commit {commit}, {build} build")
    }
}

impl LoadRow {
    /// The row for programs.
    pub(crate) fn record(&self) -> impl Serialize {
        let (p50, p99) = self.latency_us.unwrap_or_default();
        json!({
            "name": self.name, "level": self.level, "codec": self.codec,
            "connections": self.connections, "count": self.count, "seconds": self.seconds,
            "perSecond": self.rate(), "perCore": self.rate_per_core(),
            "p50Us": p50, "p99Us": p99, "note": self.note,
        })
    }

    /// Messages or deliveries a second.
    pub(crate) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.count as f64 / self.seconds } else { 0.0 }
    }

    /// Messages or deliveries for each second of CPU that the node spent.
    pub(crate) fn rate_per_core(&self) -> Option<f64> {
        (self.node_cpu_s > 0.0).then(|| self.count as f64 / self.node_cpu_s)
    }

    /// The heads of the columns of a row's text form.
    pub(crate) const HEAD: &str = "what                                      level   codec    \
        conns       count         /s  /s per core    p50 us    p99 us  note";
}

impl fmt::Display for LoadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p99) = self.latency_us.map_or((String::new(), String::new()), |(p50, p99)| {
            (format!("{p50:.0}"), format!("{p99:.0}"))
        });
        let per_core = self.rate_per_core().map_or(String::new(), |rate| format!("{rate:.0}"));
        write!(
            f,
            "{:<41} {:<7} {:<8} {:>5} {:>11} {:>10.0} {:>12} {:>9} {:>9}  {}",
            self.name,
            self.level,
            self.codec,
            self.connections,
            self.count,
            self.rate(),
            per_core,
            p50,
            p99,
            self.note
        )
    }
}
