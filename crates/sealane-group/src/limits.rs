//! The bounds of groups and their files, and the sizes that their formats fix.

sealane_message::limits! {
    /// Members of one group, removed ones included: the slots that its key ids can name.
    MAX_ROSTER_MEMBERS: usize = 1 << 10, "members";
    /// Slots of a group that were given, from which on each invitation says how many are left.
    WARN_SLOTS_GIVEN: usize = 900, "slots";
    /// The name of an identity, a member or a group. A longer one is refused.
    MAX_NAME_BYTES: usize = 64, "bytes";
    /// Secrets that one order carries. An order for more members is split.
    MAX_ORDER_WRAPS: usize = 256, "members";
    /// Streams that one order marks. For more of them there are several orders.
    MAX_ORDER_MARKS: usize = 1 << 10, "streams";
    /// Marks of streams that a member holds. Those of rotations leave first, then those of the
    /// oldest removals.
    MAX_MARKS_HELD: usize = 1 << 14, "marks";
    /// Fresh signing keys that a member gets in one slot. After that it is invited again.
    MAX_FRESH_KEYS: usize = 32, "keys";
    /// Members that one order to heal takes fresh cards of.
    MAX_HEAL_CARDS: usize = 256, "members";
    /// Orders that came before others that they follow, and that are held until those come.
    MAX_ORDERS_HELD: usize = 256, "orders";
    /// Counters that a sender reserves on disk at once.
    MAX_COUNTER_BLOCK: u64 = 1 << 20, "counters";
    /// Cards that an authority remembers to have invited. The oldest leave.
    MAX_CARDS_SPENT: usize = 1 << 12, "cards";
    /// Hubs of which a folder remembers how far a group's control stream was read. The one that was
    /// read longest ago leaves.
    MAX_CONTROL_STREAMS: usize = 8, "hubs";
    /// Cards of one key folder that wait for an invitation. A further one replaces the oldest.
    MAX_CARDS_WAITING: usize = 64, "cards";
    /// A group's file in the key folder, or an invitation. A longer one is neither kept nor read.
    MAX_GROUP_FILE_BYTES: usize = 4 << 20, "bytes";
    /// Memory that the passphrase of a key file may cost. A file that asks for more is refused.
    MAX_FOLDER_KDF_MEMORY_KIB: u32 = 1 << 20, "KiB";
    /// Passes over that memory. A file that asks for more is refused.
    MAX_FOLDER_KDF_PASSES: u32 = 16, "passes";
    /// Lanes of that memory. A file that asks for more is refused.
    MAX_FOLDER_KDF_LANES: u32 = 16, "lanes";
    /// How long after its end the secret of an epoch of a forward-secret group is erased at the
    /// latest, unless the folder says otherwise.
    FORGET_AFTER_MS: u64 = 30 * 24 * 3_600_000, "milliseconds";
    /// Consumers that read with one key folder. A further one is refused.
    MAX_CONSUMERS_REGISTERED: usize = 1 << 10, "consumers";
    /// How much time passes before a folder writes down again how old its ended epochs are.
    MIN_LEDGER_STEP_MS: u64 = 3_600_000, "milliseconds";
    /// Certificates that came before the admission of their members. The oldest leaves.
    MAX_CERTIFICATES_WAITING: usize = 16, "certificates";
    /// How far ahead of the clock here a heartbeat may be made. One farther ahead counts only among
    /// others that are.
    MAX_HEARTBEAT_AHEAD_MS: u64 = 300_000, "milliseconds";
    /// How long a live reader waits for an answer to its first question, before it asks another.
    MIN_QUESTION_INTERVAL_MS: u64 = 2000, "milliseconds";
    /// How long it waits at most. It waits twice as long for each, until a session begins.
    MAX_QUESTION_INTERVAL_MS: u64 = 60_000, "milliseconds";
}

/// Bytes of an ML-DSA-65 public key (FIPS 204).
pub const LATTICE_KEY_BYTES: usize = 1952;
/// Bytes of an ML-DSA-65 signature (FIPS 204).
pub const LATTICE_SIGNATURE_BYTES: usize = 3309;
/// Bytes of an authority's two signatures: Ed25519, then ML-DSA-65.
pub const AUTHORITY_SIGNATURE_BYTES: usize = 64 + LATTICE_SIGNATURE_BYTES;
/// Bytes of an X-Wing public key: 1,184 of ML-KEM-768, 32 of X25519.
pub const WRAPPING_KEY_BYTES: usize = 1216;
