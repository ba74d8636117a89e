use super::*;

/// LoRa at spreading factor 10: a hello takes 1.2 seconds.
const SLOW: Medium =
    Medium { mtu: 51, fixed: Span(172_000), bytes_per_second: 115, ..Medium::lora_sf7() };

/// What the driver tells of a channel that is busy for so long in every so many seconds.
fn after(medium: Medium, busy: Span, every: u64) -> Interface {
    let mut interface = Interface::new(medium, Time(0), Numbers::default());
    for second in 0..20 * every {
        let at = second % every * 1_000_000;
        let share = busy.0.saturating_sub(at).min(1_000_000) as u32;
        interface.hear_load(Time(second * 1_000_000), share);
        if second % every == 0 {
            interface.adapt(4, 4);
        }
    }
    interface
}

#[test]
fn one_hello_is_no_busy_channel_however_slow_the_radio_is() {
    for medium in [SLOW, Medium { mtu: 51, ..Medium::lora_sf7() }, Medium::lora_sf7()] {
        let hello = after(medium, Span(0), 100).air(HELLO_UNIT_BYTES);
        let calm = after(medium, hello, 100);
        assert_eq!(calm.interval, calm.free_interval, "{medium:?}");
        let every = hello.0.div_ceil(1_000_000);
        let busy = after(medium, hello, every);
        assert!(busy.interval > busy.free_interval, "{medium:?}: a seventh of the time and more");
    }
}
