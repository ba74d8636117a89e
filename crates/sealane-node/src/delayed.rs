//! `/v1/delayed/{topic}`: messages that are held back.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sealane_codec::DatumWriter;
use sealane_protocol::{ListDelayed, read_cancel_query};

use crate::access::{RequestPass, TokenRight};
use crate::app::NodeApp;
use crate::query;
use crate::refusal::HttpRefusal;
use crate::reply::{MadeReply, ReplyFill, accepted, answer, answer_metered};

/// The delayed messages of a stream, in the order in which they come.
pub(crate) async fn list(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    Path(topic): Path<String>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let asked = || -> Result<_, HttpRefusal> {
        let topic = pass.topic(TokenRight::Read, &topic)?;
        let list = ListDelayed::read(query::read(query)?)?;
        accepted(&headers)?;
        Ok((topic, list))
    };
    let (topic, list) = match asked() {
        Ok(asked) => asked,
        Err(refusal) => return answer(&headers, Err(refusal)),
    };
    let (app, headers, topic) = (&app, &headers, &topic);
    let make = move || async move {
        let page = app.hub.delayed(topic, list).await?;
        let fill = Box::new(move |writer: &mut DatumWriter<'_>| page.write(writer));
        Ok(MadeReply::new(headers, StatusCode::OK, fill))
    };
    answer_metered(app, &pass, headers, make).await
}

/// Cancels the messages of one id.
pub(crate) async fn cancel(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    Path(topic): Path<String>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let result = async {
        let topic = pass.topic(TokenRight::Manage, &topic)?;
        let id = read_cancel_query(query::read(query)?)?;
        accepted(&headers)?;
        let cancelled = app.hub.cancel(&topic, id).await?;
        Ok(Box::new(move |writer: &mut DatumWriter<'_>| cancelled.write(writer)) as ReplyFill)
    };
    answer(&headers, result.await.map(|fill| (StatusCode::OK, fill)))
}
