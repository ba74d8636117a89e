//! Bytes as hexadecimal digits.

pub(super) use sealane_message::hex::encode;

/// The digits with a blank between bytes.
pub(super) fn spaced(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}

/// The bytes that the digits stand for, blanks aside.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for digit in text.chars().filter(|c| !c.is_whitespace()) {
        let digit = digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let digit = digit.ok_or("this is no hexadecimal digit, blank or comment")?;
        match high.take() {
            None => high = Some(digit),
            Some(high) => bytes.push(high << 4 | digit),
        }
    }
    if high.is_some() { Err("half a byte: the number of digits is odd") } else { Ok(bytes) }
}

/// Exactly so many bytes.
pub(super) fn array<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode(text).ok()?.try_into().ok()
}

/// A listing of 16 bytes per line, with the characters they may stand for.
pub(super) fn dump(bytes: &[u8]) -> Vec<String> {
    let line = |(index, row): (usize, &[u8])| {
        let text: String = row.iter().map(|&byte| shown(byte)).collect();
        format!("{:06x}  {:<47}  |{text}|", index * 16, spaced(row))
    };
    bytes.chunks(16).enumerate().map(line).collect()
}

fn shown(byte: u8) -> char {
    if byte == b' ' || byte.is_ascii_graphic() { char::from(byte) } else { '.' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_lead_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Ok(bytes.clone()));
        assert_eq!(decode(&spaced(&bytes).to_uppercase()), Ok(bytes));
        assert!(decode("0").is_err() && decode("0g").is_err() && decode("0x01").is_err());
        assert_eq!(array::<2>("01 02"), Some([1, 2]));
        assert_eq!(array::<2>("010203"), None);
    }

    #[test]
    fn dumps_align() {
        let lines = dump(b"0123456789abcdef\x1b[");
        assert!(lines[0].ends_with(" 65 66  |0123456789abcdef|"), "{lines:?}");
        assert_eq!(lines[1], format!("000010  1b 5b{}|.[|", " ".repeat(44)));
    }
}
