//! Fields of bytes, read from their front: what all formats of this repository are made of.

/// The bytes that are left to read. If a read finds too little, it takes nothing.
///
/// Byte order and errors are the format's: this type gives bytes, and `None` where they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteReader<'a>(&'a [u8]);

/// Why a number in LEB128 cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leb128Error {
    /// The bytes end within it.
    Truncated,
    /// It is longer than it has to be, or beyond 64 bits.
    Malformed,
}

impl<'a> ByteReader<'a> {
    /// Reads from the front of these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// All that is left.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next bytes, in number as their type says.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// The next bytes, so many of them.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number in LEB128, in its shortest form.
    ///
    /// # Errors
    ///
    /// [`Leb128Error`]. Bytes up to the fault are taken then.
    pub fn leb128(&mut self) -> Result<u64, Leb128Error> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array().ok_or(Leb128Error::Truncated)?;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            // The tenth byte holds one bit. The others would be shifted out.
            if number >> shift != bits {
                return Err(Leb128Error::Malformed);
            }
            if byte & 0x80 == 0 {
                // One number has one form, or two machines would sign different bytes for it.
                let is_shortest = byte != 0 || shift == 0;
                return is_shortest.then_some(number).ok_or(Leb128Error::Malformed);
            }
        }
        Err(Leb128Error::Malformed)
    }
}

/// Appends a number in LEB128, in its shortest form.
pub fn put_leb128(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = (number & 0x7f).to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_reads_back_from_one_form_alone(number: u64, shift in 0..64_u32) {
            let number = number >> shift;
            let mut bytes = Vec::new();
            put_leb128(number, &mut bytes);
            let mut reader = ByteReader::new(&bytes);
            prop_assert_eq!((reader.leb128(), reader.rest()), (Ok(number), &[][..]));
            let cut = ByteReader::new(&bytes[..bytes.len() - 1]).leb128();
            prop_assert_eq!(cut, Err(Leb128Error::Truncated));
            *bytes.last_mut().unwrap() |= 0x80;
            bytes.push(0);
            prop_assert_eq!(ByteReader::new(&bytes).leb128(), Err(Leb128Error::Malformed));
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        let most = [[0xff; 9].as_slice(), &[1]].concat();
        assert_eq!(ByteReader::new(&most).leb128(), Ok(u64::MAX));
        let beyond = [[0xff; 9].as_slice(), &[2]].concat();
        assert_eq!(ByteReader::new(&beyond).leb128(), Err(Leb128Error::Malformed));
        assert_eq!(ByteReader::new(&[0xff; 11]).leb128(), Err(Leb128Error::Malformed));
    }

    #[test]
    fn a_read_beyond_the_end_takes_nothing() {
        let mut reader = ByteReader::new(&[1, 2, 3]);
        assert_eq!((reader.array(), reader.bytes(2)), (Some([1]), Some(&[2, 3][..])));
        assert_eq!(
            (reader.array::<1>(), reader.bytes(1), reader.bytes(0)),
            (None, None, Some(&[][..]))
        );
    }
}
