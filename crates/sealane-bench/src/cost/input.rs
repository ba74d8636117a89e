//! The user's own messages: a bounded sample of however many come.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::limits::{MAX_BENCH_MESSAGE_BYTES, MAX_BENCH_SAMPLE_BYTES, MAX_BENCH_SAMPLE_MESSAGES};
use sealane_codec::Codec;
use sealane_frame::FrameView;
use sealane_message::Value;

use super::sequence::{SequenceItem, SequenceItems};
use crate::failure::{BenchFailure, Result};

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostFileFormat {
    /// JSON, one datum on each line.
    Lines,
    /// Data one behind the other, each ends where its bytes say.
    Sequence(Codec),
    /// Frames in the full form, one behind the other. Their bodies are opaque.
    Frames,
}

impl CostFileFormat {
    /// By the name that a flag gives it.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "json" => Some(CostFileFormat::Lines),
            "msgpack" => Some(CostFileFormat::Sequence(Codec::MsgPack)),
            "cbor" => Some(CostFileFormat::Sequence(Codec::Cbor)),
            "frames" => Some(CostFileFormat::Frames),
            _ => None,
        }
    }

    fn of(path: &Path, start: &[u8]) -> Self {
        match path.extension().and_then(|end| end.to_str()) {
            Some("msgpack" | "mp") => CostFileFormat::Sequence(Codec::MsgPack),
            Some("cbor" | "cborseq") => CostFileFormat::Sequence(Codec::Cbor),
            Some("json" | "jsonl" | "ndjson" | "txt") => CostFileFormat::Lines,
            _ if FrameView::parse(start).is_ok() || super::sequence::frame(start).is_some() => {
                CostFileFormat::Frames
            }
            _ => CostFileFormat::Lines,
        }
    }
}

/// Messages out of all that were read, each as likely as any other, and what could not be read.
#[derive(Debug, Default)]
pub(crate) struct MessageSample {
    /// The messages, as values; never more than `MAX_BENCH_SAMPLE_MESSAGES`.
    pub(crate) messages: Vec<Value>,
    /// How many of them are opaque: bodies of frames, and files that are no datum.
    pub(crate) opaque: usize,
    /// How many messages there were.
    pub(crate) seen: u64,
    /// Their bytes as they came.
    pub(crate) bytes: u64,
    /// How many pieces were no message.
    pub(crate) broken: u64,
    /// The first of them: where, and why.
    pub(crate) refusals: Vec<String>,
    kept: Vec<SamplePiece>,
    kept_bytes: usize,
    random: BenchRandom,
}

/// How many broken pieces are named.
const NAMED: usize = 5;

#[derive(Debug)]
struct SamplePiece {
    codec: Option<Codec>,
    bytes: Vec<u8>,
}

impl MessageSample {
    /// Reads files, folders of files with one message each, and standard input for `-`.
    pub(crate) fn read(paths: &[PathBuf], holding: Option<CostFileFormat>) -> Result<Self> {
        let mut sample = MessageSample::default();
        for path in paths {
            sample.path(path, holding)?;
        }
        sample.finish()
    }

    /// Reads a stream of messages; `path` names it.
    pub(crate) fn stream(
        &mut self,
        path: &Path,
        input: impl Read,
        holding: Option<CostFileFormat>,
    ) -> Result<()> {
        let mut input = BufReader::with_capacity(64 << 10, input);
        let start = input.fill_buf().map_err(BenchFailure::file(path))?;
        match holding.unwrap_or_else(|| CostFileFormat::of(path, start)) {
            CostFileFormat::Lines => self.lines(path, &mut input),
            CostFileFormat::Sequence(codec) => self.items(path, input, SequenceItem::Datum(codec)),
            CostFileFormat::Frames => self.items(path, input, SequenceItem::Frame),
        }
    }

    /// Decodes the sampled messages.
    pub(crate) fn finish(mut self) -> Result<Self> {
        for piece in std::mem::take(&mut self.kept) {
            let value = piece.codec.and_then(|c| sealane_codec::decode(c, &piece.bytes).ok());
            self.opaque += usize::from(value.is_none());
            self.messages.push(value.unwrap_or(Value::Bytes(piece.bytes)));
        }
        if self.messages.is_empty() {
            let first = self.refusals.first().cloned();
            return Err(BenchFailure::NoMessages(first.unwrap_or_else(|| "no input".into())));
        }
        Ok(self)
    }

