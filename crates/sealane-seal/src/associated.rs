//! The associated data of a message, and what a signature covers.

use zeroize::Zeroize;

use crate::header::{Form, Header};
use crate::limits::{MAX_BODY_BYTES, MAX_META_BYTES};
use crate::{Epoch, Error, GroupId};

const LABEL: &[u8; 22] = b"Sealane 1.0 signature ";
const PREFIX_BYTES: usize = LABEL.len() + 8 + 4;

/// Room for one message's associated data at a time, behind the prefix of what is signed:
///
/// ```text
/// label ‖ epoch u64 ‖ length of the associated data u32 ‖ associated data ‖ plaintext
/// ```
#[derive(Default)]
pub(crate) struct Associated(Vec<u8>);

impl Associated {
    /// Header in the full form ‖ group ‖ u16 length ‖ meta, and in class A ‖ u32 length ‖ body.
    pub(crate) fn fill(
        &mut self,
        header: &Header,
        group: GroupId,
        meta: &[u8],
        clear: Option<&[u8]>,
    ) -> Result<(), Error> {
        let meta_len = u16::try_from(meta.len()).map_err(|_| Error::TooLarge)?;
        if meta.len() > MAX_META_BYTES {
            return Err(Error::TooLarge);
        }
        let out = &mut self.0;
        out.clear();
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        out.extend_from_slice(&header.encode(Form::Full));
        out.extend_from_slice(&group.0);
        out.extend_from_slice(&meta_len.to_be_bytes());
        out.extend_from_slice(meta);
        if let Some(body) = clear {
            let body_len = u32::try_from(body.len()).map_err(|_| Error::TooLarge)?;
            if body.len() > MAX_BODY_BYTES {
                return Err(Error::TooLarge);
            }
            out.extend_from_slice(&body_len.to_be_bytes());
            out.extend_from_slice(body);
        }
        Ok(())
    }

    /// The associated data that was filled in.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.get(PREFIX_BYTES..).unwrap_or_default()
    }

    /// Calls `with` on what a signature covers, and forgets the plaintext.
    pub(crate) fn signed<T>(
        &mut self,
        epoch: Epoch,
        plaintext: &[u8],
        with: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let len = self.0.len();
        let associated_len = u32::try_from(self.bytes().len()).unwrap_or(u32::MAX);
        let prefix = LABEL.iter().copied();
        let prefix = prefix.chain(epoch.0.to_be_bytes()).chain(associated_len.to_be_bytes());
        self.0.iter_mut().zip(prefix).for_each(|(place, byte)| *place = byte);
        self.0.extend_from_slice(plaintext);
        let result = with(&self.0);
        if let Some(plaintext) = self.0.get_mut(len..) {
            plaintext.zeroize();
        }
        self.0.truncate(len);
        result
    }
}
