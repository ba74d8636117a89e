use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use super::random;
use crate::Error;

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_BYTES: usize = 20;
const CHARACTERS: usize = 36;

/// 160 random bits that are printed, kept on paper, and typed in when all else is lost.
#[derive(Clone)]
pub struct RecoveryCode(pub(crate) Zeroizing<[u8; CODE_BYTES]>);

impl RecoveryCode {
    /// A new one.
    ///
    /// # Errors
    /// [`Error::Library`] without randomness.
    pub fn generate() -> Result<RecoveryCode, Error> {
        Ok(RecoveryCode(Zeroizing::new(random()?)))
    }

    /// The code, then 20 bits that catch a slip of the pen.
    fn checked(&self) -> [u8; 23] {
        let check = blake3::derive_key("sealane vault v1 code check", self.0.as_slice());
        let mut bytes = [0; 23];
        let parts = self.0.iter().chain(check.iter());
        bytes.iter_mut().zip(parts).for_each(|(out, byte)| *out = *byte);
        bytes
    }

    /// The code as it is written down: nine groups of four.
    pub fn expose(&self) -> Zeroizing<String> {
        let bytes = self.checked();
        let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
        let mut text = Zeroizing::new(String::with_capacity(CHARACTERS + 8));
        for at in 0..CHARACTERS {
            if at > 0 && at % 4 == 0 {
                text.push('-');
            }
            let five = (0..5).fold(0, |value, bit_index| value << 1 | bit(at * 5 + bit_index));
            text.push(ALPHABET.get(usize::from(five)).map_or('0', |&byte| char::from(byte)));
        }
        text
    }
}

impl FromStr for RecoveryCode {
    type Err = Error;

    fn from_str(text: &str) -> Result<RecoveryCode, Error> {
        let mut bytes = Zeroizing::new([0_u8; 23]);
        let mut count = 0;
        for character in text.chars().filter(|c| !matches!(c, ' ' | '-' | '\n' | '\r' | '\t')) {
            let character = match character.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            };
            let symbol = ALPHABET.iter().position(|&byte| char::from(byte) == character);
            let value = symbol.ok_or(Error::RecoveryCode)?;
            for bit in 0..5 {
                let at = count * 5 + bit;
                let byte = bytes.get_mut(at / 8).ok_or(Error::RecoveryCode)?;
                *byte |= ((value >> (4 - bit) & 1) as u8) << (7 - at % 8);
            }
            count += 1;
        }
        let (code, _) = bytes.split_first_chunk().ok_or(Error::RecoveryCode)?;
        let code = RecoveryCode(Zeroizing::new(*code));
        // Only the upper half of the last byte is part of the 36 characters.
        let whole = code.checked();
        let same = whole.iter().take(22).eq(bytes.iter().take(22))
            && whole.last().map(|byte| byte & 0xf0) == bytes.last().copied();
        if same && count == CHARACTERS { Ok(code) } else { Err(Error::RecoveryCode) }
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_survives_paper_and_a_slip_is_noticed() {
        let code = RecoveryCode(Zeroizing::new(*b"twenty bytes exactly"));
        let text = code.expose();
        assert_eq!(text.len(), 44);
        let typed = text.to_lowercase().replace('0', "o").replace('1', "l").replace('-', " ");
        assert_eq!(typed.parse::<RecoveryCode>().unwrap().0, code.0);
        for at in (0..text.len()).filter(|&at| text.as_bytes()[at] != b'-') {
            let mut wrong = text.as_bytes().to_vec();
            wrong[at] = if wrong[at] == b'7' { b'8' } else { b'7' };
            let wrong = String::from_utf8(wrong).unwrap();
            assert!(wrong.parse::<RecoveryCode>().is_err(), "{wrong}");
        }
        assert!(text[..43].parse::<RecoveryCode>().is_err());
    }
}
