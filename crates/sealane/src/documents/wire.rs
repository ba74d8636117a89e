//! The messages between programs and the process that holds documents, on its socket: a line of
//! JSON each way. They are a matter of one machine and one version, and no page of `spec/` has
//! them.

use std::collections::BTreeMap;

use sealane_codec::{Codec, decode, encode};
use sealane_message::Value;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{DocumentRefusal, EmergencyRequest};

/// A program's request.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "do", content = "with", rename_all = "lowercase")]
pub enum DocumentQuestion {
    /// All documents.
    Ls,
    /// Those of one type.
    Get {
        /// The type, by its name or number.
        data_type: String,
        /// The member; all of them, where it is missing.
        slot: Option<u16>,
    },
    /// Write the own document of a type.
    Set {
        /// The type, by its name or number.
        data_type: String,
        /// The document's content.
        value: DocumentValue,
    },
    /// Count on.
    Add {
        /// The counter.
        counter: u8,
        /// How much is added to the own total.
        amount: u64,
    },
    /// Say a line of chat.
    Say {
        /// The line.
        text: String,
    },
    /// Call for help.
    Raise(EmergencyRequest),
    /// Say that a call was seen.
    Ack(CallName),
    /// Say that a call is over.
    Clear(CallName),
    /// All calls for help.
    Emergencies,
    /// The counts of documents, as `sealane mesh status` shows them.
    Counts,
    /// All that is new from now on.
    Watch,
}

/// The answer to a program.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "is", content = "of", rename_all = "lowercase")]
pub enum DocumentAnswer {
    /// It is done, or stored after about that time.
    Done {
        /// Milliseconds; 0: it is stored.
        wait_ms: u64,
    },
    /// Documents, or calls for help.
    Items {
        /// As programs are shown them.
        items: Vec<DocumentValue>,
        /// The sum of each counter, where counters are among them.
        sums: BTreeMap<u8, u64>,
    },
    /// A call for help is raised.
    Raised {
        /// Its number.
        number: u32,
    },
    /// The counts.
    Counts(DocumentValue),
    /// It was refused.
    Refused(DocumentRefusal),
}

/// A call for help, by the member that has raised it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CallName {
    /// The slot of the member.
    pub slot: u16,
    /// The number of the call.
    pub number: u32,
}

/// A value as it stands in a line of JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentValue(pub Value);

impl Serialize for DocumentValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = vec![];
        encode(Codec::Json, &self.0, &mut text);
        let text = String::from_utf8(text).map_err(S::Error::custom)?;
        RawValue::from_string(text).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DocumentValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        decode(Codec::Json, text.get().as_bytes()).map(DocumentValue).map_err(D::Error::custom)
    }
}

/// The line of a question or an answer.
///
/// # Errors
/// Nothing that a question or an answer holds.
pub fn to_line(said: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    Ok(line)
}

/// The question or answer of a line.
///
/// # Errors
/// It is none.
pub fn from_line<'l, T: Deserialize<'l>>(line: &'l [u8]) -> std::io::Result<T> {
    Ok(serde_json::from_slice(line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_and_answer_is_a_line_that_reads_back() {
        let place =
            Value::Map(vec![("z".to_owned(), Value::F64(52.5)), ("a".to_owned(), 1_u64.into())]);
        let name = CallName { slot: 3, number: 7 };
        let value = DocumentValue(place);
        for question in [
            DocumentQuestion::Ls,
            DocumentQuestion::Get { data_type: "chat".to_owned(), slot: Some(3) },
            DocumentQuestion::Set { data_type: "72".to_owned(), value: value.clone() },
            DocumentQuestion::Raise(EmergencyRequest {
                position: Some([1.5, -2.0]),
                ..EmergencyRequest::default()
            }),
            DocumentQuestion::Ack(name),
            DocumentQuestion::Watch,
        ] {
            let line = to_line(&question).unwrap();
            assert!(line.ends_with(b"\n"));
            assert_eq!(from_line::<DocumentQuestion>(&line).unwrap(), question);
        }
        for answer in [
            DocumentAnswer::Items { items: vec![value.clone()], sums: [(1, 2)].into() },
            DocumentAnswer::Counts(value),
            DocumentAnswer::Done { wait_ms: 0 },
        ] {
            let line = to_line(&answer).unwrap();
            assert_eq!(from_line::<DocumentAnswer>(&line).unwrap(), answer);
        }
        assert!(from_line::<DocumentQuestion>(b"{\"do\":\"dance\"}").is_err());
    }
}
