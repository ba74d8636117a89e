//! The heartbeat reply, of which the report says how long it takes. What stations here tell of
//! themselves is an announcement, which a relay sends on where it lies.

use std::hint::black_box;

use sealane_frame::limits::MAX_HOP_LIMIT;
use sealane_frame::{PeerTag, forward_in_place, set_hop_limit};
use sealane_seal::{Class, Suite};

use super::{
    BaselineControl, BaselineHeartbeat, BaselineMessage, BaselinePacket, DESTINATION, FROM, ORIGIN,
    TO,
};
use super::{BenchMembers, MeasurePlan, RELAY, VariantCost, fresh, measure, members, timed};
use crate::baseline::forward::reply_into;
use crate::failure::{BenchFailure, Result};

/// The report's figures: nanoseconds of its old way and of its new way.
pub(super) const PUBLISHED: (&str, f64, f64) = ("heartbeat reply, written", 65.0, 9.5);

pub(super) fn beat() -> BaselineHeartbeat {
    BaselineHeartbeat { duration: 1, id: 2, hops: 3, source: ORIGIN }
}

/// An announcement as it travels.
pub(super) fn announcement() -> Result<Vec<u8>> {
    let binding = members::documents();
    BenchMembers::new(Class::Group, Suite::Aes256Gcm, 0, binding)?.announcement()
}

/// The report's three ways, and ours.
pub(super) fn measure(plan: &MeasurePlan) -> Result<[VariantCost; 4]> {
    let (beat, mut wire, mut frame) = (beat(), Vec::new(), announcement()?);
    let (beat, works) = (&beat, &std::cell::Cell::new(true));
    let variants = [
        timed(|| {
            let reply = BaselineControl::Reply(black_box(beat).clone(), DESTINATION);
            let message =
                BaselineMessage { from: FROM, to: TO, packet: BaselinePacket::Control(reply) };
            drop(black_box(message.to_wire()));
        }),
        timed(|| {
            fresh(|wire| reply_into(black_box(beat), DESTINATION, FROM, TO, wire));
        }),
        timed(|| {
            reply_into(black_box(beat), DESTINATION, FROM, TO, &mut wire);
            black_box(&wire);
        }),
        timed(move || {
            // It would have no hops left otherwise; the byte lies in the line that is touched.
            set_hop_limit(&mut frame, MAX_HOP_LIMIT);
            let sent = forward_in_place(black_box(&mut frame), PeerTag::BROADCAST, RELAY);
            works.set(works.get() && black_box(sent.is_ok()));
        }),
    ];
    let costs = measure::costs(plan, variants);
    if works.get() { Ok(costs) } else { Err(BenchFailure::broken("a relay's rewrite")) }
}
