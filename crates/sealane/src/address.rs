use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::Error;

/// The port of a hub where an address names none.
const DEFAULT_PORT: u16 = 9087;

/// Where a hub listens: `127.0.0.1:9087`, `hub.local`, `[::1]:9087`, `http://hub.local:9087`, or
/// with TLS `https://hub.example`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HubAddress {
    host: String,
    port: u16,
    tls: bool,
}

impl HubAddress {
    /// The name and port that the system connects to.
    pub(crate) fn target(&self) -> (&str, u16) {
        (self.name(), self.port)
    }

    /// The host, which with TLS the certificate must name.
    pub(crate) fn name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Whether TLS is spoken.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls
    }
}

impl FromStr for HubAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |cause| Error::Address { address: text.to_owned(), cause };
        let bare = |rest: &'_ str| rest.strip_suffix('/').unwrap_or(rest).to_owned();
        let (rest, default_port, tls) = match text.split_once("://") {
            Some(("http" | "ws", rest)) => (bare(rest), 80, false),
            Some(("https" | "wss", rest)) => (bare(rest), 443, true),
            Some(_) => return Err(wrong("has a scheme other than http or https")),
            None => (text.to_owned(), DEFAULT_PORT, false),
        };
        let rest = rest.as_str();
        let port_at = rest.rfind(':').filter(|&at| !rest.get(at..).unwrap_or("").contains(']'));
        let (host, port) = match port_at.and_then(|at| rest.split_at_checked(at)) {
            Some((host, port)) => {
                let port = port.trim_start_matches(':');
                (host, port.parse().map_err(|_| wrong("has a port that is no number"))?)
            }
            None => (rest, default_port),
        };
        let bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || (!bracketed && host.contains([':', '/', '[', ']', '@', '?'])) {
            return Err(wrong("is not HOST:PORT"));
        }
        Ok(Self { host: host.to_owned(), port, tls })
    }
}

impl fmt::Display for HubAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The characters that RFC 3986 leaves as they are within a path segment or a query value.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `/v1/streams/` and the topic, each segment percent-encoded (spec/topic.md).
pub(crate) fn stream_path(topic: &str) -> String {
    topic_path("/v1/streams", topic)
}

/// The route and the topic, each segment percent-encoded.
pub(crate) fn topic_path(route: &str, topic: &str) -> String {
    let mut path = route.to_owned();
    for segment in topic.split('/') {
        path.push('/');
        path.extend(utf8_percent_encode(segment, UNRESERVED));
    }
    path
}

/// A path and its query.
pub(crate) struct RequestPath(String);

impl RequestPath {
    pub(crate) fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// Appends `name=value`, encoded.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        self.0.extend(utf8_percent_encode(value, UNRESERVED));
        self
    }

    /// Appends these names and values.
    pub(crate) fn with_all(self, all: Vec<(&'static str, String)>) -> Self {
        all.iter().fold(self, |query, (name, value)| query.with(name, value))
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_usual_form() {
        let read = |text: &str| text.parse::<HubAddress>().unwrap().to_string();
        assert_eq!(read("127.0.0.1:1"), "127.0.0.1:1");
        assert_eq!(read("hub.local"), "hub.local:9087");
        assert_eq!(read("http://hub.local"), "hub.local:80");
        assert_eq!(read("http://hub.local:9087/"), "hub.local:9087");
        assert_eq!(read("[::1]:5"), "[::1]:5");
        assert_eq!(read("https://hub.example"), "hub.example:443");
        assert_eq!(read("wss://hub.example:9087/"), "hub.example:9087");
        assert!("https://a".parse::<HubAddress>().unwrap().is_tls());
        assert!(!"http://a".parse::<HubAddress>().unwrap().is_tls());
        assert_eq!("[::1]".parse::<HubAddress>().unwrap().target(), ("::1", 9087));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", ":1", "a:b", "ftp://a", "a/b", "::1", "http://u@h"] {
            assert!(matches!(text.parse::<HubAddress>(), Err(Error::Address { .. })), "{text}");
        }
    }

    #[test]
    fn names_are_escaped_by_segment() {
        assert_eq!(stream_path("a b/ü%"), "/v1/streams/a%20b/%C3%BC%25");
        let query = RequestPath::new("/x").with("a", "b/**").with_all(vec![("n", "3".into())]);
        assert_eq!(query.into_string(), "/x?a=b%2F%2A%2A&n=3");
    }
}
