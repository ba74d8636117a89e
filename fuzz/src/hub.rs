//! The frames of the hub's protocol, and the hub itself.

#[path = "hub/steps.rs"]
mod steps;

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_protocol::{Sealed, ServerFrame, read_ops};

/// A frame from either side, in the codec that the first byte chooses: what is read is written
/// and read again as the same. An input whose first byte is 128 or more also stands for steps of
/// connections on a hub.
pub fn hub(bytes: &[u8]) {
    let Some((&first, frame)) = bytes.split_first() else { return };
    let codec = [Codec::Json, Codec::MsgPack, Codec::Cbor][usize::from(first) % 3];
    ops(codec, frame);
    sealed(codec, frame);
    server_frame(codec, frame);
    if first >= 128 {
        steps::run(frame);
    }
}

fn ops(codec: Codec, frame: &[u8]) {
    let mut ops = Vec::new();
    if let Err(error) = read_ops(codec, frame, &mut ops) {
        assert!(ops.is_empty(), "what is refused asks nothing");
        assert!(error.info().code.starts_with("SL-"));
        return;
    }
    assert!(!ops.is_empty());
    for op in ops {
        for codec in [Codec::Json, Codec::MsgPack, Codec::Cbor] {
            let (mut written, mut again) = (Vec::new(), Vec::new());
            op.write(codec, &mut written);
            read_ops(codec, &written, &mut again).expect("what we write");
            assert_eq!(again, std::slice::from_ref(&op));
        }
    }
}

fn sealed(codec: Codec, envelope: &[u8]) {
    match Sealed::read(codec, envelope) {
        Ok(Some(sealed)) => {
            let mut written = Vec::new();
            sealed.write(codec, &mut written);
            assert_eq!(Sealed::read(codec, &written).expect("what we write"), Some(sealed));
        }
        Ok(None) => {}
        Err(error) => assert!(error.info().code.starts_with("SL-")),
    }
}

fn server_frame(codec: Codec, frame: &[u8]) {
    let Ok(frame) = ServerFrame::read(codec, &Bytes::copy_from_slice(frame)) else { return };
    let mut written = Vec::new();
    frame.write(codec, &mut written);
    let again = ServerFrame::read(codec, &written.into()).expect("what we write");
    assert_eq!(trimmed(again), trimmed(frame));
}

/// Blanks around an envelope in JSON are not part of it.
fn trimmed(mut frame: ServerFrame) -> ServerFrame {
    let trim = |envelope: &mut Bytes| *envelope = envelope.slice_ref(envelope.trim_ascii());
    match &mut frame {
        ServerFrame::Deliver(one) => trim(&mut one.envelope),
        ServerFrame::Batch(all) => all.iter_mut().for_each(|one| trim(&mut one.envelope)),
        _ => {}
    }
    frame
}
