//! Sealing and opening allocate nothing once a sender is known.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(unsafe_code)] // Counting what C allocates can only be written so.

#[path = "shared/counting.rs"]
mod counting;

use crate::shared::world::*;
use counting::allocations_of;
use sealane_seal::*;

/// What one round of sealing in place and opening live, and one of appending and opening from a
/// store, ask for once warm.
fn warm(suite: Suite, class: Class, size: usize) -> usize {
    let group = group_of(suite, class);
    let epochs = epochs(group);
    let (mut sender, mut reader) = (sealer(group, slot(1), &epochs), opener(group, &epochs));
    let clear = if class == Class::Authenticated { size } else { 0 };
    let head = class.head_bytes();
    let mut buf = vec![5; head + size + class.tail_bytes()];
    let mut out = Vec::with_capacity(buf.len() + limits::MAX_HEADER_BYTES);
    let body = vec![5; size];
    let mut round = || {
        let place = sender.seal_in_place(class, Form::Full, META, &mut buf, head..head + size);
        let sealed = &mut buf[place.unwrap()];
        let opened = reader.open_live(Form::Full, META, sealed, clear).unwrap().accept();
        assert!(sealed[opened.body()].iter().all(|byte| *byte == 5));
        out.clear();
        sender.append(class, Form::Compact, META, &body, &mut out).unwrap();
        reader.open_stored(Epoch(0), Form::Compact, META, &mut out, clear).unwrap();
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
    let made = allocations_of(|| drop(Sealer::fresh(group, slot(1), &epochs, Witness([0; 32]))));
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
                "class S, {size} bytes: {signatures} allocations in the library for two messages"
            );
        }
    }
}

/// What the library asks for to sign two messages and to verify them.
fn library_alone(size: usize) -> usize {
    use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, ParsedPublicKey};
    let pair = Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
    let public = ParsedPublicKey::new(&ED25519, pair.public_key()).unwrap();
    let message = vec![5; size];
    let twice = || {
        for _ in 0..2 {
            let signature = pair.sign(&message);
            public.verify_sig(&message, signature.as_ref()).unwrap();
        }
    };
    twice();
    allocations_of(twice)
}

#[test]
fn when_refusing() {
    for suite in Suite::ALL {
        let group = group(suite);
        let epochs = epochs(group);
        let (mut sender, mut reader) = (sealer(group, slot(1), &epochs), opener(group, &epochs));
        let first = seal(&mut sender, Class::Group, Form::Full, META, BODY);
        first.live(&mut reader).unwrap();
        let mut forged = seal(&mut sender, Class::Group, Form::Full, META, BODY).bytes;
        *forged.last_mut().unwrap() ^= 1;
        let mut replayed = first.bytes.clone();
        let mut refuse = || {
            assert!(reader.open_live(Form::Full, META, &mut forged, 0).is_err());
            assert!(reader.open_live(Form::Full, META, &mut replayed, 0).is_err());
            assert!(reader.open_live(Form::Full, META, &mut replayed[..5], 0).is_err());
        };
        // The library makes room for its list of errors once per thread.
        refuse();
        assert_eq!(allocations_of(refuse), 0);
    }
}
