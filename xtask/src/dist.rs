//! `cargo xtask dist`: a release as one folder and one archive. The binary is static: it runs on
//! any Linux of its processor, whatever C library is there, and in an empty container.

use std::fs;
use std::path::Path;

use crate::process::{self, SHIP, XtaskResult};
use crate::threats;

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
const FILES: [&str; 11] = [
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "packaging/sealane.service",
    "packaging/sealane-relay.service",
    "packaging/sealane-mesh@.service",
    "packaging/Containerfile",
    "packaging/grafana-dashboard.json",
    "packaging/prometheus-rules.yml",
];

/// `cargo xtask dist`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("dist takes no argument, not `{argument}`"));
    }
    // A release that nobody can report a weakness of is none: refused before anything is built.
    let security = process::root().join(threats::SECURITY);
    threats::address(&fs::read_to_string(&security).map_err(|error| said(&security, &error))?)?;
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let flags = format!("target.{triple}.rustflags=['-Ctarget-feature=+crt-static']");
    let mut build = process::cargo();
    build.args(["build", "--profile", SHIP, "--locked", "--package", "sealane-cli"]);
    build.args(["--target", &triple, "--config", &flags]);
    process::run(&mut build)?;
    let binary = process::target().join(&triple).join(SHIP).join("sealane");
    if needs_a_loader(&fs::read(&binary).map_err(|error| said(&binary, &error))?) {
        return Err(format!("{} is not static", binary.display()));
    }
    let version = process::output(process::program(&binary).arg("--version"))?;
    let version = version.split_whitespace().nth(1).unwrap_or("0").to_owned();
    let dist = process::target().join("dist");
    let folder = dist.join("sealane");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| said(&folder, &error))?;
    }
    fill(&folder, &binary)?;
    let archive = dist.join(format!("sealane-{version}-{}-linux.tar.gz", std::env::consts::ARCH));
    // The same content gives the same archive.
    let mut pack = process::program("tar");
    pack.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    pack.arg("--directory").arg(&dist).arg("--use-compress-program=gzip -9 --no-name");
    process::run(pack.arg("--create").arg("--file").arg(&archive).arg("sealane"))?;
    let sum = process::output(process::program("sha256sum").arg(&archive))?;
    let size = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    println!("{} bytes  {}", size(&binary), binary.display());
    println!("{} bytes  {}", size(&archive), archive.display());
    println!("sha256 {}", sum.split_whitespace().next().unwrap_or_default());
    Ok(())
}

/// The binary, its pages and completions, and what it takes to run it as a service.
fn fill(folder: &Path, binary: &Path) -> XtaskResult {
    fs::create_dir_all(folder.join("completions")).map_err(|error| said(folder, &error))?;
    let copy = |from: &Path| {
        let to = folder.join(from.file_name().unwrap_or_default());
        fs::copy(from, &to).map(|_| ()).map_err(|error| said(from, &error))
    };
    copy(binary)?;
    FILES.iter().try_for_each(|file| copy(&process::root().join(file)))?;
    process::run(process::program(binary).arg("man").arg("--to").arg(folder.join("man")))?;
    for shell in SHELLS {
        let script = process::output(process::program(binary).args(["completions", shell]))?;
        let to = folder.join("completions").join(format!("sealane.{shell}"));
        fs::write(&to, script).map_err(|error| said(&to, &error))?;
    }
    Ok(())
}

/// Whether an ELF file of 64 bits names a loader (segment type 3, PT_INTERP), as what is linked
/// against shared libraries does.
fn needs_a_loader(elf: &[u8]) -> bool {
    let number = |at: usize, bytes: usize| {
        let field = elf.get(at..at + bytes).unwrap_or_default();
        field.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    let (first, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    (0..count).any(|segment| number(first + segment * size, 4) == 3)
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_needs_a_loader() {
        // These tests are one themselves.
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(needs_a_loader(&own));
        assert!(!needs_a_loader(&[0; 64]));
    }
}
