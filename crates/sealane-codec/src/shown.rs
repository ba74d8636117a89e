use sealane_message::{DataType, Value};

use crate::{document, event};

/// A body without a codec as programs and people are shown it: the document or event of its data
/// type, as a map. `None` where it is neither.
pub fn body_value(data_type: DataType, body: &[u8]) -> Option<Value> {
    match data_type {
        DataType::CHAT | DataType::SENSITIVE_CHAT | DataType::RECEIPT => {
            event::decode(body).ok().map(|event| event::to_value(&event))
        }
        _ => document::decode(data_type, body).ok().map(|document| document::to_value(&document)),
    }
}