    fn path(&mut self, path: &Path, holding: Option<CostFileFormat>) -> Result<()> {
        if path == Path::new("-") {
            return self.stream(path, std::io::stdin().lock(), holding);
        }
        if path.is_dir() {
            let mut files = vec![];
            for entry in std::fs::read_dir(path).map_err(BenchFailure::file(path))? {
                files.push(entry.map_err(BenchFailure::file(path))?.path());
            }
            files.sort();
            return files.iter().filter(|file| file.is_file()).try_for_each(|file| self.file(file));
        }
        let input = File::open(path).map_err(BenchFailure::file(path))?;
        self.stream(path, input, holding)
    }

    /// A file of a folder is one message: JSON or what its name says; else opaque bytes.
    fn file(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).map_err(BenchFailure::file(path))?;
        let mut bytes = vec![];
        let limit = MAX_BENCH_MESSAGE_BYTES as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).map_err(BenchFailure::file(path))?;
        if bytes.len() > MAX_BENCH_MESSAGE_BYTES {
            self.refuse(path, 1, "is longer than a frame's body");
            return Ok(());
        }
        let codec = match CostFileFormat::of(path, &bytes) {
            CostFileFormat::Lines => Some(Codec::Json),
            CostFileFormat::Sequence(codec) => Some(codec),
            CostFileFormat::Frames => None,
        };
        let codec = codec.filter(|codec| sealane_codec::decode(*codec, &bytes).is_ok());
        self.keep(codec, &bytes);
        Ok(())
    }

    fn lines(&mut self, path: &Path, input: &mut impl BufRead) -> Result<()> {
        let mut line = vec![];
        for number in 1.. {
            line.clear();
            let limit = MAX_BENCH_MESSAGE_BYTES as u64 + 1;
            let read =
                input.take(limit).read_until(b'\n', &mut line).map_err(BenchFailure::file(path))?;
            if read == 0 {
                break;
            }
            if line.len() > MAX_BENCH_MESSAGE_BYTES && line.last() != Some(&b'\n') {
                self.refuse(path, number, "is longer than a frame's body");
                input.skip_until(b'\n').map_err(BenchFailure::file(path))?;
                continue;
            }
            let text = line.trim_ascii();
            if !text.is_empty() {
                self.datum(path, number, Codec::Json, text);
            }
        }
        Ok(())
    }

    fn items(&mut self, path: &Path, input: impl Read, item: SequenceItem) -> Result<()> {
        let mut items = SequenceItems::new(input, item);
        for number in 1.. {
            match items.next().map_err(BenchFailure::file(path))? {
                Some(Ok(bytes)) => match item {
                    SequenceItem::Datum(codec) => self.datum(path, number, codec, bytes),
                    SequenceItem::Frame => self.frame(bytes),
                },
                Some(Err(why)) => {
                    self.refuse(path, number, why);
                    break;
                }
                None => break,
            }
        }
        Ok(())
    }

    fn datum(&mut self, path: &Path, number: u64, codec: Codec, bytes: &[u8]) {
        match sealane_codec::decode(codec, bytes) {
            Ok(_) => self.keep(Some(codec), bytes),
            Err(error) => self.refuse(path, number, &error.to_string()),
        }
    }

    /// A sealed body stands in for its plaintext: as many bytes, that do not compress.
    fn frame(&mut self, bytes: &[u8]) {
        let Ok(view) = FrameView::parse(bytes) else { return };
        let (sealed, length) = (view.sealed(), view.header().body_bytes());
        // Behind the ciphertext there is only the trailer.
        let start = sealed.len().saturating_sub(length + view.header().class().tail_bytes());
        let body = view.clear_body().or_else(|| sealed.get(start..start + length));
        self.keep(None, body.unwrap_or_default());
    }

    fn refuse(&mut self, path: &Path, number: u64, why: &str) {
        self.broken += 1;
        if self.refusals.len() < NAMED {
            self.refusals.push(format!("{}:{number}: {why}", path.display()));
        }
    }

    /// Algorithm R: the n-th message takes the place of one of the k that are kept with
    /// probability k/n. Where the messages are large, k becomes smaller.
    fn keep(&mut self, codec: Option<Codec>, bytes: &[u8]) {
        self.seen += 1;
        self.bytes += bytes.len() as u64;
        let room = match self.kept_bytes {
            held if held > MAX_BENCH_SAMPLE_BYTES => self.kept.len(),
            _ => MAX_BENCH_SAMPLE_MESSAGES,
        };
        let piece = SamplePiece { codec, bytes: bytes.to_vec() };
        if self.kept.len() < room {
            self.kept_bytes += bytes.len();
            self.kept.push(piece);
            return;
        }
        let index = self.random.below(self.seen) as usize;
        if let Some(old) = self.kept.get_mut(index) {
            self.kept_bytes = self.kept_bytes - old.bytes.len() + bytes.len();
            *old = piece;
        }
        while self.kept_bytes > MAX_BENCH_SAMPLE_BYTES && self.kept.len() > 1 {
            let last = self.random.below(self.kept.len() as u64) as usize;
            self.kept_bytes -= self.kept.swap_remove(last).bytes.len();
        }
    }
}

