//! Bytes as lower-case hexadecimal digits, which is how tags, keys and identities are shown.

use std::fmt;

/// The digits of these bytes.
pub fn encode(bytes: &[u8]) -> String {
    struct Digits<'a>(&'a [u8]);
    impl fmt::Display for Digits<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write(self.0, f)
        }
    }
    Digits(bytes).to_string()
}

/// Shows the digits of these bytes.
///
/// # Errors
///
/// Those of the formatter.
pub fn write(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// The bytes of exactly so many digits. `None` for any other text: bytes have one text, so that
/// names that are compared as text are equal where the bytes are.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, half) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !half.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        let [high, low] = pair.map(|digit| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        });
        *byte = high? << 4 | low?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_text() {
        assert_eq!(encode(&[0x00, 0x9f, 0xa0, 0xff]), "009fa0ff");
        assert_eq!(decode("009fa0ff"), Some([0x00, 0x9f, 0xa0, 0xff]));
        assert_eq!((encode(&[]), decode("")), (String::new(), Some([])));
        for other in ["009FA0FF", "009fa0f", "009fa0ff0", "009fa0fg", "+09fa0ff", ""] {
            assert_eq!(decode::<4>(other), None, "{other}");
        }
    }
}
