//! JSON as Python's `json.dumps(blob, indent=2)` writes it.

use std::fmt::Write;

use super::{Error, N2sBlob, N2sCipher, check_size, compression, crypto};

/// Writes the blob of a regular file. `modified_s` is its time in seconds since 1970.
///
/// # Errors
///
/// [`Error::TooLarge`] beyond the limits of memory, [`Error::Time`] if the time is not finite.
pub fn seal(
    path: &str,
    content: &[u8],
    modified_s: f64,
    passphrase: &[u8],
    cipher: N2sCipher,
) -> Result<N2sBlob, Error> {
    check_size(content)?;
    let hash = crypto::file_hash(content);
    let name = crypto::name(path, &hash);
    let mut sealed = compression::compress(content)?;
    crypto::seal(cipher, &name, passphrase, &mut sealed)?;
    let content_base64 = base64_simd::STANDARD.encode_to_string(&sealed);
    let size = content.len() as u64;
    let metadata = metadata(path, size, modified_s, &hash, None)?;
    let json = format!("{{\n  \"encrypted_content\": \"{content_base64}\",\n{metadata}\n}}");
    Ok(N2sBlob { name, bytes: json.into_bytes() })
}

/// Writes the blob of a symbolic link, which the format does not seal.
///
/// # Errors
///
/// [`Error::Time`] if the time is not finite.
pub fn symlink(path: &str, target: &str, modified_s: f64) -> Result<N2sBlob, Error> {
    let hash = crypto::file_hash(target.as_bytes());
    let name = crypto::name(path, &hash);
    let metadata = metadata(path, target.len() as u64, modified_s, &hash, Some("symlink"))?;
    let json = format!("{{\n  \"symlink_target\": {},\n{metadata}\n}}", text(target));
    Ok(N2sBlob { name, bytes: json.into_bytes() })
}

fn metadata(
    path: &str,
    size: u64,
    modified_s: f64,
    hash: &str,
    kind: Option<&str>,
) -> Result<String, Error> {
    let (path, time) = (text(path), float(modified_s)?);
    let kind = kind.map_or_else(String::new, |kind| format!(",\n    \"type\": \"{kind}\""));
    Ok(format!(
        "  \"metadata\": {{\n    \"path\": {path},\n    \"size\": {size},\n    \
         \"timestamp\": {time},\n    \"file_hash\": \"{hash}\"{kind}\n  }}"
    ))
}

/// A string in ASCII: everything else as one or two `\u` escapes.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
    out
}

/// The shortest digits that read back as the same number, in Python's notation.
fn float(number: f64) -> Result<String, Error> {
    if !number.is_finite() {
        return Err(Error::Time);
    }
    let size = number.abs();
    if number == 0.0 || (1e-4..1e16).contains(&size) {
        return Ok(format!("{number:?}"));
    }
    let shortest = format!("{number:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    Ok(format!("{digits}e{sign}{exponent:0>2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_those_of_python() {
        let floats = [
            (1_749_388_804.325_600_9, "1749388804.3256009"),
            (1_749_388_804.0, "1749388804.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.0001, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
        ];
        for (number, expected) in floats {
            assert_eq!(float(number).unwrap(), expected);
        }
        assert_eq!(float(f64::NAN), Err(Error::Time));
        assert_eq!(text("é\u{7f}😀\u{8}/\"\\"), r#""\u00e9\u007f\ud83d\ude00\b/\"\\""#);
    }
}
