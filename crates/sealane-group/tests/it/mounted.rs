//! File systems that are mounted for a test. Needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shared::run;

/// Fails where nothing can be mounted.
pub(crate) fn require() {
    let is_root = run("id", &["-u"]).trim() == "0";
    assert!(is_root, "this test mounts file systems: it has to run as root");
}

/// A mounted file system; dropping it unmounts it.
pub(crate) struct Mounted {
    pub(crate) folder: PathBuf,
}

impl Mounted {
    /// The ext4 file system in a file, by the loop device.
    pub(crate) fn image(image: &Path, folder: PathBuf) -> Mounted {
        fs::create_dir_all(&folder).unwrap();
        let (from, to) = (image.to_str().unwrap(), folder.to_str().unwrap());
        run("mount", &["-t", "ext4", "-o", "loop", from, to]);
        Mounted { folder }
    }

    /// An overlay over a folder, which stays as it is: as containers of one image.
    pub(crate) fn over(lower: &Path, folder: PathBuf) -> Mounted {
        let [upper, work] = ["upper", "work"].map(|name| folder.with_extension(name));
        [&folder, &upper, &work].into_iter().for_each(|path| fs::create_dir_all(path).unwrap());
        let [lower, upper, work] = [lower, &upper, &work].map(|path| path.display());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        run("mount", &["-t", "overlay", "overlay", "-o", &options, folder.to_str().unwrap()]);
        Mounted { folder }
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

/// Makes an ext4 file system in a sparse file.
pub(crate) fn make_image(image: &Path, bytes: u64) {
    fs::File::create(image).unwrap().set_len(bytes).unwrap();
    run("mkfs.ext4", &["-q", "-F", "-m", "0", image.to_str().unwrap()]);
}
