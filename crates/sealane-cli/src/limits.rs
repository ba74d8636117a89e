//! The bounds of the command line.

sealane_message::limits! {
    /// Consumers that `doctor` names. Further ones are counted.
    MAX_NAMED_CONSUMERS: usize = 10, "consumers";
    /// Verbs of a group that its help has an example of. Further ones have theirs in their own
    /// help.
    MAX_GROUP_EXAMPLES: usize = 4, "verbs";
    /// How long before its making a certificate counts as valid, since clients' clocks may be
    /// behind.
    CERT_BACKDATED_HOURS: u64 = 24, "hours";
    /// How long the tab key waits for a hub. Then it offers nothing of the hub.
    MAX_COMPLETION_WAIT_MS: u64 = 2000, "milliseconds";
    /// Words that the tab key offers. Further ones are left out.
    MAX_COMPLETION_OFFERS: usize = 200, "words";
    /// The name of a context. A longer one is refused.
    MAX_CONTEXT_NAME_BYTES: usize = 64, "bytes";
    /// How long the demo's publisher asks a hub that is gone. Then the demo fails.
    MAX_DEMO_HUB_WAIT_MS: u64 = 60_000, "milliseconds";
    /// How long the demo's readers get nothing new. Then the demo gives them up.
    MAX_DEMO_STALL_MS: u64 = 15_000, "milliseconds";
    /// How often the demo shows a message while it publishes many.
    DEMO_SHOW_INTERVAL_MS: u64 = 1000, "milliseconds";
    /// How long the demo of the field waits for a document. Then it fails.
    MAX_DEMO_FIELD_WAIT_MS: u64 = 30_000, "milliseconds";
    /// How often that demo looks whether the first document is there.
    DEMO_FIELD_LOOK_MS: u64 = 20, "milliseconds";
    /// Starts of a demo's node whose port is still held. Then the demo fails.
    MAX_DEMO_STARTS: u32 = 20, "starts";
    /// How long the demo of relays waits for a message. Then it fails.
    MAX_DEMO_RELAY_WAIT_MS: u64 = 5000, "milliseconds";
    /// The widest line of the demo. Wider terminals stay empty beside it.
    MAX_DEMO_COLUMNS: usize = 100, "columns";
    /// The narrowest line of the demo. A narrower terminal breaks it.
    MIN_DEMO_COLUMNS: usize = 60, "columns";
    /// Columns in which the doctor's words stand below each other. With fewer they are not wrapped.
    MIN_DOCTOR_COLUMNS: usize = 30, "columns";
    /// How much newer than now a file of the hub may be. Beyond it the doctor warns of the clock.
    MAX_FILE_AHEAD_MS: u64 = 60_000, "milliseconds";
    /// How far the clocks of a hub and of this machine may be apart. Beyond it the doctor warns.
    MAX_CLOCKS_APART_MS: u64 = 5000, "milliseconds";
    /// How old the time may be that a hub tells: in seconds, and kept for up to another one.
    MAX_HUB_TIME_AGE_MS: u64 = 2000, "milliseconds";
    /// A record, unit or block that `inspect` reads. A longer one counts as damage.
    MAX_INSPECT_RECORD_BYTES: usize = 16 << 20, "bytes";
    /// A line of digits: two per byte, and as much again for blanks and comments. A longer one is
    /// refused.
    MAX_INSPECT_LINE_BYTES: usize = 4 * MAX_INSPECT_RECORD_BYTES, "bytes";
    /// Lines of a field's bytes. The rest is left out, and `--json` has all.
    MAX_INSPECT_HEX_LINES: usize = 2, "lines";
    /// Lines of a body. The rest is left out, and `--json` has all.
    MAX_INSPECT_BODY_LINES: usize = 64, "lines";
    /// Lines that `publish` reads ahead of the hub. At the limit reading waits.
    MAX_LINES_AHEAD: usize = 1024, "lines";
    /// How often `publish` shows its progress.
    PUBLISH_PROGRESS_MS: u64 = 200, "milliseconds";
    /// Messages that `subscribe` prints before it acknowledges them together.
    MAX_PRINTED: usize = 256, "messages";
    /// Columns of a topic below which `top` does not cut it.
    MIN_TOP_TOPIC_COLUMNS: usize = 12, "columns";
    /// Objects of a vault that are skipped for one reason and named one by one. More are summed up.
    MAX_VAULT_ALIKE: usize = 8, "objects";
    /// How long the work of a vault takes before it shows a bar.
    VAULT_BAR_DELAY_MS: u64 = 500, "milliseconds";
    /// How often that bar changes.
    VAULT_BAR_INTERVAL_MS: u64 = 100, "milliseconds";
    /// How often a program is told how far the work of a vault is.
    VAULT_LINE_INTERVAL_MS: u64 = 1000, "milliseconds";
    /// How often the thread of that bar looks whether the work is done.
    VAULT_BAR_STEP_MS: u64 = 10, "milliseconds";
}
