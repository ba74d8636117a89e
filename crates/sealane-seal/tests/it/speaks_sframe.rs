//! Suite 5 of the full form is SFrame under the base key of a context: another implementation
//! opens ours, and we open its own.

use crate::shared::peer;
use crate::shared::world::*;
use sealane_seal::*;
use sealane_testing::unhex;

/// Places that give every length of header.
fn places() -> impl Iterator<Item = (Class, u16, u64, u64)> {
    let classes = [Class::Group, Class::Peer];
    classes.into_iter().flat_map(|class| {
        let slots: &[u16] = if class == Class::Peer { &[0, 1] } else { &[0, 1, 63, 64, 1023] };
        slots.iter().flat_map(move |slot| {
            [(0, 0), (0, 7), (3, 8), (7, 255), (255, 256), (256, 70_000)]
                .map(|(epoch, counter)| (class, *slot, epoch, counter))
        })
    })
}

#[test]
fn both_ways() {
    for (class, number, epoch, counter) in places() {
        let group = group_of(Suite::Aes256Gcm, class);
        let epochs = epochs_at(group, epoch);
        let secret = *epochs.secret(Epoch(epoch)).unwrap().expose();
        let context = SenderContext((counter << 20 | u64::from(number)).to_be_bytes());
        let base = peer::base(&secret, context);
        let mut sealer = sealer_of(group, slot(number), &epochs, context, counter);
        let ours = seal(&mut sealer, class, Form::Full, META, BODY);
        let metadata = peer::metadata(group, &Binding::stream(TOPIC), META);
        assert_eq!(peer::open(&base, &metadata, &ours.bytes).as_deref(), Some(BODY));
        assert_eq!(peer::open(&secret, &metadata, &ours.bytes), None, "not the epoch's secret");
        let elsewhere = peer::metadata(group, &Binding::link(), META);
        assert_eq!(peer::open(&base, &elsewhere, &ours.bytes), None);

        let key = KeyId::new(slot(number), class, Epoch(epoch));
        let theirs = peer::seal(&base, SframeHeader { key, counter }, &metadata, BODY);
        assert_eq!(theirs, ours.bytes);
        let theirs = Sealed { bytes: theirs, ..ours };
        let mut reader = Opener::new(group, None, epochs.clone()).unwrap();
        expect(&mut reader, number, context);
        assert_eq!(theirs.stored(&mut reader, epoch).unwrap().1, BODY);
        let (opened, body) = theirs.live(&mut reader).unwrap();
        assert_eq!(
            (opened.slot(), opened.epoch(), opened.counter()),
            (slot(number), Epoch(epoch), counter)
        );
        assert_eq!(body, BODY);
    }
}

/// RFC 9605 appendix C.1, through our parser and encoder. What lies beyond our ranges is refused.
#[test]
fn the_headers_of_the_rfc() {
    let (mut taken, mut refused) = (0, 0);
    for line in include_str!("shared/rfc9605_headers.txt").lines().skip(1) {
        let [key, counter, bytes] = line.split(' ').collect::<Vec<_>>()[..] else { panic!() };
        let (key, counter): (u64, u64) = (key.parse().unwrap(), counter.parse().unwrap());
        let bytes = unhex(bytes);
        let read = SframeHeader::parse(&bytes, Form::Full, Epoch(0));
        if key < 1 << 20 && counter <= limits::MAX_COUNTER {
            let (header, len) = read.unwrap();
            assert_eq!(len, bytes.len());
            assert_eq!((u64::from(header.key.value(Form::Full)), header.counter), (key, counter));
            assert_eq!(header.encode(Form::Full)[..], bytes);
            taken += 1;
        } else {
            assert_eq!(read, Err(Error::Header));
            refused += 1;
        }
    }
    println!("{taken} headers read and written, {refused} refused as out of range");
    assert_eq!(taken + refused, 289);
}

#[test]
fn a_header_has_one_encoding() {
    let longer: [&[u8]; 7] = [
        &[0x80, 7],
        &[0x08, 0],
        &[0x90, 0, 9],
        &[0x98, 0, 9, 9],
        &[0x09, 0, 255],
        &[0x88, 8, 7],
        &[0xa8, 0, 1, 0, 9],
    ];
    for bytes in longer {
        assert_eq!(
            SframeHeader::parse(bytes, Form::Full, Epoch(0)),
            Err(Error::Header),
            "{bytes:02x?}"
        );
    }
    for bytes in [&[][..], &[0x80], &[0x98, 1], &[0x0f, 1, 2, 3, 4, 5, 6, 7]] {
        let read = SframeHeader::parse(bytes, Form::Full, Epoch(0));
        assert_eq!(read, Err(Error::Truncated), "{bytes:02x?}");
    }
    let key_of_17_bits = [0xa0, 1, 0, 0];
    assert!(SframeHeader::parse(&key_of_17_bits, Form::Full, Epoch(0)).is_ok());
    assert_eq!(SframeHeader::parse(&key_of_17_bits, Form::Compact, Epoch(0)), Err(Error::Header));
}
