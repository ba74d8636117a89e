//! Hundreds of megabytes in files of all sizes, and a million files.

use std::fs;
use std::path::Path;

use super::measure::VaultBench;
use super::small::{VaultBenchInput, archives, demanded, discard, folder, fresh, store};
use super::tool::VaultBenchTool;
use super::{VaultBenchRow, data};
use crate::failure::{BenchFailure, Result};

/// Files of all sizes, where reading, cutting and compressing count, and not the start.
pub(super) fn heavy(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<()> {
    let source = folder(bench, "heavy")?;
    let set = data::heavy(&source)?;
    let work = VaultBenchInput { bench, source, set, name: "450 MB mixed", cores: 1 };
    let archives = archives(tools);
    work.puts(&archives, &demanded("demanded: no slower than borg with the same codec"), add)?;
    discard(bench)
}

/// So many small files, and the memory that a vault of them takes. Each process is opened with a
/// recovery code: the 64 MiB of a passphrase's derivation would hide what it takes itself.
pub(super) fn million(
    bench: &VaultBench,
    tools: &[VaultBenchTool],
    files: u64,
    add: &mut dyn FnMut(VaultBenchRow),
) -> Result<()> {
    let ours: Vec<VaultBenchTool> = tools.iter().filter(|tool| tool.is_usual()).cloned().collect();
    if ours.is_empty() {
        return Ok(());
    }
    let source = folder(bench, "million")?;
    let set = data::million(&source, files)?;
    let work = VaultBenchInput { bench, source, set, name: "10^6 files", cores: 1 };
    let note = demanded("no Argon2id; demanded: <= 64 MiB");
    let mut first = |_, tool: &VaultBenchTool| {
        let store = fresh(bench, tool)?;
        keep_code(tool, &store)?;
        let put = with_code(tool.put(&store, &work.source, 1), &store);
        Ok((bench.run(&put, 1)?, None))
    };
    work.rounds(&ours, "10^6 files, put", &note, &mut first, add)?;
    let mut again = |_, tool: &VaultBenchTool| {
        let store = store(bench, tool);
        let put = with_code(tool.put(&store, &work.source, 1), &store);
        Ok((bench.run(&put, 1)?, None))
    };
    work.rounds(&ours, "10^6 files, unchanged", &note, &mut again, add)?;
    for (what, words) in [
        ("10^6 files, verify", &["verify"][..]),
        ("10^6 files, prune", &["prune", "--keep-last", "1", "--dry-run"]),
    ] {
        let mut round = |_, tool: &VaultBenchTool| {
            let store = store(bench, tool);
            Ok((bench.run(&with_code(tool.verb(&store, words), &store), 1)?, None))
        };
        work.rounds(&ours, what, &note, &mut round, add)?;
    }
    let mut back = |_, tool: &VaultBenchTool| {
        let (store, target) = (store(bench, tool), folder(bench, "million-back")?);
        Ok((bench.run(&with_code(tool.get(&store, &target), &store), 1)?, None))
    };
    work.rounds(&ours, "10^6 files, restore", &note, &mut back, add)?;
    discard(bench)
}

/// Keeps a recovery code of a store beside it.
fn keep_code(tool: &VaultBenchTool, store: &Path) -> Result<()> {
    let said = tool.verb(store, &["key", "recovery", "--json"]).output();
    let said = said.map_err(BenchFailure::io("making a recovery code"))?;
    let told: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
    let code = told.get("recoveryCode").and_then(serde_json::Value::as_str);
    let code = code.ok_or_else(|| {
        BenchFailure::said(&tool.name, String::from_utf8_lossy(&said.stderr).into_owned())
    })?;
    fs::write(code_file(store), code).map_err(BenchFailure::io("keeping a recovery code"))
}

fn with_code(mut command: std::process::Command, store: &Path) -> std::process::Command {
    command.arg("--recovery-file").arg(code_file(store));
    command
}

fn code_file(store: &Path) -> std::path::PathBuf {
    store.with_extension("state").join("code")
}
