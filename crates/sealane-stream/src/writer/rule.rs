//! Rules of retention that come and go by a commit.

use sealane_message::Pattern;
use sealane_protocol::RetentionRule;

use super::command::{CommandAnswer, CommandRefusal, RuleCommand, WriterCommand};
use super::plan::{CommitPlan, CommitPlanner};
use crate::commit::{RuleRow, StoreChange};
use crate::registry::StreamRegistry;

/// The action on a rule.
#[derive(Debug, Clone)]
pub(crate) enum RuleDeed {
    /// The rule holds, in the place of one of the same pattern.
    Set(RetentionRule),
    /// The rule of this pattern holds no more.
    Remove(Pattern),
}

impl RuleDeed {
    fn pattern(&self) -> &Pattern {
        match self {
            RuleDeed::Set(rule) => &rule.pattern,
            RuleDeed::Remove(pattern) => pattern,
        }
    }

    /// The change of the store.
    pub(super) fn change(&self) -> StoreChange {
        match self {
            RuleDeed::Set(RetentionRule { pattern, retention, created_ms, maker }) => {
                let (pattern, maker) = (pattern.to_string(), maker.clone());
                let (retention, created_ms) = (*retention, *created_ms);
                StoreChange::KeepRule(Box::new(RuleRow { pattern, retention, created_ms, maker }))
            }
            RuleDeed::Remove(pattern) => StoreChange::RemoveRule { pattern: pattern.to_string() },
        }
    }

    /// The commit stands.
    pub(super) fn settle(self, registry: &StreamRegistry) {
        let (rules, pattern) = (registry.rules(), self.pattern().clone());
        let rules = match self {
            RuleDeed::Set(rule) => rules.with(rule),
            RuleDeed::Remove(pattern) => rules.without(&pattern),
        };
        registry.hold(rules, Some(&pattern));
    }
}

impl CommitPlan {
    /// Plans a rule, or notes its refusal.
    pub(super) fn set_rule(&mut self, planner: &CommitPlanner, command: RuleCommand) {
        // Two rules of one commit would each have to be checked against the other.
        if self.rule.is_some() {
            self.replies.defer(WriterCommand::Rule(command));
            return;
        }
        let RuleCommand { deed, reply } = command;
        let rules = planner.registry.rules();
        let result = match &deed {
            RuleDeed::Set(rule) => rules.check(&rule.pattern).and_then(|()| {
                let share = planner.registry.shares.rules_of_a_maker();
                rules.check_share(&rule.pattern, &rule.maker, share)
            }),
            RuleDeed::Remove(pattern) if rules.has(pattern) => Ok(()),
            RuleDeed::Remove(pattern) => Err(CommandRefusal::UnknownRule(pattern.to_string())),
        };
        let removes = matches!(deed, RuleDeed::Remove(_));
        if result.is_ok() {
            self.rule = Some(deed);
        }
        self.replies.push(None, CommandAnswer::Rule { reply, result, removes });
    }
}
