//! The requests of this user's programs.

use std::collections::{BTreeMap, BTreeSet};

use sealane::documents::{CallName, DocumentAnswer, DocumentQuestion, DocumentValue};
use sealane::{EmergencyRequest, Value};
use sealane_codec::document::{decode, encode, to_value};
use sealane_group::now_ms;
use sealane_message::DataType;
use sealane_message::document::{Count, Document, EmergencyCall};
use sealane_message::event::EventId;

use super::desk::DocumentThreadState;
use super::{Answered, words};
use crate::json::map;
use crate::{AskRefusal, Result};

/// A member has at most so many counters.
const COUNTER: DataType = DataType::COUNTER;

impl DocumentThreadState {
    /// Answers a program.
    pub(super) fn answer(&mut self, asked: DocumentQuestion) -> Answered {
        let written = match asked {
            DocumentQuestion::Ls => return Ok(self.list(None, None)),
            DocumentQuestion::Get { data_type, slot } => {
                return Ok(self.list(Some(parsed(&data_type)?), slot));
            }
            DocumentQuestion::Counts => {
                return Ok(DocumentAnswer::Counts(DocumentValue(self.told_counts())));
            }
            DocumentQuestion::Emergencies => {
                return Ok(items(self.emergencies(), BTreeMap::new()));
            }
            DocumentQuestion::Raise(raise) => return self.raise(&raise),
            DocumentQuestion::Set { data_type, value: DocumentValue(value) } => {
                let of = parsed(&data_type)?;
                let body = words::body(of, &value)?;
                self.write(of, &body)?
            }
            DocumentQuestion::Add { counter, amount } => self.add(counter, amount)?,
            DocumentQuestion::Say { text } => self.say(&text)?,
            DocumentQuestion::Ack(name) => {
                let call = self.call(name)?;
                self.write_document(&Document::Acknowledgement(call))?
            }
            DocumentQuestion::Clear(name) => {
                let call = self.call(name)?;
                self.write_document(&Document::Clear(call))?
            }
            DocumentQuestion::Watch => return Err("only a socket is watched".into()),
        };
        Ok(DocumentAnswer::Done { wait_ms: written })
    }

    fn list(&mut self, of: Option<DataType>, slot: Option<u16>) -> DocumentAnswer {
        let entries = self.entries(of).into_iter();
        let entries = entries.filter(|entry| slot.is_none_or(|slot| entry.origin.number() == slot));
        let shown = entries.filter_map(|entry| self.shown(&entry)).collect();
        let has_counters = of.is_none_or(|of| of == COUNTER) && slot.is_none();
        items(shown, if has_counters { self.sums() } else { BTreeMap::new() })
    }

    /// The value of each counter: the sum of the totals of all origins.
    fn sums(&mut self) -> BTreeMap<u8, u64> {
        let mut sums: BTreeMap<u8, u64> = BTreeMap::new();
        for entry in self.entries(Some(COUNTER)) {
            let Some((_, body)) = self.body(&entry) else { continue };
            let Ok(Document::Counter(counts)) = decode(COUNTER, &body) else { continue };
            for Count { id, total } in counts {
                let sum = sums.entry(id).or_default();
                // Any member can write any total. One that lies must not overflow the sum of all.
                *sum = sum.saturating_add(total);
            }
        }
        sums
    }

    fn write_document(&mut self, document: &Document<'_>) -> Result<u64, AskRefusal> {
        let mut body = vec![];
        encode(document, &mut body)?;
        self.write(document.data_type(), &body)
    }

    /// Counts on: the own total rises.
    fn add(&mut self, id: u8, amount: u64) -> Result<u64, AskRefusal> {
        let mut totals: BTreeMap<u8, u64> = BTreeMap::new();
        // A total that still waits for its turn counts, or two additions in a row would lose the
        // first.
        if let Some(body) = self.own_body(COUNTER)
            && let Ok(Document::Counter(counts)) = decode(COUNTER, &body)
        {
            totals.extend(counts.into_iter().map(|count| (count.id, count.total)));
        }
        let total = totals.entry(id).or_default();
        // A total only grows. One that wrapped would look like a loss to every reader.
        *total = total.checked_add(amount).ok_or("the total is too large")?;
        let counts = totals.into_iter().map(|(id, total)| Count { id, total }).collect();
        self.write_document(&Document::Counter(counts))
    }

