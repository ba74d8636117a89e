use super::*;

fn identity(seed: u8) -> Identity {
    Identity::from_seed("somebody", Zeroizing::new([seed; 32])).unwrap()
}

#[test]
fn letters_open_with_their_identity_and_purpose_only() {
    let (us, others) = (identity(1), identity(2));
    let letter = seal_to(us.public(), b"vault 7", b"a key").unwrap();
    assert_eq!(letter.len(), 1141 + 5);
    assert_eq!(us.open(b"vault 7", &letter).unwrap().as_slice(), b"a key");
    assert!(matches!(us.open(b"vault 8", &letter), Err(Error::NotForUs(_))));
    assert!(matches!(others.open(b"vault 7", &letter), Err(Error::NotForUs(_))));
    assert_ne!(letter, seal_to(us.public(), b"vault 7", b"a key").unwrap());
    for at in 0..letter.len() {
        let mut changed = letter.clone();
        changed[at] ^= 1;
        assert!(us.open(b"vault 7", &changed).is_err(), "{at}");
        assert!(us.open(b"vault 7", &letter[..at]).is_err(), "{at}");
    }
}

#[test]
fn a_public_key_is_one_line_and_reads_back() {
    let key = identity(3).public().clone();
    let text = key.to_string();
    assert!(text.starts_with("sealane1") && !text.contains(char::is_whitespace));
    assert_eq!(text.parse::<PublicKey>().unwrap(), key);
    assert_eq!(format!(" {text}\n").parse::<PublicKey>().unwrap(), key);
    let mut other = text.clone();
    let last = if other.pop() == Some('A') { 'B' } else { 'A' };
    other.push(last);
    for wrong in [&other, &text[1..], &text[..text.len() - 4], "sealane1", ""] {
        assert!(matches!(wrong.parse::<PublicKey>(), Err(Error::KeyText)), "{wrong}");
    }
}

#[test]
fn fingerprints_read_back_and_secrets_have_no_text_form() {
    let us = identity(4);
    let fingerprint = us.public().fingerprint();
    assert_eq!(fingerprint.to_string().parse::<Fingerprint>().unwrap(), fingerprint);
    assert_eq!(fingerprint.to_string().len(), 39);
    assert!("0123".parse::<Fingerprint>().is_err());
    let shown = format!("{us:?}");
    assert!(shown.contains("somebody") && !shown.contains("04, 04"), "{shown}");
}

#[test]
fn names_are_checked() {
    // The last two would be shown as `base`.
    for name in ["", "a\nb", &"x".repeat(65), "\u{202e}esab", "\u{2067}esab\u{2069}"] {
        assert!(matches!(Identity::generate(name), Err(Error::Name(_))));
    }
}
