use super::*;

fn announcement(own: Option<u8>, answers: &[u8]) -> Announcement {
    let question = |byte: u8| ReaderQuestion([byte; 8]);
    let answers = answers.iter().copied().map(question).collect();
    let questions = AnnouncedQuestions { own: own.map(question), answers };
    Announcement { start: 0x0102_0304_0506_0708, orders: 0x1112, questions }
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let head = [2, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0x11, 0x12];
    for (own, answers, questions) in [
        (None, &[][..], vec![]),
        (Some(7), &[], vec![[7; 8]]),
        (Some(7), &[8, 9], vec![[7; 8], [8; 8], [9; 8]]),
        (None, &[8], vec![[0; 8], [8; 8]]),
    ] {
        let announcement = announcement(own, answers);
        let bytes = announcement.to_bytes();
        assert_eq!(bytes, [&head[..], &questions.concat()].concat());
        assert_eq!(Announcement::from_bytes(&bytes), Ok(announcement));
    }
}

#[test]
fn another_length_or_version_is_refused() {
    let refused = |bytes: &[u8]| {
        assert_eq!(Announcement::from_bytes(bytes), Err(Error::Malformed), "{bytes:?}");
    };
    let most = vec![8; MAX_ANSWERS];
    for answers in [&[][..], &[9], &most] {
        let bytes = announcement(Some(7), answers).to_bytes();
        assert!(Announcement::has_length(bytes.len()));
        (0..bytes.len()).filter(|len| len % 8 != 1).for_each(|len| refused(&bytes[..len]));
        refused(&[&bytes[..], &[0]].concat());
        for version in [0, 1, 3, 255] {
            refused(&[&[version], &bytes[1..]].concat());
        }
    }
    refused(&[&announcement(Some(7), &most).to_bytes()[..], &[9; 8]].concat());
    refused(&[&announcement(None, &[]).to_bytes()[..], &[0; 8]].concat());
    refused(&announcement(None, &[]).to_bytes()[..9]);
}

/// More answers than fit are left out; they are asked for again.
#[test]
fn answers_beyond_the_limit_are_left_out() {
    let bytes = announcement(Some(7), &[8; MAX_ANSWERS + 3]).to_bytes();
    assert_eq!(bytes.len(), Announcement::MIN_BYTES + 8 * (1 + MAX_ANSWERS));
    assert!(Announcement::from_bytes(&bytes).is_ok());
}
