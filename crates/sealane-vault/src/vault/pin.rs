//! Which vault a place holds: remembered at the first use, refused when it changes.
//!
//! A store can make a vault of its own for somebody's public key and put it in the place of theirs.
//! Nothing in such a vault is wrong; only who remembers which vault it was can tell.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::OpenOptions;
use super::succession::OwnerSuccession;
use crate::Error;
use crate::format::header::VaultId;
use crate::limits::MAX_PLACE_LINKS;
use crate::manifest::{private_folder, state_base};
use crate::store::{VaultStore, spool_name};
use crate::wire::{from_hex, hex};

/// A vault and its owner: what a place is pinned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PinAnchor {
    vault: VaultId,
    owner: [u8; 16],
}

impl PinAnchor {
    pub(crate) fn of(vault: &VaultId, owner: &[u8; 32]) -> PinAnchor {
        let hash = blake3::derive_key("sealane vault v1 owner fingerprint", owner);
        let (owner, _) = hash.split_first_chunk().unwrap_or((&[0; 16], &[]));
        PinAnchor { vault: *vault, owner: *owner }
    }
}

impl fmt::Display for PinAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", hex(&self.vault), hex(&self.owner))
    }
}

impl FromStr for PinAnchor {
    type Err = Error;

    fn from_str(text: &str) -> Result<PinAnchor, Error> {
        let parse = || {
            let (vault, owner) = text.trim().split_once(':')?;
            Some(PinAnchor { vault: from_hex(vault)?, owner: from_hex(owner)? })
        };
        parse().ok_or(Error::Malformed { what: "the vault and owner that are expected" })
    }
}

/// The memory of a machine about a place, and about a vault wherever it is.
pub(super) struct VaultPin {
    files: Option<[PathBuf; 2]>,
    /// Where versions that did not look at a bucket's server remembered the place.
    before_servers: Option<PathBuf>,
    place: String,
    found: PinAnchor,
    /// Those of the owners before, who have signed each other up to the one that was found.
    before: Vec<PinAnchor>,
    expected: bool,
    /// Whether the place was used here before.
    known: bool,
}

impl VaultPin {
    /// Compares what `store` holds with what the user expects and what is remembered here.
    ///
    /// Without anything remembered the first use is trusted; [`VaultPin::keep`] remembers it then.
    pub(super) fn check(
        store: &VaultStore,
        vault: &VaultId,
        succession: &OwnerSuccession,
        options: &OpenOptions,
    ) -> Result<VaultPin, Error> {
        let owners = succession.owners().iter();
        let mut before: Vec<PinAnchor> = owners.map(|owner| PinAnchor::of(vault, owner)).collect();
        let found = before.pop().unwrap_or(PinAnchor { vault: *vault, owner: [0; 16] });
        let pin = VaultPin { before, ..VaultPin::new(store, found, options)? };
        let expected = options.expect.as_deref().map(PinAnchor::from_str).transpose()?;
        if let Some(expected) = expected {
            pin.compare(expected)?;
            return Ok(VaultPin { expected: true, ..pin });
        }
        let [place, vault] = match &pin.files {
            Some(files) => files.each_ref().map(|file| read(file)),
            None => [Ok(None), Ok(None)],
        };
        let older = || pin.before_servers.as_deref().map_or(Ok(None), read);
        let place = place?.map_or_else(older, |pinned| Ok(Some(pinned)))?;
        for pinned in [place, vault?].into_iter().flatten() {
            pin.compare(pinned)?;
        }
        Ok(VaultPin { known: place.is_some(), ..pin })
    }

    fn new(store: &VaultStore, found: PinAnchor, options: &OpenOptions) -> Result<VaultPin, Error> {
        let place = store.location();
        let base = match state_base(options.state.as_deref()) {
            Ok(base) => Some(base),
            Err(_) if options.objects_alone => None,
            Err(error) => return Err(error),
        };
        let at = |base: &PathBuf, name: [u8; 16]| base.join("places").join(hex(&name));
        let files = base
            .as_ref()
            .map(|base| [at(base, place_name(store)), base.join(hex(&found.vault)).join("owner")]);
        let before_servers = match store {
            VaultStore::S3(_) => base.as_ref().map(|base| at(base, named(place.as_bytes()))),
            VaultStore::Folder(_) => None,
        };
        Ok(VaultPin {
            files,
            before_servers,
            place,
            found,
            before: Vec::new(),
            expected: false,
            known: false,
        })
    }

