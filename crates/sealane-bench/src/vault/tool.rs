//! The tools: how each makes a store, keeps a folder, and gives it back.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{VaultBenchOptions, n2s};
use crate::programs::BenchPrograms;

/// The prefixes of the names of this commit's vault and of an earlier one.
pub(super) const NOW: &str = "sealane ";
pub(super) const BEFORE: &str = "before ";
const SECRET: &str = "correct horse battery staple";

/// A program with the settings of one row.
#[derive(Debug, Clone)]
pub(super) struct VaultBenchTool {
    pub(super) name: String,
    kind: VaultBenchToolKind,
    program: PathBuf,
}

#[derive(Debug, Clone, PartialEq)]
enum VaultBenchToolKind {
    /// With this compression, as `--compression` takes it; zstd at level 3.
    Sealane(&'static str),
    /// The report's pipeline, by `sealane-bench n2s`.
    N2sRust,
    /// The same in Python.
    N2sPython,
    Restic,
    /// With this compression.
    Borg(&'static str),
}

/// Every tool that is there. What is missing is shown, with what is not measured for it.
pub(super) fn find(
    programs: &BenchPrograms,
    options: &VaultBenchOptions,
    show: &mut dyn FnMut(&str),
) -> Vec<VaultBenchTool> {
    let BenchPrograms { sealane, bench } = programs;
    let vault = |whose: &str, program: &Path| {
        [("zstd-3", "zstd"), ("lz4", "lz4"), ("stored", "none")].map(|(name, codec)| {
            let kind = VaultBenchToolKind::Sealane(codec);
            VaultBenchTool::new(format!("{whose}{name}"), kind, program)
        })
    };
    let mut tools = vault(NOW, sealane).to_vec();
    show(&format!("sealane: {}", version(sealane, "--version").unwrap_or_default()));
    if let Some(before) = &options.before {
        match version(before, "--version") {
            Some(version) => {
                show(&format!("before: {version}"));
                tools.extend(vault(BEFORE, before));
            }
            None => show(&format!("{} is missing: nothing to compare with", before.display())),
        }
    }
    tools.push(VaultBenchTool::new("the report's, Rust", VaultBenchToolKind::N2sRust, bench));
    let also = options.also.iter().filter_map(|also| also.split_once('='));
    let also = also.map(|(name, path)| (name.to_owned(), PathBuf::from(path)));
    let peers = ["restic", "borg", "python3"].map(|name| (name.to_owned(), PathBuf::from(name)));
    for (name, program) in peers.into_iter().chain(also) {
        let argument = if name == "restic" { "version" } else { "--version" };
        let Some(version) = version(&program, argument) else {
            show(&format!("{name} is missing: not measured"));
            continue;
        };
        show(&format!("{name}: {version}"));
        let number = version.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let mut add = |label: String, kind| tools.push(VaultBenchTool::new(label, kind, &program));
        match &*name {
            "restic" => add(format!("restic {number}"), VaultBenchToolKind::Restic),
            "borg" => {
                add(format!("borg {number} lz4"), VaultBenchToolKind::Borg("lz4"));
                add(format!("borg {number} zstd-3"), VaultBenchToolKind::Borg("zstd,3"));
            }
            _ if has_packages(&program) => {
                add("the report's, Python".to_owned(), VaultBenchToolKind::N2sPython);
            }
            _ => show("python3 lacks blake3, lz4 or cryptography: the report's is not measured"),
        }
    }
    tools
}

fn version(program: &Path, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().next().unwrap_or_default().to_owned())
}

fn has_packages(python: &Path) -> bool {
    let imports = ["-c", "import blake3, lz4.frame, cryptography"];
    Command::new(python).args(imports).output().is_ok_and(|output| output.status.success())
}

impl VaultBenchTool {
    fn new(name: impl Into<String>, kind: VaultBenchToolKind, program: &Path) -> Self {
        Self { name: name.into(), kind, program: program.to_owned() }
    }

    /// Whether it is a vault of ours.
    pub(super) fn is_sealane(&self) -> bool {
        matches!(self.kind, VaultBenchToolKind::Sealane(_))
    }

