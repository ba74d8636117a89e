//! The documents of a team in the field, as the `sealane mesh up` of this machine holds them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sealane_codec::{Codec, decode, encode};
use sealane_message::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::net::UnixStream;

use crate::limits::MAX_DOCUMENT_ANSWER_BYTES;

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
            /// What was wrong.
            cause: std::io::Error,
        },
        /// It was refused.
        #[error("{0}")]
        #[code("SL-TEAM-02", "DocumentRefused", exit = Refused)]
        #[cause("who holds the documents of the team has refused what was asked for")]
        #[hint("The message says what is wrong with it.")]
        Refused(String),
    }
}

/// A call for help that is raised.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Raise {
    /// Why: `medical`, `fire`, `attack`, `lost` or `trapped`.
    pub kind: Option<String>,
    /// What to know before one comes.
    pub text: Option<String>,
    /// Where, in degrees: latitude and longitude.
    pub position: Option<[f64; 2]>,
}

/// What became of a document that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a document that waits is not stored yet"]
pub enum Written {
    /// It is sealed and stored.
    Stored,
    /// It waits for its turn, as the pace of the policy has it, and is stored after about that
    /// time, or when the process that holds the documents ends in order. Until then it is lost if
    /// that process is killed.
    Waiting(Duration),
}

impl Written {
    fn read(answer: &Value) -> Written {
        match answer.field("waitMs").and_then(Value::as_u64) {
            Some(wait_ms) => Written::Waiting(Duration::from_millis(wait_ms)),
            None => Written::Stored,
        }
    }
}

