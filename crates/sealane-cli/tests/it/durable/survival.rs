//! The levels whose messages survive with the node.

/// The levels of which all that was acknowledged is there afterwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Survival(pub(crate) &'static [&'static str]);

impl Survival {
    pub(crate) fn keeps(self, level: &str) -> bool {
        self.0.contains(&level)
    }
}
