use crate::order::{GroupOrder, NumberedOrder, SecretWraps};
use crate::state::GroupState;
use crate::wire::GroupFieldReader;
use crate::{Error, GroupDocument, GroupRoster};

/// Reads what is otherwise behind encryption and signatures, the body of an order behind its data
/// type (u16, big-endian) or the payload of
/// a group's file, and writes it again: the same bytes, or an error. For fuzzing and for tools that
/// explain documents; nothing is verified.
///
/// # Errors
///
/// [`Error::Malformed`], also for documents of other kinds; [`Error::NewerVersion`];
/// [`Error::Seal`].
pub fn examine(document: GroupDocument, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    match document {
        GroupDocument::Order => {
            let (data_type, body) = bytes.split_first_chunk().ok_or(Error::Malformed(document))?;
            let data_type = u16::from_be_bytes(*data_type);
            let NumberedOrder { number, order } = GroupOrder::from_bytes(data_type, body)?;
            Ok([&order.data_type().to_be_bytes()[..], &order.to_bytes(number)].concat())
        }
        GroupDocument::GroupFile => {
            GroupState::from_bytes(bytes).map(|state| state.to_bytes().to_vec())
        }
        GroupDocument::Renewal => {
            let mut reader = GroupFieldReader::new(document, bytes);
            let (roster, wraps) =
                (GroupRoster::read(&mut reader)?, SecretWraps::read(&mut reader)?);
            reader.end()?;
            let mut written = Vec::new();
            roster.put(&mut written);
            wraps.put(&mut written);
            Ok(written)
        }
        other => Err(Error::Malformed(other)),
    }
}
