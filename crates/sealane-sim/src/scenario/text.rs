//! Where in a scenario something is wrong, and what was probably meant.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::SimError;

/// A table of the file, to be named when something in it is wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScenarioSpot<'a> {
    pub(super) text: &'a str,
    /// Where the table begins.
    pub(super) at: usize,
    pub(super) table: &'static str,
    pub(super) name: &'a str,
}

impl ScenarioSpot<'_> {
    /// The error for a fault in this table.
    pub(super) fn refuses(&self, what: impl Display) -> SimError {
        let (line, table, name) = (line_of(self.text, self.at), self.table, self.name);
        let name = if name.is_empty() { String::new() } else { format!(" `{name}`") };
        // All tables but this one are lists.
        let table = if table == "mesh" { "[mesh]" } else { &format!("[[{table}]]") };
        SimError::Value(format!("line {line}: {table}{name}: {what}"))
    }

    /// A number within its bounds, or what is usual.
    pub(super) fn number(
        &self,
        key: &str,
        value: Option<f64>,
        usual: f64,
        bounds: RangeInclusive<f64>,
    ) -> Result<f64, SimError> {
        match value {
            None => Ok(usual),
            // Not so for what is no number.
            Some(value) if bounds.contains(&value) => Ok(value),
            Some(value) => {
                let (least, most) = bounds.into_inner();
                Err(self.refuses(format!("{key} = {value} is not from {least} to {most}")))
            }
        }
    }

    /// The same for a key that must be there.
    pub(super) fn needed(
        &self,
        key: &str,
        value: Option<f64>,
        bounds: RangeInclusive<f64>,
    ) -> Result<f64, SimError> {
        let value = value.ok_or_else(|| self.refuses(format!("{key} is missing")))?;
        self.number(key, Some(value), value, bounds)
    }

    /// A name of lower-case letters, digits and `-`, at most 32.
    pub(super) fn plain_name(&self) -> Result<(), SimError> {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=32).contains(&self.name.len()) && self.name.bytes().all(is_plain) {
            return Ok(());
        }
        Err(self.refuses("a name is 1 to 32 of a to z, 0 to 9 and -"))
    }

    /// A word that is one of those known.
    pub(super) fn known(&self, key: &str, word: &str, known: &[&str]) -> Result<(), SimError> {
        if known.contains(&word) {
            return Ok(());
        }
        let hint = nearest(word, known.iter().copied());
        let hint = hint.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
        Err(self.refuses(format!("{key} `{word}` is none of {}{hint}", known.join(", "))))
    }

    /// Keys that do not go with the kind that a table is of.
    pub(super) fn none_of(&self, kind: &str, keys: &[(&str, bool)]) -> Result<(), SimError> {
        match keys.iter().find(|(_, is_there)| *is_there) {
            Some((key, _)) => Err(self.refuses(format!("{key} does not go with `{kind}`"))),
            None => Ok(()),
        }
    }
}

/// The error of the TOML reader, with the line, and the key that was probably meant.
pub(super) fn syntax(text: &str, error: &toml::de::Error) -> SimError {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    let said = error.message();
    let hint = meant(said).map(|key| format!("; did you mean `{key}`?")).unwrap_or_default();
    SimError::Syntax(format!("line {line}: {said}{hint}"))
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

/// Of the keys that an error lists, the one that is most like the one that is none.
fn meant(said: &str) -> Option<&str> {
    let mut quoted = said.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted)
}

/// The most similar of the other names. If two are equally similar, the one with the same first
/// letter.
pub(super) fn nearest<'a>(name: &str, others: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let begin = name.chars().next();
    let far = |other: &str| (distance(name, other), other.chars().next() != begin);
    let nearest = others.map(|other| (far(other), other)).min()?;
    (nearest.0.0 <= 1 + name.len() / 4).then_some(nearest.1)
}

/// How many letters are to be changed, put in or taken out. Names of files that others wrote may be
/// long: only the beginnings are compared.
fn distance(one: &str, other: &str) -> usize {
    let [one, other] = [one, other].map(|text| text.chars().take(64).collect::<String>());
    strsim::levenshtein(&one, &other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_known() {
        let known = [("kitten", "sitting", 3), ("", "abc", 3), ("loss", "loss", 0), ("a", "", 1)];
        for (one, other, changes) in known {
            assert_eq!(distance(one, other), changes, "{one} {other}");
        }
    }
}
