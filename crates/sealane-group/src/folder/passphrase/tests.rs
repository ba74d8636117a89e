use super::*;

const PASSPHRASE: &[u8] = b"correct horse battery staple";
const PAYLOAD: &[u8] = b"a folder's secrets";
/// Where the salt stands: behind four letters, the version, and the byte that says *protected*.
const SALT_AT: usize = 6;
const COST_AT: usize = SALT_AT + 16;
const WRAPPED_AT: usize = COST_AT + 12;
const NONCE_AT: usize = WRAPPED_AT + 48;
const SEALED_AT: usize = NONCE_AT + 12;

fn protected() -> Vec<u8> {
    seal(GroupDocument::IdentityFile, Some(PASSPHRASE), PAYLOAD).unwrap().0.to_vec()
}

/// The payload by the specification alone: `argon2` with a salt and a cost that are given here.
fn opened_by_hand(bytes: &[u8], salt: &[u8], [memory, passes, lanes]: [u32; 3]) -> Option<Vec<u8>> {
    let params = argon2::Params::new(memory, passes, lanes, Some(32)).unwrap();
    let mut wrapping = [0; 32];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into(PASSPHRASE, salt, &mut wrapping).unwrap();
    let (head, wrapped) = (&bytes[SALT_AT..WRAPPED_AT], &bytes[WRAPPED_AT..NONCE_AT]);
    let key = open_box(&wrapping, [0; 12], head, wrapped)?;
    let nonce = bytes[NONCE_AT..SEALED_AT].try_into().unwrap();
    let payload = open_box(
        key.as_slice().try_into().unwrap(),
        nonce,
        &bytes[..NONCE_AT],
        &bytes[SEALED_AT..],
    );
    Some(payload?.to_vec())
}

/// 64 MiB, three passes, four lanes: the second choice of RFC 9106, section 4.
#[test]
fn a_file_names_its_cost_and_opens_with_the_salt_that_it_names() {
    let bytes = protected();
    let cost = [[0, 1, 0, 0], [0, 0, 0, 3], [0, 0, 0, 4]].concat();
    assert_eq!(bytes[COST_AT..WRAPPED_AT], cost);
    let salt = &bytes[SALT_AT..COST_AT];
    assert_eq!(opened_by_hand(&bytes, salt, [65_536, 3, 4]).as_deref(), Some(PAYLOAD));
    assert_eq!(opened_by_hand(&bytes, &[0; 16], [65_536, 3, 4]), None, "another salt");
    assert_eq!(opened_by_hand(&bytes, salt, [64, 1, 1]), None, "a lower cost");
    assert_ne!(protected()[SALT_AT..COST_AT], *salt, "each file has a salt of its own");
    let (opened, _) = open(GroupDocument::IdentityFile, &bytes, Some(PASSPHRASE)).unwrap();
    assert_eq!(opened.as_slice(), PAYLOAD);
}

#[test]
fn another_salt_or_cost_in_the_file_opens_nothing() {
    let bytes = protected();
    let refused = |at: usize, value: u8| {
        let mut changed = bytes.clone();
        changed[at] = value;
        open(GroupDocument::IdentityFile, &changed, Some(PASSPHRASE)).unwrap_err()
    };
    let salt = refused(SALT_AT, bytes[SALT_AT] ^ 1);
    assert!(matches!(salt, Error::PassphraseWrong), "{salt}");
    let passes = refused(COST_AT + 7, 2);
    assert!(matches!(passes, Error::PassphraseWrong), "{passes}");
    // More than the bound is refused before anything is derived.
    let memory = refused(COST_AT, 1);
    assert!(matches!(memory, Error::Malformed(_)), "{memory}");
}
