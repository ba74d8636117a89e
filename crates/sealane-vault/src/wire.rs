//! Reading and writing the byte tables of `spec/vault.md`.

use crate::Error;

/// Bytes that are taken from the front, named for what they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VaultFieldReader<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> VaultFieldReader<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { bytes, what }
    }

    pub(crate) fn malformed(&self) -> Error {
        Error::Malformed { what: self.what }
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Error> {
        self.array().map(i64::from_le_bytes)
    }

    /// LEB128 in its shortest form.
    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0_u64;
        for index in 0..10 {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if index == 9 && bits > 1 {
                break;
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                let shortest = bits != 0 || index == 0;
                return if shortest { Ok(value) } else { Err(self.malformed()) };
            }
        }
        Err(self.malformed())
    }

    /// A varint that is a length of at most `max`.
    pub(crate) fn length(&mut self, max: usize) -> Result<usize, Error> {
        usize::try_from(self.varint()?).ok().filter(|&n| n <= max).ok_or(self.malformed())
    }

    /// A varint length of at most `max`, and so many bytes.
    pub(crate) fn bytes(&mut self, max: usize) -> Result<&'a [u8], Error> {
        let length = self.length(max)?;
        self.take(length)
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn end(self) -> Result<(), Error> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Lower-case hexadecimal text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of lower-case hexadecimal text.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_one_form() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(VaultFieldReader::new("", &bytes).varint().unwrap(), value);
        }
        for bytes in [&b"\x80\x00"[..], b"\x80", &[0xff; 10], &[0xff; 11]] {
            assert!(VaultFieldReader::new("", bytes).varint().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn hexadecimal_text_has_one_form() {
        assert_eq!(from_hex::<2>(&hex(&[0xa0, 0x1f])), Some([0xa0, 0x1f]));
        assert_eq!(from_hex::<2>("A01F"), None);
        assert_eq!(from_hex::<2>("a01"), None);
    }
}
