//! The output of `nats bench` 0.3.0 is read, and an unknown line is refused. A figure of a
//! disturbed run never stands beside ours.

use sealane_bench::race::{NatsBenchFigure, SaidError};

const KEPT: [(&str, &str, f64); 6] = [
    (include_str!("nats-bench/sync.txt"), "JetStream synchronous publisher", 4_808.0),
    (
        include_str!("nats-bench/async-two-clients.txt"),
        "JetStream asynchronous publisher",
        56_696.0,
    ),
    (include_str!("nats-bench/batch.txt"), "JetStream batched publisher", 10_536.0),
    (include_str!("nats-bench/consume.txt"), "JetStream durable consumer (callback)", 147_018.0),
    (include_str!("nats-bench/fetch.txt"), "JetStream durable consumer (fetch)", 84_993.0),
    (include_str!("nats-bench/sub.txt"), "Core NATS subscriber", 158_588.0),
];

#[test]
fn reads_what_was_kept_of_each_verb() {
    for (text, what, per_second) in KEPT {
        assert_eq!(
            NatsBenchFigure::read(text),
            Ok(NatsBenchFigure { what: what.to_owned(), per_second })
        );
    }
}

#[test]
fn refuses_a_run_that_was_disturbed() {
    let warning = "00:44:49 WARNING: at least one of the clients disconnected or experienced an \
                   error during the benchmark. These results are not optimal!";
    let retried = "publish acknowledgement is an error: nats: no response (retrying)";
    let failed = "nats: error: could not create the stream: insufficient storage (10047)";
    for line in [warning, retried, failed] {
        let text = format!("{}{line}\n", KEPT[0].0);
        assert_eq!(NatsBenchFigure::read(&text), Err(SaidError::Disturbed(line.to_owned())));
    }
}

#[test]
fn refuses_lines_that_it_does_not_know() {
    let lines = [
        "NATS JetStream synchronous publisher stats: 4,808 msgs/min ~ 1.2 MiB/sec ~ 207.98us",
        "NATS JetStream synchronous publisher stats: 0 msgs/sec ~ 0 B/sec ~ 207.98us",
        "NATS JetStream synchronous publisher stats: 4,808 msgs/sec ~ 1.2 MiB/sec ~ 0.2ms",
        "00:44:49 Falling back to core publishing",
        "  dropped 3 messages",
    ];
    for line in lines {
        let text = format!("{}{line}\n", KEPT[0].0);
        let refused = Err(SaidError::Unknown(line.trim_end().to_owned()));
        assert_eq!(NatsBenchFigure::read(&text), refused, "{line}");
    }
}

#[test]
fn refuses_none_and_two_figures() {
    assert_eq!(NatsBenchFigure::read(""), Err(SaidError::Figures(0)));
    let two = KEPT[0].0.to_owned() + KEPT[2].0;
    assert_eq!(NatsBenchFigure::read(&two), Err(SaidError::Figures(2)));
    for (text, ..) in KEPT {
        let started: Vec<&str> = text.lines().filter(|line| !line.contains(" stats: ")).collect();
        assert_eq!(NatsBenchFigure::read(&started.join("\n")), Err(SaidError::Figures(0)));
    }
}
