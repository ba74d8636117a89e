use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::limits::{MAX_TOPIC_BYTES, MAX_TOPIC_SEGMENTS};

/// The name of a stream: a path of segments, `fleet/7/location` (spec/topic.md).
///
/// A segment is one or more characters other than `/`, `*` and control characters. Topics are
/// compared byte by byte; there is no case folding and no Unicode normalisation. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic(Arc<str>);

impl Topic {
    /// The topic as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The system whose own topic this is; none: it is anybody's.
    pub fn system(&self) -> Option<System> {
        System::of(first(&self.0))
    }

    /// The topic below `self`, for example the replies or the dead letters of a stream.
    ///
    /// # Errors
    /// [`TopicError`] where the whole is too long or `path` is not a topic itself.
    pub fn join(&self, path: &str) -> Result<Topic, TopicError> {
        format!("{self}/{path}").parse()
    }
}

impl FromStr for Topic {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        for segment in segments(text)? {
            if segment.contains('*') {
                return Err(TopicError::Wildcard);
            }
        }
        Ok(Topic(text.into()))
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Topics are ordered as their text is, so that maps of them can be searched by text.
impl Borrow<str> for Topic {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Topic {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// A system with topics of its own: all topics whose first segment is its name. A pattern that
/// begins with a wildcard does not reach them. So `**` means the messages of people. The messages
/// that keep a system going are read, granted and counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Dead letters, which the hub writes.
    Dead,
    /// The orders that groups obey.
    Groups,
    /// The node's own records: who changed something, and who was refused.
    Audit,
}

impl System {
    /// All of them.
    pub const ALL: [System; 3] = [System::Dead, System::Groups, System::Audit];

    /// The first segment of its topics.
    pub fn name(self) -> &'static str {
        match self {
            System::Dead => "dead",
            System::Groups => "groups",
            System::Audit => "audit",
        }
    }

    fn of(segment: &str) -> Option<System> {
        System::ALL.into_iter().find(|system| system.name() == segment)
    }
}

/// A set of topics: `*` stands for one segment, a last `**` for the rest, of any length, none
/// included. A pattern without either names one topic. A first segment that is a wildcard stands
/// for no [`System`]'s name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Topic);

impl Pattern {
    /// Whether `topic` belongs to the set.
    pub fn matches(&self, topic: &Topic) -> bool {
        if self.begins_open() && topic.system().is_some() {
            return false;
        }
        let mut names = topic.as_str().split('/');
        for segment in self.0.as_str().split('/') {
            match segment {
                "**" => return true,
                "*" if names.next().is_some() => {}
                name if names.next() == Some(name) => {}
                _ => return false,
            }
        }
        names.next().is_none()
    }

    /// Whether every topic of `other` belongs to this set, too.
    pub fn covers(&self, other: &Pattern) -> bool {
        if self.begins_open() && System::of(first(other.as_str())).is_some() {
            return false;
        }
        // No topic is empty, so that everything is a segment and the rest.
        let asked = if other.as_str() == "**" { "*/**" } else { other.as_str() };
        let mut asked = asked.split('/');
        for segment in self.as_str().split('/') {
            match (segment, asked.next()) {
                ("**", _) => return true,
                (_, None | Some("**")) => return false,
                ("*", Some(_)) => {}
                (name, Some(named)) if name == named => {}
                _ => return false,
            }
        }
        asked.next().is_none()
    }

    /// Whether its first segment is a wildcard, so that no [`System`]'s topic belongs to the set.
    pub fn begins_open(&self) -> bool {
        self.as_str().starts_with('*')
    }

    /// Whether any topic belongs to both sets.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        // A wildcard in front stands for no system's name.
        let meets =
            |open: &Pattern, named: &Pattern| open.begins_open() && named.system().is_some();
        if meets(self, other) || meets(other, self) {
            return false;
        }
        let (mut ours, mut theirs) = (self.as_str().split('/'), other.as_str().split('/'));
        loop {
            // No topic is empty, so that a rest which is all of a pattern stands for one name.
            match (ours.next(), theirs.next()) {
                (Some("**"), _) | (_, Some("**")) => return true,
                (Some(our), Some(their)) if our == "*" || their == "*" || our == their => {}
                (None, None) => return true,
                _ => return false,
            }
        }
    }

    /// How exactly the set is described; the greater, the more exactly: first by the longest run of
    /// names without a wildcard between them, then by whether it ends with no `**`.
    pub fn exactness(&self) -> PatternExactness {
        let (mut run, mut longest, mut has_rest) = (0, 0, false);
        for segment in self.as_str().split('/') {
            run = if segment == "*" || segment == "**" { 0 } else { run + 1 };
            longest = longest.max(run);
            has_rest = segment == "**";
        }
        PatternExactness { longest, is_closed: !has_rest }
    }

