use std::io;
use std::path::PathBuf;

use sealane::{Error, Value};
use sealane_codec::CodecError;
use sealane_message::ErrorInfo;
use sealane_node::StartError;
use sealane_node::access::FileError;
use sealane_seal::policy::PolicyError;

use crate::inspect::CaptureError;
use crate::terminal::{harmless, record};

/// The exit codes (docs/CLI.md).
pub mod exit {
    /// Failed.
    pub const FAILURE: u8 = 1;
    /// Wrong usage or configuration.
    pub const USAGE: u8 = 2;
    /// No hub could be reached.
    pub const NOT_REACHABLE: u8 = 3;
    /// The hub refused.
    pub const REFUSED: u8 = 4;
    /// The storage is full or failed.
    pub const STORAGE: u8 = 5;
}

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The hub, or the way to it.
    #[error(transparent)]
    Client(#[from] Error),
    /// Keys or groups.
    #[error(transparent)]
    Group(#[from] sealane_group::Error),
    /// The bench is not beside this program, or is of another commit.
    #[error("{}: {cause}", program.display())]
    NoBench {
        /// Where it was looked for.
        program: PathBuf,
        /// What was wrong.
        cause: String,
    },
    /// The node did not start.
    #[error(transparent)]
    Node(#[from] StartError),
    /// A store that is copied, or made of a copy.
    #[error(transparent)]
    Store(#[from] sealane_stream::Error),
    /// The doctor found something bad, and named it.
    #[error("{0} of the checks above are bad")]
    Doctor(usize),
    /// The tokens of a node.
    #[error(transparent)]
    Token(#[from] FileError),
    /// A key of the configuration file that is none.
    #[error("{}: `{key}` is no setting; the settings are {known}", file.display())]
    UnknownKey {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
        /// The keys there are.
        known: String,
    },
    /// A setting with a value that it cannot have.
    #[error("`{key}` ({origin}) is `{value}`: {cause}")]
    Setting {
        /// The setting.
        key: &'static str,
        /// Where the value comes from.
        origin: String,
        /// The value.
        value: String,
        /// What it should have been.
        cause: String,
    },
    /// A file that cannot be read or written, or does not say what it should.
    #[error("{}: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What was wrong.
        cause: String,
    },
    /// A policy file that is refused.
    #[error("{}: {cause}", file.display())]
    Policy {
        /// The file.
        file: PathBuf,
        /// What was wrong, and in which line.
        cause: Box<PolicyError>,
    },
    /// A vault.
    #[error("{0}")]
    Vault(Box<sealane_vault::Error>),
    /// Some files were not kept or not restored, each of which was named.
    #[error("{0} files or folders were left out, as named above")]
    Skipped(usize),
    /// Flags that do not go together, or an answer that is missing.
    #[error("{0}")]
    Usage(&'static str),
    /// A body that begins like a JSON map and is none.
    #[error("the body begins like a JSON map but is none: {0}")]
    Body(CodecError),
    /// Standard input could not be read.
    #[error("standard input: {0}")]
    Input(io::Error),
    /// Standard output could not be written.
    #[error("standard output: {0}")]
    Output(io::Error),
    /// The program could not set itself up.
    #[error("the program could not start its threads: {0}")]
    Runtime(io::Error),
    /// A code or name that no table has.
    #[error("`{0}` is no error code or name")]
    UnknownCode(String),
    /// The demo cannot run here, or its node did not.
    #[error("{0}")]
    Demo(String),
    /// The demo did not get back what was stored.
    #[error("{0} messages that were acknowledged did not come back as they were")]
    Lost(u64),
    /// Captured frames that are none, or did not open.
    #[error("{refused} of {seen} frames, fragments and batches were refused")]
    Refused {
        /// How many were refused.
        refused: u64,
        /// How many there were.
        seen: u64,
    },
    /// A capture that cannot be read to its end.
    #[error("{}: {cause}", file.display())]
    Capture {
        /// The file; `-` is standard input.
        file: PathBuf,
        /// What was wrong, and where.
        cause: CaptureError,
    },
}

impl Failure {
    /// The row of an error table.
    pub fn info(&self) -> &'static ErrorInfo {
        match self {
            Failure::Client(error) => error.info(),
            Failure::Group(error) => error.info(),
            Failure::Node(StartError::Store { cause, .. }) => cause.info(),
            Failure::Store(error) => error.info(),
            Failure::Doctor(_) => &DOCTOR,
            Failure::Node(StartError::Tokens(_)) | Failure::Token(_) => &TOKENS,
            Failure::Node(StartError::Unguarded { .. }) => &UNGUARDED,
            Failure::Node(StartError::Tls(_)) => &TLS,
            Failure::Node(_) => &LISTEN,
            Failure::UnknownKey { .. } => &UNKNOWN_KEY,
            Failure::Setting { .. } => &SETTING,
            Failure::File { .. } => &FILE,
            Failure::Policy { cause, .. } => cause.info(),
            Failure::Vault(error) => error.info(),
            Failure::Skipped(_) => &SKIPPED,
            Failure::Usage(_) => &USAGE,
            Failure::Body(_) => &BODY,
            Failure::Input(_) => &INPUT,
            Failure::Output(_) => &OUTPUT,
            Failure::Runtime(_) => &RUNTIME,
            Failure::UnknownCode(_) => &UNKNOWN_CODE,
            Failure::NoBench { .. } => &NO_BENCH,
            Failure::Demo(_) => &DEMO,
            Failure::Lost(_) => &LOST,
            Failure::Refused { .. } => &REFUSED,
            Failure::Capture { .. } => &CAPTURE,
        }
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        match self {
            Failure::Client(error) => error.code(),
            other => other.info().code,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &str {
        match self {
            Failure::Client(error) => error.hint(),
            other => other.info().hint,
        }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Client(error) => client_exit_code(error),
            Failure::Group(error) => group_exit_code(error),
            Failure::Node(StartError::Store { cause, .. }) => store_exit_code(cause),
            Failure::Store(cause) => store_exit_code(cause),
            Failure::Vault(error) => vault_exit_code(error),
            Failure::Node(
                StartError::Tokens(_) | StartError::Unguarded { .. } | StartError::Tls(_),
            )
            | Failure::Token(_)
            | Failure::UnknownKey { .. }
            | Failure::Setting { .. }
            | Failure::File { .. }
            | Failure::Policy { .. }
            | Failure::Usage(_)
            | Failure::Body(_)
            | Failure::UnknownCode(_) => exit::USAGE,
            _ => exit::FAILURE,
        }
    }

    /// Whether the reader of our output has gone, which is its good right.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Says it on standard error, once.
    pub fn print(&self, json: bool) {
        if json {
            let error = vec![
                ("code".to_owned(), Value::from(self.code())),
                ("message".to_owned(), Value::from(self.to_string())),
                ("hint".to_owned(), Value::from(self.hint())),
            ];
            eprint!("{}", record(vec![("error", Value::Map(error))]));
        } else {
            // A hub's words, and names in them, are others' words.
            let said = format!("{self} [{}]\n  hint: {}", self.code(), self.hint());
            eprintln!("sealane: error: {}", harmless(&said));
        }
    }
}

/// A folder that was named wrongly is the caller's to correct; all else is the store's.
fn store_exit_code(error: &sealane_stream::Error) -> u8 {
    use sealane_stream::Error;
    match error {
        Error::FolderInUse(_) | Error::TargetExists(_) | Error::NoStore(_) => exit::USAGE,
        _ => exit::STORAGE,
    }
}

fn vault_exit_code(error: &sealane_vault::Error) -> u8 {
    use sealane_vault::Error;
    match error {
        Error::Store { .. } | Error::StoreFull { .. } => exit::STORAGE,
        Error::Pattern(_)
        | Error::Root(_)
        | Error::RecoveryCode
        | Error::Exists
        | Error::NoVault(_)
        | Error::NoSnapshot(_)
        | Error::NoEntry(_)
        | Error::NoPassphrase => exit::USAGE,
        _ => exit::FAILURE,
    }
}

fn client_exit_code(error: &Error) -> u8 {
    match error {
        Error::Address { .. } | Error::Topic(_) | Error::RecordsCodec => exit::USAGE,
        Error::NotReachable { .. } | Error::NoAnswer { .. } => exit::NOT_REACHABLE,
        Error::Trust(_) | Error::Untrusted { .. } | Error::Token => exit::USAGE,
        Error::Refused(wire) => match wire.code.as_ref() {
            "StorageFull" | "StorageFailed" | "StorageBusy" => exit::STORAGE,
            "Draining" => exit::NOT_REACHABLE,
            _ => exit::REFUSED,
        },
        Error::TooLarge { .. } => exit::REFUSED,
        _ => exit::FAILURE,
    }
}

fn group_exit_code(error: &sealane_group::Error) -> u8 {
    use sealane_group::Error;
    match error {
        Error::Name(_)
        | Error::UnknownGroup(_)
        | Error::GroupExists(_)
        | Error::UnknownMember(_)
        | Error::IdentityExists(_)
        | Error::NoIdentity(_)
        | Error::PassphraseMissing
        | Error::KeyText => exit::USAGE,
        Error::Io { .. } => exit::STORAGE,
        _ => exit::FAILURE,
    }
}

/// The error codes of the command line.
pub const ERRORS: &[ErrorInfo] = &[
    UNKNOWN_KEY,
    SETTING,
    FILE,
    USAGE,
    BODY,
    INPUT,
    OUTPUT,
    RUNTIME,
    UNKNOWN_CODE,
    DEMO,
    LOST,
    LISTEN,
    REFUSED,
    CAPTURE,
    SKIPPED,
    TOKENS,
    UNGUARDED,
    TLS,
    DOCTOR,
    NO_BENCH,
];

const TLS: ErrorInfo = ErrorInfo::new(
    "SL-CLI-19",
    "Certificate",
    "the node's certificate or its key cannot be used",
    "Name PEM files that belong together with --tls-cert (the whole chain) and --tls-key.",
);

const DOCTOR: ErrorInfo = ErrorInfo::new(
    "SL-CLI-21",
    "Doctor",
    "something about the node or its machine is bad",
    "Each line that begins with `bad` says what, and what to do; run it again afterwards.",
);

const TOKENS: ErrorInfo = ErrorInfo::new(
    "SL-CLI-17",
    "Tokens",
    "the node's tokens cannot be read or changed as asked",
    "`sealane token ls` lists them; the file is tokens.toml in the data folder, mode 0600.",
);
const UNGUARDED: ErrorInfo = ErrorInfo::new(
    "SL-CLI-18",
    "Unguarded",
    "the node would listen where others can reach it, and has no token",
    "Make one with `sealane token new NAME --read '**' --publish '**'`, or listen on 127.0.0.1.",
);
const NO_BENCH: ErrorInfo = ErrorInfo::new(
    "SL-CLI-22",
    "NoBench",
    "`sealane-bench` is not beside this program, or is of another commit",
    "Build it of the same commit and profile: `cargo build --release -p sealane-bench`.",
);

const UNKNOWN_KEY: ErrorInfo = ErrorInfo::new(
    "SL-CLI-01",
    "UnknownKey",
    "the configuration file has a key that is no setting",
    "Remove or correct the key; `sealane config show` lists the settings.",
);
const SETTING: ErrorInfo = ErrorInfo::new(
    "SL-CLI-02",
    "InvalidSetting",
    "a setting has a value that it cannot have",
    "`sealane config show --origin` tells where each value comes from.",
);
const FILE: ErrorInfo = ErrorInfo::new(
    "SL-CLI-03",
    "File",
    "a file cannot be read or written, or is not what it should be",
    "Check the path, its permissions, and that the configuration is TOML.",
);
const USAGE: ErrorInfo = ErrorInfo::new(
    "SL-CLI-04",
    "Usage",
    "the flags do not go together",
    "See `--help` of the verb.",
);
const BODY: ErrorInfo = ErrorInfo::new(
    "SL-CLI-05",
    "InvalidBody",
    "the body begins like a JSON map and is none",
    "Quote the body for the shell, or write text that begins with a brace as a JSON string.",
);
const INPUT: ErrorInfo = ErrorInfo::new(
    "SL-CLI-06",
    "Input",
    "standard input could not be read",
    "Lines must be UTF-8.",
);
const OUTPUT: ErrorInfo = ErrorInfo::new(
    "SL-CLI-07",
    "Output",
    "standard output could not be written",
    "Check where the output goes, and whether there is room.",
);
const RUNTIME: ErrorInfo = ErrorInfo::new(
    "SL-CLI-08",
    "Runtime",
    "the program could not start its threads",
    "The system's limits on threads or memory are reached.",
);
const UNKNOWN_CODE: ErrorInfo = ErrorInfo::new(
    "SL-CLI-09",
    "UnknownCode",
    "no table has that code or name",
    "`sealane explain` without a code lists all.",
);
const DEMO: ErrorInfo = ErrorInfo::new(
    "SL-CLI-10",
    "Demo",
    "the demo could not run",
    "It needs Linux (/proc), room in the temporary folder, and a free port.",
);
const LOST: ErrorInfo = ErrorInfo::new(
    "SL-CLI-11",
    "Lost",
    "messages that were acknowledged did not come back as they were",
    "This is a defect: report it with the version and the output.",
);
const LISTEN: ErrorInfo = ErrorInfo::new(
    "SL-CLI-12",
    "Listen",
    "the node cannot listen on its address",
    "Another node may hold the port; choose another with --listen, or 127.0.0.1:0 for a free one.",
);
const REFUSED: ErrorInfo = ErrorInfo::new(
    "SL-CLI-14",
    "FramesRefused",
    "some of the captured frames are not well-formed or did not open",
    "The output says of each why, with its own code.",
);
const CAPTURE: ErrorInfo = ErrorInfo::new(
    "SL-CLI-15",
    "Capture",
    "the capture cannot be read to its end",
    "What came before was shown. Capture again, or say with --as what the file holds.",
);
const SKIPPED: ErrorInfo = ErrorInfo::new(
    "SL-CLI-16",
    "Skipped",
    "some files or folders were not kept or not restored",
    "All others were. See the reason beside each name, and run it again.",
);

impl From<sealane_vault::Error> for Failure {
    fn from(error: sealane_vault::Error) -> Failure {
        Failure::Vault(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_named_wrongly_is_wrong_usage() {
        use sealane_stream::Error;
        let code = |cause: Error| {
            let node =
                Failure::Node(StartError::Store { folder: "data".into(), cause: cause.clone() });
            assert_eq!(node.exit_code(), Failure::Store(cause.clone()).exit_code());
            node.exit_code()
        };
        for wrong in [Error::FolderInUse, Error::TargetExists, Error::NoStore] {
            assert_eq!(code(wrong("data: why".into())), exit::USAGE);
        }
        let newer = Error::StoreTooNew { found: 9, known: 2 };
        for failed in [Error::NotAStore("data: why".into()), Error::StorageBusy, newer] {
            assert_eq!(code(failed), exit::STORAGE);
        }
    }

    #[test]
    fn a_node_that_does_not_start_names_its_folder_once() {
        use sealane_stream::Error;
        let said = |cause| StartError::Store { folder: "data".into(), cause }.to_string();
        let twice = "data: another node uses this folder";
        assert_eq!(said(Error::FolderInUse("data".into())), twice);
        let newer = Error::StoreTooNew { found: 9, known: 2 };
        assert_eq!(said(newer), "data: the data format is 9, this program knows up to 2");
    }
}