    fn compare(&self, pinned: PinAnchor) -> Result<(), Error> {
        if pinned == self.found || self.before.contains(&pinned) {
            return Ok(());
        }
        Err(Error::Exchanged {
            place: self.place.clone(),
            pinned: pinned.to_string(),
            found: self.found.to_string(),
        })
    }

    /// The anchor that this machine remembers of a place, whatever is there now.
    pub(super) fn of_place(
        store: &VaultStore,
        options: &OpenOptions,
    ) -> Result<Option<PinAnchor>, Error> {
        let pin = VaultPin::new(store, PinAnchor { vault: [0; 16], owner: [0; 16] }, options)?;
        let place = pin.files.as_ref().map(|[place, _]| place.as_path());
        for file in [place, pin.before_servers.as_deref()].into_iter().flatten() {
            if let Some(pinned) = read(file)? {
                return Ok(Some(pinned));
            }
        }
        Ok(None)
    }

    /// Remembers what is in the place, after it was opened with a key that fits. Gives whether
    /// nothing but that key said which vault it is.
    pub(super) fn keep(&self) -> Result<bool, Error> {
        for file in self.files.iter().flatten() {
            if self.expected || read(file)? != Some(self.found) {
                write(file, format!("{}\n{}\n", self.found, self.place))?;
            }
        }
        Ok(!self.known && !self.expected)
    }

    /// Remembers a vault that was made here just now, whatever was in the place before.
    pub(super) fn made(
        store: &VaultStore,
        anchor: PinAnchor,
        options: &OpenOptions,
    ) -> Result<(), Error> {
        VaultPin { expected: true, ..VaultPin::new(store, anchor, options)? }.keep().map(|_| ())
    }
}

/// One name for all ways to write a place.
pub(super) fn place_name(store: &VaultStore) -> [u8; 16] {
    let place = match store {
        VaultStore::Folder(folder) => std::path::absolute(folder.root())
            .map(|path| resolved(&path).into_os_string())
            .unwrap_or_else(|_| folder.root().into()),
        VaultStore::S3(bucket) => bucket.place().into(),
    };
    named(place.as_encoded_bytes())
}

/// A path without links, as far as it exists. A place on a disk that is not mounted keeps its name,
/// also where a link leads to it, and where that link leads to nothing now.
fn resolved(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_PLACE_LINKS {
        let known = path.ancestors().find_map(|known| Some((known, known.canonicalize().ok()?)));
        let Some((known, real)) = known else { break };
        let mut rest = path.strip_prefix(known).unwrap_or(Path::new("")).components();
        let lost = rest.next().map(|lost| real.join(lost));
        let Some(led) = lost.and_then(|lost| fs::read_link(lost).ok()) else {
            // Joined with nothing, a path would end with a slash.
            let whole = real.join(path.strip_prefix(known).unwrap_or(Path::new("")));
            return whole.components().collect();
        };
        path = real.join(led).join(rest.as_path());
    }
    path
}

fn named(place: &[u8]) -> [u8; 16] {
    let hash = blake3::hash(place);
    let (name, _) = hash.as_bytes().split_first_chunk().unwrap_or((&[0; 16], &[]));
    *name
}

fn read(file: &Path) -> Result<Option<PinAnchor>, Error> {
    match fs::read_to_string(file) {
        Ok(text) => text.lines().next().unwrap_or_default().parse().map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(Error::file(file, cause)),
    }
}

/// Writes a file of the state folder, whole or not at all.
pub(super) fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    let folder = file.parent().unwrap_or(Path::new("."));
    private_folder(folder)?;
    let draft = folder.join(spool_name("draft")?);
    let written = File::create_new(&draft).and_then(|mut open| {
        open.write_all(content.as_ref())?;
        open.sync_all()?;
        fs::rename(&draft, file)?;
        File::open(folder)?.sync_all()
    });
    written.map_err(|cause| Error::file(file, cause))
}
