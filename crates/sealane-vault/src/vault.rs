//! A vault that was opened: by its owner, or by a writer.
//!
//! ```text
//!  VaultOwner ─► VaultReader ─► VaultPlace ◄─ VaultWriter
//!  prune, repair  get, verify    the chain     put
//!  keys, put      snapshots      who may sign
//! ```
//!
//! Each derefs to the one behind its arrow. Only the two at the ends put.

mod chain;
mod commit;
mod keys;
mod lag;
mod ledger;
mod owner;
mod pin;
mod reader;
mod rotate;
mod succession;
mod sync;
mod trust;
mod unlock;
mod unread;
mod walk;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Error;
use crate::format::config::{CONFIG_KEY, VaultConfig, VaultMetadata};
use crate::format::header::{ObjectHeader, ObjectKind, VaultId};
use crate::format::index::index_key;
use crate::format::roster::VaultRoster;
use crate::format::snapshot::SignerId;
use crate::keys::{VaultNamingKeys, VaultSealingKeys, VaultSigner, verify};
use crate::limits::{MAX_CONFIG_BYTES, MAX_RELIANCE_MS};
use crate::manifest::{ChunkManifest, ManifestAccess, state_folder};
use crate::put::SkippedItem;
use crate::store::VaultStore;
use crate::wire::hex;

pub(crate) use chain::ChainHead;
pub use chain::Snapshot;
pub(crate) use commit::host;
pub use keys::SlotInfo;
use lag::StoreLag;
pub(crate) use ledger::SnapshotChain;
pub use owner::VaultOwner;
use pin::{PinAnchor, place_name};
pub use reader::VaultReader;
pub use rotate::{RotateOptions, RotatedVault};
use succession::{OwnerSuccession, VaultTrust};
pub(crate) use sync::hash_of;
pub(crate) use trust::slots;
use unlock::unlock;
pub(crate) use unread::{LedgerLink, SnapshotLedger};
pub use writer::VaultWriter;

/// How to open a vault.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Where to keep the manifest and the head: a folder for all vaults. The default is
    /// `sealane/vaults` in `$XDG_STATE_HOME` or `~/.local/state`.
    pub state: Option<PathBuf>,
    /// A head that the store must have: `number:hash`, as [`VaultPlace::head_text`] gives it.
    pub expect_head: Option<String>,
    /// The vault and owner that the place must hold: `vault:owner`, as [`VaultPlace::anchor`] gives
    /// it. Given and found, it takes the place of what this machine remembers of that place.
    pub expect: Option<String>,
    /// Use the objects alone: no manifest and no index, and if need be no config. For recovery;
    /// whether the store was rolled back is not checked, and nothing is remembered.
    pub objects_alone: bool,
    /// A head, as [`VaultPlace::head_text`] gives it, that the store may be behind what was seen
    /// here from. Whoever reads is then only warned; whoever writes gives up what lies between.
    pub accept_rollback: Option<String>,
    /// Makes a vault even where another one was: [`VaultOwner::init`] refuses such a place
    /// otherwise.
    pub replace: bool,
    /// The handle serves one command alone. Listings of a bucket then count from the opening on,
    /// for no longer than a minute, until the command writes or removes something there.
    pub one_command: bool,
}

/// A vault that was opened, with what its owner and its writers share: the place, the chain, and
/// who may sign there.
pub struct VaultPlace {
    store: VaultStore,
    config: VaultConfig,
    keys: VaultWriteKeys,
    succession: OwnerSuccession,
    state: Option<PathBuf>,
    manifest: ChunkManifest,
    roster: Mutex<VaultRoster>,
    warnings: Mutex<BTreeMap<String, String>>,
    /// How the store stands to what this machine has seen of the vault.
    lag: Mutex<StoreLag>,
    /// How long a put relies on the packs that it has seen.
    reliance: Duration,
    first_use: bool,
}

/// The keys with which objects are named, sealed and signed.
struct VaultWriteKeys {
    naming: VaultNamingKeys,
    sealing: Arc<VaultSealingKeys>,
    /// A writer's session key, sealed to the owner: it stands in the header of what it writes.
    wrapped: Option<Vec<u8>>,
    signer: VaultSigner,
    signer_id: SignerId,
}

impl VaultWriteKeys {
    /// How far who has them reads.
    fn access(&self) -> ManifestAccess {
        match self.signer_id == SignerId::default() {
            true => ManifestAccess::Everything,
            false => ManifestAccess::Nothing,
        }
    }
}

impl VaultPlace {
    fn new(
        store: VaultStore,
        config: VaultConfig,
        keys: VaultWriteKeys,
        trusted: VaultTrust,
        options: &OpenOptions,
    ) -> Result<VaultPlace, Error> {
        let VaultTrust { succession, roster, foreign } = trusted;
        let (state, manifest) = open_manifest(options, &config.vault, keys.access())?;
        let metadata = succession.rotation().map(|newest| newest.rotation.metadata);
        let metadata = metadata.unwrap_or(config.metadata);
        let place = VaultPlace {
            store,
            config: VaultConfig { metadata, ..config },
            keys,
            succession,
            state,
            manifest,
            roster: Mutex::new(roster),
            warnings: Mutex::default(),
            lag: Mutex::default(),
            reliance: Duration::from_millis(MAX_RELIANCE_MS),
            first_use: false,
        };
        place.warn(foreign);
        Ok(place)
    }

