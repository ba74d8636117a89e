use std::io;
use std::path::{Path, PathBuf};

use sealane::{Error, Value};
use sealane_codec::CodecError;
use sealane_machine::MachineError;
use sealane_message::Exit;
use sealane_node::StartError;
use sealane_node::access::FileError;
use sealane_seal::policy::PolicyError;

use crate::colour::{ColourTone, OutputColours};
use crate::inspect::CaptureError;
use crate::terminal::{harmless, record};

/// The exit codes (docs/reference/CLI.md).
pub mod exit {
    use sealane_message::Exit;

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

    /// The code of a kind.
    pub const fn code(exit: Exit) -> u8 {
        match exit {
            Exit::Failure => FAILURE,
            Exit::Usage => USAGE,
            Exit::NotReachable => NOT_REACHABLE,
            Exit::Refused => REFUSED,
            Exit::Storage => STORAGE,
        }
    }
}

sealane_message::errors! {
    /// The error codes of the command line.
    pub const ERRORS;

    /// Why a verb failed.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum CliFailure {
        /// The hub, or the way to it.
        #[error(transparent)]
        #[inner(0)]
        Client(#[from] Error),
        /// Keys or groups.
        #[error(transparent)]
        #[inner(0)]
        Group(#[from] sealane_group::Error),
        /// The bench is not beside this program, or is of another commit.
        #[error("{}: {cause}", program.display())]
        #[code("SL-CLI-22", "NoBench")]
        #[cause("`sealane-bench` is not beside this program, or is of another commit")]
        #[hint("Build it of the same commit and profile: `cargo build --release -p \
                sealane-bench`.")]
        NoBench {
            /// Where it was looked for.
            program: PathBuf,
            /// The fault.
            cause: String,
        },
        /// The simulator is not beside this program, or is of another commit.
        #[error("{}: {cause}", program.display())]
        #[code("SL-CLI-28", "NoSim")]
        #[cause("`sealane-sim` is not beside this program, or is of another commit")]
        #[hint("Build it of the same commit and profile: `cargo build --release -p sealane-sim`.")]
        NoSim {
            /// Where it was looked for.
            program: PathBuf,
            /// The fault.
            cause: String,
        },
        /// The node did not start.
        #[error(transparent)]
        #[inner(0)]
        Node(#[from] StartError),
        /// A store that is copied, or made of a copy.
        #[error(transparent)]
        #[inner(0)]
        Store(#[from] sealane_stream::Error),
        /// The doctor found something bad, and named it.
        #[error("{0} of the checks above {are} bad", are = if *.0 == 1 { "is" } else { "are" })]
        #[code("SL-CLI-21", "Doctor")]
        #[cause("something about the node or its machine is bad")]
        #[hint("Each line that begins with `bad` says what, and what to do; run it again \
                afterwards.")]
        Doctor(usize),
        /// The hub in use does not run on the data folder of this verb.
        #[error(
            "the hub {address} ({origin}) is not the node of {}: {cause}", folder.display()
        )]
        #[code("SL-CLI-30", "OtherNode", exit = Usage)]
        #[cause("the hub in use does not run on the data folder that the verb would act on")]
        #[hint("Name the folder of the node that you mean with `--data`, on its machine. To leave \
                the hub: `sealane context use --none`.")]
        OtherNode {
            /// The hub's address.
            address: String,
            /// The setting that names the hub.
            origin: String,
            /// The folder.
            folder: PathBuf,
            /// Why it is another one.
            cause: String,
        },
        /// A hub that answers, and is not well.
        #[error("the hub is not well: {0}")]
        #[code("SL-CLI-31", "NotWell", exit = Storage)]
        #[cause("the hub answers, and takes no messages")]
        #[hint("`sealane doctor` on its machine says what is wrong.")]
        NotWell(String),
        /// Messages of a group that were not shown, each of which was named.
        #[error("messages that were not shown, as named above: {0}")]
        #[code("SL-CLI-32", "NotShown")]
        #[cause("messages could not be opened or were refused, and `--strict` was given")]
        #[hint("See the reason beside each offset; `sealane group show` tells which epoch and \
                members this machine knows.")]
        NotShown(u64),
        /// A pattern that stands for no stream.
        #[error("no stream matches `{0}`")]
        #[code("SL-CLI-33", "NothingMatches")]
        #[cause("no stream matches the pattern")]
        #[hint("`sealane stream ls PATTERN` lists those that match; `**` does not stand for the \
                topics of systems.")]
        NothingMatches(String),
        /// A key of the configuration file that is none.
        #[error("{}: `{key}` is no setting; the settings are {known}", file.display())]
        #[code("SL-CLI-01", "UnknownKey", exit = Usage)]
        #[cause("the configuration file has a key that is no setting")]
        #[hint("Remove or correct the key; `sealane config show` lists the settings.")]
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
        #[code("SL-CLI-02", "InvalidSetting", exit = Usage)]
        #[cause("a setting has a value that it cannot have")]
        #[hint("`sealane config show --origin` tells where each value comes from.")]
        Setting {
            /// The setting.
            key: &'static str,
            /// Where the value comes from.
            origin: String,
            /// The value.
            value: String,
            /// The expected form.
            cause: String,
        },
        /// A file that cannot be read or written, or does not say what it should.
        #[error("{}: {cause}", file.display())]
        #[code("SL-CLI-03", "File", exit = Usage)]
        #[cause("a file cannot be read or written, or is not what it should be")]
        #[hint("Check the path and its permissions; the message says what is wrong with the file.")]
        File {
            /// The file.
            file: PathBuf,
            /// The fault.
            cause: String,
        },
        /// A policy file that is refused.
        #[error("{}: {cause}", file.display())]
        #[inner(cause)]
        Policy {
            /// The file.
            file: PathBuf,
            /// The fault, and its line.
            cause: Box<PolicyError>,
        },
        /// A relay, a gateway or a member: its configuration, its links, or what is beside them.
        #[error("{0}")]
        #[inner(0)]
        Machine(Box<MachineError>),
        /// The documents of a team.
        #[error(transparent)]
        #[inner(0)]
        Documents(#[from] sealane::DocumentsError),
        /// A vault.
        #[error("{0}")]
        #[inner(0)]
        Vault(Box<sealane_vault::Error>),
        /// Some files were not kept or not restored, each of which was named.
        #[error("files and folders that were left out, as named above: {0}")]
        #[code("SL-CLI-16", "Skipped")]
        #[cause("some files or folders were not kept or not restored")]
        #[hint("All others were kept or restored. See the reason beside each name, and run the \
                command again. First remove what was restored without an attribute.")]
        Skipped(usize),
        /// A program whose output was to be kept did not end well.
        #[error("`{program}` failed, so that nothing was kept: {said}")]
        #[code("SL-CLI-34", "ProgramFailed")]
        #[cause("a program whose output was to be kept failed")]
        #[hint("Run the program by itself, and read what it says on its standard error.")]
        Program {
            /// Its name.
            program: String,
            /// How it ended, or why it did not start.
            said: String,
        },
        /// Flags that do not go together, or an answer that is missing.
        #[error("{0}")]
        #[code("SL-CLI-04", "Usage", exit = Usage)]
        #[cause("the flags do not go together")]
        #[hint("`sealane help VERB` shows the flags of a verb, with examples.")]
        Usage(&'static str),
        /// A body that begins as a JSON map does, and is not one.
        #[error("the body begins as a JSON map does, but is not one: {0}")]
        #[code("SL-CLI-05", "InvalidBody", exit = Usage)]
        #[cause("the body begins as a JSON map does, and is not one")]
        #[hint("Quote the body for the shell, or write text that begins with a brace as a JSON \
                string.")]
        Body(CodecError),
        /// One of many lines of standard input.
        #[error("line {number}: {cause}")]
        #[inner(cause)]
        Line {
            /// Its number, from 1.
            number: u64,
            /// The fault of it.
            cause: Box<CliFailure>,
        },
        /// An answer to a request that says that it failed.
        #[error("the answer says that the request failed: {0}")]
        #[code("SL-CLI-24", "AnswerFailed")]
        #[cause("the answer to a request has a field `error`")]
        #[hint("The answer comes from whoever replies to the topic; its text says why.")]
        Answer(String),
        /// A context that nobody has added.
        #[error("there is no context `{name}`{known}")]
        #[code("SL-CLI-25", "UnknownContext", exit = Usage)]
        #[cause("no context has that name")]
        #[hint("`sealane context ls` lists them, and `sealane context add` adds one.")]
        UnknownContext {
            /// The name.
            name: String,
            /// The text that follows it: the names that there are, or nothing.
            known: String,
        },
        /// Somebody was asked before something was removed, and did not say yes.
        #[error("{0}: the answer was not `y`")]
        #[code("SL-CLI-27", "Declined")]
        #[cause("the question before a removal was not answered with `y`")]
        #[hint("Repeat the command and answer `y`, or add `--yes`, which asks nothing.")]
        Declined(&'static str),
        /// A certificate that cannot be made.
        #[error("no certificate can be made: {0}")]
        #[code("SL-CLI-26", "NoCertificate", exit = Usage)]
        #[cause("a certificate cannot be made for these names")]
        #[hint("A name is like hub.example, an address like 192.0.2.7; leave out ports.")]
        Certificate(String),
        /// Standard input could not be read.
        #[error("standard input: {0}")]
        #[code("SL-CLI-06", "Input")]
        #[cause("standard input could not be read")]
        #[hint("Lines must be UTF-8; the message says what could not be read.")]
        Input(io::Error),
        /// Standard output could not be written.
        #[error("standard output: {0}")]
        #[code("SL-CLI-07", "Output")]
        #[cause("standard output could not be written")]
        #[hint("Check where the output goes, and whether there is room.")]
        Output(io::Error),
        /// The program could not set itself up.
        #[error("the program could not start its threads: {0}")]
        #[code("SL-CLI-08", "Runtime")]
        #[cause("the program could not start its threads")]
        #[hint("Raise the system's limits on threads and memory: they are reached.")]
        Runtime(io::Error),
        /// A code or name that no table has.
        #[error("`{0}` is no error code or name")]
        #[code("SL-CLI-09", "UnknownCode", exit = Usage)]
        #[cause("no table has that code or name")]
        #[hint("`sealane explain` without a code lists all.")]
        UnknownCode(String),
        /// The demo cannot run here, or its node did not.
        #[error("{0}")]
        #[code("SL-CLI-10", "Demo")]
        #[cause("the demo could not run")]
        #[hint("It needs Linux (/proc), room in the temporary folder, and a free port.")]
        Demo(String),
        /// The demo did not get back what was stored.
        #[error("{0} messages that were acknowledged did not come back as they were")]
        #[code("SL-CLI-11", "Lost")]
        #[cause("messages that were acknowledged did not come back as they were")]
        #[hint("This is a defect: report it with the version and the output.")]
        Lost(u64),
        /// Captured frames that are none, or did not open.
        #[error("{refused} of {seen} frames, fragments and batches were refused")]
        #[code("SL-CLI-14", "FramesRefused")]
        #[cause("some of the captured frames are not well-formed or did not open")]
        #[hint("The output says why for each of them, with a code.")]
        Refused {
            /// How many were refused.
            refused: u64,
            /// How many there were.
            seen: u64,
        },
        /// A capture that cannot be read to its end.
        #[error("{}: {cause}", file.display())]
        #[code("SL-CLI-15", "Capture")]
        #[cause("the capture cannot be read to its end")]
        #[hint("What came before was shown. Capture again, or say with --as what the file holds.")]
        Capture {
            /// The file; `-` is standard input.
            file: PathBuf,
            /// The fault, and its place.
            cause: CaptureError,
        },
    }
}

impl From<MachineError> for CliFailure {
    fn from(error: MachineError) -> CliFailure {
        match error {
            // A file is named in the same way by every verb.
            MachineError::File { file, cause } => CliFailure::file(&file, cause),
            other => CliFailure::Machine(Box::new(other)),
        }
    }
}

impl CliFailure {
    /// A file that the system does not let us read or write.
    pub(crate) fn file(file: &Path, cause: io::Error) -> CliFailure {
        CliFailure::File { file: file.to_owned(), cause: cause.to_string() }
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        match self {
            CliFailure::Client(error) => error.code(),
            CliFailure::Documents(error) => error.code(),
            CliFailure::Line { cause, .. } => cause.code(),
            other => other.info().code,
        }
    }

    /// How to mend the failure.
    pub fn hint(&self) -> &str {
        match self {
            CliFailure::Client(error) => error.hint(),
            CliFailure::Documents(error) => error.hint(),
            CliFailure::Line { cause, .. } => cause.hint(),
            other => other.info().hint,
        }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        let exit = self.info().exit;
        match self {
            CliFailure::Client(Error::Refused(wire)) => refused(&wire.code),
            CliFailure::Line { cause, .. } => cause.exit_code(),
            // The row is of the keys, and the verb was about messages.
            CliFailure::Client(Error::Group { .. }) => exit::FAILURE,
            // A folder that was named wrongly is the caller's to correct; all else is the store's.
            CliFailure::Store(_) | CliFailure::Node(StartError::Store { .. }) => match exit {
                Exit::Usage => exit::USAGE,
                _ => exit::STORAGE,
            },
            _ => exit::code(exit),
        }
    }

    /// Whether the reader of our output has gone, which is its good right.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, CliFailure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Says it on standard error, once.
    pub fn print(&self, json: bool) {
        let message = without_numbers(&self.to_string());
        if json {
            let error = vec![
                ("code".to_owned(), Value::from(self.code())),
                ("message".to_owned(), Value::from(message)),
                ("hint".to_owned(), Value::from(self.hint())),
            ];
            eprint!("{}", record(vec![("error", Value::Map(error))]));
        } else {
            // A hub's words, and names in them, are others' words.
            let (said, hint) = (format!("{message} [{}]", self.code()), self.hint());
            let (said, hint) = (harmless(&said), harmless(hint));
            let colours = OutputColours::of(&std::io::stderr());
            let (error, label) =
                (colours.paint(ColourTone::Bad, "error:"), colours.paint(ColourTone::Dim, "hint:"));
            eprintln!("sealane: {error} {said}\n  {label} {hint}");
        }
    }
}

/// The words of the system without its numbers, which tell a reader nothing: ` (os error 2)`.
fn without_numbers(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |said, part| {
        let behind = part.trim_start_matches(|c: char| c.is_ascii_digit());
        match behind.strip_prefix(')') {
            Some(behind) => said + behind,
            None => said + " (os error " + part,
        }
    })
}

/// A hub that is full, or stops, is told apart from one that refuses.
fn refused(name: &str) -> u8 {
    let mut rows = sealane_protocol::ERRORS.iter().chain(sealane_node::ERRORS);
    match rows.find(|info| info.name == name).map(|info| info.exit) {
        Some(exit @ (Exit::Storage | Exit::NotReachable)) => exit::code(exit),
        _ => exit::REFUSED,
    }
}

impl From<FileError> for CliFailure {
    fn from(error: FileError) -> CliFailure {
        CliFailure::Node(StartError::Tokens(error))
    }
}

impl From<sealane_vault::Error> for CliFailure {
    fn from(error: sealane_vault::Error) -> CliFailure {
        CliFailure::Vault(Box::new(error))
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
                CliFailure::Node(StartError::Store { folder: "data".into(), cause: cause.clone() });
            assert_eq!(node.exit_code(), CliFailure::Store(cause.clone()).exit_code());
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
    fn a_hub_that_is_full_or_stops_is_no_hub_that_refuses() {
        for name in ["StorageFull", "StorageFailed", "StorageBusy"] {
            assert_eq!(refused(name), exit::STORAGE);
        }
        assert_eq!(refused("Draining"), exit::NOT_REACHABLE);
        for name in ["UnknownStream", "Forbidden", "InvalidTopic", "FolderInUse", "OutOfOrbit"] {
            assert_eq!(refused(name), exit::REFUSED);
        }
    }

    #[test]
    fn numbers_of_the_system_are_left_out() {
        let plain = without_numbers("a: gone (os error 2), b: full (os error 28)");
        assert_eq!(plain, "a: gone, b: full");
        assert_eq!(without_numbers("a (os error x)"), "a (os error x)");
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
