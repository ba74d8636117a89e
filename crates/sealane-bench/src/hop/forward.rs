use std::io;

use sealane_link::{LinkAddress, LinkError, LinkInbox, LinkReady, RelayLink};

use super::{TURN, link, rewrite, send};
use crate::args::HopForward;

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
