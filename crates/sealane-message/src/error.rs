/// The meaning of an error code: one row of `sealane explain`.
///
/// Each crate writes its rows with [`errors!`](crate::errors) and lists them in a table, most often
/// named `ERRORS`. Codes are stable and never reused.
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
    /// Whether the same can be tried again.
    pub retry: Retry,
    /// How a command ends that fails so.
    pub exit: Exit,
}

impl ErrorInfo {
    /// A row of a table, with [`Retry::Never`] and [`Exit::Failure`].
    pub const fn new(
        code: &'static str,
        name: &'static str,
        cause: &'static str,
        hint: &'static str,
    ) -> Self {
        Self { code, name, cause, hint, retry: Retry::Never, exit: Exit::Failure }
    }

    /// The row itself, for errors that hold one.
    pub const fn info(&'static self) -> &'static Self {
        self
    }

    /// The same row with this retry.
    pub const fn with_retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// The same row with this exit.
    pub const fn with_exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
}

/// Whether a program may try again, without a person, what has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same fails again until somebody changes something.
    Never,
    /// The same may succeed later. Where a hub says `Retry-After`, not before.
    Later,
    /// The same may succeed on a new connection, with growing waits between the attempts.
    Reconnect,
}

impl Retry {
    /// The word that pages and lists have for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Retry::Never => "never",
            Retry::Later => "later",
            Retry::Reconnect => "reconnect",
        }
    }
}

/// How a command ends that fails: the kind of its exit code, which docs/reference/CLI.md lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It failed, for none of the reasons below.
    Failure,
    /// The request or the configuration is wrong.
    Usage,
    /// No hub could be reached.
    NotReachable,
    /// A limit or the hub refused it.
    Refused,
    /// A storage is full or failed.
    Storage,
}

/// Writes the errors of a crate in one place: enums whose variants carry their rows, and the table
/// of all rows.
///
/// ```
/// use sealane_message::{Retry, TopicError};
///
/// sealane_message::errors! {
///     /// The error codes of this example.
///     pub const ERRORS;
///
///     /// Why a message was not kept.
///     #[derive(Debug, thiserror::Error)]
///     pub enum Error {
///         /// The disk has no room for it.
///         #[error("the disk lacks {bytes} bytes")]
///         #[code("SL-EXAMPLE-01", "DiskFull", retry = Later, exit = Storage)]
///         #[cause("the disk is full")]
///         #[hint("Free space; messages are kept again as soon as there is room.")]
///         DiskFull {
///             /// How much is missing.
///             bytes: u64,
///         },
///         /// The quota is used up, which a caller need not tell from a full disk.
///         #[error("the quota is used up")]
///         #[same_as(DiskFull)]
///         Quota,
///         /// A name that is no topic.
///         #[error(transparent)]
///         #[inner(0)]
///         Topic(#[from] TopicError),
///     }
/// }
///
/// assert_eq!(Error::Quota.info().code, "SL-EXAMPLE-01");
/// assert_eq!(Error::DiskFull { bytes: 7 }.info().retry, Retry::Later);
/// assert_eq!(Error::from(TopicError::Empty).info().name, "InvalidTopic");
/// assert_eq!(ERRORS.len(), 1);
/// ```
///
/// Documentation and `#[error]`, which is thiserror's, stand on a variant as in any enum. Behind
/// them stands its row, in one of four forms:
///
/// - `#[code("CODE", "NameOnTheWire", retry = …, exit = …)]`, `#[cause("…")]` and `#[hint("…")]`:
///   a row of its own, as [`ErrorInfo`] describes it. `retry` names a [`Retry`] and may be left out
///   for `Never`; `exit` names an [`Exit`] and may be left out for `Failure`.
/// - `#[same_as(Variant)]`: the row of another variant of the same enum.
/// - `#[inner(field)]`: the row of what the variant wraps, the `info()` of that field; `0` is the
///   field of a tuple.
/// - `#[chosen_by(method)]`: the row that this method of the enum returns.
///
/// Each enum gets a method `info()`. One table may have several enums.
#[macro_export]
macro_rules! errors {
    (@row $code:literal $name:literal $cause:literal $hint:literal
        [$($retry:ident)?] [$($exit:ident)?]) => {
        $crate::ErrorInfo::new($code, $name, $cause, $hint)
            $(.with_retry($crate::Retry::$retry))?
            $(.with_exit($crate::Exit::$exit))?
    };
    (@own $Variant:ident $code:literal) => { &$Variant };
    (@inner $inner:ident $field:tt) => { $inner.info() };
    (
        $(#[$of_table:meta])*
        $seen:vis const $TABLE:ident;

        $($(#[$of_enum:meta])*
        $vis:vis enum $Error:ident {
            $($(#[doc = $doc:literal])*
            $(#[error($($error:tt)*)])?
            $(#[code($code:literal, $name:literal
                $(, retry = $retry:ident)? $(, exit = $exit:ident)?)]
            #[cause($cause:literal)]
            #[hint($hint:literal)])?
            $(#[same_as($other:ident)])?
            $(#[inner($field:tt)])?
            $(#[chosen_by($method:ident)])?
            $Variant:ident $(($($tuple:tt)*))? $({$($named:tt)*})?),+ $(,)?
        })+
    ) => {
        $(#[$of_table])*
        $seen const $TABLE: &[$crate::ErrorInfo] = &[$($($(
            $crate::errors!(@row $code $name $cause $hint [$($retry)?] [$($exit)?]),
        )?)+)+];

        $($(#[$of_enum])*
        $vis enum $Error {
            $($(#[doc = $doc])*
            $(#[error($($error)*)])?
            $Variant $(($($tuple)*))? $({$($named)*})?),+
        }

        impl $Error {
            /// The stable code, the name on the wire, and what to do about it.
            #[allow(non_upper_case_globals)]
            $vis fn info(&self) -> &'static $crate::ErrorInfo {
                // Each row is a constant with the name of its variant, for `same_as` to find.
                $($(const $Variant: $crate::ErrorInfo =
                    $crate::errors!(@row $code $name $cause $hint [$($retry)?] [$($exit)?]);)?)+
                match self {
                    $(Self::$Variant { $($field: inner,)? .. } => {
                        $($crate::errors!(@own $Variant $code))?
                        $(&$other)?
                        $($crate::errors!(@inner inner $field))?
                        $(self.$method())?
                    })+
                }
            }
        })+
    };
}
