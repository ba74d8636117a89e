//! Documents as text that can be pasted.

use crate::{Error, GroupDocument};

const LINE_DIGITS: usize = 64;

/// A card, an invitation or orders as text: base64 lines of 64 digits between two lines that say
/// what it is. [`from_text`] reads it back.
pub fn to_text(document: GroupDocument, bytes: &[u8]) -> String {
    let name = document.to_string().to_uppercase();
    let digits = base64_simd::STANDARD.encode_to_string(bytes);
    let mut text = format!("-----BEGIN SEALANE {name}-----\n");
    let mut rest = digits.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(LINE_DIGITS).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str(&format!("-----END SEALANE {name}-----\n"));
    text
}

/// Whether bytes are such a text rather than the document itself.
pub fn is_text(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(BEGIN)
}

const BEGIN: &[u8] = b"-----BEGIN SEALANE ";

/// The document of a text. Blanks and line ends between its digits do not matter.
///
/// # Errors
///
/// [`Error::Malformed`] if it is cut, or no such text.
pub fn from_text(document: GroupDocument, text: &[u8]) -> Result<Vec<u8>, Error> {
    let malformed = || Error::Malformed(document);
    let text = std::str::from_utf8(text).map_err(|_| malformed())?;
    let name = document.to_string().to_uppercase();
    let (_, rest) =
        text.split_once(&format!("-----BEGIN SEALANE {name}-----")).ok_or_else(malformed)?;
    let (digits, _) =
        rest.split_once(&format!("-----END SEALANE {name}-----")).ok_or_else(malformed)?;
    let digits: String = digits.split_whitespace().collect();
    base64_simd::STANDARD.decode_to_vec(digits).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pasted_is_read_back() {
        for len in [0, 1, 47, 48, 49, 3000] {
            let bytes: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let text = to_text(GroupDocument::Card, &bytes);
            assert!(is_text(text.as_bytes()) && text.lines().all(|line| line.len() <= 64));
            assert_eq!(from_text(GroupDocument::Card, text.as_bytes()).unwrap(), bytes);
            // As a mail or a chat hands it on.
            let pasted =
                format!("hello,\r\n  {}", text.replace('\n', "\r\n> ").replace("> ", "  "));
            assert_eq!(from_text(GroupDocument::Card, pasted.as_bytes()).unwrap(), bytes);
            assert!(from_text(GroupDocument::Invitation, text.as_bytes()).is_err());
            assert!(from_text(GroupDocument::Card, &text.as_bytes()[..text.len() - 5]).is_err());
        }
        assert!(!is_text(b"SLCD"));
    }
}
