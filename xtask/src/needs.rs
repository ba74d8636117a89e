//! The programs that the tests need beside Rust, installed where they are missing.

use std::path::{Path, PathBuf};

use crate::process::{self, XtaskResult};

/// Programs, the Debian package that brings each, and what is not tested without it.
type NeededTools = [[&'static str; 3]];

const TOOLS: &NeededTools = &[
    ["mkfs.ext4", "e2fsprogs", "power cut and full disk"],
    ["losetup", "mount", "power cut and full disk"],
    ["faketime", "faketime", "retention over a day"],
    ["ip", "iproute2", "a blind hub and of what pages say"],
    ["curl", "curl", "what pages say"],
    ["script", "bsdutils", "what a terminal is shown"],
    ["chrt", "util-linux", "a hostile crowd"],
    ["unshare", "util-linux", "what pages say"],
    ["zsh", "zsh", "what shells complete"],
    ["fish", "fish", "what shells complete"],
    ["chromium-headless-shell", "chromium-headless-shell", "the console"],
];

/// The programs that the proof of relays runs over them. No test needs them.
const NETWORK_TOOLS: &NeededTools = &[
    ["iperf3", "iperf3", "relays"],
    ["ping", "iputils-ping", "relays"],
    ["tcpdump", "tcpdump", "relays"],
    ["tshark", "tshark", "relays"],
    ["ethtool", "ethtool", "relays"],
];

/// The programs that the proof beside Babel runs over the simulator's radio. No test needs them.
const BABEL_TOOLS: &NeededTools = &[
    ["ip", "iproute2", "routes beside Babel"],
    ["ping", "iputils-ping", "routes beside Babel"],
    ["babeld", "babeld", "routes beside Babel"],
    ["iperf3", "iperf3", "routes beside Babel"],
    ["chromium-headless-shell", "chromium-headless-shell", "routes beside Babel"],
];

/// The programs that drive the vehicles of one proof. Tools of a package of their own are no
/// programs of the search path. No test needs them.
const SUMO_TOOLS: &NeededTools = &[
    ["sumo", "sumo", "vehicles that SUMO drives"],
    ["netgenerate", "sumo", "vehicles that SUMO drives"],
    ["/usr/share/sumo/tools/randomTrips.py", "sumo-tools", "vehicles that SUMO drives"],
];

/// The folder of JavaScript peers and test data.
const NODE_FOLDER: &str = "tests/js";
/// The list of the packages that the Python tests import.
const PYTHON_LIST: &str = "tests/python/requirements.txt";

/// Where Debian's Prometheus is unpacked.
const PROMETHEUS: &str = "target/prometheus";

/// `cargo xtask needs`.
pub(crate) fn run(arguments: &[String]) -> XtaskResult {
    match arguments {
        [] => install(),
        [other, ..] => Err(format!("needs has no argument `{other}`")),
    }
}

/// Installs all of it, as far as it goes: what fails in one language leaves the others tested.
pub(crate) fn install() -> XtaskResult {
    let python = if exists(PYTHON_LIST) { python_packages(PYTHON_LIST) } else { Ok(()) };
    let failures: Vec<String> = [bring(TOOLS), node_packages(NODE_FOLDER), python, prometheus()]
        .into_iter()
        .filter_map(Result::err)
        .collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Makes this machine a laboratory: it can run all tests, or the first lines say what it lacks.
pub(crate) fn laboratory() -> XtaskResult {
    // Half of the group mounts file systems or makes networks, so the downloads would be in vain.
    if !is_superuser() {
        return Err("this user is not root, and may neither mount nor make networks".to_owned());
    }
    install()
}

/// Installs the tools of the proof of relays: those of the tests, and programs that people run over
/// networks.
pub(crate) fn network() -> XtaskResult {
    install().and_then(|()| bring(NETWORK_TOOLS))
}

/// Installs the tools of the proof beside Babel.
pub(crate) fn babel() -> XtaskResult {
    bring(BABEL_TOOLS)
}

/// Installs the tools of the proof with SUMO.
pub(crate) fn sumo() -> XtaskResult {
    bring(SUMO_TOOLS)
}

/// Whether a file of the repository exists.
pub(crate) fn exists(path: &str) -> bool {
    process::root().join(path).is_file()
}

/// The Python of the tests.
pub(crate) fn python() -> PathBuf {
    environment().join("bin/python")
}

/// A module that pins programs of a race.
struct PeerModule {
    folder: &'static str,
    programs: &'static [&'static str],
    /// The variable in which the first program's authors write its version when they release it.
    version: Option<&'static str>,
}

const PEERS: &[PeerModule] = &[
    PeerModule {
        folder: "tests/peers/nats",
        programs: &["github.com/nats-io/nats-server/v2", "github.com/nats-io/natscli/nats"],
        version: None,
    },
    PeerModule {
        folder: "tests/peers/centrifugo",
        programs: &["github.com/centrifugal/centrifugo/v5"],
        version: Some("internal/build.Version"),
    },
];

/// Builds the peers of a race into `target/peers`, at the versions that their `go.sum` holds.
pub(crate) fn peers() -> XtaskResult {
    if !process::has("go") {
        return Err("`go` is missing: the peers of the race need Go 1.26 or later".to_owned());
    }
    let target = process::root().join("target/peers");
    for peer in PEERS {
        let sums = process::root().join(peer.folder).join("go.sum");
        let stamp = stamp(peer.folder);
        if target.is_dir() && is_current(&sums, &stamp) {
            continue;
        }
        let made = std::fs::create_dir_all(&target);
        made.map_err(|error| format!("{}: {error}", target.display()))?;
        let mut build = process::program("go");
        build.args(["build", "-C", peer.folder, "-mod=readonly", "-trimpath", "-buildvcs=false"]);
        if let (Some(variable), [program, ..]) = (peer.version, peer.programs) {
            let mut list = process::program("go");
            list.args(["list", "-C", peer.folder, "-m", "-f", "{{.Version}}", program]);
            let version = process::output(&mut list)?;
            build.arg(format!(
                "-ldflags=-X {program}/{variable}={}",
                version.trim().trim_start_matches('v')
            ));
        }
        process::run(build.arg("-o").arg(&target).args(peer.programs))?;
        keep(&sums, &stamp)?;
    }
    Ok(())
}

/// Unpacks the Prometheus of Debian into `target/prometheus`: installed it would run as a service.
pub(crate) fn prometheus() -> XtaskResult {
    let names = ["prometheus", "promtool"];
    let folder = process::root().join(PROMETHEUS);
    let is_unpacked = names.iter().all(|name| folder.join("usr/bin").join(name).is_file());
    if is_unpacked || names.into_iter().all(process::has) {
        return Ok(());
    }
    unpack(&folder).map_err(|failure| {
        // A half-unpacked program would pass for a whole one the next time.
        let _ = std::fs::remove_dir_all(&folder);
        let why = "for the tests of metrics: package prometheus of Debian";
        format!("{failure}\n`prometheus` is missing, {why}")
    })
}

fn unpack(folder: &Path) -> XtaskResult {
    for name in ["apt-get", "dpkg-deb"] {
        if !process::has(name) {
            return Err(format!("`{name}` is missing"));
        }
    }
    let failed = |error: std::io::Error| format!("{PROMETHEUS}: {error}");
    std::fs::create_dir_all(folder).map_err(failed)?;
    let download = || {
        let mut download = process::program("apt-get");
        process::run(download.args(["download", "prometheus"]).current_dir(folder))
    };
    // A clean machine has no lists of packages, and only root may bring them.
    if let Err(failure) = download() {
        if !is_superuser() {
            return Err(failure);
        }
        process::run(process::program("apt-get").arg("update"))?;
        download()?;
    }
    let mut files = std::fs::read_dir(folder).map_err(failed)?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "deb");
    let package = files.find_map(|file| Some(file.ok()?.path()).filter(is_package));
    let package = package.ok_or_else(|| format!("{PROMETHEUS}: no package came"))?;
    process::run(process::program("dpkg-deb").arg("--extract").arg(&package).arg(folder))?;
    std::fs::remove_file(package).map_err(failed)
}

/// The search path of the tests: the Python environment first, and where disk tools live.
pub(crate) fn search_path() -> std::ffi::OsString {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = vec![environment().join("bin")];
    folders.push(process::root().join(PROMETHEUS).join("usr/bin"));
    folders.extend(std::env::split_paths(&old));
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    std::env::join_paths(folders).unwrap_or(old)
}

fn environment() -> PathBuf {
    process::root().join("target/venv")
}

/// Tools come from the distribution. Where we may not install them, they are named: the tests of
/// what they are for will fail.
fn bring(tools: &NeededTools) -> XtaskResult {
    let missing: Vec<_> = tools.iter().filter(|[name, ..]| !process::has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_superuser() || !process::has("apt-get") {
        let named = missing.iter().map(|[name, package, used_by]| {
            format!("`{name}` is missing, for the tests of {used_by}: package {package} of Debian")
        });
        return Err(named.collect::<Vec<_>>().join("\n"));
    }
    process::run(process::program("apt-get").arg("update"))?;
    let mut install = process::program("apt-get");
    install.args(["install", "--yes", "--no-install-recommends"]);
    install.args(missing.iter().map(|[_, package, _]| package));
    process::run(install.env("DEBIAN_FRONTEND", "noninteractive"))
}

fn is_superuser() -> bool {
    process::output(process::program("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Installs the packages of one folder with a `package.json`, when its lock file is new.
pub(crate) fn node_packages(folder: &str) -> XtaskResult {
    if !exists(&format!("{folder}/package.json")) {
        return Ok(());
    }
    for name in ["node", "npm"] {
        if !process::has(name) {
            return Err(format!("`{name}` is missing: {folder} needs Node.js 20 or later and npm"));
        }
    }
    let lock = process::root().join(folder).join("package-lock.json");
    let stamp = stamp(folder);
    let modules = process::root().join(folder).join("node_modules");
    if modules.is_dir() && is_current(&lock, &stamp) {
        return Ok(());
    }
    let arguments = ["ci", "--no-audit", "--no-fund", "--prefix", folder];
    process::run(process::program("npm").args(arguments))?;
    keep(&lock, &stamp)
}

/// Installs a list of Python packages into the environment of the tests, when the list is new.
fn python_packages(list: &str) -> XtaskResult {
    python_environment()?;
    let path = process::root().join(list);
    let stamp = stamp(list);
    if is_current(&path, &stamp) {
        return Ok(());
    }
    let arguments = ["-m", "pip", "install", "--quiet", "--requirement", list];
    process::run(process::program(python()).args(arguments))?;
    keep(&path, &stamp)
}

/// Makes the Python environment of the tests.
pub(crate) fn python_environment() -> XtaskResult {
    if python().is_file() {
        return Ok(());
    }
    if !process::has("python3") {
        return Err("`python3` is missing: the Python tests need 3.10 or later".to_owned());
    }
    let folder = environment();
    process::run(process::program("python3").args(["-m", "venv"]).arg(&folder)).map_err(|failure| {
        // A half-made environment would pass for a whole one the next time.
        let _ = std::fs::remove_dir_all(&folder);
        format!("{failure}; on Debian the module comes with the package python3-venv")
    })
}

/// Where the list that was last installed is kept, to be compared with the one of today.
fn stamp(of: &str) -> PathBuf {
    process::root().join("target/installed").join(of.replace('/', "-"))
}

fn is_current(list: &Path, stamp: &Path) -> bool {
    let installed = std::fs::read(stamp);
    installed.is_ok_and(|installed| std::fs::read(list).is_ok_and(|list| list == installed))
}

fn keep(list: &Path, stamp: &Path) -> XtaskResult {
    let copied = stamp
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::copy(list, stamp));
    copied.map(|_| ()).map_err(|error| format!("{}: {error}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_list_is_not_current() {
        let folder = std::env::temp_dir().join(format!("sealane-needs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (list, stamp) = (folder.join("list"), folder.join("installed/list"));
        std::fs::write(&list, "a==1").unwrap();
        assert!(!is_current(&list, &stamp));
        keep(&list, &stamp).unwrap();
        assert!(is_current(&list, &stamp));
        std::fs::write(&list, "a==2").unwrap();
        assert!(!is_current(&list, &stamp));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
