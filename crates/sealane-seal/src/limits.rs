//! The bounds of this step, and the sizes that its format fixes.

sealane_message::limits! {
    /// Slots of a group within one epoch: 10 bits of the key id.
    MAX_SLOT: u16 = 1023, "slot";
    /// Counters of one sender and epoch, 40 bits. Beyond it nothing is sealed until the next epoch.
    MAX_COUNTER: u64 = (1 << 40) - 1, "counter";
    /// A body that is sealed. A larger one is refused.
    MAX_SEALED_BODY_BYTES: usize = 16 << 20, "bytes";
    /// The authenticated part of a header that is sealed with a body. More is refused.
    MAX_META_BYTES: usize = 256, "bytes";
    /// Counters of one sender that may arrive out of order. Older messages are refused as replays.
    WINDOW_BITS: u64 = 1024, "messages";
    /// Epochs that one order may step over.
    MAX_EPOCHS_AHEAD: u64 = 1024, "epochs";
    /// Epochs behind the newest of which live messages are still taken.
    MAX_LIVE_EPOCHS_BEHIND: u64 = 1, "epochs";
    /// Epoch secrets that one group holds. The oldest leaves for a newer one beyond it.
    MAX_EPOCHS_HELD: usize = 4096, "secrets";
    /// Messages that a sender seals under one context. Then it draws another one.
    MAX_KEY_MESSAGES: u64 = 1 << 32, "messages";
    /// How far ahead of a live sender its ceiling is stored: what a restart refuses at most.
    MAX_CEILING_BLOCK: u64 = 1 << 14, "messages";
    /// Announcements of unknown contexts that a live reader tries until its caller allows more.
    MAX_TRIALS: u32 = 32, "trials";
    /// A policy file. A larger one is refused.
    MAX_POLICY_BYTES: usize = 64 << 10, "bytes";
    /// The reason that a policy file gives for weakening a rule. A longer one is refused.
    MAX_REASON_BYTES: usize = 200, "bytes";
    /// The smallest fragment that a policy may ask for. A smaller one is refused.
    MIN_POLICY_FRAGMENT_BYTES: u16 = 32, "bytes";
    /// How long a policy may gather messages before they are sent. More is refused.
    MAX_POLICY_BATCH_MS: u32 = 60_000, "milliseconds";
}

/// Bytes of an SFrame header in the full form: config, 3 of key id, 5 of counter.
pub const MAX_HEADER_BYTES: usize = 9;
/// Bytes of an SFrame header in the compact form: config, 2 of key id, 5 of counter.
pub const MAX_COMPACT_HEADER_BYTES: usize = 8;
/// Bytes of an authentication tag, of either suite.
pub const TAG_BYTES: usize = 16;
/// Bytes of a signature of class S, inside the ciphertext.
pub const SIGNATURE_BYTES: usize = 64;
