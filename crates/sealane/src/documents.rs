//! The documents of a team in the field, as the `sealane mesh up` of this machine holds them.

mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sealane_codec::{Codec, decode};
use sealane_message::{DataType, ErrorInfo, Value};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::net::UnixStream;

use crate::limits::MAX_DOCUMENT_ANSWER_BYTES;
pub use wire::{CallName, DocumentAnswer, DocumentQuestion, DocumentValue, from_line, to_line};

sealane_message::errors! {
    /// The meaning of every code of documents.
    pub const ERRORS;

    /// Why documents cannot be read or written.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum DocumentsError {
        /// Nobody answers at the socket, or what answers ends.
        #[error("{}: {cause}", socket.display())]
        #[code("SL-TEAM-01", "NoDocuments", retry = Later, exit = NotReachable)]
        #[cause("nobody answers who holds the documents of the team")]
        #[hint("Start `sealane mesh up` with [documents] in its configuration.")]
        Gone {
            /// The socket.
            socket: PathBuf,
            /// The error of the system.
            cause: std::io::Error,
        },
        /// It was refused.
        #[error("{}", .0.message)]
        #[code("SL-TEAM-02", "DocumentRefused", exit = Refused)]
        #[cause("who holds the documents of the team has refused what was asked for")]
        #[hint("The message says what is wrong with it.")]
        Refused(DocumentRefusal),
    }
}

/// A refusal of the process that holds the documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentRefusal {
    /// The fault, in a sentence.
    pub message: String,
    /// The stable code: that of keys or of a policy, where they refuse.
    pub code: String,
    /// How to mend it.
    pub hint: String,
}

impl DocumentsError {
    /// The row of a refusal that only its text tells apart.
    pub fn refused_info() -> &'static ErrorInfo {
        DocumentsError::Refused(DocumentRefusal {
            message: String::new(),
            code: String::new(),
            hint: String::new(),
        })
        .info()
    }

    /// The stable code.
    pub fn code(&self) -> &str {
        match self {
            DocumentsError::Refused(refusal) => &refusal.code,
            DocumentsError::Gone { .. } => self.info().code,
        }
    }

    /// How to mend it.
    pub fn hint(&self) -> &str {
        match self {
            DocumentsError::Refused(refusal) => &refusal.hint,
            DocumentsError::Gone { .. } => self.info().hint,
        }
    }
}

/// A call for help that is raised.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EmergencyRequest {
    /// Why: `medical`, `fire`, `attack`, `lost` or `trapped`.
    pub kind: Option<String>,
    /// Text that helpers should read before they come.
    pub text: Option<String>,
    /// Where, in degrees: latitude and longitude.
    pub position: Option<[f64; 2]>,
}

/// The outcome of writing a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a document that waits is not stored yet"]
pub enum DocumentWriteOutcome {
    /// It is sealed and stored.
    Stored,
    /// It waits for its turn, as the pace of the policy has it, and is stored after about that
    /// time, or when the process that holds the documents ends in order. Until then it is lost if
    /// that process is killed.
    Waiting(Duration),
}

/// The documents of a team: a connection to the process of this user that holds them.
///
/// ```no_run
/// # async fn example() -> Result<(), sealane::DocumentsError> {
/// let mut documents = sealane::DocumentsClient::connect("documents.sock").await?;
/// if let sealane::DocumentWriteOutcome::Waiting(wait) = documents.add(1, 5).await? {
///     println!("it is stored in {wait:?}");
/// }
/// for document in documents.ls().await? {
///     println!("{document:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DocumentsClient {
    socket: PathBuf,
    stream: BufReader<UnixStream>,
}

impl DocumentsClient {
    /// Connects to the socket that a configuration names in `[documents]`.
    ///
    /// # Errors
    /// [`DocumentsError::Gone`]
    pub async fn connect(socket: impl AsRef<Path>) -> Result<DocumentsClient, DocumentsError> {
        let socket = socket.as_ref().to_owned();
        match UnixStream::connect(&socket).await {
            Ok(stream) => Ok(DocumentsClient { socket, stream: BufReader::new(stream) }),
            Err(cause) => Err(DocumentsError::Gone { socket, cause }),
        }
    }

