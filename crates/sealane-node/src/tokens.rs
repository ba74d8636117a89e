//! `/v1/tokens`: the tokens of the node, for a token that may change them (spec/access.md).

use std::io;
use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sealane_codec::DatumWriter;
use sealane_protocol::{Error, MadeToken, RevokedToken, TokenRequest, read_token_query};

use crate::access::{AskedToken, FileError, RequestPass, TokenFile, TokenSecret};
use crate::app::NodeApp;
use crate::audit::{AuditDetail, detailed};
use crate::body;
use crate::query;
use crate::refusal::HttpRefusal;
use crate::reply::{MadeReply, ReplyFill, accepted, answer, answer_metered};

/// All tokens, without anything that lets somebody in.
pub(crate) async fn list(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let asked = || -> Result<(), HttpRefusal> {
        if let Some((name, _)) = query::read(query)?.first() {
            return Err(Error::parameter(name.clone(), "is no parameter of this request").into());
        }
        pass.need_admin()?;
        accepted(&headers)?;
        Ok(())
    };
    if let Err(refusal) = asked() {
        return answer(&headers, Err(refusal));
    }
    let (app, headers) = (&app, &headers);
    let make = move || async move {
        let list = app.access.list(&app.hub.shares());
        let fill = Box::new(move |writer: &mut DatumWriter<'_>| list.write(writer));
        Ok(MadeReply::new(headers, StatusCode::OK, fill))
    };
    answer_metered(app, &pass, headers, make).await
}

/// Makes a token, and shows it this once.
pub(crate) async fn make(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let result = async {
        pass.need_admin()?;
        // The first token shuts all others out. To make it takes more than to reach the node: the
        // right to its folder.
        if !pass.has_token() {
            let on = "a node without tokens".to_owned();
            return Err(HttpRefusal::Forbidden { right: "admin", on });
        }
        let name = read_token_query(query::read(query)?)?;
        accepted(&headers)?;
        let body = body::read(&app.fair, &pass, request).await?;
        let asked = TokenRequest::read(body.codec, &body.bytes)?;
        let AskedToken { rights, shares, expires } = AskedToken::read(&asked)?;
        let detail = AuditDetail(told(&asked));
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|_| HttpRefusal::Crowded)?;
        let secret = TokenSecret::new(random);
        let made = MadeToken { name: name.clone(), token: secret.reveal().to_owned() };
        change(&app, move |folder| {
            TokenFile::add_with(folder, &name, &secret, (rights, shares), expires)
        })
        .await?;
        Ok((detail, Box::new(move |writer: &mut DatumWriter<'_>| made.write(writer)) as ReplyFill))
    };
    let (detail, result) = match result.await {
        Ok((detail, fill)) => (Some(detail), Ok((StatusCode::CREATED, fill))),
        Err(refusal) => (None, Err(refusal)),
    };
    detailed(answer(&headers, result), detail)
}

/// Revokes a token.
pub(crate) async fn revoke(
    State(app): State<Arc<NodeApp>>,
    Extension(pass): Extension<RequestPass>,
    query: RawQuery,
    headers: HeaderMap,
) -> Response {
    let result = async {
        pass.need_admin()?;
        let name = read_token_query(query::read(query)?)?;
        accepted(&headers)?;
        let revoked = RevokedToken { revoked: name.clone() };
        change(&app, move |folder| TokenFile::revoke(folder, &name)).await?;
        Ok(Box::new(move |writer: &mut DatumWriter<'_>| revoked.write(writer)) as ReplyFill)
    };
    answer(&headers, result.await.map(|fill| (StatusCode::OK, fill)))
}

/// Changes the file of tokens, which is in effect when this returns.
async fn change(
    app: &Arc<NodeApp>,
    change: impl FnOnce(&Path) -> Result<(), FileError> + Send + 'static,
) -> Result<(), HttpRefusal> {
    let access = app.access.clone();
    let changed = tokio::task::spawn_blocking(move || {
        change(access.file().parent().unwrap_or(Path::new(".")))?;
        access.reload()
    });
    let changed = changed.await.map_err(|_| Error::Draining)?;
    changed.map_err(|error| match error {
        FileError::Taken { .. } | FileError::Unknown { .. } => {
            Error::parameter("name", error.to_string()).into()
        }
        FileError::Content { cause, .. } => Error::parameter("body", cause).into(),
        FileError::Io { cause, .. } if cause.kind() == io::ErrorKind::StorageFull => {
            Error::StorageFull.into()
        }
        FileError::Io { .. } | FileError::Exposed { .. } => {
            HttpRefusal::from(Error::StorageFailed(error.to_string()))
        }
    })
}

/// The rights of a token for the audit, and no secret.
fn told(asked: &TokenRequest) -> String {
    let TokenRequest { read, publish, manage, orders, observe, admin, .. } = asked;
    let patterns = [("read", read), ("publish", publish), ("manage", manage), ("orders", orders)];
    let patterns = patterns.iter().filter(|(_, all)| !all.is_empty());
    let patterns = patterns.map(|(right, all)| format!("{right} {}", all.join(" ")));
    let flags = [("observe", observe), ("admin", admin)];
    let flags = flags.into_iter().filter(|(_, is)| **is).map(|(right, _)| right.to_owned());
    patterns.chain(flags).collect::<Vec<_>>().join(", ")
}
