/// A text that stands for a token once, in the query of a request: the answer to
/// `POST /v1/ticket`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AccessTicket {
    /// The text for `?ticket=`.
    pub ticket: String,
    /// When it is worth nothing any more, in Unix milliseconds by the hub's clock.
    #[serde(default)]
    pub expires_ms: u64,
}

#[cfg(test)]
mod tests {
    use sealane_codec::{Codec, DatumWriter};

    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let ticket = AccessTicket { ticket: "x".into(), expires_ms: 7 };
        for codec in Codec::AT_REST {
            let mut body = Vec::new();
            ticket.write(&mut DatumWriter::new(codec, &mut body));
            assert_eq!(AccessTicket::read(codec, &body), Ok(ticket.clone()));
        }
    }
}
