//! MessagePack with the record extension of npm's `msgpackr`: a map's keys travel once.
//!
//! A connection has one [`Encoder`] and one [`Decoder`]; what they have seen is their dictionary,
//! so their data must arrive whole and in order. The format and the settings that `msgpackr` needs
//! are in `spec/codec.md`.

mod dictionary;

use crate::limits::{MAX_RECORD_KEYS, MAX_RECORDS, MAX_STRUCTURE_BYTES};
use sealane_message::Value;

use crate::head::{BinaryFormat, ItemHead};
use crate::input::DatumInput;
use crate::tape::{Datum, Tape, TapeSpan, TapeToken};
use crate::writer::DatumWriter;
use crate::{Codec, CodecError, binary, msgpack, transcoder};
use dictionary::RecordDictionary;

/// The extension type of a definition, `r`.
const DEFINITION: u8 = 0x72;
/// The first byte that stands for a record. There are [`MAX_RECORDS`].
const FIRST_RECORD: u8 = 0x40;
const FIXEXT1: u8 = 0xd4;
const FIXEXT2: u8 = 0xd5;

/// Writes data for one reader, who sees all of them in order.
#[derive(Debug, Default)]
pub struct Encoder {
    structures: Vec<SentStructure>,
    tape: Tape,
}

#[derive(Debug)]
struct SentStructure {
    hash: u64,
    keys: Vec<Box<[u8]>>,
}

impl Encoder {
    /// One with an empty dictionary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `value`.
    pub fn encode(&mut self, value: &Value, out: &mut Vec<u8>) {
        let mut plain = Vec::new();
        DatumWriter::new(Codec::MsgPack, &mut plain).value(value);
        if self.transcode(Codec::MsgPack, &plain, out).is_err() {
            // A value that breaks its own rules is written as it is, for the reader to refuse.
            DatumWriter::new(Codec::MsgPackRecords, out).value(value);
        }
    }

    /// Appends the datum `bytes` of another codec.
    ///
    /// # Errors
    /// As [`crate::decode`]; `out` and the dictionary are then as they were.
    pub fn transcode(
        &mut self,
        from: Codec,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let mut tape = std::mem::take(&mut self.tape);
        let read = transcoder::read(from, bytes, &mut tape);
        if read.is_ok() {
            self.write(tape.datum(bytes), out);
        }
        tape.trim();
        self.tape = tape;
        read
    }

    pub(crate) fn write(&mut self, datum: Datum<'_>, out: &mut Vec<u8>) {
        self.write_at(datum, 0, out);
    }

    /// Writes the value at `index` and returns the index after it. Recursion ends at `MAX_DEPTH`,
    /// which the tape checked.
    fn write_at(&mut self, datum: Datum<'_>, index: usize, out: &mut Vec<u8>) -> usize {
        let token = datum.token(index).unwrap_or(TapeToken::Null);
        let mut next = index + 1;
        match token {
            TapeToken::Map(extent) => {
                let is_record = self.begin_record(datum, index, extent.len(), out);
                for _ in 0..extent.len() {
                    if !is_record {
                        msgpack::write_text(out, datum.key_bytes(next));
                    }
                    next = self.write_at(datum, next + 1, out);
                }
            }
            TapeToken::Array(extent) => {
                msgpack::write_array(out, extent.len());
                for _ in 0..extent.len() {
                    next = self.write_at(datum, next, out);
                }
            }
            token => datum.write_token(token, &mut DatumWriter::new(Codec::MsgPackRecords, out)),
        }
        next
    }

    /// Writes the head of a map: of a known record, of one that it defines, or of a plain map.
    /// Tells whether the keys are thereby said.
    fn begin_record(
        &mut self,
        datum: Datum<'_>,
        index: usize,
        len: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if len > MAX_RECORD_KEYS {
            msgpack::write_map(out, len);
            return false;
        }
        let mut hash = ShapeHash::default();
        datum.keys(index).for_each(|key| hash.add(key));
        let same = |structure: &SentStructure| {
            structure.hash == hash.0
                && structure.keys.len() == len
                && structure.keys.iter().zip(datum.keys(index)).all(|(a, b)| **a == *b)
        };
        if let Some(id) = self.structures.iter().position(same) {
            out.push(FIRST_RECORD + id as u8);
            return true;
        }
        let size: usize = datum.keys(index).map(<[u8]>::len).sum();
        if self.structures.len() >= MAX_RECORDS || size > MAX_STRUCTURE_BYTES {
            msgpack::write_map(out, len);
            return false;
        }
        out.extend_from_slice(&[FIXEXT1, DEFINITION, FIRST_RECORD + self.structures.len() as u8]);
        msgpack::write_array(out, len);
        datum.keys(index).for_each(|key| msgpack::write_text(out, key));
        let keys = datum.keys(index).map(Box::from).collect();
        self.structures.push(SentStructure { hash: hash.0, keys });
        true
    }
}

