//! Sealing and opening allocate nothing once a sender is known.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(unsafe_code)] // Counting what C allocates can only be written so.

#[path = "shared/counting.rs"]
mod counting;

use crate::shared::world::*;
use counting::allocations_of;
use sealane_seal::*;

/// Messages of a round.
const MESSAGES: usize = 4;

/// The allocations of a round once warm. A round seals in place and opens live, and appends and
/// opens from a store, in both forms.
fn warm(suite: Suite, class: Class, size: usize) -> usize {
    let group = group_of(suite, class);
    let epochs = epochs(group);
    let (mut sender, mut reader) = (sealer(group, slot(1), &epochs), opener(group, &epochs));
    introduce(&mut sender, &mut reader);
    let (binding, context, mut now_ms) = (Binding::stream(TOPIC), sender.context(), 0);
    let attached = Attached { context, binding: &binding, meta: META };
    let clear = if class == Class::Authenticated { size } else { 0 };
    let head = class.head_bytes();
    let mut buf = vec![5; head + size + class.tail_bytes()];
    let mut out = Vec::with_capacity(buf.len() + limits::MAX_HEADER_BYTES);
    let body = vec![5; size];
    let mut round = || {
        for form in [Form::Full, Form::Compact] {
            let body_at = head..head + size;
            let place = sender.seal_in_place(class, form, &binding, META, &mut buf, body_at);
            let sealed = &mut buf[place.unwrap()];
            let mut pending = reader.open_live(form, &attached, sealed, clear).unwrap();
            now_ms += 1000;
            assert!(pending.to_store(now_ms).is_some(), "a ceiling is stored, too");
            let opened = pending.accept();
            assert!(sealed[opened.body()].iter().all(|byte| *byte == 5));
            out.clear();
            sender.append(class, form, &binding, META, &body, &mut out).unwrap();
            reader.open_stored(Epoch(0), form, &attached, &mut out, clear).unwrap();
        }
    };
    round();
    allocations_of(round)
}

#[test]
fn the_count_sees_rust_and_c() {
    assert_eq!(allocations_of(|| drop(std::hint::black_box(vec![1_u8; 100]))), 1);
    // The library allocates the context of a key in C.
    let group = group(Suite::Aes256Gcm);
    let epochs = epochs(group);
    let made = allocations_of(|| drop(Sealer::new(group, slot(1), CONTEXT, &epochs, 0)));
    assert!(made >= 3, "{made}");
}

#[test]
fn in_classes_a_c_and_p() {
    for suite in Suite::ALL {
        for class in [Class::Authenticated, Class::Group, Class::Peer] {
            for size in [0, 60, 632, 8192, 262_144] {
                assert_eq!(warm(suite, class, size), 0, "{suite:?} {class:?} {size}");
            }
        }
    }
}

/// Signing and verifying allocate inside of the library: the same number for every message.
#[test]
fn in_class_s_only_within_the_signature_library() {
    for suite in Suite::ALL {
        for size in [60, 8192] {
            let signatures = library_alone(size);
            assert_eq!(warm(suite, Class::Signed, size), signatures, "{suite:?} {size}");
            println!(
                "class S, {size} bytes: {signatures} allocations in the library for {MESSAGES} \
                 messages"
            );
        }
    }
}

/// The allocations of the library to sign the messages of a round and to verify them.
fn library_alone(size: usize) -> usize {
    use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, ParsedPublicKey};
    let pair = Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
    let public = ParsedPublicKey::new(&ED25519, pair.public_key()).unwrap();
    let message = vec![5; size];
    let round = || {
        for _ in 0..MESSAGES {
            let signature = pair.sign(&message);
            public.verify_sig(&message, signature.as_ref()).unwrap();
        }
    };
    round();
    allocations_of(round)
}

#[test]
fn when_refusing() {
    for suite in Suite::ALL {
        let group = group(suite);
        let epochs = epochs(group);
        let (mut sender, mut reader) = (sealer(group, slot(1), &epochs), opener(group, &epochs));
        introduce(&mut sender, &mut reader);
        let first = seal(&mut sender, Class::Group, Form::Full, META, BODY);
        first.live(&mut reader).unwrap();
        let mut forged = seal(&mut sender, Class::Group, Form::Full, META, BODY).bytes;
        *forged.last_mut().unwrap() ^= 1;
        let mut replayed = first.bytes.clone();
        let mut refuse = || {
            let known = first.attached();
            let unknown = Attached { context: SenderContext([0; 8]), ..known };
            assert!(reader.open_live(Form::Full, &known, &mut forged, 0).is_err());
            assert!(reader.open_live(Form::Full, &known, &mut replayed, 0).is_err());
            assert!(reader.open_live(Form::Full, &known, &mut replayed[..5], 0).is_err());
            assert!(reader.open_live(Form::Full, &unknown, &mut replayed, 0).is_err());
        };
        // The library makes room for its list of errors once per thread.
        refuse();
        assert_eq!(allocations_of(refuse), 0);
    }
}
