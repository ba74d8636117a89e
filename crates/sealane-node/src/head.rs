//! The checks of a request's head beyond its syntax. A proxy before this port could take an
//! ambiguous head for another request than the one that is served here.

use axum::extract::Request;
use axum::http::header::{HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, StatusCode, Version};
use axum::middleware::Next;
use axum::response::Response;

use crate::refusal::HttpRefusal;
use crate::reply::answer;

/// Lets those requests through that mean one thing to everybody.
pub(crate) async fn check(request: Request, next: Next) -> Response {
    match target(&request).and_then(|()| coding(request.headers())) {
        Ok(()) => next.run(request).await,
        Err(refusal) => answer(request.headers(), Err(refusal)),
    }
}

/// One host, which the target names too if it names any (RFC 9112 §3.2).
fn target(request: &Request) -> Result<(), HttpRefusal> {
    let wrong = |cause| Err(HttpRefusal::Head(StatusCode::BAD_REQUEST, cause));
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    // A proxy may route by one `Host` and this node by the other (RFC 9112 §3.2).
    if second.is_some() {
        return wrong("the request has two `Host` fields");
    }
    if host.is_none() && request.version() == Version::HTTP_11 {
        return wrong("the request has no `Host` field");
    }
    let host = host.map_or(&b""[..], |host| host.as_bytes());
    // A proxy's rules for paths see one segment there, and this node would see two.
    let is_hidden =
        |part: &str| part.as_bytes().starts_with(b"2F") || part.as_bytes().starts_with(b"2f");
    if request.uri().path().split('%').skip(1).any(is_hidden) {
        return wrong("the path has `%2F`: the slashes of a topic stand in it as they are");
    }
    match request.uri().authority() {
        // RFC 9112 §3.2.2 lets the target win. A check in front may have looked at the field.
        Some(named) if !named.as_str().as_bytes().eq_ignore_ascii_case(host) => {
            wrong("the target of the request and its `Host` field name two hosts")
        }
        _ => Ok(()),
    }
}

/// Nothing but chunks: a body that was packed besides would be read as it is
/// (RFC 9112 §6.1).
fn coding(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = codings.next().is_none_or(|coding| {
        let coding = coding.as_bytes().trim_ascii();
        coding.eq_ignore_ascii_case(b"chunked")
    });
    // Two codings, or another one, are the ways of request smuggling (RFC 9112 §11.2).
    if is_chunked && codings.next().is_none() {
        return Ok(());
    }
    let cause = "no transfer coding but `chunked` is read here";
    Err(HttpRefusal::Head(StatusCode::NOT_IMPLEMENTED, cause))
}
