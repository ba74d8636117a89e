//! Names that people would take for each other, or for something else than a name.

use unicode_security::confusable_detection::skeleton;

/// Whether two names are equal or look alike: by case, by blanks, points and strokes in or around
/// them, by digits that look like letters, or by letters of other scripts (Unicode Technical
/// Standard 39, section 4).
pub(crate) fn are_alike(one: &str, other: &str) -> bool {
    look(one) == look(other)
}

/// Whether a name would be taken for a slot, or for the authority's office.
pub(crate) fn is_reserved(name: &str) -> bool {
    let is_number = name.chars().filter(|c| c.is_alphanumeric()).all(char::is_numeric);
    let look = look(name);
    let is_slot = look.strip_prefix(&self::look("slot")).is_some_and(|rest| {
        let digits: String =
            ('0'..='9').map(|digit| self::look(digit.encode_utf8(&mut [0; 4]))).collect();
        !rest.is_empty() && rest.chars().all(|c| digits.contains(c))
    });
    is_number || is_slot || look == self::look("authority")
}

/// The form in which names that look alike are equal. It has letters and digits alone, if the name
/// has any.
fn look(name: &str) -> String {
    let folded: String = skeleton(name).flat_map(char::to_lowercase).collect();
    let letters: String = folded.chars().filter(|c| c.is_alphanumeric()).map(plain).collect();
    skeleton(if letters.is_empty() { &folded } else { &letters }).collect()
}

/// The letter that people read in a character for which the standard keeps a form of its own: small
/// capitals, and digits. It leaves digits apart from each other.
fn plain(c: char) -> char {
    let found = SEEN.chars().zip(READ.chars()).find(|(seen, _)| *seen == c);
    found.map_or(c, |(_, read)| read)
}

const SEEN: &str = "2589\u{1d00}\u{299}\u{1d04}\u{1d05}\u{1d07}\u{a730}\u{262}\u{29c}\u{26a}\
     \u{1d0a}\u{1d0b}\u{138}\u{29f}\u{1d0d}\u{28d}\u{274}\u{1d0f}\u{1d18}\u{280}\u{a731}\
     \u{1d1b}\u{1d1c}\u{1d20}\u{1d21}\u{28f}\u{1d22}";
const READ: &str = "zsbgabcdefghijkklmmnoprstuvwyz";

#[cfg(test)]
mod tests {
    use super::{are_alike, is_reserved};

    #[test]
    fn names_that_look_the_same_are_alike() {
        for (one, other) in [
            ("base", "base"),
            ("base", "Base"),
            ("base", " base"),
            ("base", "b\u{430}se"),
            ("bob1", "bobl"),
            ("car", "\u{441}ar"),
            ("base", "ba\u{ad}s\u{200b}e"),
            ("base", "\u{ff42}ase"),
            ("car 1", "car\u{a0}1"),
            ("m", "rn"),
            ("bob", "bob."),
            ("bob", "8ob"),
            ("bob", "bob\u{332}"),
            ("bob", "\u{299}ob"),
            ("bob", "\u{432}ob"),
            ("car 1", "car-1"),
            ("...", "..."),
        ] {
            assert!(are_alike(one, other), "{one} {other}");
        }
        for (one, other) in
            [("car 1", "car 2"), ("base", "bases"), ("ada", "bob"), ("...", "!!!"), ("", "a")]
        {
            assert!(!are_alike(one, other), "{one} {other}");
        }
        let cars: Vec<String> = (0..10).map(|n| format!("car {n}")).collect();
        for (at, one) in cars.iter().enumerate() {
            assert!(cars.iter().skip(at + 1).all(|other| !are_alike(one, other)), "{one}");
        }
    }

    #[test]
    fn numbers_slots_and_the_authority_are_no_names() {
        for name in [
            "1",
            "007",
            " 12 ",
            "1.2",
            "\u{ff11}",
            "\u{661}",
            "slot 0",
            "slot0",
            "Slot-12",
            "s1ot 1",
            "slot O",
            "slot\u{a0}3",
            "authority",
            "Authority",
            "\u{430}uthority",
            "authority.",
            "...",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["bob", "car 1", "1st car", "slots of mine", "slot", "author", "ob", "base"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
