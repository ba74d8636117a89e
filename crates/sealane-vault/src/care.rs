//! Keeping a vault honest: verifying it, proving that it restores, and letting old data go.

mod diff;
mod drill;
mod dump;
mod find;
mod inspect;
mod leaks;
mod live;
mod plan;
mod prune;
mod recover;
mod repair;
mod retain;
mod verify;
mod watch;
mod whose;

pub use diff::{DifferenceKind, SnapshotDifference};
pub use drill::{DrillOptions, DrillReport};
pub use dump::DumpReport;
pub use find::SnapshotMatch;
pub use inspect::VaultObjectField;
pub use leaks::{LeakGroup, VaultLeaks, leaks};
pub use prune::{PruneOptions, PruneReport};
pub use recover::RecoveryReport;
pub use repair::RepairReport;
pub use retain::{
    RetentionGroupBy, RetentionPlan, RetentionRules, RetentionVerdict, SnapshotGroup,
};
pub use verify::{VerifyData, VerifyPart, VerifyReport};
pub use whose::SnapshotSelector;