/// The documents of a team: a connection to the process of this user that holds them.
///
/// ```no_run
/// # async fn example() -> Result<(), sealane::DocumentsError> {
/// let mut documents = sealane::Documents::connect("documents.sock").await?;
/// if let sealane::Written::Waiting(wait) = documents.add(1, 5).await? {
///     println!("it is stored in {wait:?}");
/// }
/// for document in documents.ls().await? {
///     println!("{document:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Documents {
    socket: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Documents {
    /// Connects to the socket that a configuration names in `[documents]`.
    ///
    /// # Errors
    /// [`DocumentsError::Gone`]
    pub async fn connect(socket: impl AsRef<Path>) -> Result<Documents, DocumentsError> {
        let socket = socket.as_ref().to_owned();
        match UnixStream::connect(&socket).await {
            Ok(stream) => Ok(Documents { socket, stream: BufReader::new(stream) }),
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
        self.list(vec![("do", "ls".into())]).await
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
        let mut asked = vec![("do", "get".into()), ("type", data_type.into())];
        asked.extend(slot.map(|slot| ("slot", Value::from(u64::from(slot)))));
        self.list(asked).await
    }

    /// Writes the own document of a type: its value as `spec/document.md` shows it, or a text for
    /// a type of an application. Says whether it is stored, or waits.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn set(&mut self, data_type: &str, value: Value) -> Result<Written, DocumentsError> {
        let asked = vec![("do", "set".into()), ("type", data_type.into()), ("value", value)];
        self.ask(asked).await.map(|answer| Written::read(&answer))
    }

    /// Counts on: adds to the own total of a counter. Says whether the total is stored, or waits.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn add(&mut self, counter: u8, amount: u64) -> Result<Written, DocumentsError> {
        let counter = Value::from(u64::from(counter));
        let asked = vec![("do", "add".into()), ("counter", counter), ("amount", amount.into())];
        self.ask(asked).await.map(|answer| Written::read(&answer))
    }

    /// The value of each counter: the sum of the totals of all members.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn sums(&mut self) -> Result<BTreeMap<u8, u64>, DocumentsError> {
        let answer = self.ask(vec![("do", "get".into()), ("type", "counter".into())]).await?;
        let Some(Value::Map(sums)) = answer.field("sums") else { return Ok(BTreeMap::new()) };
        let sum = |(id, sum): &(String, Value)| Some((id.parse().ok()?, sum.as_u64()?));
        Ok(sums.iter().filter_map(sum).collect())
    }

    /// Says a line of chat to the team: an event of `spec/event.md`.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn say(&mut self, text: &str) -> Result<(), DocumentsError> {
        self.ask(vec![("do", "say".into()), ("text", text.into())]).await.map(drop)
    }

    /// Calls for help, and gives the number of the call.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn raise(&mut self, raise: &Raise) -> Result<u64, DocumentsError> {
        let mut asked = vec![("do", "raise".into())];
        asked.extend(raise.kind.as_ref().map(|kind| ("kind", kind.as_str().into())));
        asked.extend(raise.text.as_ref().map(|text| ("text", text.as_str().into())));
        if let Some([latitude, longitude]) = raise.position {
            asked.push(("latitude", Value::F64(latitude)));
            asked.push(("longitude", Value::F64(longitude)));
        }
        let answer = self.ask(asked).await?;
        Ok(answer.field("number").and_then(Value::as_u64).unwrap_or(0))
    }

    /// Says that this member has seen a call for help.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn acknowledge(&mut self, slot: u16, number: u32) -> Result<(), DocumentsError> {
        self.answer("ack", slot, number).await
    }

    /// Says that a call for help is over.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn clear(&mut self, slot: u16, number: u32) -> Result<(), DocumentsError> {
        self.answer("clear", slot, number).await
    }

    /// The calls for help that are known, each with who has acknowledged it.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn emergencies(&mut self) -> Result<Vec<Value>, DocumentsError> {
        self.list(vec![("do", "emergencies".into())]).await
    }

    /// The next document that is new: to be called again and again, and nothing else from then on.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn next(&mut self) -> Result<Value, DocumentsError> {
        self.read().await
    }

    /// Asks for all that is new from now on, which [`Documents::next`] gives.
    ///
    /// # Errors
    /// [`DocumentsError`]
    pub async fn watch(&mut self) -> Result<(), DocumentsError> {
        self.ask(vec![("do", "watch".into())]).await.map(drop)
    }

    async fn answer(&mut self, what: &str, slot: u16, number: u32) -> Result<(), DocumentsError> {
        let (slot, number) = (Value::from(u64::from(slot)), Value::from(u64::from(number)));
        self.ask(vec![("do", what.into()), ("slot", slot), ("number", number)]).await.map(drop)
    }

    async fn list(&mut self, asked: Vec<(&str, Value)>) -> Result<Vec<Value>, DocumentsError> {
        match self.ask(asked).await?.field("items") {
            Some(Value::Array(items)) => Ok(items.clone()),
            _ => Ok(vec![]),
        }
    }

    async fn ask(&mut self, asked: Vec<(&str, Value)>) -> Result<Value, DocumentsError> {
        let fields = asked.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let mut line = vec![];
        encode(Codec::Json, &Value::Map(fields), &mut line);
        line.push(b'\n');
        let written = self.stream.get_mut().write_all(&line).await;
        written.map_err(|cause| self.gone(cause))?;
        let answer = self.read().await?;
        match answer.field("error").and_then(Value::as_text) {
            Some(error) => Err(DocumentsError::Refused(error.to_owned())),
            None => Ok(answer),
        }
    }

    async fn read(&mut self) -> Result<Value, DocumentsError> {
        let mut line = vec![];
        let mut bounded: Take<_> = (&mut self.stream).take(MAX_DOCUMENT_ANSWER_BYTES);
        let read = bounded.read_until(b'\n', &mut line).await;
        let read = read.map_err(|cause| self.gone(cause))?;
        let value = decode(Codec::Json, line.trim_ascii_end()).ok();
        value.filter(|_| read > 0).ok_or_else(|| {
            self.gone(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "it has ended"))
        })
    }

    fn gone(&self, cause: std::io::Error) -> DocumentsError {
        DocumentsError::Gone { socket: self.socket.clone(), cause }
    }
}
