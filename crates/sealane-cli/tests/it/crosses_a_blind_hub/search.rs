//! Looks for secrets in what a stranger could have recorded: each piece of 8 bytes, as it is and
//! in hexadecimal, base64 and base64url.

use std::collections::HashMap;

use sealane_codec::{Codec, DatumWriter};

/// Bytes of a secret that are looked for together.
pub(crate) const PIECE_BYTES: usize = 8;
/// Characters that begin a needle: it is found by these, and then compared whole.
const HEAD_BYTES: usize = 8;

/// The needles of the search.
#[derive(Default)]
pub(crate) struct Needles {
    /// The needles and whose they are, by their first bytes.
    by_head: HashMap<[u8; HEAD_BYTES], Vec<(Vec<u8>, usize)>>,
    names: Vec<String>,
}

impl Needles {
    /// Adds every piece of a secret, in every way in which it could be written.
    pub(crate) fn add(&mut self, name: &str, secret: &[u8]) {
        assert!(secret.len() >= PIECE_BYTES, "{name} is too short to be looked for");
        let index = self.names.len();
        self.names.push(name.to_owned());
        for piece in secret.windows(PIECE_BYTES) {
            if !is_telling(piece) {
                continue;
            }
            let hex: String = piece.iter().map(|byte| format!("{byte:02x}")).collect();
            let mut forms = vec![piece.to_vec(), hex.to_uppercase().into(), hex.into()];
            forms.extend((0..3).flat_map(|shift| base64(piece, shift)));
            forms.into_iter().for_each(|form| self.insert(form, index));
        }
    }

    fn insert(&mut self, needle: Vec<u8>, index: usize) {
        let Some(head) = needle.first_chunk::<HEAD_BYTES>() else { return };
        let same = self.by_head.entry(*head).or_default();
        if !same.contains(&(needle.clone(), index)) {
            same.push((needle, index));
        }
    }

    /// The names of the secrets of which a piece is in `bytes`, each with what was found.
    pub(crate) fn find(&self, bytes: &[u8]) -> Vec<(&str, String)> {
        let mut found: HashMap<usize, String> = HashMap::new();
        for (at, head) in bytes.windows(HEAD_BYTES).enumerate() {
            let head: &[u8; HEAD_BYTES] = head.try_into().unwrap();
            for (needle, index) in self.by_head.get(head).into_iter().flatten() {
                if bytes[at..].starts_with(needle) {
                    found.entry(*index).or_insert_with(|| needle.escape_ascii().to_string());
                }
            }
        }
        let mut found: Vec<_> =
            found.into_iter().map(|(index, what)| (self.names[index].as_str(), what)).collect();
        found.sort();
        found
    }

    /// The names of the secrets that are not in `found`.
    pub(crate) fn missing(&self, found: &[(&str, String)]) -> Vec<&str> {
        let is_missing = |name: &&String| found.iter().all(|(other, _)| other != name);
        self.names.iter().filter(is_missing).map(String::as_str).collect()
    }

    /// How many needles there are.
    pub(crate) fn count(&self) -> usize {
        self.by_head.values().map(Vec::len).sum()
    }
}

/// Whether a piece is no mere padding: a counter, zeros, or one letter again and again; or a small
/// number behind whatever, which others have too.
fn is_telling(piece: &[u8]) -> bool {
    let mut bytes = piece.to_vec();
    bytes.sort_unstable();
    bytes.dedup();
    bytes.retain(|byte| !matches!(byte, 0 | 0xff));
    bytes.len() >= PIECE_BYTES / 2 && !piece.windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 1)
}

/// The characters that a piece alone decides, where `shift` bytes stand before it: base64url, and
/// base64.
fn base64(piece: &[u8], shift: usize) -> [Vec<u8>; 2] {
    let padded = [&[0; 3][..shift], piece].concat();
    let mut text = Vec::new();
    DatumWriter::new(Codec::Json, &mut text).bytes(&padded);
    let text = &text[1..text.len() - 1];
    // The first characters are the shift's too, and the last is if its bits are not all used.
    let first = (shift * 8).div_ceil(6);
    let last = (padded.len() * 8) / 6;
    let url = text[first..last].to_vec();
    let plain = url.iter().map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        byte => *byte,
    });
    [url.clone(), plain.collect()]
}

#[test]
fn a_piece_is_found_in_every_way_to_write_it() {
    let secret = b"over the hills and far away";
    let mut needles = Needles::default();
    needles.add("hills", secret);
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut written = vec![secret.to_vec(), hex.to_uppercase().into(), hex.into()];
    for shift in 0..3 {
        let mut text = Vec::new();
        let bytes = [&b"\xff\xfe\xfd"[..shift], secret, b"\xff\xff\xff"].concat();
        DatumWriter::new(Codec::Json, &mut text).bytes(&bytes);
        written.push(text);
    }
    for whole in written {
        assert_eq!(needles.find(&whole).len(), 1, "{}", whole.escape_ascii());
        let cut = &whole[whole.len() / 3..];
        assert_eq!(needles.find(cut).len(), 1, "a part: {}", cut.escape_ascii());
    }
    assert!(needles.find(b"over  the  hills  and  far  away").is_empty());
}

#[test]
fn padding_is_no_secret_and_what_borders_on_it_is() {
    let mut needles = Needles::default();
    needles.add("key", b"\0\0\0\0\0\0\0\0\0\0\0secret");
    assert!(needles.find(b"\0\0\0\0\0\0\0\0\0\0\0\0").is_empty());
    assert!(!needles.find(b"\0\0\0secre").is_empty());
    needles.add("number", b"\x70\0\0\0\0\0\x1f\xff");
    assert!(needles.find(b"\0AAAAAAAB__").is_empty());
}
