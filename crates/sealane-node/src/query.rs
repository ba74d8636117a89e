//! The parameters of a request.

use axum::extract::RawQuery;
use sealane_protocol::Error;

/// Names and values of a query, each name once.
///
/// # Errors
/// [`Error::InvalidParameter`] where what stands there is no percent-encoded UTF-8, or a name comes
/// twice: whichever value was taken, somebody meant the other one.
pub(crate) fn read(RawQuery(query): RawQuery) -> Result<Vec<(String, String)>, Error> {
    let mut all: Vec<(String, String)> = Vec::new();
    let query = query.unwrap_or_default();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        // Forms write a blank as a plus.
        let (name, value) = (name.replace('+', " "), value.replace('+', " "));
        let (name, value) = (unescape(&name), unescape(&value));
        let (Some(name), Some(value)) = (name, value) else {
            return Err(Error::parameter("query", "is not percent-encoded UTF-8"));
        };
        // Proxies differ in which of two values they take. A check in front of the node could see
        // the other one.
        if all.iter().any(|(known, _)| *known == name) {
            return Err(Error::parameter(name, "is given twice"));
        }
        all.push((name, value));
    }
    Ok(all)
}

/// The meaning of percent-encoded text.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        // A sign would be read as part of a number.
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(query: &str) -> Result<Vec<(String, String)>, Error> {
        read(RawQuery(Some(query.to_owned())))
    }

    #[test]
    fn what_forms_encode_is_read_and_nothing_is_guessed() {
        let all = read_text("a=b%2Fc%C3%BC+d&e&&f=%2B%25=1").unwrap();
        let all: Vec<_> = all.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(all, [("a", "b/cü d"), ("e", ""), ("f", "+%=1")]);
        assert_eq!(read(RawQuery(None)), Ok(Vec::new()));
        for wrong in ["a=%ff", "a=%", "a=%4", "a=%zz", "a=%+1", "%c3=a", "a=1&a=1", "a&%61"] {
            let refused = read_text(wrong);
            assert!(matches!(refused, Err(Error::InvalidParameter { .. })), "{wrong}");
        }
    }
}
