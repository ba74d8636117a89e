use super::*;

#[test]
fn the_bytes_are_those_of_the_specification() {
    let announcement = Announcement { start: 0x0102_0304_0506_0708, orders: 0x1112 };
    let bytes = announcement.to_bytes();
    assert_eq!(bytes, [1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0x11, 0x12]);
    assert_eq!(Announcement::from_bytes(&bytes), Ok(announcement));
}

#[test]
fn another_length_or_version_is_refused() {
    let bytes = Announcement { start: 5, orders: 7 }.to_bytes();
    assert_eq!(Announcement::from_bytes(&bytes[1..]), Err(Error::Malformed));
    assert_eq!(Announcement::from_bytes(&[&bytes[..], &[0]].concat()), Err(Error::Malformed));
    assert_eq!(Announcement::from_bytes(&[]), Err(Error::Malformed));
    for version in [0, 2, 255] {
        let mut bytes = bytes;
        bytes[0] = version;
        assert_eq!(Announcement::from_bytes(&bytes), Err(Error::Malformed), "{version}");
    }
}
