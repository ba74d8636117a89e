/// What an error code means: one row of `sealane explain`.
///
/// Each crate keeps a table of its own, named `ERRORS`; codes are stable and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorInfo {
    /// The stable code, `SL-<STEP>-<NN>`, for example `SL-TOPIC-01`.
    pub code: &'static str,
    /// The name on the wire, for example `InvalidTopic`.
    pub name: &'static str,
    /// One lower-case sentence: what happened.
    pub cause: &'static str,
    /// One sentence: what to do about it.
    pub hint: &'static str,
}

impl ErrorInfo {
    /// A row of an `ERRORS` table.
    pub const fn new(
        code: &'static str,
        name: &'static str,
        cause: &'static str,
        hint: &'static str,
    ) -> Self {
        Self { code, name, cause, hint }
    }
}
