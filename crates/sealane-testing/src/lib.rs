//! The test kit: whatever the tests of several crates do in the same way stands here once.
//!
//! It is a dependency of tests alone (`dev-dependencies`), and is never shipped. Its functions
//! panic where something fails, since the caller is a test.
//!
//! | part | for | feature |
//! |---|---|---|
//! | [`until`], [`until_told`] | waiting for a condition, with one deadline for all | |
//! | [`TestProcess`], [`succeed`] | programs, their output and their end | |
//! | [`process_memory`], [`files_below`], [`holds`] | looking for secrets | |
//! | [`loopback_host`], [`free_address`] | addresses that no other test has | |
//! | [`MountedDisk`] | file systems of a test | |
//! | [`replay_corpus`] | the committed inputs of the fuzzers | |
//! | [`SeededRandom`], [`hex`], [`now_ms`] | numbers that a seed repeats, bytes as text | |
//! | [`repository`], [`run_script`] | files of the repository, scripts of `tests/js` | |
//! | `until_async` | the same waiting in async tests | `async` |
//! | `NetSpace`, `PacketRecorder` | network namespaces, and the packets on their wires | `lab` |
//!
//! ```
//! let file = std::env::temp_dir().join(format!("kit-{}", std::process::id()));
//! std::fs::write(&file, "there").unwrap();
//! sealane_testing::until("the file is there", || file.exists());
//! let said = sealane_testing::succeed(std::process::Command::new("cat").arg(&file));
//! assert_eq!(said, "there");
//! # std::fs::remove_file(&file).unwrap();
//! ```

mod address;
mod corpus;
mod damage;
mod disk;
#[cfg(feature = "lab")]
mod net_space;
#[cfg(feature = "lab")]
mod packet_recorder;
mod process;
mod random;
mod script;
mod search;
mod text;
mod wait;

pub use address::{free_address, loopback_host, numbered_host};
pub use corpus::{CorpusCheck, replay_corpus};
pub use damage::check_damaged_copies;
pub use disk::{MountedDisk, StalledDisk, require_mounts};
#[cfg(feature = "lab")]
pub use net_space::{NetSpace, lay_wire, require_namespaces};
#[cfg(feature = "lab")]
pub use packet_recorder::PacketRecorder;
pub use process::{TestProcess, feed, json_text, run, signal, succeed, until_says};
pub use random::{SeededRandom, seed_of_run};
pub use script::{npm_package, repository, run_script};
pub use search::{copy_folder, files_below, holds, process_memory, process_memory_kib};
pub use text::{hex, now_ms, unhex};
pub use wait::{PATIENCE, until, until_told};
#[cfg(feature = "async")]
pub use wait::{until_async, until_told_async};
