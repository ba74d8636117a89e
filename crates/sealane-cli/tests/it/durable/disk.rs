//! File systems in a file, mounted by the loop device. Needs root.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program, which must succeed; returns what it printed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Fails where no file system can be mounted.
pub(crate) fn require() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    assert!(is_root, "this test mounts a file system: it has to run as root");
    assert!(Path::new("/dev/loop-control").exists(), "this machine has no loop devices");
    let is_there = Command::new("mkfs.ext4").arg("-V").output().is_ok();
    assert!(is_there, "`mkfs.ext4` is missing; run: cargo xtask needs");
}

/// Makes an ext4 file system in a sparse file.
pub(crate) fn make(image: &Path, bytes: u64) {
    std::fs::File::create(image).unwrap().set_len(bytes).unwrap();
    run("mkfs.ext4", &["-q", "-F", "-m", "0", image.to_str().unwrap()]);
}

/// A mounted image; dropping it unmounts it and frees the loop device.
pub(crate) struct Mounted {
    pub(crate) folder: PathBuf,
}

impl Mounted {
    /// Mounts so that for a minute nothing becomes durable that nobody synced.
    pub(crate) fn new(image: &Path, folder: PathBuf) -> Self {
        std::fs::create_dir_all(&folder).unwrap();
        let (from, to) = (image.to_str().unwrap(), folder.to_str().unwrap());
        run("mount", &["-t", "ext4", "-o", "loop,commit=60", from, to]);
        Self { folder }
    }
}

impl Mounted {
    /// Lets whoever writes there or syncs wait until the guard is dropped.
    pub(crate) fn stall(&self) -> Stalled<'_> {
        run("fsfreeze", &["--freeze", self.folder.to_str().unwrap()]);
        Stalled(self)
    }
}

/// A disk that takes nothing; dropping it lets it go on.
pub(crate) struct Stalled<'a>(&'a Mounted);

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        let folder = &self.0.folder;
        let status = Command::new("fsfreeze").arg("--unfreeze").arg(folder).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{} is still frozen", folder.display());
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmount = |lazily: &[&str]| {
            let status = Command::new("umount").args(lazily).arg(&self.folder).status();
            status.is_ok_and(|status| status.success())
        };
        if !unmount(&[]) && !unmount(&["--lazy"]) {
            eprintln!("{} is still mounted", self.folder.display());
        }
    }
}
