//! The traces of requests through several systems. A client names its trace in the header
//! `traceparent`: W3C Trace Context, <https://www.w3.org/TR/trace-context/#traceparent-header>.

use std::fmt;
use std::time::SystemTime;

use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use crate::reply::RefusalName;
use crate::spans::RequestSpan;

const TRACEPARENT: &str = "traceparent";

/// The trace that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace: HexBytes<16>,
    pub(crate) parent: HexBytes<8>,
    is_sampled: bool,
}

/// Bytes that are written as lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HexBytes<const N: usize>(pub(crate) [u8; N]);

/// A request that names a trace, while it is done.
pub(crate) struct TracedRequest {
    context: TraceContext,
    method: Method,
    route: &'static str,
    began: SystemTime,
}

impl TracedRequest {
    /// None where the request names no trace, or not as the standard has it.
    pub(crate) fn begin(request: &Request, route: &'static str) -> Option<Self> {
        let context = TraceContext::read(request.headers())?;
        Some(Self { context, method: request.method().clone(), route, began: SystemTime::now() })
    }

    /// The span in which lines of the log stand.
    pub(crate) fn logged(&self) -> tracing::Span {
        tracing::info_span!("request", trace = %self.context.trace)
    }

    /// The span for the collector, if the client that began the trace keeps it.
    pub(crate) fn end(self, response: &Response) -> Option<RequestSpan> {
        let Self { context, method, route, began } = self;
        let error = response.extensions().get().map(|RefusalName(name)| *name);
        let (status, ended) = (response.status(), SystemTime::now());
        let span = RequestSpan { context, method, route, began, ended, status, error };
        context.is_sampled.then_some(span)
    }
}

impl TraceContext {
    fn read(headers: &HeaderMap) -> Option<Self> {
        let mut all = headers.get_all(TRACEPARENT).iter();
        let text = all.next()?.to_str().ok()?;
        // If there are several headers, none says which trace is meant (W3C Trace Context).
        if all.next().is_some() { None } else { Self::parse(text) }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let HexBytes([version]) = HexBytes::parse(parts.next()?)?;
        let (trace, parent) = (HexBytes::parse(parts.next()?)?, HexBytes::parse(parts.next()?)?);
        let HexBytes([flags]) = HexBytes::parse(parts.next()?)?;
        // A later version may say more behind it.
        let is_known = version != 0xff && (version > 0 || parts.next().is_none());
        let is_named = trace != HexBytes([0; 16]) && parent != HexBytes([0; 8]);
        (is_known && is_named).then_some(Self { trace, parent, is_sampled: flags & 1 == 1 })
    }
}

impl<const N: usize> HexBytes<N> {
    fn parse(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        if text.len() != 2 * N || !text.bytes().all(is_hex) {
            return None;
        }
        let mut bytes = [0; N];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl<const N: usize> fmt::Display for HexBytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn a_context_is_read_as_the_standard_has_it() {
        for (text, is_sampled) in [
            (format!("00-{TRACE}-{PARENT}-01"), true),
            (format!("00-{TRACE}-{PARENT}-00"), false),
            (format!("00-{TRACE}-{PARENT}-ff"), true),
            (format!("cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like"), true),
        ] {
            let context = TraceContext::parse(&text).unwrap();
            assert_eq!(context.trace.to_string(), TRACE);
            assert_eq!(context.parent.to_string(), PARENT);
            assert_eq!(context.is_sampled, is_sampled, "{text}");
        }
    }

    #[test]
    fn what_is_none_is_passed_over() {
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            "00".to_owned(),
            format!("ff-{TRACE}-{PARENT}-01"),
            format!("00-{TRACE}-{PARENT}-01-more"),
            format!("00-{TRACE}-{PARENT}"),
            format!("00-{zeros}-{PARENT}-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{PARENT}-1"),
            format!("0-{TRACE}-{PARENT}-01"),
            format!("00-{}ü-{PARENT}-01", &TRACE[2..]),
            format!("00_{TRACE}_{PARENT}_01"),
        ] {
            assert_eq!(TraceContext::parse(&text), None, "{text}");
        }
        let mut twice = HeaderMap::new();
        for _ in 0..2 {
            twice.append(TRACEPARENT, format!("00-{TRACE}-{PARENT}-01").parse().unwrap());
        }
        assert_eq!(TraceContext::read(&twice), None);
    }
}
