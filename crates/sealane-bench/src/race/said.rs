//! The output of `nats bench`, read strictly. An unknown line may say that the figure is not worth
//! much, so nothing is passed over.

/// The figure of one run of `nats bench`.
#[derive(Debug, Clone, PartialEq)]
pub struct NatsBenchFigure {
    /// The program that ran, in the tool's words, for example `JetStream synchronous publisher`.
    pub what: String,
    /// Messages a second, over all clients.
    pub per_second: f64,
}

/// The output of `nats bench` is not the report of an undisturbed run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SaidError {
    /// The tool warns that its figure is disturbed.
    #[error("the run was disturbed: {0}")]
    Disturbed(String),
    /// A line that this reader does not know.
    #[error("unknown line: {0}")]
    Unknown(String),
    /// There is no figure, or more than one.
    #[error("{0} figures where there is to be one")]
    Figures(usize),
}

impl NatsBenchFigure {
    /// Reads all that a run printed, on both of its outputs.
    ///
    /// # Errors
    /// [`SaidError`]: a line that is not known is an error too.
    pub fn read(text: &str) -> Result<Self, SaidError> {
        let mut figures = Vec::new();
        for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            if is_complaint(line) {
                return Err(SaidError::Disturbed(line.to_owned()));
            }
            if let Some(figure) = figure(line) {
                figures.push(figure);
            } else if !is_log(line) && !is_detail(line) {
                return Err(SaidError::Unknown(line.to_owned()));
            }
        }
        match <[NatsBenchFigure; 1]>::try_from(figures) {
            Ok([figure]) => Ok(figure),
            Err(figures) => Err(SaidError::Figures(figures.len())),
        }
    }
}

fn is_complaint(line: &str) -> bool {
    ["WARNING", "rror", "Fatal", "retrying"].iter().any(|word| line.contains(word))
}

/// `NATS JetStream synchronous publisher stats: 15,012 msgs/sec ~ 3.7 MiB/sec ~ 66.61us`, and
/// `aggregated stats`, without a latency, where there are several clients.
fn figure(line: &str) -> Option<NatsBenchFigure> {
    let (head, tail) = line.strip_prefix("NATS ")?.split_once(" stats: ")?;
    let what = head.strip_suffix(" aggregated").unwrap_or(head).to_owned();
    let mut parts = tail.split(" ~ ");
    let rate = parts.next()?.strip_suffix(" msgs/sec")?;
    parts.next()?.strip_suffix("/sec")?;
    if parts.next().is_some_and(|latency| !latency.ends_with("us")) || parts.next().is_some() {
        return None;
    }
    let digits: String = rate.chars().filter(|letter| *letter != ',').collect();
    let per_second = digits.parse::<u64>().ok().filter(|rate| *rate > 0)? as f64;
    Some(NatsBenchFigure { what, per_second })
}

/// `12:34:56 Starting …`: what the tool is about to do.
fn is_log(line: &str) -> bool {
    let known = ["Starting ", "Using stream: ", "Purging the stream"];
    let Some((time, rest)) = line.split_once(' ') else { return false };
    let is_time = time.len() == 8
        && time.bytes().enumerate().all(|(at, byte)| match at {
            2 | 5 => byte == b':',
            _ => byte.is_ascii_digit(),
        });
    // Of several clients, each is numbered.
    let rest = rest.split_once("] ").filter(|_| rest.starts_with('[')).map_or(rest, |(_, r)| r);
    is_time && known.iter().any(|known| rest.starts_with(known))
}

/// The lines of single clients below an aggregated figure.
fn is_detail(line: &str) -> bool {
    let indented = line.starts_with(' ');
    let line = line.trim_start();
    let single = line.starts_with('[') && line.contains(" msgs/sec ~ ");
    indented && (single || line.starts_with("message rates ") || line.starts_with("avg latencies "))
}