    /// Says a line of chat.
    fn say(&mut self, text: &str) -> Result<u64, AskRefusal> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(|error| error.to_string())?;
        let body = words::line(EventId(id), text)?;
        self.write(DataType::CHAT, &body)
    }

    /// Calls for help, under a number above that of every earlier call.
    fn raise(&mut self, asked: &EmergencyRequest) -> Answered {
        let own = self.own_slot();
        let last = self.entries(Some(DataType::EMERGENCY)).into_iter();
        let last = last.filter(|one| Some(one.origin) == own).filter_map(|one| self.body(&one));
        let last = last.filter_map(|(_, body)| match decode(DataType::EMERGENCY, &body) {
            Ok(Document::Emergency(call)) => Some(call.number),
            _ => None,
        });
        let number =
            next_number(last.max(), now_ms() / 1000).ok_or("no number of a call is left")?;
        let document = words::emergency(number, asked)?;
        self.write_document(&document)?;
        Ok(DocumentAnswer::Raised { number })
    }

    /// The call that is asked about, which has to be known here.
    fn call(&mut self, CallName { slot, number }: CallName) -> Result<EmergencyCall, AskRefusal> {
        // A mistyped number must not clear a call that comes later under it.
        let is_known = self.emergencies().iter().any(|one| {
            let field = |key: &str| one.field(key).and_then(Value::as_u64);
            field("slot") == Some(slot.into()) && field("number") == Some(number.into())
        });
        match is_known {
            true => Ok(EmergencyCall { slot, number }),
            false => Err(format!("no call {number} of slot {slot} is known here").into()),
        }
    }

    /// All calls for help, each with those who have acknowledged it, and whether it is over. A call
    /// that was cleared stays so, whatever was recorded before.
    pub(super) fn emergencies(&mut self) -> Vec<Value> {
        let mut answers: BTreeMap<(u8, u16, u32), BTreeSet<u16>> = BTreeMap::new();
        for (kind, of) in [(0, DataType::ACKNOWLEDGEMENT), (1, DataType::CLEAR)] {
            for entry in self.entries(Some(of)) {
                let Some((_, body)) = self.body(&entry) else { continue };
                let (Ok(Document::Acknowledgement(call)) | Ok(Document::Clear(call))) =
                    decode(of, &body)
                else {
                    continue;
                };
                let who = answers.entry((kind, call.slot, call.number)).or_default();
                who.insert(entry.origin.number());
            }
        }
        let mut calls = vec![];
        for entry in self.entries(Some(DataType::EMERGENCY)) {
            let Some((time, body)) = self.body(&entry) else { continue };
            let Ok(document) = decode(DataType::EMERGENCY, &body) else { continue };
            let Document::Emergency(ref call) = document else { continue };
            let slot = entry.origin.number();
            let by = |kind: u8| {
                let who = answers.get(&(kind, slot, call.number)).into_iter().flatten();
                Value::Array(who.map(|slot| u64::from(*slot).into()).collect())
            };
            // Members keep only their last clear. The agent remembers earlier ones, so that no call
            // comes back.
            let is_over = answers.contains_key(&(1, slot, call.number))
                || self.stays_over(EmergencyCall { slot, number: call.number });
            let Value::Map(mut fields) = map(vec![
                ("slot", u64::from(slot).into()),
                ("name", self.name(entry.origin)),
                ("timeMs", time.unwrap_or(0).into()),
                ("isOver", Value::Bool(is_over)),
                ("acknowledgedBy", by(0)),
                ("clearedBy", by(1)),
            ]) else {
                continue;
            };
            if let Value::Map(own) = to_value(&document) {
                fields.extend(own);
            }
            calls.push(Value::Map(fields));
        }
        calls
    }
}

fn items(all: Vec<Value>, sums: BTreeMap<u8, u64>) -> DocumentAnswer {
    DocumentAnswer::Items { items: all.into_iter().map(DocumentValue).collect(), sums }
}

/// The number of a member's next call. A member that has lost its state begins with the time, which
/// is above what it had. However wrong its clock is, there are numbers left: two calls of one
/// number would be one, and over at once when the first was.
fn next_number(last: Option<u32>, now_s: u64) -> Option<u32> {
    let latest = u32::MAX - CALLS_LEFT;
    match last {
        None => Some(u32::try_from(now_s).unwrap_or(latest).min(latest)),
        Some(last) => last.checked_add(1),
    }
}

/// So many calls a member can raise, whatever its clock has said.
const CALLS_LEFT: u32 = 1 << 20;

fn parsed(data_type: &str) -> Result<DataType, AskRefusal> {
    data_type.parse::<DataType>().map_err(|error| error.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_numbers_of_their_own_whatever_the_clock_says() {
        assert_eq!(next_number(None, 1_795_000_000), Some(1_795_000_000));
        assert_eq!(next_number(Some(7), 1_795_000_000), Some(8));
        for now_s in [0, u64::from(u32::MAX), u64::MAX] {
            let first = next_number(None, now_s).unwrap();
            let mut last = first;
            for _ in 0..100 {
                let next = next_number(Some(last), now_s).unwrap();
                assert!(next > last, "{now_s}");
                last = next;
            }
        }
        assert_eq!(next_number(Some(u32::MAX), 0), None);
    }
}
