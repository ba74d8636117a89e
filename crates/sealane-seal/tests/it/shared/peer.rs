//! SFrame by another implementation, given our metadata.

use sealane_seal::{Form, Group, SframeHeader};
use sframe::CipherSuite::AesGcm256Sha512;
use sframe::frame::{EncryptedFrameView, MediaFrameView, MonotonicCounter};
use sframe::key::{DecryptionKey, EncryptionKey};

/// SFrame's metadata of a message in class C or P (`spec/seal.md`).
pub(crate) fn metadata(group: Group, meta: &[u8]) -> Vec<u8> {
    [&group.id().0[..], &(meta.len() as u16).to_be_bytes(), meta].concat()
}

pub(crate) fn seal(
    secret: &[u8; 32],
    header: SframeHeader,
    metadata: &[u8],
    body: &[u8],
) -> Vec<u8> {
    let id = u64::from(header.key.value(Form::Full));
    let key = EncryptionKey::derive_from(AesGcm256Sha512, id, secret).unwrap();
    let mut counter = MonotonicCounter::with_start_value(header.counter, u64::MAX);
    let frame = MediaFrameView::try_with_meta_data(&mut counter, body, metadata).unwrap();
    frame.encrypt(&key).unwrap().sframe_cipher_text().to_vec()
}

pub(crate) fn open(secret: &[u8; 32], metadata: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let frame = EncryptedFrameView::try_with_meta_data(sealed, metadata).ok()?;
    let key = DecryptionKey::derive_from(AesGcm256Sha512, frame.header().key_id(), secret).ok()?;
    Some(frame.decrypt(&key).ok()?.payload().to_vec())
}
