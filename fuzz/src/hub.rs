//! The frames of the hub's protocol, and the hub itself.

#[path = "hub/steps.rs"]
mod steps;

use bytes::Bytes;
use sealane_codec::{Codec, DatumWriter};
use sealane_protocol::{
    Enqueue, Enqueued, Health, PublishFrame, RangePage, SealedEnvelope, ServerFrame, StreamChange,
    StreamState, StreamsPage, read_ops, read_publish, write_publish,
};

/// A frame from either side, in the codec that the first byte chooses: what is read is written
/// and read again as the same. An input whose first byte is 128 or more also stands for steps of
/// connections on a hub.
pub fn hub(bytes: &[u8]) {
    let Some((&first, frame)) = bytes.split_first() else { return };
    let codec = [Codec::Json, Codec::MsgPack, Codec::Cbor][usize::from(first) % 3];
    ops(codec, frame);
    sealed(codec, frame);
    server_frame(codec, frame);
    publishing(codec, frame);
    requests(codec, frame);
    answers(codec, frame);
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
    match SealedEnvelope::read(codec, envelope) {
        Ok(Some(sealed)) => {
            let mut written = Vec::new();
            sealed.write(codec, &mut written);
            assert_eq!(SealedEnvelope::read(codec, &written).expect("what we write"), Some(sealed));
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

/// Both directions of a publishing socket.
fn publishing(codec: Codec, frame: &[u8]) {
    for asked in read_publish(codec, frame, None).unwrap_or_default() {
        let Ok(item) = asked.item else { continue };
        assert_eq!((asked.n, asked.to.as_ref()), (item.n, item.to.as_str()));
        let (mut written, mut framed) = (Vec::new(), Vec::new());
        item.write(codec, &mut written);
        write_publish(codec, [written.as_slice()].into_iter(), &mut framed);
        let again = read_publish(codec, &framed, Some(&item.to)).expect("what we write").remove(0);
        assert_eq!((again.bytes, again.item), (written.len(), Ok(item)));
    }
    if let Ok(told) = PublishFrame::read(codec, &Bytes::copy_from_slice(frame)) {
        let mut written = Vec::new();
        told.write(codec, &mut written);
        assert_eq!(PublishFrame::read(codec, &written.into()), Ok(told));
    }
}

fn requests(codec: Codec, body: &[u8]) {
    for is_batch in [false, true] {
        if let Ok(enqueue) = Enqueue::read(codec, body, is_batch) {
            let mut written = Vec::new();
            enqueue.write(codec, &mut written);
            assert_eq!(Enqueue::read(codec, &written, is_batch), Ok(enqueue));
        }
    }
    if let Ok(change) = StreamChange::read(codec, body) {
        let mut written = Vec::new();
        change.write(codec, &mut written);
        assert_eq!(StreamChange::read(codec, &written), Ok(change));
    }
}

/// Clients read the answers of a hub. That hub may be hostile.
fn answers(codec: Codec, body: &[u8]) {
    let written = |write: &dyn Fn(&mut DatumWriter<'_>)| {
        let mut written = Vec::new();
        write(&mut DatumWriter::new(codec, &mut written));
        Bytes::from(written)
    };
    if let Ok(enqueued) = Enqueued::read(codec, body) {
        let is_batch = enqueued.ids.len() != 1;
        let written = written(&|writer| enqueued.write(is_batch, writer));
        let again = Enqueued::read(codec, &written).expect("what we write");
        assert_eq!((again.ids, again.stream), (enqueued.ids, enqueued.stream));
    }
    if let Ok(state) = StreamState::read(codec, body) {
        let written = written(&|writer| state.write(writer));
        assert_eq!(StreamState::read(codec, &written), Ok(state));
    }
    if let Ok(streams) = StreamsPage::read(codec, body) {
        let written = written(&|writer| streams.write(writer));
        assert_eq!(StreamsPage::read(codec, &written), Ok(streams));
    }
    if let Ok(health) = Health::read(codec, body) {
        let written = written(&|writer| health.write(writer));
        assert_eq!(Health::read(codec, &written), Ok(health));
    }
    if let Ok(page) = RangePage::read(codec, &Bytes::copy_from_slice(body)) {
        let written = written(&|writer| page.write(writer));
        let again = RangePage::read(codec, &written).expect("what we write");
        assert_eq!((again.stream, again.next, again.end), (page.stream, page.next, page.end));
    }
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
