//! Keeping a vault honest: verifying it, proving that it restores, and letting old data go.

mod drill;
mod find;
mod inspect;
mod leaks;
mod live;
mod prune;
mod recover;
mod repair;
mod verify;

pub use drill::{DrillOptions, DrillReport};
pub use find::Found;
pub use inspect::Fact;
pub use leaks::{LeakGroup, Leaks, leaks};
pub use prune::{Keep, PruneOptions, PruneReport};
pub use recover::Recovered;
pub use repair::RepairReport;
pub use verify::VerifyReport;