    /// The vault's random identity, in hexadecimal digits.
    pub fn id(&self) -> String {
        hex(&self.config.vault)
    }

    /// The vault and its owner, `vault:owner`: what a place is pinned to, and what
    /// [`OpenOptions::expect`] takes.
    pub fn anchor(&self) -> String {
        self.anchor_of().to_string()
    }

    /// Whether this machine used the place for the first time, and trusted what it found there.
    pub fn is_first_use(&self) -> bool {
        self.first_use
    }

    fn anchor_of(&self) -> PinAnchor {
        PinAnchor::of(&self.config.vault, &self.succession.current())
    }

    /// How often the main key was changed.
    pub fn generation(&self) -> u8 {
        self.succession.generation()
    }

    /// Objects in the store that were skipped, because they are missing or not the vault's.
    pub fn warnings(&self) -> Vec<SkippedItem> {
        let warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = |(path, reason): (&String, &String)| SkippedItem {
            path: path.clone(),
            reason: reason.clone(),
        };
        warnings.iter().map(skipped).collect()
    }

    pub(crate) fn warn(&self, skipped: impl IntoIterator<Item = SkippedItem>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        for skipped in skipped {
            warnings.entry(skipped.path).or_insert(skipped.reason);
        }
    }

    /// Forgets warnings of paths that begin so.
    fn unwarn(&self, prefix: &str) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.retain(|path, _| !path.starts_with(prefix));
    }

    /// Whether names can be read without a key.
    pub fn metadata(&self) -> VaultMetadata {
        self.config.metadata
    }

    /// Where the objects rest.
    pub fn store(&self) -> &VaultStore {
        &self.store
    }

    /// The folder of the manifest and of the head that was seen.
    ///
    /// # Errors
    /// [`Error::NoState`] when it was opened without.
    pub fn state(&self) -> Result<&Path, Error> {
        self.state.as_deref().ok_or(Error::NoState)
    }

    pub(crate) fn config(&self) -> &VaultConfig {
        &self.config
    }

    pub(crate) fn vault_id(&self) -> &VaultId {
        &self.config.vault
    }

    pub(crate) fn manifest(&self) -> &ChunkManifest {
        &self.manifest
    }

    /// How far the key reads.
    pub(crate) fn reads(&self) -> ManifestAccess {
        self.keys.access()
    }

    pub(crate) fn naming(&self) -> &VaultNamingKeys {
        &self.keys.naming
    }

    pub(crate) fn sealing(&self) -> &VaultSealingKeys {
        &self.keys.sealing
    }

    pub(crate) fn signer_id(&self) -> SignerId {
        self.keys.signer_id
    }

    pub(crate) fn signer(&self) -> &VaultSigner {
        &self.keys.signer
    }

    /// Whether an index that nobody has damaged is of a main key that does not hold yet: a change
    /// was begun.
    pub(crate) fn is_of_next_key(&self, key: &str, bytes: &[u8]) -> bool {
        let next = bytes.get(7).is_some_and(|generation| *generation == self.generation() + 1);
        next && index_key(blake3::hash(bytes).as_bytes()) == key
    }

    /// Checks the signature of an owner, the one of the object's generation.
    pub(crate) fn verify_owners(
        &self,
        header: &ObjectHeader,
        key: &str,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let owner = self.succession.of(header.generation);
        verify(owner.ok_or_else(|| Error::Signature(key.to_owned()))?, key, bytes)
    }

    /// The header of what this vault writes.
    pub(crate) fn header(&self) -> ObjectHeader {
        let (generation, wrapped) = (self.generation(), self.keys.wrapped.clone());
        ObjectHeader { kind: ObjectKind::Pack, vault: self.config.vault, generation, wrapped }
    }
}

impl std::fmt::Debug for VaultPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VaultPlace").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// The list of slots that this machine remembers of a vault. Its folder serves the store from here
/// on.
fn remembered(
    store: &VaultStore,
    config: &VaultConfig,
    options: &OpenOptions,
) -> Result<Option<Vec<u8>>, Error> {
    if options.objects_alone {
        return Ok(None);
    }
    let state = state_folder(options.state.as_deref(), &config.vault)?;
    store.remember_in(&state.join("objects").join(hex(&place_name(store))));
    Ok(VaultPlace::remembered_roster(Some(&state)))
}

/// The state folder of a vault and the manifest in it, or a manifest in memory.
fn open_manifest(
    options: &OpenOptions,
    vault: &VaultId,
    reads: ManifestAccess,
) -> Result<(Option<PathBuf>, ChunkManifest), Error> {
    if options.objects_alone {
        return Ok((None, ChunkManifest::temporary()?));
    }
    let state = state_folder(options.state.as_deref(), vault)?;
    let manifest = ChunkManifest::open(&state, reads)?;
    Ok((Some(state), manifest))
}

fn session_info(vault: &VaultId) -> Vec<u8> {
    [&b"sealane vault v1 session"[..], vault].concat()
}

pub(crate) fn read_config(store: &VaultStore) -> Result<VaultConfig, Error> {
    match store.get(CONFIG_KEY, MAX_CONFIG_BYTES) {
        Ok(bytes) => VaultConfig::read(&bytes),
        Err(Error::Missing(_)) => Err(Error::NoVault(store.location())),
        Err(error) => Err(error),
    }
}
