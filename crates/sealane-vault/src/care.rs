//! Keeping a vault honest: verifying it, proving that it restores, and letting old data go.

mod drill;
mod find;
mod inspect;
mod leaks;
mod live;
mod prune;
mod recover;
mod repair;
mod retain;
mod verify;
mod whose;

pub use drill::{DrillOptions, DrillReport};
pub use find::Found;
pub use inspect::Fact;
pub use leaks::{LeakGroup, Leaks, leaks};
pub use prune::{PruneOptions, PruneReport};
pub use recover::Recovered;
pub use repair::RepairReport;
pub use retain::{Group, GroupBy, Keep, Retention, Verdict};
pub use verify::VerifyReport;
pub use whose::Whose;
