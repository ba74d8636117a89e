//! Bytes from anywhere are refused or read, and never more than that.

use crate::shared::members::{self, CLASSES, EPOCH, Members, RELAY};
use proptest::prelude::*;
use sealane_frame::{
    CompactView, FrameBuf, FrameError, FrameUnit, FrameView, Reassembly, forward_in_place,
    open_announcement, open_compact, open_frame, open_stored, seal_compact, seal_frame,
};
use sealane_seal::Announcement;

/// Reads bytes in every way there is.
fn read(members: &mut Members, bytes: &[u8]) {
    let link = members::link(&members.dictionary, &members.roster);
    let mut frame = bytes.to_vec();
    if let Ok(view) = FrameView::parse(bytes) {
        assert_eq!(view.bytes(), bytes);
        assert_eq!(view.sealed().len() + 64, bytes.len());
        assert_eq!(view.tag(), &bytes[bytes.len() - 16..]);
        assert!(view.clear_body().unwrap_or_default().len() <= bytes.len() - 81);
    }
    let _ = forward_in_place(&mut frame, RELAY, RELAY);
    let (opener, binding) = (&mut members.opener, members::binding());
    let _ = open_frame(opener, &binding, &mut bytes.to_vec()).map(|received| received.header);
    let _ = open_stored(opener, EPOCH, &binding, &mut bytes.to_vec());
    opener.allow_trials();
    let _ = open_announcement(opener, &mut bytes.to_vec()).map(|announced| announced.accept());
    let _ = CompactView::parse(bytes, &link).map(|view| view.header(&link));
    let mut compact = bytes.to_vec();
    let opened = open_compact(opener, &binding, &mut compact, &link);
    if let Err(error) = opened {
        assert!(error.info().code.starts_with("SL-"));
    }
    if let Ok(FrameUnit::Fragment(fragment)) = FrameUnit::parse(bytes) {
        let pushed = Reassembly::new().push(RELAY, 0, &fragment).map(|_| ());
        assert_ne!(pushed, Err(FrameError::BadFragment));
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read(&mut Members::new(CLASSES[1]), &bytes);
    }

    #[test]
    fn frames_with_a_few_other_bytes(
        class in 0..4_usize,
        form in 0..3_u8,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let mut members = Members::new(CLASSES[class]);
        let (mut buf, fields, binding) = (FrameBuf::new(), members.fields, members::binding());
        let link = members::link(&members.dictionary, &members.roster);
        let sealer = &mut members.sealer;
        let mut frame = match form {
            0 => seal_frame(sealer, &fields, &binding, b"body", &mut buf).unwrap().to_vec(),
            1 => {
                let frame = seal_compact(sealer, &fields, &binding, b"body", &link, &mut buf);
                frame.unwrap().to_vec()
            }
            _ => members.announcement(Announcement { start: 5, orders: 7 }),
        };
        for (at, byte) in changes {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        if let Some(cut) = cut {
            frame.truncate(cut.index(frame.len()));
        }
        read(&mut members, &frame);
    }
}
