//! SFrame by another implementation, given a base key and our metadata. The base key comes from
//! another implementation of HKDF, too.

use hkdf::Hkdf;
use sealane_seal::{Binding, Form, Group, SenderContext, SframeHeader};
use sframe::CipherSuite::AesGcm256Sha512;
use sframe::frame::{EncryptedFrameView, MediaFrameView, MonotonicCounter};
use sframe::key::{DecryptionKey, EncryptionKey};
use sha2::Sha512;

/// The base key of one start of a sender: `spec/seal.md`, section *Keys*.
pub(crate) fn base(secret: &[u8; 32], context: SenderContext) -> [u8; 32] {
    let info = [&b"Sealane 1.0 sender context "[..], &context.0].concat();
    let mut base = [0; 32];
    Hkdf::<Sha512>::new(Some(b""), secret).expand(&info, &mut base).unwrap();
    base
}

/// SFrame's metadata of a message in class C, S or P (`spec/seal.md`).
pub(crate) fn metadata(group: Group, binding: &Binding, meta: &[u8]) -> Vec<u8> {
    let len = (meta.len() as u16).to_be_bytes();
    [&group.id().0[..], binding.as_bytes(), &len, meta].concat()
}

pub(crate) fn seal(base: &[u8; 32], header: SframeHeader, metadata: &[u8], body: &[u8]) -> Vec<u8> {
    let id = u64::from(header.key.value(Form::Full));
    let key = EncryptionKey::derive_from(AesGcm256Sha512, id, base).unwrap();
    let mut counter = MonotonicCounter::with_start_value(header.counter, u64::MAX);
    let frame = MediaFrameView::try_with_meta_data(&mut counter, body, metadata).unwrap();
    frame.encrypt(&key).unwrap().sframe_cipher_text().to_vec()
}

pub(crate) fn open(base: &[u8; 32], metadata: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let frame = EncryptedFrameView::try_with_meta_data(sealed, metadata).ok()?;
    let key = DecryptionKey::derive_from(AesGcm256Sha512, frame.header().key_id(), base).ok()?;
    Some(frame.decrypt(&key).ok()?.payload().to_vec())
}