    /// The system that all topics of the set belong to; none: there is no such system.
    pub fn system(&self) -> Option<System> {
        System::of(first(self.as_str()))
    }

    /// The one topic that this pattern names, if it has no wildcard.
    pub fn topic(&self) -> Option<&Topic> {
        if self.0.as_str().contains('*') { None } else { Some(&self.0) }
    }

    /// The common beginning of all topics of the set; empty where nothing is common to all.
    pub fn beginning(&self) -> &str {
        let Some((beginning, rest)) = self.as_str().split_once('*') else { return self.as_str() };
        // The rest may be of no length: `a/**` has `a`.
        let is_rest = rest == "*";
        beginning.strip_suffix('/').filter(|_| is_rest).unwrap_or(beginning)
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// How exactly a [`Pattern`] describes its topics. Of two rules for the same topic the more exact
/// one holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PatternExactness {
    /// Names in the longest run of them.
    longest: usize,
    /// Whether the number of segments is fixed.
    is_closed: bool,
}

impl FromStr for Pattern {
    type Err = TopicError;

    fn from_str(text: &str) -> Result<Self, TopicError> {
        let mut rest_seen = false;
        for segment in segments(text)? {
            let wildcard = segment == "*" || segment == "**";
            if rest_seen || (segment.contains('*') && !wildcard) {
                return Err(TopicError::Wildcard);
            }
            rest_seen = segment == "**";
        }
        Ok(Pattern(Topic(text.into())))
    }
}

impl From<Topic> for Pattern {
    fn from(topic: Topic) -> Self {
        Pattern(topic)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

crate::errors! {
    /// The error codes of topics.
    pub const ERRORS;

    /// Why a text is no topic or pattern.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum TopicError {
        /// Empty, or an empty segment: a leading, trailing or double `/`.
        #[error("a topic needs a name between its slashes")]
        #[code("SL-TOPIC-01", "InvalidTopic", exit = Usage)]
        #[cause("the topic or pattern is not well formed")]
        #[hint("Use names joined by single slashes, like fleet/7/location; `*` and `**` only in \
                patterns.")]
        Empty,
        /// Longer than [`MAX_TOPIC_BYTES`] or deeper than [`MAX_TOPIC_SEGMENTS`].
        #[error("the topic is longer than {MAX_TOPIC_BYTES} bytes or {MAX_TOPIC_SEGMENTS} \
                 segments")]
        #[same_as(Empty)]
        TooLong,
        /// A control character.
        #[error("the topic holds a control character")]
        #[same_as(Empty)]
        Control,
        /// `*` where no wildcard is allowed: in a topic, inside of a name, or after `**`.
        #[error("`*` stands for a whole segment of a pattern, `**` only for its last")]
        #[same_as(Empty)]
        Wildcard,
    }
}

fn first(text: &str) -> &str {
    text.split('/').next().unwrap_or_default()
}

fn segments(text: &str) -> Result<std::str::Split<'_, char>, TopicError> {
    if text.len() > MAX_TOPIC_BYTES || text.split('/').count() > MAX_TOPIC_SEGMENTS {
        return Err(TopicError::TooLong);
    }
    if text.split('/').any(str::is_empty) {
        return Err(TopicError::Empty);
    }
    if text.chars().any(char::is_control) {
        return Err(TopicError::Control);
    }
    Ok(text.split('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, topic: &str) -> bool {
        pattern.parse::<Pattern>().unwrap().matches(&topic.parse().unwrap())
    }

    #[test]
    fn patterns_match_by_segment() {
        assert!(matches("fleet/*/location", "fleet/7/location"));
        assert!(!matches("fleet/*/location", "fleet/7/8/location"));
        assert!(!matches("fleet/*", "fleet"));
        assert!(matches("fleet/**", "fleet/7/location"));
        assert!(matches("fleet/**", "fleet"));
        assert!(!matches("fleet/**", "fleets"));
        assert!(matches("**", "a/b/c"));
        assert!(matches("a/b", "a/b"));
        assert!(!matches("a/b", "a/b/c"));
    }

    #[test]
    fn the_topics_of_systems_are_matched_by_their_names_alone() {
        let of_systems =
            ["dead", "dead/a", "dead/a/b", "groups/0a1b2c3d", "groups/a/b", "audit/node"];
        for topic in of_systems {
            for open in ["**", "*", "*/*", "*/**", "*/a", "*/a/b", "*/*/b", "*/0a1b2c3d"] {
                assert!(!matches(open, topic), "{open} {topic}");
            }
            assert!(matches(topic, topic));
        }
        assert!(matches("dead/**", "dead/a/b") && matches("dead/*", "dead/a"));
        assert!(matches("groups/*", "groups/0a1b2c3d") && matches("groups/**", "groups/a/b"));
        // Names that only begin alike, or stand elsewhere, are anybody's.
        for topic in ["deadline/a", "a/dead/b", "group/a", "Groups/a", "reply/dead"] {
            assert!(matches("**", topic), "{topic}");
        }
    }

    #[test]
    fn all_topics_of_a_pattern_begin_alike() {
        let beginnings = [
            ("fleet/*/location", "fleet/"),
            ("fleet/**", "fleet"),
            ("fleet/*", "fleet/"),
            ("fleet/*/**", "fleet/"),
            ("fleet/7", "fleet/7"),
            ("*/location", ""),
            ("**", ""),
        ];
        for (pattern, beginning) in beginnings {
            assert_eq!(pattern.parse::<Pattern>().unwrap().beginning(), beginning, "{pattern}");
        }
        let patterns = paths(&["a", "b", "*", "**"], 3);
        for pattern in patterns.iter().filter_map(|text| text.parse::<Pattern>().ok()) {
            for topic in paths(&["a", "b", "ab"], 4) {
                let begins = topic.starts_with(pattern.beginning());
                assert!(begins || !pattern.matches(&topic.parse().unwrap()), "{pattern} {topic}");
            }
        }
    }

    #[test]
    fn two_patterns_overlap_where_a_topic_matches_both() {
        let texts = paths(&["a", "b", "dead", "*", "**"], 3);
        let patterns: Vec<Pattern> = texts.iter().filter_map(|text| text.parse().ok()).collect();
        let topics = paths(&["a", "b", "dead"], 4);
        let topics: Vec<Topic> = topics.iter().map(|text| text.parse().unwrap()).collect();
        for one in &patterns {
            for other in &patterns {
                let shared = topics.iter().any(|topic| one.matches(topic) && other.matches(topic));
                assert_eq!(one.overlaps(other), shared, "{one} {other}");
            }
        }
    }

    #[test]
    fn the_longest_run_of_names_is_the_most_exact() {
        let exactness = |text: &str| text.parse::<Pattern>().unwrap().exactness();
        let ascending = ["**", "*", "a/**", "a/*", "a/b/**", "*/a/b", "a/b/c/**", "a/b/c"];
        assert!(ascending.is_sorted_by(|less, more| exactness(less) < exactness(more)));
        for (one, other) in [("a/*", "*/a"), ("a/**", "a/*/**"), ("a/*/b", "a")] {
            assert_eq!(exactness(one), exactness(other), "{one} {other}");
        }
    }

    #[test]
    fn malformed_names_are_refused_by_cause() {
        let topic = |text: &str| text.parse::<Topic>().unwrap_err();
        let pattern = |text: &str| text.parse::<Pattern>().unwrap_err();
        assert_eq!(topic(""), TopicError::Empty);
        assert_eq!(topic("/a"), TopicError::Empty);
        assert_eq!(topic("a//b"), TopicError::Empty);
        assert_eq!(topic("a/"), TopicError::Empty);
        assert_eq!(topic("a/\n"), TopicError::Control);
        assert_eq!(topic(&"x".repeat(256)), TopicError::TooLong);
        assert_eq!(topic(&["a"; 17].join("/")), TopicError::TooLong);
        assert_eq!(topic("a/*"), TopicError::Wildcard);
        assert_eq!(pattern("a/x*"), TopicError::Wildcard);
        assert_eq!(pattern("**/a"), TopicError::Wildcard);
    }

    /// All paths of up to `depth` of these segments.
    fn paths(segments: &[&str], depth: usize) -> Vec<String> {
        let mut all: Vec<String> = segments.iter().map(|segment| (*segment).to_owned()).collect();
        for _ in 1..depth {
            let longer: Vec<String> = all
                .iter()
                .flat_map(|path| segments.iter().map(move |segment| format!("{path}/{segment}")))
                .collect();
            all.extend(longer);
        }
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn what_covers_a_pattern_matches_all_that_it_matches() {
        let topics = paths(&["a", "b", "dead"], 4);
        let topics: Vec<Topic> = topics.iter().map(|topic| topic.parse().unwrap()).collect();
        let patterns = paths(&["a", "b", "dead", "*", "**"], 3);
        let patterns: Vec<Pattern> = patterns.iter().filter_map(|text| text.parse().ok()).collect();
        for granted in &patterns {
            for asked in &patterns {
                let mut of_asked = topics.iter().filter(|topic| asked.matches(topic));
                let all = of_asked.all(|topic| granted.matches(topic));
                assert_eq!(granted.covers(asked), all, "{granted} covers {asked}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_topic_matches_itself_and_everything(text in "[a-z]{1,4}(/[a-z]{1,4}){0,5}") {
            prop_assert!(matches(&text, &text));
            prop_assert!(matches("**", &text));
            let stars = vec!["*"; text.split('/').count()].join("/");
            prop_assert!(matches(&stars, &text));
        }
    }
}
