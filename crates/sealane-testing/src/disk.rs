//! File systems that are mounted for a test. Needs root.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run;

/// A mounted file system; dropping it unmounts it and frees its loop device.
pub struct MountedDisk {
    /// Where it is mounted.
    pub folder: PathBuf,
}

/// Fails where no file system can be made or mounted.
pub fn require_mounts() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    assert!(is_root, "this test mounts a file system: it has to run as root");
    assert!(Path::new("/dev/loop-control").exists(), "this machine has no loop devices");
    let is_there = Command::new("mkfs.ext4").arg("-V").output().is_ok();
    assert!(is_there, "`mkfs.ext4` is missing; run: cargo xtask needs");
}

impl MountedDisk {
    /// Makes an ext4 file system in a sparse file.
    pub fn make_image(image: &Path, bytes: u64) {
        File::create(image).and_then(|file| file.set_len(bytes)).expect("a sparse file");
        run("mkfs.ext4", &["-q", "-F", "-m", "0", text(image)]);
    }

    /// Mounts the ext4 file system in a file, so that for a minute nothing becomes durable that
    /// nobody synced.
    pub fn new(image: &Path, folder: PathBuf) -> MountedDisk {
        std::fs::create_dir_all(&folder).expect("a folder to mount at");
        run("mount", &["-t", "ext4", "-o", "loop,commit=60", text(image), text(&folder)]);
        MountedDisk { folder }
    }

    /// An overlay over a folder, which stays as it is: as containers of one image.
    pub fn over(lower: &Path, folder: PathBuf) -> MountedDisk {
        let [upper, work] = ["upper", "work"].map(|name| folder.with_extension(name));
        for path in [&folder, &upper, &work] {
            std::fs::create_dir_all(path).expect("a folder of the overlay");
        }
        let [lower, upper, work] = [lower, &upper, &work].map(|path| path.display());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        run("mount", &["-t", "overlay", "overlay", "-o", &options, text(&folder)]);
        MountedDisk { folder }
    }

    /// Lets programs that write there or sync wait until the guard is dropped.
    pub fn stall(&self) -> StalledDisk<'_> {
        run("fsfreeze", &["--freeze", text(&self.folder)]);
        StalledDisk(self)
    }
}

/// A disk that takes nothing; dropping it lets it go on.
pub struct StalledDisk<'a>(&'a MountedDisk);

impl Drop for StalledDisk<'_> {
    fn drop(&mut self) {
        let folder = &self.0.folder;
        let status = Command::new("fsfreeze").arg("--unfreeze").arg(folder).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{} is still frozen", folder.display());
        }
    }
}

impl Drop for MountedDisk {
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

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}
