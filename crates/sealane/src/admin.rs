//! The calls of an administrator: the tokens of a node, and copies of it. The token needs `admin`.

use bytes::Bytes;
use hyper::Method;
use sealane_codec::Codec;
use sealane_protocol::{MadeToken, TokenRequest, TokensList};

use crate::address::RequestPath;
use crate::http::ClientRequest;
use crate::{Client, Error};

/// The path of the tokens.
const TOKENS: &str = "/v1/tokens";

impl Client {
    /// The tokens of the node, without anything that lets somebody in.
    ///
    /// # Errors
    /// [`Error::NotReachable`], or the hub's refusal.
    pub async fn tokens(&self) -> Result<TokensList, Error> {
        let answer = self.call(&ClientRequest::get(TOKENS)).await?;
        Ok(TokensList::read(answer.codec, &answer.body)?)
    }

    /// Makes a token, which holds at once; returns its text, which nobody shows a second time.
    ///
    /// # Errors
    /// As [`Client::tokens`]. If the answer was lost, the token is there and unknown: revoke it.
    pub async fn make_token(&self, name: &str, request: &TokenRequest) -> Result<String, Error> {
        let mut body = Vec::new();
        request.write(Codec::Json, &mut body);
        let (method, body) = (Method::POST, Some((Codec::Json, body.into())));
        let call = ClientRequest { method, body, repeatable: false, ..token(name) };
        let answer = self.call(&call).await?;
        Ok(MadeToken::read(answer.codec, &answer.body)?.token)
    }

    /// Revokes a token; its open connections end.
    ///
    /// # Errors
    /// As [`Client::tokens`].
    pub async fn revoke_token(&self, name: &str) -> Result<(), Error> {
        let call = ClientRequest { method: Method::DELETE, repeatable: false, ..token(name) };
        self.call(&call).await.map(drop)
    }

    /// Gives `take` a file of a backup, piece by piece: `tokens.toml`, and then `streams.db`.
    /// Returns its length, or nothing where the node has no such file.
    ///
    /// # Errors
    /// As [`Client::tokens`], those of `take`, and [`Error::NoAnswer`] where the file was cut off.
    pub async fn back_up<E: From<Error>>(
        &self,
        file: &str,
        take: impl FnMut(Bytes) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        self.download(&format!("/v1/backup/{file}"), take).await
    }
}

/// The request of a token.
fn token(name: &str) -> ClientRequest {
    ClientRequest::get(RequestPath::new(TOKENS).with("name", name).into_string())
}
