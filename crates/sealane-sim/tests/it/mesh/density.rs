//! All in one cell: what the mesh itself says takes a small part of the channel.

use super::{row, size};
use crate::story::story;

/// The cost of the mesh in a minute of a cell of so many machines.
struct Spent {
    /// In percent of the channel.
    channel: f64,
    /// Bytes of each machine in a second.
    bytes: f64,
}

/// Whether a proof asks for all of it.
fn is_long() -> bool {
    size("SEALANE_MINUTES", 1) > 1
}

fn spent(machines: u64) -> Spent {
    let (begins, lasts) = (30, if is_long() { 60 } else { 20 });
    let text = format!(
        "version = 1\nduration_s = {}\n\
         [[medium]]\nname = \"cell\"\nprofile = \"11p\"\n\
         [[node]]\nname = \"one\"\ncount = {machines}\nkind = \"mesh\"\nmedia = [\"cell\"]\n\
         ring_m = 60\n",
        begins + lasts
    );
    let lines = story(&text, 1);
    let sends = lines.iter().filter(|line| line.is("send") && line.at >= begins * 1_000_000);
    let (air, bytes) = sends.fold((0, 0), |sum, line| (sum.0 + line.air, sum.1 + line.bytes));
    assert_eq!(lines.last().unwrap().loops, 0);
    Spent {
        channel: air as f64 / (lasts as f64 * 1e4),
        bytes: bytes as f64 / (lasts * machines) as f64,
    }
}

#[test]
fn what_controls_takes_a_twentieth_of_the_channel_at_most_however_many_are_there() {
    let counts = if is_long() { vec![22, 50, 100] } else { vec![6, 12] };
    let mut before: Option<(u64, f64)> = None;
    for machines in counts {
        let Spent { channel, bytes } = spent(machines);
        let name = format!("{machines} in one cell: control");
        row(&name, "5 % of the channel", format!("{channel:.2} %"), channel <= 5.0);
        assert!(channel > 0.1, "something was said");
        let measured = format!("{bytes:.0} bytes/s");
        if let Some((fewer, less)) = before {
            let demanded = less * (machines - 1) as f64 / (fewer - 1) as f64;
            let name = format!("{machines} in one cell: each says");
            row(&name, format!("{demanded:.0} bytes/s"), measured, bytes <= demanded);
        } else {
            println!("{machines} in one cell: each says {measured}");
        }
        before = Some((machines, bytes));
    }
}
