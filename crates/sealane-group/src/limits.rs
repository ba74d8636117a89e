//! The bounds of groups and their files, and the sizes that their formats fix.

sealane_message::limits! {
    /// Members of one group, removed ones included: the slots that its key ids can name.
    MAX_ROSTER_MEMBERS: usize = 1 << 10, "members";
    /// The name of an identity, a member or a group. A longer one is refused.
    MAX_NAME_BYTES: usize = 64, "bytes";
    /// Secrets that one order carries. An order for more members is split.
    MAX_ORDER_WRAPS: usize = 256, "members";
    /// Streams that one order marks. The first of them are taken.
    MAX_ORDER_MARKS: usize = 1 << 10, "streams";
    /// Marks of removals that a member holds. Those of the oldest removal leave first.
    MAX_MARKS_HELD: usize = 1 << 14, "marks";
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
    /// Certificates that came before the admission of their members. The oldest leaves.
    MAX_CERTIFICATES_WAITING: usize = 16, "certificates";
}

/// Bytes of an ML-DSA-65 public key (FIPS 204).
pub const LATTICE_KEY_BYTES: usize = 1952;
/// Bytes of an ML-DSA-65 signature (FIPS 204).
pub const LATTICE_SIGNATURE_BYTES: usize = 3309;
/// Bytes of an authority's two signatures: Ed25519, then ML-DSA-65.
pub const AUTHORITY_SIGNATURE_BYTES: usize = 64 + LATTICE_SIGNATURE_BYTES;
/// Bytes of an X-Wing public key: 1,184 of ML-KEM-768, 32 of X25519.
pub const WRAPPING_KEY_BYTES: usize = 1216;
