//! The bounds of topics, events and documents, and the macro by which each crate states its own.
//!
//! `cargo xtask docs` makes `docs/reference/LIMITS.md` of the `limits!` blocks of all crates, and
//! `cargo xtask tidy` refuses a limit that no code uses.

/// The limits of a crate as constants: each says what is bounded and what happens beyond it, and in
/// which unit it counts.
///
/// ```
/// sealane_message::limits! {
///     /// Sheep of one meadow. A further one is refused.
///     MAX_SHEEP: usize = 1 << 10, "sheep";
/// }
/// assert_eq!(MAX_SHEEP, 1024);
/// ```
#[macro_export]
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $value:expr, $unit:literal;)+) => {
        $(
            $(#[doc = $doc])+
            #[doc = concat!("\n\nUnit: ", $unit, ".")]
            pub const $name: $type = $value;
        )+
    };
}

limits! {
    /// A topic's length. A longer one is refused.
    MAX_TOPIC_BYTES: usize = 255, "bytes";
    /// Segments of a topic or pattern. More are refused.
    MAX_TOPIC_SEGMENTS: usize = 16, "segments";
    /// How people call a member, in an event. A longer handle is refused.
    MAX_HANDLE_BYTES: usize = 64, "bytes";
    /// Members whom one event mentions. More are refused.
    MAX_MENTIONS: usize = 256, "mentions";
    /// Attachments of one event. More are refused.
    MAX_ATTACHMENTS: usize = 64, "attachments";
    /// Options of one poll, and choices of one vote. More are refused.
    MAX_POLL_OPTIONS: usize = 64, "options";
    /// Counters of one member. More are refused.
    MAX_COUNTERS: usize = 16, "counters";
    /// The most that one member counts in all. More is refused, so that the sum over all members
    /// fits.
    MAX_COUNT: u64 = (1 << 53) - 1, "counts";
    /// How people call a member on the radio. A longer callsign is refused.
    MAX_CALLSIGN_BYTES: usize = 12, "bytes";
    /// The words of a call for help. A longer text is refused.
    MAX_EMERGENCY_TEXT_BYTES: usize = 64, "bytes";
}
