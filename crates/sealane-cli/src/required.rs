//! Patterns of streams whose messages are of a group alone, as the configuration says.

use sealane_message::{InputError, Pattern, TopicError};

/// The groups that streams require.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequiredGroups(Vec<RequiredGroup>);

/// The group that the streams of a pattern require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequiredGroup {
    /// The streams.
    pub(crate) pattern: Pattern,
    /// The name of the group in the key folder.
    pub(crate) group: String,
}

impl RequiredGroups {
    /// The table of a file: groups by pattern.
    ///
    /// # Errors
    /// The fault of the table.
    pub(crate) fn read(table: toml::Value) -> Result<RequiredGroups, InputError> {
        let toml::Value::Table(table) = table else { return Err("`groups` is no table".into()) };
        let mut all = RequiredGroups::default();
        for (pattern, group) in table {
            let toml::Value::String(group) = group else {
                return Err(format!("the group of `{pattern}` is not text in quotes").into());
            };
            all.add(&pattern, &group)?;
        }
        Ok(all)
    }

    /// One that stands on a command line: `PATTERN=GROUP`.
    ///
    /// # Errors
    /// The fault of the text.
    pub(crate) fn add_written(&mut self, text: &str) -> Result<(), InputError> {
        let named = text.rsplit_once('=').ok_or("a required group is PATTERN=GROUP")?;
        self.add(named.0, named.1)
    }

    fn add(&mut self, pattern: &str, group: &str) -> Result<(), InputError> {
        let wrong = |error: TopicError| format!("`{pattern}`: {error}");
        let read: Pattern = pattern.parse().map_err(wrong)?;
        if group.is_empty() {
            return Err(format!("`{pattern}` requires no group").into());
        }
        self.0.push(RequiredGroup { pattern: read, group: group.to_owned() });
        Ok(())
    }

    /// All of them, in the order of the file.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RequiredGroup> {
        self.0.iter()
    }

    /// The most exact of those whose streams may be among `asked`.
    pub(crate) fn of(&self, asked: &Pattern) -> Option<&RequiredGroup> {
        let those = self.0.iter().filter(|one| one.pattern.overlaps(asked));
        those.max_by_key(|one| one.pattern.exactness())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RequiredGroups, InputError> {
        RequiredGroups::read(toml::Value::Table(text.parse().unwrap()))
    }

    #[test]
    fn the_most_exact_pattern_names_the_group() {
        let all = read("'ops/**' = 'fleet'\n'ops/medics/**' = 'medics'").unwrap();
        let of = |asked: &str| all.of(&asked.parse().unwrap()).map(|one| one.group.as_str());
        assert_eq!(of("ops/7"), Some("fleet"));
        assert_eq!(of("ops/medics/7"), Some("medics"));
        assert_eq!(of("ops"), Some("fleet"));
        assert_eq!(of("*/7"), Some("fleet"), "a reader's pattern that has one of them");
        assert_eq!(of("other/7"), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for text in ["'a/**' = 3", "'a//b' = 'fleet'", "'a' = ''"] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(RequiredGroups::read(3.into()).is_err());
        let mut all = RequiredGroups::default();
        all.add_written("a/**=fleet").unwrap();
        assert!(all.add_written("a/**").is_err());
        assert_eq!(all.iter().count(), 1);
    }
}