    /// All documents, each a map of `slot`, `name`, `type`, `epoch`, `counter` and `value`. Some
    /// have `timeMs`, when it was said; `heardMs`, when it came here; and `conflicts`, how many
    /// authentic frames had the stamp of another one.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn ls(&mut self) -> Result<Vec<Value>, DocumentsError> {
        self.list(DocumentQuestion::Ls).await
    }

    /// The documents of one type, of one member or of all.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn get(
        &mut self,
        data_type: &str,
        slot: Option<u16>,
    ) -> Result<Vec<Value>, DocumentsError> {
        self.list(DocumentQuestion::Get { data_type: data_type.to_owned(), slot }).await
    }

    /// Writes the own document of a type: its value as `spec/document.md` shows it, or a text for
    /// a type of an application. Says whether it is stored, or waits.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn set(
        &mut self,
        data_type: &str,
        value: Value,
    ) -> Result<DocumentWriteOutcome, DocumentsError> {
        let (data_type, value) = (data_type.to_owned(), DocumentValue(value));
        self.write(DocumentQuestion::Set { data_type, value }).await
    }

    /// Counts on: adds to the own total of a counter. Says whether the total is stored, or waits.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn add(
        &mut self,
        counter: u8,
        amount: u64,
    ) -> Result<DocumentWriteOutcome, DocumentsError> {
        self.write(DocumentQuestion::Add { counter, amount }).await
    }

    /// The value of each counter: the sum of the totals of all members.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn sums(&mut self) -> Result<BTreeMap<u8, u64>, DocumentsError> {
        let data_type = DataType::COUNTER.to_string();
        match self.ask(DocumentQuestion::Get { data_type, slot: None }).await? {
            DocumentAnswer::Items { sums, .. } => Ok(sums),
            _ => Err(self.strange()),
        }
    }

    /// Says a line of chat to the team: an event of `spec/event.md`.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn say(&mut self, text: &str) -> Result<(), DocumentsError> {
        self.ask(DocumentQuestion::Say { text: text.to_owned() }).await.map(drop)
    }

    /// Calls for help, and gives the number of the call.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn raise(&mut self, raise: &EmergencyRequest) -> Result<u64, DocumentsError> {
        match self.ask(DocumentQuestion::Raise(raise.clone())).await? {
            DocumentAnswer::Raised { number } => Ok(number.into()),
            _ => Err(self.strange()),
        }
    }

    /// Says that this member has seen a call for help.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn acknowledge(&mut self, slot: u16, number: u32) -> Result<(), DocumentsError> {
        self.ask(DocumentQuestion::Ack(CallName { slot, number })).await.map(drop)
    }

    /// Says that a call for help is over.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn clear(&mut self, slot: u16, number: u32) -> Result<(), DocumentsError> {
        self.ask(DocumentQuestion::Clear(CallName { slot, number })).await.map(drop)
    }

    /// The calls for help that are known, each with who has acknowledged it.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn emergencies(&mut self) -> Result<Vec<Value>, DocumentsError> {
        self.list(DocumentQuestion::Emergencies).await
    }

    /// The next document that is new: to be called again and again, and nothing else from then on.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn next(&mut self) -> Result<Value, DocumentsError> {
        let line = self.read().await?;
        decode(Codec::Json, line.trim_ascii_end()).map_err(|_| self.strange())
    }

    /// Asks for all that is new from now on, which [`DocumentsClient::next`] gives.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn watch(&mut self) -> Result<(), DocumentsError> {
        self.ask(DocumentQuestion::Watch).await.map(drop)
    }

    async fn write(
        &mut self,
        asked: DocumentQuestion,
    ) -> Result<DocumentWriteOutcome, DocumentsError> {
        match self.ask(asked).await? {
            DocumentAnswer::Done { wait_ms: 0 } => Ok(DocumentWriteOutcome::Stored),
            DocumentAnswer::Done { wait_ms } => {
                Ok(DocumentWriteOutcome::Waiting(Duration::from_millis(wait_ms)))
            }
            _ => Err(self.strange()),
        }
    }

    async fn list(&mut self, asked: DocumentQuestion) -> Result<Vec<Value>, DocumentsError> {
        match self.ask(asked).await? {
            DocumentAnswer::Items { items, .. } => {
                Ok(items.into_iter().map(|DocumentValue(item)| item).collect())
            }
            _ => Err(self.strange()),
        }
    }

    async fn ask(&mut self, asked: DocumentQuestion) -> Result<DocumentAnswer, DocumentsError> {
        let line = to_line(&asked).map_err(|cause| self.gone(cause))?;
        let written = self.stream.get_mut().write_all(&line).await;
        written.map_err(|cause| self.gone(cause))?;
        let line = self.read().await?;
        match from_line(&line).map_err(|cause| self.gone(cause))? {
            DocumentAnswer::Refused(refusal) => Err(DocumentsError::Refused(refusal)),
            answer => Ok(answer),
        }
    }

    async fn read(&mut self) -> Result<Vec<u8>, DocumentsError> {
        let mut line = vec![];
        let mut bounded: Take<_> = (&mut self.stream).take(MAX_DOCUMENT_ANSWER_BYTES);
        let read = bounded.read_until(b'\n', &mut line).await;
        match read.map_err(|cause| self.gone(cause))? {
            0 => Err(self.gone(std::io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(line),
        }
    }

    /// The process that answers is of another version.
    fn strange(&self) -> DocumentsError {
        self.gone(std::io::ErrorKind::InvalidData.into())
    }

    fn gone(&self, cause: std::io::Error) -> DocumentsError {
        DocumentsError::Gone { socket: self.socket.clone(), cause }
    }
}
