//! The rules of retention, and which of them holds for a stream.
//!
//! A stream's own bounds win, each for itself. All others are those of the most exact rule whose
//! pattern matches, as a whole, and without a rule those of the hub's default. So a rule also
//! bounds streams that were made before it, and no rule takes back what somebody set for one.

use std::sync::Arc;

use sealane_message::{Pattern, Topic};
use sealane_protocol::RetentionRule;

use crate::commit::RuleRow;
use crate::limits::MAX_RULES;
use crate::store::{StoreFault, StreamSettings};
use crate::writer::CommandRefusal;
use crate::{Error, Retention};

/// The rules of a hub.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleTable {
    /// The most exact one first.
    rules: Vec<RetentionRule>,
    /// For streams that no rule matches; those of systems have none.
    default: Retention,
}

/// The bounds that hold for a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HeldBounds {
    pub(crate) retention: Retention,
    /// The pattern of the rule that some of them are of; empty: of the default; none: all are the
    /// stream's own, or there are none.
    pub(crate) rule: Option<Arc<str>>,
}

impl RuleTable {
    /// The stored rules, with the default of this start.
    ///
    /// # Errors
    /// [`StoreFault::NotAStore`] where a row is damaged.
    pub(crate) fn of_rows(rows: Vec<RuleRow>, default: Retention) -> Result<Self, StoreFault> {
        let mut table = Self { rules: Vec::new(), default };
        for RuleRow { pattern, retention, created_ms, maker } in rows {
            // Without this rule a broader one would remove what it keeps. Nothing is opened then,
            // as with a stream's row.
            let pattern = pattern.parse().map_err(|error| {
                StoreFault::NotAStore(format!("the rule of retention `{pattern}`: {error}"))
            })?;
            table.rules.push(RetentionRule { pattern, retention, created_ms, maker });
        }
        table.sort();
        Ok(table)
    }

    fn sort(&mut self) {
        // The text decides between two that no topic has in common, so that lists stay in order.
        self.rules.sort_by(|a, b| {
            let exactness = b.pattern.exactness().cmp(&a.pattern.exactness());
            exactness.then_with(|| a.pattern.as_str().cmp(b.pattern.as_str()))
        });
    }

    /// All of them, the most exact one first.
    pub(crate) fn all(&self) -> &[RetentionRule] {
        &self.rules
    }

    pub(crate) fn default_bounds(&self) -> Retention {
        self.default
    }

    /// Whether anything is removed by the default or a rule.
    pub(crate) fn is_bounded(&self) -> bool {
        !self.default.keeps_all() || self.rules.iter().any(|rule| !rule.retention.keeps_all())
    }

    /// Refuses a rule beside which neither it nor another one would be the more exact.
    pub(crate) fn check(&self, pattern: &Pattern) -> Result<(), CommandRefusal> {
        let is_same = |rule: &&RetentionRule| rule.pattern == *pattern;
        let exactness = pattern.exactness();
        let ties = |rule: &&RetentionRule| {
            rule.pattern.exactness() == exactness && rule.pattern.overlaps(pattern)
        };
        if let Some(other) = self.rules.iter().filter(|rule| !is_same(rule)).find(ties) {
            let (pattern, other) = (pattern.to_string(), other.pattern.to_string());
            return Err(CommandRefusal::RuleTie { pattern, other });
        }
        if self.rules.len() >= MAX_RULES && !self.rules.iter().any(|rule| is_same(&rule)) {
            return Err(CommandRefusal::TooMany { what: "rules", limit: MAX_RULES as u64 });
        }
        Ok(())
    }

    /// Refuses a rule of a maker that has made so many others already.
    pub(crate) fn check_share(
        &self,
        pattern: &Pattern,
        maker: &str,
        share: usize,
    ) -> Result<(), CommandRefusal> {
        let others = self.rules.iter().filter(|rule| rule.maker == maker);
        if others.filter(|rule| rule.pattern != *pattern).count() < share {
            return Ok(());
        }
        let (owner, limit) = (maker.to_owned(), share as u64);
        let taken = Error::ShareTaken { owner, what: "rules of retention", limit };
        Err(CommandRefusal::Share(Box::new(taken)))
    }

    /// These rules and one more, in the place of one of the same pattern.
    pub(crate) fn with(&self, rule: RetentionRule) -> Self {
        let mut table = self.without(&rule.pattern);
        table.rules.push(rule);
        table.sort();
        table
    }

    /// These rules without that of a pattern.
    pub(crate) fn without(&self, pattern: &Pattern) -> Self {
        let others = self.rules.iter().filter(|rule| rule.pattern != *pattern);
        Self { rules: others.cloned().collect(), default: self.default }
    }

    pub(crate) fn has(&self, pattern: &Pattern) -> bool {
        self.rules.iter().any(|rule| rule.pattern == *pattern)
    }

