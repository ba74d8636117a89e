use super::*;

/// LoRa at spreading factor 10: a hello takes 1.2 seconds.
const SLOW: MeshMedium = MeshMedium {
    mtu: 51,
    fixed: MeshSpan(172_000),
    bytes_per_second: 115,
    ..MeshMedium::lora_sf7()
};

/// Whether a channel on which a hello begins in every so many seconds ever counts as busy.
fn is_busy(medium: MeshMedium, every: u64) -> bool {
    let mut interface = MeshInterface::new(medium, MeshTime(0), InterfaceNumbers::default());
    interface.adapt(4, 4);
    let hello = interface.air(HELLO_UNIT_BYTES);
    (0..20 * every).any(|second| {
        let passed = second % every * 1_000_000;
        let share = hello.0.saturating_sub(passed).min(1_000_000) as u32;
        interface.hear_load(MeshTime(second * 1_000_000), share);
        interface.hello.is_stretched()
    })
}

#[test]
fn one_hello_is_no_busy_channel_however_slow_the_radio_is() {
    for medium in [SLOW, MeshMedium { mtu: 51, ..MeshMedium::lora_sf7() }, MeshMedium::lora_sf7()] {
        assert!(!is_busy(medium, 100), "{medium:?}");
    }
    // A fifth of the time, and more than half of it.
    assert!(is_busy(MeshMedium { mtu: 51, ..MeshMedium::lora_sf7() }, 1));
    assert!(is_busy(SLOW, 2));
}