    /// Whether it is ours with the compression that most rows use.
    pub(super) fn is_usual(&self) -> bool {
        self.kind == VaultBenchToolKind::Sealane("zstd")
    }

    /// Whether it keeps a whole folder, deduplicates, and gives it back.
    pub(super) fn is_archive(&self) -> bool {
        !matches!(self.kind, VaultBenchToolKind::N2sRust | VaultBenchToolKind::N2sPython)
    }

    fn command(&self, store: &Path) -> Command {
        let mut command = Command::new(&self.program);
        // The state that a tool keeps of a store lies beside the store and goes with it.
        let beside = store.with_extension("state");
        command.env("HOME", &beside).env("XDG_CACHE_HOME", beside.join("cache"));
        command.env("XDG_STATE_HOME", beside.join("state"));
        command.env("SEALANE_PASSPHRASE", SECRET).env("SEALANE_VAULT", store);
        command.env("RESTIC_PASSWORD", SECRET).env("RESTIC_REPOSITORY", store);
        command.env("BORG_PASSPHRASE", SECRET).env("BORG_REPO", store);
        command.env("BORG_RELOCATED_REPO_ACCESS_IS_OK", "yes");
        command
    }

    /// Makes a store; none if the tool needs nothing but a folder.
    pub(super) fn init(&self, store: &Path) -> Option<Command> {
        let mut command = self.command(store);
        match &self.kind {
            VaultBenchToolKind::Sealane(_) => command.args(["vault", "init", "--no-recovery"]),
            VaultBenchToolKind::Restic => command.arg("init"),
            VaultBenchToolKind::Borg(_) => command.args(["init", "--encryption", "repokey-blake2"]),
            VaultBenchToolKind::N2sRust | VaultBenchToolKind::N2sPython => return None,
        };
        Some(command)
    }

    /// Keeps a folder, with as many threads as there are cores.
    pub(super) fn put(&self, store: &Path, source: &Path, cores: usize) -> Command {
        let mut command = self.command(store);
        match &self.kind {
            VaultBenchToolKind::Sealane(codec) => {
                command.args(["vault", "put"]).arg(source).args(["--compression", codec]);
                command.args(["--threads", &cores.to_string()])
            }
            VaultBenchToolKind::Restic => command.args(["backup", "--quiet"]).arg(source),
            VaultBenchToolKind::Borg(compression) => {
                // Each archive has a name; the time makes it a new one.
                command.args(["create", "--compression", compression, "::{now:%H%M%S.%f}"]);
                command.arg(source)
            }
            VaultBenchToolKind::N2sRust => command.arg("n2s").arg(source).arg(store),
            VaultBenchToolKind::N2sPython => {
                command.args(["-c", n2s::PYTHON]).arg(source).arg(store)
            }
        };
        command
    }

    /// Gives the newest back, with what the tool verifies by itself.
    pub(super) fn get(&self, store: &Path, target: &Path) -> Command {
        let mut command = self.command(store);
        match &self.kind {
            VaultBenchToolKind::Sealane(_) => {
                command.args(["vault", "get", "--to"]).arg(target);
            }
            VaultBenchToolKind::Restic => {
                command.args(["restore", "--quiet", "latest", "--target"]).arg(target);
            }
            // It extracts into the folder that it is called in, an archive that it lists first.
            VaultBenchToolKind::Borg(_)
            | VaultBenchToolKind::N2sRust
            | VaultBenchToolKind::N2sPython => {
                let mut shell = Command::new("sh");
                let newest = r#"exec "$0" extract "::$("$0" list --short --last 1)""#;
                shell.args(["-c", newest]).arg(&self.program).current_dir(target);
                for (key, value) in command.get_envs() {
                    shell.env(key, value.unwrap_or_default());
                }
                command = shell;
            }
        }
        command
    }

    /// Reads one range of one file.
    pub(super) fn range(&self, store: &Path, path: &str, offset: u64, length: u64) -> Command {
        let mut command = self.command(store);
        let range = format!("{offset}+{length}");
        command.args(["vault", "get", "latest", path, "--range", &range]);
        command
    }
}
