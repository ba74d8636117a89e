//! The bounds of vaults.

sealane_message::limits! {
    /// A chunk's plaintext in a vault. A longer one is neither made nor read.
    MAX_CHUNK_BYTES: usize = 4 << 20, "bytes";
    /// The size at which a vault's pack is closed.
    PACK_TARGET_BYTES: u64 = 32 << 20, "bytes";
    /// A pack. A larger one is not read.
    MAX_PACK_BYTES: u64 = 64 << 20, "bytes";
    /// A pack's trailer. A longer one is refused before memory is taken.
    MAX_TRAILER_BYTES: usize = 20 << 20, "bytes";
    /// Chunks at which a vault's pack is closed, however small they are.
    MAX_PACK_CHUNKS: usize = 1 << 18, "chunks";
    /// An index object. A put whose trailers are longer writes several.
    MAX_INDEX_BYTES: usize = 32 << 20, "bytes";
    /// A snapshot object. A put that would need a larger one is refused.
    MAX_SNAPSHOT_BYTES: usize = 32 << 20, "bytes";
    /// A vault's config object.
    MAX_CONFIG_BYTES: usize = 256, "bytes";
    /// A key slot object.
    MAX_SLOT_BYTES: usize = 4096, "bytes";
    /// Key slots of one vault. A further one is refused.
    MAX_VAULT_SLOTS: usize = 256, "slots";
    /// The owner's signed list of key slots.
    MAX_ROSTER_BYTES: usize = 32 << 10, "bytes";
    /// Times that a vault's main key is changed.
    MAX_ROTATIONS: u8 = 64, "changes";
    /// The object of a change of the main key.
    MAX_ROTATION_BYTES: usize = 32 << 10, "bytes";
    /// Passphrase slots that no owner's list names and that are tried nevertheless.
    MAX_UNLISTED_PASSPHRASES: usize = 16, "slots";
    /// A report of a proven restore.
    MAX_REPORT_BYTES: usize = 64 << 10, "bytes";
    /// Memory that a passphrase slot may ask for. One that asks for more is refused.
    MAX_KDF_MEMORY_KIB: u32 = 1 << 20, "KiB";
    /// Passes over that memory that a passphrase slot may ask for.
    MAX_KDF_PASSES: u32 = 16, "passes";
    /// Lanes that a passphrase slot may ask for.
    MAX_KDF_LANES: u32 = 16, "lanes";
    /// A key slot's label. A longer one is refused.
    MAX_LABEL_BYTES: usize = 64, "bytes";
    /// A snapshot's note. A longer one is refused.
    MAX_NOTE_BYTES: usize = 4096, "bytes";
    /// The name of a snapshot's host. A longer one is refused.
    MAX_HOST_BYTES: usize = 1024, "bytes";
    /// A snapshot's tag. A longer one is refused.
    MAX_TAG_BYTES: usize = 64, "bytes";
    /// Tags of one snapshot. More are refused.
    MAX_TAGS: usize = 64, "tags";
    /// Paths of which one snapshot says that it was made of them. More are refused.
    MAX_SNAPSHOT_PATHS: usize = 1 << 14, "paths";
    /// A path within a vault, and a link's target. A longer one is refused.
    MAX_PATH_BYTES: usize = 4096, "bytes";
    /// The name of an extended attribute. A longer one is neither kept nor read.
    MAX_ATTRIBUTE_NAME_BYTES: usize = 255, "bytes";
    /// The value of an extended attribute. A longer one is neither kept nor read.
    MAX_ATTRIBUTE_BYTES: usize = 64 << 10, "bytes";
    /// Names and values of the extended attributes of one entry. A put keeps none of more, and says
    /// so.
    MAX_ATTRIBUTES_BYTES: usize = 1 << 20, "bytes";
    /// Entries of one page of a snapshot.
    MAX_PAGE_ENTRIES: usize = 1024, "entries";
    /// Pieces of one file that stand in its entry, or in one list. More are written as lists.
    MAX_PIECES: usize = 1024, "pieces";
    /// Lists of one file. A put refuses a file that would need more.
    MAX_FILE_LISTS: usize = 1 << 16, "lists";
    /// Extended attributes of all entries of one page. A page that has more is refused.
    MAX_PAGE_ATTRIBUTES: usize = 1 << 16, "attributes";
    /// Pieces of all files of one page. A page that has more is refused.
    MAX_PAGE_PIECES: usize = 1 << 17, "pieces";
    /// Bytes that are read of a pack at once, at least: parts of it begin and end at multiples of
    /// this.
    READ_BLOCK_BYTES: u64 = 256 << 10, "bytes";
    /// Threads that compress and seal. More are not started.
    MAX_VAULT_THREADS: usize = 64, "threads";
    /// The file of one n2s blob, which is read whole. A larger one is refused.
    MAX_N2S_BLOB_BYTES: u64 = 6 << 30, "bytes";
    /// A file in an n2s blob, which is held whole in memory. A larger one is refused.
    MAX_N2S_FILE_BYTES: u64 = 4 << 30, "bytes";
    /// An object that is sent to a bucket in one request. A larger one goes in parts.
    S3_SINGLE_PUT_BYTES: u64 = 8 << 20, "bytes";
    /// Bytes that are sent to a bucket at once where `--limit-upload` bounds them.
    S3_LIMITED_PIECE_BYTES: usize = 16 << 10, "bytes";
    /// Requests that share that bound, and may take each other's time. A request waits so many
    /// times as long for its answer as its body takes at least.
    MAX_S3_LIMITED_UPLOADS: u32 = 4, "requests";
    /// A part of an object that is sent to a bucket; the last may be shorter.
    S3_PART_BYTES: u64 = 8 << 20, "bytes";
    /// Parts that are on their way to a bucket at once. Further ones wait.
    MAX_S3_PARTS_IN_FLIGHT: usize = 2, "parts";
    /// Objects that are read from a bucket at once. Further ones wait.
    MAX_STORE_REQUESTS: usize = 16, "requests";
    /// Bytes of objects that are read from a bucket ahead of their reader, unless one alone has
    /// more. Further ones wait.
    MAX_READ_AHEAD_BYTES: u64 = 8 << 20, "bytes";
    /// An object of a bucket that this machine remembers. A larger one is read each time.
    MAX_CACHED_OBJECT_BYTES: usize = 1 << 20, "bytes";
    /// All objects of one bucket that this machine remembers. Further ones are read each time.
    MAX_CACHE_BYTES: u64 = 64 << 20, "bytes";
    /// The list of these objects. A longer one is none.
    MAX_CACHE_INDEX_BYTES: u64 = 32 << 20, "bytes";
    /// How long a listing of a bucket counts within one command. Then the bucket is asked again.
    MAX_LOOK_MS: u64 = 60_000, "milliseconds";
    /// Objects behind the packs that are listed with one request. Of more, each kind is listed by
    /// itself.
    MAX_TAIL_OBJECTS: usize = 4000, "objects";
    /// Times that a request is sent to a bucket again at once. Then the bucket is out.
    MAX_S3_RETRIES: usize = 6, "requests";
    /// How long a request is sent again at once. Then the bucket is out.
    MAX_S3_RETRY_MS: u64 = 60_000, "milliseconds";
    /// How long a bucket that is out is waited for, unless the user says otherwise. Then the error
    /// is reported.
    MAX_OUTAGE_MS: u64 = 15 * 60 * 1000, "milliseconds";
    /// The longest that `vault --retry` waits. A prune removes after a day what a put relies on.
    MAX_RETRY_MS: u64 = 12 * 3_600_000, "milliseconds";
    /// How long a put relies on the packs that it has seen. A link that took longer is good only
    /// if they are there still.
    MAX_RELIANCE_MS: u64 = 3_600_000, "milliseconds";
    /// The first wait for a bucket that is out; each further one is twice as long.
    OUTAGE_WAIT_MS: u64 = 500, "milliseconds";
    /// The longest of these waits.
    MAX_OUTAGE_WAIT_MS: u64 = 15_000, "milliseconds";
    /// How long it may take to reach a bucket. Then the request has failed.
    MAX_S3_CONNECT_MS: u64 = 10_000, "milliseconds";
    /// How long a bucket may be silent, from the first byte that it is sent. Then the request has
    /// failed: a part takes a link of 0.6 Mbit/s.
    MAX_S3_SILENCE_MS: u64 = 120_000, "milliseconds";
    /// The journal of an upload in parts. A longer file is none.
    MAX_UPLOAD_JOURNAL_BYTES: u64 = 1 << 20, "bytes";
    /// How long an unfinished upload or pack waits to be continued. Then it is given up.
    MAX_SPOOL_AGE_MS: u64 = 24 * 3600 * 1000, "milliseconds";
    /// The object that condemns a pack.
    MAX_MARK_BYTES: usize = 256, "bytes";
    /// How long a pack is condemned before a prune removes it. It is longer than any put takes
    /// between the marks and its snapshot.
    PRUNE_GRACE_HOURS: u64 = 24, "hours";
    /// Places where an unescaped description of an n2s file may end. Further ones are not tried.
    MAX_DESCRIPTION_ENDS: usize = 8, "places";
    /// Races for the next number of a snapshot that a put loses. Then it gives up.
    MAX_COMMIT_RACES: usize = 1000, "races";
    /// Races for the next number that a change of the main key loses. Then it gives up.
    MAX_ROTATION_RACES: usize = 1000, "races";
    /// Looks at the store for one missing chunk, which prunes may move meanwhile. Then it counts as
    /// lost.
    MAX_CHUNK_LOOKS: usize = 3, "looks";
    /// Looks at the store in a row that find no lost chunk. Then no further one is made.
    MAX_VAIN_LOOKS: usize = 3, "looks";
    /// Steps of a restore that wait for its writer, each with at most one chunk. At the limit
    /// reading waits.
    MAX_STEPS_AHEAD: usize = 6, "steps";
    /// Passes over the snapshots while prunes remove some of them. Then verifying goes on with the
    /// last.
    MAX_VERIFY_PASSES: usize = 3, "passes";
    /// Readings of the chain while other prunes remove links of it. Then the last reading counts.
    MAX_CHAIN_READINGS: usize = 16, "readings";
    /// The age of a prune's knowledge of the chain. At that age it looks again before it removes a
    /// pack.
    MAX_CHAIN_LOOK_MS: u64 = 1000, "milliseconds";
    /// How far behind the chain a snapshot may stand that only one loose link tells of. One that is
    /// farther away makes no other snapshot an older one.
    MAX_HEARSAY_AHEAD: u64 = 1 << 16, "numbers";
    /// Links that are followed to name a place. At the limit the place is named as it is written.
    MAX_PLACE_LINKS: usize = 40, "links";
    /// Listings of the links while prunes remove some before they are read. Then the last listing
    /// counts.
    MAX_LINK_LISTINGS: usize = 16, "listings";
    /// How long a command waits while another one writes the manifest. Then it fails.
    MAX_MANIFEST_WAIT_MS: u64 = 30_000, "milliseconds";
}
