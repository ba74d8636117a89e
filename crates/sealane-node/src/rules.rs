//! `/v1/rules`: bounds for the streams that a pattern matches.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sealane_codec::DatumWriter;
use sealane_protocol::{Error, RuleBounds, read_rule_query, write_rule_removed};

use crate::access::RequestPass;
use crate::app::NodeApp;
use crate::audit::{AuditDetail, detailed};
use crate::body;
use crate::query;
use crate::reply::{ReplyFill, accepted, answer};

/// The rules whose topics may be read or managed, and the default.
pub(crate) async fn list(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let result = async {
        if let Some((name, _)) = query::read(query)?.first() {
            return Err(Error::parameter(name.clone(), "is no parameter of this request").into());
        }
        accepted(&headers)?;
        let mut rules = app.hub.rules();
        rules.rules.retain(|rule| {
            let is_read = pass.need_to_read_all(&rule.pattern).is_ok();
            is_read || pass.need_to_manage_all(&rule.pattern).is_ok()
        });
        Ok(Box::new(move |writer: &mut DatumWriter<'_>| rules.write(writer)) as ReplyFill)
    };
    answer(&headers, result.await.map(|fill| (StatusCode::OK, fill)))
}

/// Makes or changes the rule of a pattern.
pub(crate) async fn set(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let result = async {
        let pattern = read_rule_query(query::read(query)?)?;
        pass.need_to_manage_all(&pattern)?;
        accepted(&headers)?;
        let body = body::read(&app.fair, &pass, request).await?;
        let bounds = RuleBounds::read(body.codec, &body.bytes)?.retention();
        let rule = app.hub.set_rule(pattern, bounds, pass.name()).await?;
        let [age, count, bytes] = [bounds.max_age_ms, bounds.max_count, bounds.max_bytes];
        let detail = AuditDetail(format!("maxAgeMs {age}, maxCount {count}, maxBytes {bytes}"));
        let fill = move |writer: &mut DatumWriter<'_>| rule.write(writer);
        Ok((detail, Box::new(fill) as ReplyFill))
    };
    let (detail, result) = match result.await {
        Ok((detail, fill)) => (Some(detail), Ok((StatusCode::OK, fill))),
        Err(refusal) => (None, Err(refusal)),
    };
    detailed(answer(&headers, result), detail)
}

/// Removes the rule of a pattern.
pub(crate) async fn remove(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let result = async {
        let pattern = read_rule_query(query::read(query)?)?;
        pass.need_to_manage_all(&pattern)?;
        accepted(&headers)?;
        app.hub.remove_rule(pattern.clone()).await?;
        let fill = move |writer: &mut DatumWriter<'_>| write_rule_removed(&pattern, writer);
        Ok(Box::new(fill) as ReplyFill)
    };
    answer(&headers, result.await.map(|fill| (StatusCode::OK, fill)))
}
