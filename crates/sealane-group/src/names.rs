//! Names that people would take for each other.

use unicode_security::confusable_detection::skeleton;

/// Whether two names are equal or look alike: by case, by blanks around them, or by letters of
/// other scripts (Unicode Technical Standard 39, section 4).
pub(crate) fn are_alike(one: &str, other: &str) -> bool {
    let look = |name: &str| {
        let folded: String = skeleton(name.trim()).flat_map(char::to_lowercase).collect();
        skeleton(&folded).collect::<String>()
    };
    look(one) == look(other)
}

#[cfg(test)]
mod tests {
    use super::are_alike;

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
        ] {
            assert!(are_alike(one, other), "{one} {other}");
        }
        for (one, other) in [("car 1", "car 2"), ("base", "bases"), ("ada", "bob")] {
            assert!(!are_alike(one, other), "{one} {other}");
        }
    }
}