    /// The bounds of a stream.
    pub(crate) fn bounds(&self, topic: &Topic, settings: &StreamSettings) -> HeldBounds {
        let rule = self.rules.iter().find(|rule| rule.pattern.matches(topic));
        // The default is as a rule `**` would be, which stands for no topic of a system: orders of
        // groups are read from the first one on.
        let default = || if topic.system().is_none() { self.default } else { Retention::default() };
        let (others, name) = match rule {
            Some(rule) => (rule.retention, rule.pattern.as_str()),
            None => (default(), ""),
        };
        let (own, stored) = (settings.own_bounds, settings.retention);
        let of = |is_own: bool, stored: u64, other: u64| if is_own { stored } else { other };
        let retention = Retention {
            max_age_ms: of(own.max_age, stored.max_age_ms, others.max_age_ms),
            max_count: of(own.max_count, stored.max_count, others.max_count),
            max_bytes: of(own.max_bytes, stored.max_bytes, others.max_bytes),
        };
        let is_all_own = own.max_age && own.max_count && own.max_bytes;
        let is_held = !is_all_own && (rule.is_some() || !others.keeps_all());
        HeldBounds { retention, rule: is_held.then(|| name.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use crate::store::OwnBounds;

    fn rule(pattern: &str, max_age_ms: u64) -> RetentionRule {
        let retention = Retention { max_age_ms, ..Retention::default() };
        let pattern = pattern.parse().unwrap();
        RetentionRule { pattern, retention, created_ms: 0, maker: String::new() }
    }

    fn table(rules: &[(&str, u64)], default_ms: u64) -> RuleTable {
        let default = Retention { max_age_ms: default_ms, ..Retention::default() };
        let empty = RuleTable::of_rows(Vec::new(), default).unwrap();
        rules.iter().fold(empty, |table, (pattern, age)| {
            table.check(&pattern.parse().unwrap()).unwrap();
            table.with(rule(pattern, *age))
        })
    }

    fn settings(own_bounds: OwnBounds, retention: Retention) -> StreamSettings {
        StreamSettings { level: Level::Os, retention, own_bounds }
    }

    fn held(table: &RuleTable, topic: &str) -> (u64, Option<String>) {
        let settings = settings(OwnBounds::default(), Retention::default());
        let bounds = table.bounds(&topic.parse().unwrap(), &settings);
        (bounds.retention.max_age_ms, bounds.rule.map(|rule| rule.to_string()))
    }

    #[test]
    fn the_most_exact_rule_holds_and_the_default_where_there_is_none() {
        let rules =
            [("fleet/**", 1), ("fleet/7/**", 2), ("fleet/*", 3), ("*/x/y", 4), ("fleet/x", 5)];
        let table = table(&rules, 9);
        for (topic, age, rule) in [
            ("fleet/7/location", 2, "fleet/7/**"),
            ("fleet/8/location", 1, "fleet/**"),
            ("fleet/8", 3, "fleet/*"),
            ("fleet/7", 2, "fleet/7/**"),
            ("fleet/x", 5, "fleet/x"),
            ("other/x/y", 4, "*/x/y"),
            ("other", 9, ""),
        ] {
            assert_eq!(held(&table, topic), (age, Some(rule.to_owned())), "{topic}");
        }
        for of_system in ["dead/fleet/7", "groups/0a1b2c3d", "audit/node"] {
            assert_eq!(held(&table, of_system), (0, None), "{of_system}");
        }
    }

    #[test]
    fn a_bound_of_the_streams_own_wins_for_itself() {
        let rules = RuleTable::default();
        let retention = Retention { max_age_ms: 1, max_count: 2, max_bytes: 3 };
        let all = RetentionRule { retention, ..rule("a/**", 0) };
        let rules = rules.with(all);
        let own = OwnBounds { max_count: true, ..OwnBounds::default() };
        // No bound is a bound of its own, too.
        let stream = settings(own, Retention::default());
        let bounds = rules.bounds(&"a/b".parse().unwrap(), &stream);
        assert_eq!(bounds.retention, Retention { max_count: 0, ..retention });
        assert_eq!(bounds.rule.as_deref(), Some("a/**"));
        let own = OwnBounds { max_age: true, max_count: true, max_bytes: true };
        let bounds = rules.bounds(&"a/b".parse().unwrap(), &settings(own, Retention::default()));
        assert_eq!(bounds, HeldBounds::default());
    }

    #[test]
    fn beside_a_damaged_rule_none_holds() {
        let row = |pattern: &str, max_count| RuleRow {
            pattern: pattern.to_owned(),
            retention: Retention { max_count, ..Retention::default() },
            created_ms: 0,
            maker: String::new(),
        };
        let opened = RuleTable::of_rows(vec![row("**", 1), row("ke//pt", 0)], Retention::default());
        let Err(StoreFault::NotAStore(said)) = opened else { panic!("{opened:?}") };
        assert!(said.contains("`ke//pt`"), "{said}");
    }

    #[test]
    fn a_tie_is_refused_when_it_is_made_and_so_is_one_rule_too_many() {
        let rules = table(&[("a/*", 1), ("b/**", 1)], 0);
        let refused = |pattern: &str| rules.check(&pattern.parse().unwrap()).is_err();
        for tied in ["*/a", "b/*/**", "*/b/**"] {
            assert!(refused(tied), "{tied}");
        }
        for fine in ["a/*", "*/a/b", "a/**", "c/*", "**"] {
            assert!(!refused(fine), "{fine}");
        }
        let mut many = RuleTable::default();
        for n in 0..MAX_RULES {
            many = many.with(rule(&format!("s/{n}"), 1));
        }
        let more = many.check(&"s/more".parse().unwrap());
        let limit = MAX_RULES as u64;
        assert_eq!(more, Err(CommandRefusal::TooMany { what: "rules", limit }));
        assert_eq!(many.check(&"s/0".parse().unwrap()), Ok(()), "one that is there may change");
    }

    #[test]
    fn a_maker_has_its_share_of_the_rules_and_leaves_others_theirs() {
        let made = |pattern: &str| RetentionRule { maker: "a".to_owned(), ..rule(pattern, 1) };
        let rules = RuleTable::default().with(made("x/*")).with(made("y/*"));
        let may = |pattern: &str, maker, share| {
            rules.check_share(&pattern.parse().unwrap(), maker, share).is_ok()
        };
        assert!(!may("z/*", "a", 2) && may("z/*", "a", 3) && may("z/*", "b", 2));
        assert!(may("x/*", "a", 2), "one of its own may change");
    }
}