/// Numbers that are the same in every run (SplitMix64), so that the same input is the same sample.
#[derive(Debug, Default)]
pub(crate) struct BenchRandom(u64);

impl BenchRandom {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], holding: CostFileFormat) -> MessageSample {
        let mut sample = MessageSample::default();
        sample.stream(Path::new("in"), text, Some(holding)).unwrap();
        sample.finish().unwrap()
    }

    #[test]
    fn broken_lines_are_counted_and_named() {
        let sample = read(b"{\"a\":1}\n\n{\"a\":\n[1]\nnope\n", CostFileFormat::Lines);
        assert_eq!((sample.seen, sample.broken, sample.messages.len()), (2, 2, 2));
        assert!(sample.refusals[0].starts_with("in:3: "), "{:?}", sample.refusals);
    }

    #[test]
    fn a_line_beyond_the_limit_is_broken_and_the_next_is_read() {
        let mut text = vec![b' '; MAX_BENCH_MESSAGE_BYTES + 100];
        text.extend_from_slice(b"\n{\"a\":1}\n");
        let sample = read(&text, CostFileFormat::Lines);
        assert_eq!((sample.seen, sample.broken), (1, 1));
    }

    #[test]
    fn a_million_messages_need_no_million_messages_of_memory() {
        let mut sample = MessageSample::default();
        let line = b"{\"n\":1,\"text\":\"twenty bytes of text\"}\n";
        let lines = std::io::repeat(b'\n').take(0).chain(Repeat { line, left: 300_000, at: 0 });
        let peak = allocation_counter::measure(|| {
            sample.stream(Path::new("in"), lines, Some(CostFileFormat::Lines)).unwrap();
        });
        assert_eq!(sample.seen, 300_000);
        assert!(peak.bytes_max < 4 << 20, "{} bytes", peak.bytes_max);
        assert_eq!(sample.finish().unwrap().messages.len(), MAX_BENCH_SAMPLE_MESSAGES);
    }

    #[test]
    fn large_messages_make_the_sample_smaller() {
        let mut sample = MessageSample::default();
        let large = vec![7; 1 << 20];
        (0..100).for_each(|_| sample.keep(None, &large));
        assert!(sample.kept_bytes <= MAX_BENCH_SAMPLE_BYTES + large.len());
        assert_eq!(sample.seen, 100);
    }

    #[test]
    fn frames_are_read_as_what_they_carry() {
        use sealane_frame::{FrameBuf, seal_frame};
        use sealane_seal::{Binding, Class, Suite};

        use crate::members::BenchMembers;

        let mut all = vec![];
        for class in Class::ALL {
            let binding = Binding::stream("in");
            let members = BenchMembers::new(class, Suite::Aes256Gcm, Codec::Cbor as u8, binding);
            let BenchMembers { mut sealer, fields, binding, .. } = members.unwrap();
            for length in [0, 1, 300] {
                let mut buf = FrameBuf::new();
                let body = vec![7; length];
                let frame = seal_frame(&mut sealer, &fields, &binding, &body, &mut buf);
                all.extend_from_slice(frame.unwrap());
            }
        }
        let mut sample = MessageSample::default();
        sample.stream(Path::new("in"), &*all, None).unwrap();
        assert_eq!((sample.seen, sample.broken, sample.bytes), (12, 0, 4 * 301));
        assert_eq!(sample.finish().unwrap().opaque, 12);
    }

    struct Repeat {
        line: &'static [u8],
        left: usize,
        at: usize,
    }

    impl Read for Repeat {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let mut written = 0;
            while self.left > 0 && written < out.len() {
                let part = &self.line[self.at..];
                let count = part.len().min(out.len() - written);
                out[written..written + count].copy_from_slice(&part[..count]);
                (written, self.at) = (written + count, self.at + count);
                if self.at == self.line.len() {
                    (self.at, self.left) = (0, self.left - 1);
                }
            }
            Ok(written)
        }
    }
}
