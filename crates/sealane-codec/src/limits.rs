//! The bounds of encoded data.

sealane_message::limits! {
    /// Nesting of arrays and maps; the outermost is level 1. Deeper values are refused.
    MAX_DEPTH: usize = 32, "levels";
    /// Values in one encoded datum, each map key and each element counted. More are refused, so
    /// that a small input cannot become a large structure.
    MAX_VALUES: usize = 1 << 18, "values";
    /// Record structures of one `msgpack-records` connection. Later shapes travel as plain maps.
    MAX_RECORDS: usize = 64, "structures";
    /// Keys of one record structure. Wider maps travel as plain maps.
    MAX_RECORD_KEYS: usize = 64, "keys";
    /// All keys of one record structure together. Longer ones travel as plain maps.
    MAX_STRUCTURE_BYTES: usize = 4096, "bytes";
    /// Named facts of one attachment. More are refused.
    MAX_ATTACHMENT_FACTS: usize = 64, "facts";
    /// Links of one rich text. More are refused.
    MAX_LINKS: usize = 256, "links";
    /// The bytes to which the records of one datum may expand. A datum that expands further is
    /// refused.
    MAX_EXPANDED_BYTES: usize = 16 << 20, "bytes";
    /// Tokens for which a tape takes room before it reads a datum. More room is taken as tokens
    /// come.
    MAX_TAPE_RESERVED: usize = 256, "tokens";
    /// Tokens whose room a tape of a connection keeps. After a larger datum it gives all back.
    MAX_TAPE_KEPT: usize = 1024, "tokens";
    /// Nesting at which debug builds check the counts of a writer. Deeper containers are not
    /// checked.
    MAX_TALLY_DEPTH: usize = 64, "levels";
}
