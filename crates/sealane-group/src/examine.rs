use crate::order::{Order, Wraps};
use crate::state::GroupState;
use crate::wire::Reader;
use crate::{Document, Error, Roster};

/// Reads what is otherwise behind encryption and signatures, the body of an order or the payload of
/// a group's file, and writes it again: the same bytes, or an error. For fuzzing and for tools that
/// explain documents; nothing is verified.
///
/// # Errors
///
/// [`Error::Malformed`], also for documents of other kinds; [`Error::NewerVersion`];
/// [`Error::Seal`].
pub fn examine(document: Document, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    match document {
        Document::Order => Order::from_bytes(bytes).map(|order| order.to_bytes()),
        Document::GroupFile => GroupState::from_bytes(bytes).map(|state| state.to_bytes().to_vec()),
        Document::Renewal => {
            let mut reader = Reader::new(document, bytes);
            let (roster, wraps) = (Roster::read(&mut reader)?, Wraps::read(&mut reader)?);
            reader.end()?;
            let mut written = Vec::new();
            roster.put(&mut written);
            wraps.put(&mut written);
            Ok(written)
        }
        other => Err(Error::Malformed(other)),
    }
}