/// FNV-1a over keys and their ends. Whoever makes two shapes collide gains 64 comparisons.
struct ShapeHash(u64);

impl Default for ShapeHash {
    fn default() -> Self {
        ShapeHash(0xcbf2_9ce4_8422_2325)
    }
}

impl ShapeHash {
    #[inline]
    fn add(&mut self, key: &[u8]) {
        for &byte in key.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// Reads the data of one writer, all of them in order.
#[derive(Debug, Default)]
pub struct Decoder {
    dictionary: RecordDictionary,
    tape: Tape,
}

impl Decoder {
    /// One with an empty dictionary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the whole of `bytes` as one value.
    ///
    /// # Errors
    /// As [`crate::decode`]; the dictionary is then as it was.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Value, CodecError> {
        self.read(bytes)?;
        let value = self.tape.datum(bytes).value();
        self.tape.trim();
        value
    }

    /// Appends the datum as plain MessagePack, the codec in which it is stored.
    ///
    /// # Errors
    /// As [`crate::decode`]; `out` and the dictionary are then as they were.
    pub fn to_plain(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.read(bytes)?;
        self.tape.write(bytes, &mut DatumWriter::new(Codec::MsgPack, out));
        self.tape.trim();
        Ok(())
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), CodecError> {
        self.dictionary.begin();
        let read = binary::read(&mut RecordsFormat(&mut self.dictionary), bytes, &mut self.tape);
        match read {
            Ok(()) => self.dictionary.commit(),
            Err(_) => self.dictionary.roll_back(),
        }
        read
    }
}

/// Reads a datum that defines the structures it uses.
pub(crate) fn read_alone(bytes: &[u8], tape: &mut Tape) -> Result<(), CodecError> {
    let mut dictionary = RecordDictionary::default();
    dictionary.begin();
    binary::read(&mut RecordsFormat(&mut dictionary), bytes, tape)
}

/// The head of an item where nothing can be a record: raw views, which have no dictionary.
pub(crate) struct NoRecords;

impl BinaryFormat for NoRecords {
    const CODEC: Codec = Codec::MsgPackRecords;

    fn head(&mut self, input: &mut DatumInput<'_>) -> Result<ItemHead, CodecError> {
        let at = input.at();
        match input.peek() {
            Some(FIRST_RECORD..=0x7f | FIXEXT1) => Err(CodecError::UnknownRecord { at }),
            _ => msgpack::head(input),
        }
    }
}

struct RecordsFormat<'d>(&'d mut RecordDictionary);

impl BinaryFormat for RecordsFormat<'_> {
    const CODEC: Codec = Codec::MsgPackRecords;

    #[inline]
    fn head(&mut self, input: &mut DatumInput<'_>) -> Result<ItemHead, CodecError> {
        let at = input.at();
        match input.peek() {
            Some(byte @ FIRST_RECORD..=0x7f) => {
                input.byte()?;
                let slot = usize::from(byte - FIRST_RECORD);
                self.0.at_slot(slot).map(ItemHead::Record).ok_or(CodecError::UnknownRecord { at })
            }
            Some(FIXEXT1) => self.definition(input, at),
            // Two-byte records: msgpackr writes them when told to keep more than 64 structures.
            Some(FIXEXT2) => Err(CodecError::RecordStructure { at }),
            _ => msgpack::head(input),
        }
    }

    fn record(&mut self, index: usize, tape: &mut Tape, at: usize) -> Result<usize, CodecError> {
        self.0.use_structure(index, tape, at)
    }

    fn record_key(&self, index: usize, nth: usize) -> Option<TapeSpan> {
        self.0.key(index, nth)
    }
}

impl RecordsFormat<'_> {
    /// `d4 72 id`, an array of keys, and then the values of the first such record.
    #[cold]
    fn definition(
        &mut self,
        input: &mut DatumInput<'_>,
        at: usize,
    ) -> Result<ItemHead, CodecError> {
        let [_, kind, id] = input.array()?;
        if kind != DEFINITION {
            return Err(CodecError::Extension { at });
        }
        let refused = CodecError::RecordStructure { at };
        let Some(slot) = id.checked_sub(FIRST_RECORD).filter(|&slot| slot < 64) else {
            return Err(refused);
        };
        let ItemHead::Array(Some(len)) = msgpack::head(input)? else { return Err(refused) };
        if len > MAX_RECORD_KEYS as u64 {
            return Err(refused);
        }
        self.0.define(usize::from(slot));
        for _ in 0..len {
            let key_at = input.at();
            let ItemHead::Text(Some(len)) = msgpack::head(input)? else { return Err(refused) };
            let key = binary::take(input, len, key_at)?;
            simdutf8::basic::from_utf8(key).map_err(|_| CodecError::NotUnicode { at: key_at })?;
            self.0.add_key(key).map_err(|()| CodecError::RecordStructure { at })?;
        }
        Ok(ItemHead::Record(self.0.last()))
    }
}
