use std::io;

use sealane_link::{LinkAddress, LinkError, LinkInbox, LinkReady, RelayLink};

use super::{TURN, link, rewrite, send};

/// The two sides of a forwarder.
#[derive(Debug, clap::Args)]
pub(crate) struct HopForward {
    /// Twice: its own address and port, or the interface of raw Ethernet
    #[arg(long = "link", value_name = "LINK", required = true, num_args = 1)]
    links: Vec<String>,
    /// Twice, in the same order: who is at the other end
    #[arg(long = "neighbour", value_name = "ADDRESS", required = true, num_args = 1)]
    neighbours: Vec<LinkAddress>,
    /// The bytes that the wires carry at once
    #[arg(long, default_value_t = 1500)]
    mtu: u16,
}

/// One of two sides.
#[derive(Debug)]
struct HopSide {
    link: RelayLink,
    neighbour: LinkAddress,
}

/// Sends on what comes from the neighbour of one side to that of the other, until the process ends.
pub(crate) fn forward(args: &HopForward, ready: impl FnOnce()) -> Result<(), LinkError> {
    let sides = args.links.iter().zip(&args.neighbours).map(|(text, neighbour)| {
        Ok(HopSide { link: RelayLink::open(&link(text, args.mtu), None)?, neighbour: *neighbour })
    });
    let sides = sides.collect::<Result<Vec<HopSide>, LinkError>>()?;
    ready();
    if let [one, other] = sides.as_slice() {
        std::thread::scope(|scope| {
            scope.spawn(|| carry(one, other));
            carry(other, one);
        });
    }
    Ok(())
}

fn carry(from: &HopSide, to: &HopSide) {
    let mut inbox = LinkInbox::new();
    loop {
        match from.link.receive(&mut inbox) {
            Ok(count) => {
                for (arrived, segments) in inbox.batches(count) {
                    if arrived.from == from.neighbour {
                        segments.chunks_mut(arrived.segment_bytes).for_each(rewrite);
                        send(&to.link, to.neighbour, segments, arrived.segment_bytes);
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ = from.link.wait(LinkReady::ToReceive, TURN);
            }
            Err(_) => std::thread::sleep(TURN),
        }
    }
}
