//! A vault that was opened.

mod chain;
mod commit;
mod keys;
mod lag;
mod ledger;
mod pin;
mod rotate;
mod succession;
mod sync;
mod trust;
mod unlock;
mod unread;
mod walk;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Error;
use crate::format::config::{CONFIG_KEY, VaultConfig, VaultMetadata};
use crate::format::header::{ObjectHeader, ObjectKind, VaultId};
use crate::format::index::index_key;
use crate::format::page::{SnapshotEntry, SnapshotEntryKind};
use crate::format::roster::VaultRoster;
use crate::format::snapshot::SignerId;
use crate::keys::{
    Argon2Cost, KeySlot, NewSecret, SlotSecret, VaultNamingKeys, VaultSealingKeys, VaultSecretKey,
    VaultSigner, derive, owner_identity, random, slot_key, verify,
};
use crate::limits::MAX_CONFIG_BYTES;
use crate::manifest::{ChunkManifest, ManifestAccess, state_folder};
use crate::put::{self, PutOptions, PutReport, PutSource, SkippedItem, now_ns};
use crate::store::{CreateOutcome, VaultStore};
use crate::wire::hex;

pub(crate) use chain::ChainHead;
pub use chain::Snapshot;
pub(crate) use commit::host;
pub use keys::SlotInfo;
use lag::StoreLag;
use pin::{PinAnchor, VaultPin, place_name};
pub use rotate::{RotateOptions, RotatedVault};
use succession::{OwnerSuccession, VaultTrust, first_owner, mend_rotations, owner_of};
pub(crate) use sync::hash_of;
pub(crate) use trust::slots;
use unlock::{VaultAdmission, admit, gone, unlock};
pub(crate) use unread::{LedgerLink, SnapshotLedger};

/// How to open a vault.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Where to keep the manifest and the head: a folder for all vaults. The default is
    /// `sealane/vaults` in `$XDG_STATE_HOME` or `~/.local/state`.
    pub state: Option<PathBuf>,
    /// A head that the store must have: `number:hash`, as [`Vault::head_text`] gives it.
    pub expect_head: Option<String>,
    /// The vault and owner that the place must hold: `vault:owner`, as [`Vault::anchor`] gives it.
    /// Given and found, it takes the place of what this machine remembers of that place.
    pub expect: Option<String>,
    /// Use the objects alone: no manifest and no index, and if need be no config. For recovery;
    /// whether the store was rolled back is not checked, and nothing is remembered.
    pub objects_alone: bool,
    /// A head, as [`Vault::head_text`] gives it, that the store may be behind what was seen here
    /// from. Whoever reads is then only warned; whoever writes gives up what lies between.
    pub accept_rollback: Option<String>,
    /// Makes a vault even where another one was: [`Vault::init`] refuses such a place otherwise.
    pub replace: bool,
    /// The handle serves one command alone. Listings of a bucket then count from the opening on,
    /// for no longer than a minute, until the command writes or removes something there.
    pub one_command: bool,
}

/// A vault, unlocked.
///
/// A writer's key opens one that adds and reads nothing; what needs to read is then refused with
/// [`Error::NotOwner`].
pub struct Vault {
    store: VaultStore,
    config: VaultConfig,
    naming: VaultNamingKeys,
    sealing: Arc<VaultSealingKeys>,
    wrapped: Option<Vec<u8>>,
    succession: OwnerSuccession,
    /// The main keys of all generations, the newest last; none for a writer.
    mains: Vec<VaultSecretKey>,
    /// The sealing keys of those generations.
    sealings: Vec<Arc<VaultSealingKeys>>,
    signer: VaultSigner,
    signer_id: SignerId,
    state: Option<PathBuf>,
    manifest: ChunkManifest,
    sessions: Mutex<HashMap<Vec<u8>, Arc<VaultSealingKeys>>>,
    roster: Mutex<VaultRoster>,
    warnings: Mutex<BTreeMap<String, String>>,
    /// How the store stands to what this machine has seen of the vault.
    lag: Mutex<StoreLag>,
    first_use: bool,
}

impl Vault {
    /// Makes a vault in `store`, with a first slot for `passphrase`.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::VaultGone`] in a place where another vault was,
    /// [`Error::Overwrites`], and what the store fails for.
    pub fn init(
        store: VaultStore,
        passphrase: &[u8],
        cost: Argon2Cost,
        metadata: VaultMetadata,
        options: &OpenOptions,
    ) -> Result<Vault, Error> {
        if store.size(CONFIG_KEY)?.is_some() {
            return Err(Error::Exists);
        }
        if let Some(pinned) = VaultPin::of_place(&store, options)?.filter(|_| !options.replace) {
            return Err(Error::VaultGone { place: store.location(), pinned: pinned.to_string() });
        }
        store.check_condition()?;
        let id: VaultId = random()?;
        let main = VaultSecretKey::new(random()?);
        let signer = VaultSigner::from_seed(&derive("signing", &main, &id))?;
        let owner = signer.verifying_key();
        let config = VaultConfig { vault: id, metadata, created_ns: now_ns(), owner };
        let secret = NewSecret::Passphrase(passphrase, cost);
        let (slot, object) = KeySlot::write(&id, &main, "first", &secret)?;
        store.put_and_read(&slot_key(&slot), &object)?;
        match store.put_and_read(CONFIG_KEY, &config.write(&signer)?) {
            Ok(CreateOutcome::Created) => {}
            // Without its config the slot opens nothing, and would be a stranger's to the next.
            Ok(CreateOutcome::Existed) => {
                store.delete(&slot_key(&slot))?;
                return Err(Error::Exists);
            }
            Err(error @ (Error::Forgot(_) | Error::Overwrites(_))) => {
                store.delete(&slot_key(&slot))?;
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        let succession = OwnerSuccession::of_one(owner);
        let trusted =
            VaultTrust { succession, roster: VaultRoster::default(), foreign: Vec::new() };
        let vault = Vault::unlocked(store, config, &main, options, trusted)?;
        VaultPin::made(&vault.store, vault.anchor_of(), options)?;
        vault.sign_slots_once()?;
        Ok(vault)
    }

    /// Opens the vault in `store`, brings the manifest up to date, and checks that the store has
    /// not gone back behind what was seen here.
    ///
    /// # Errors
    /// [`Error::NoVault`], [`Error::WrongKey`], [`Error::RolledBack`], [`Error::Forked`],
    /// [`Error::Chain`], and what the store fails for.
    pub fn open(
        store: VaultStore,
        secret: &SlotSecret<'_>,
        options: &OpenOptions,
    ) -> Result<Vault, Error> {
        store.begin_look();
        let config = match read_config(&store) {
            Ok(config) => config,
            Err(error) if options.objects_alone => {
                return Vault::open_without_config(store, secret, options, error);
            }
            Err(error) => return Err(gone(&store, error, options)),
        };
        let remembered = if options.objects_alone {
            None
        } else {
            let state = state_folder(options.state.as_deref(), &config.vault)?;
            store.remember_in(&state.join("objects").join(hex(&place_name(&store))));
            Vault::remembered_roster(Some(&state))
        };
        let read = || OwnerSuccession::read(&store, &config, remembered.as_deref());
        let mut trusted = read()?;
        let mut admitted = admit(&store, &config, secret, &trusted, options);
        if let (Err(Error::WrongKey | Error::SlotsDamaged(_) | Error::Exchanged { .. }), false) =
            (&admitted, secret.adds())
            && mend_rotations(&store, &config, secret, &trusted.roster).unwrap_or(false)
        {
            trusted = read()?;
            admitted = admit(&store, &config, secret, &trusted, options);
        }
        let VaultAdmission { pin, unlocked } = admitted?;
        let mut vault = match (secret, unlocked) {
            (SlotSecret::Writer(key), _) => {
                Vault::for_writer(store, config, key, options, trusted)?
            }
            (_, None) => return Err(Error::WrongKey),
            (_, Some(unlocked)) => {
                let vault = Vault::unlocked(store, config, &unlocked.main, options, trusted)?;
                vault.warn(unlocked.foreign);
                vault
            }
        };
        if !options.objects_alone {
            vault.first_use = pin.keep()?;
            vault.sync()?;
            vault.remember_roster()?;
        }
        vault.check_head(options)?;
        if !options.objects_alone {
            vault.sign_slots_once()?;
        }
        if !options.one_command {
            vault.store.end_look();
        }
        Ok(vault)
    }

    /// Opens a vault that has lost its config: the slots name the vault, and the main key its
    /// owner.
    fn open_without_config(
        store: VaultStore,
        secret: &SlotSecret<'_>,
        options: &OpenOptions,
        error: Error,
    ) -> Result<Vault, Error> {
        let mut vaults: Vec<VaultId> = Vec::new();
        for object in store.list(crate::keys::SLOT_PREFIX)? {
            let head = store.get(&object.key, crate::limits::MAX_SLOT_BYTES);
            let id = head.ok().and_then(|head| head.get(8..24)?.try_into().ok());
            vaults.extend(id.filter(|id| !vaults.contains(id)));
        }
        for id in vaults {
            let mut found = None;
            // A main key that was given up may open a slot, too: its owner is not the last.
            let mut is_last = |main: &VaultSecretKey| {
                let owner = first_owner(&store, &id, main)?;
                let config = VaultConfig {
                    vault: id,
                    metadata: VaultMetadata::Sealed,
                    created_ns: now_ns(),
                    owner,
                };
                let trusted = OwnerSuccession::read(&store, &config, None)?;
                let last = trusted.succession.current() == owner_of(main, &id)?;
                found = last.then_some((config, trusted));
                Ok(last)
            };
            let unlocked = unlock(&store, &id, secret, &VaultRoster::default(), &mut is_last);
            let (Ok(unlocked), Some((config, trusted))) = (unlocked, found) else { continue };
            VaultPin::check(&store, &config.vault, &trusted.succession, options)?;
            let vault = Vault::unlocked(store, config, &unlocked.main, options, trusted)?;
            vault.warn([SkippedItem { path: CONFIG_KEY.to_owned(), reason: error.named() }]);
            return Ok(vault);
        }
        Err(gone(&store, error, options))
    }

    fn unlocked(
        store: VaultStore,
        config: VaultConfig,
        main: &VaultSecretKey,
        options: &OpenOptions,
        trusted: VaultTrust,
    ) -> Result<Vault, Error> {
        let id = config.vault;
        let VaultTrust { succession, roster, foreign } = trusted;
        let signer = VaultSigner::from_seed(&derive("signing", main, &id))?;
        if signer.verifying_key() != succession.current() {
            return Err(Error::Signature(CONFIG_KEY.to_owned()));
        }
        let mains = succession.mains(main, &id)?;
        let sealings = mains.iter().map(|main| VaultSealingKeys::derive(main, &id).map(Arc::new));
        let sealings = sealings.collect::<Result<Vec<_>, _>>()?;
        let sealing = sealings.last().cloned().ok_or(Error::WrongKey)?;
        let (state, manifest) = open_manifest(options, &id, ManifestAccess::Everything)?;
        manifest.begin(succession.generation())?;
        let metadata = succession.rotation().map(|newest| newest.rotation.metadata);
        let vault = Vault {
            // Ids stay: writers know their keys anyway, and snapshots name by them what they keep.
            naming: VaultNamingKeys::derive(mains.first().unwrap_or(main), &id),
            sealing,
            wrapped: None,
            succession,
            mains,
            sealings,
            signer,
            signer_id: SignerId::default(),
            manifest,
            state,
            sessions: Mutex::default(),
            roster: Mutex::new(roster),
            warnings: Mutex::default(),
            lag: Mutex::default(),
            first_use: false,
            store,
            config: VaultConfig { metadata: metadata.unwrap_or(config.metadata), ..config },
        };
        vault.warn(foreign);
        Ok(vault)
    }

    fn for_writer(
        store: VaultStore,
        config: VaultConfig,
        key: &crate::keys::WriterKey,
        options: &OpenOptions,
        trusted: VaultTrust,
    ) -> Result<Vault, Error> {
        let VaultTrust { succession, roster, foreign } = trusted;
        if key.vault != config.vault || !succession.owners().contains(&key.owner_verifying) {
            return Err(Error::WrongKey);
        }
        let secret = VaultSecretKey::new(random()?);
        let info = session_info(&config.vault);
        let newest = succession.rotation().map(|newest| newest.rotation.identity.clone());
        let owner = newest.as_ref().unwrap_or(&key.owner);
        let wrapped = sealane_group::seal_to(owner, &info, secret.as_slice());
        let wrapped = wrapped.map_err(|_| Error::Library("cipher"))?;
        let (state, manifest) = open_manifest(options, &config.vault, ManifestAccess::Nothing)?;
        let metadata = succession.rotation().map(|newest| newest.rotation.metadata);
        let vault = Vault {
            naming: key.naming.clone(),
            sealing: Arc::new(VaultSealingKeys::derive(&secret, &config.vault)?),
            wrapped: Some(wrapped),
            succession,
            mains: Vec::new(),
            sealings: Vec::new(),
            signer: VaultSigner::from_seed(&key.seed)?,
            signer_id: key.slot,
            manifest,
            state,
            sessions: Mutex::default(),
            roster: Mutex::new(roster),
            warnings: Mutex::default(),
            lag: Mutex::default(),
            first_use: false,
            store,
            config: VaultConfig { metadata: metadata.unwrap_or(config.metadata), ..config },
        };
        vault.warn(foreign);
        Ok(vault)
    }

    /// Keeps files and folders as the next snapshot, each under its last component.
    ///
    /// Paths that cannot be read are named in [`PutReport::skipped`]; the rest is kept.
    ///
    /// # Errors
    /// Errors of the store. Data that was kept before need not be kept again.
    pub fn put_paths(&self, roots: &[PathBuf], options: &PutOptions) -> Result<PutReport, Error> {
        put::put(self, PutSource::Paths(roots), options)
    }

    /// Keeps what `source` gives as the next snapshot: one file of that name.
    ///
    /// # Errors
    /// As [`Vault::put_paths`]; and [`Error::File`] when `source` fails, and then nothing is kept.
    pub fn put_reader(
        &self,
        name: &str,
        source: &mut dyn Read,
        options: &PutOptions,
    ) -> Result<PutReport, Error> {
        if !crate::format::page::is_path(name.as_bytes()) {
            return Err(Error::Escapes(name.to_owned()));
        }
        let entry = SnapshotEntry {
            path: name.as_bytes().to_vec(),
            mode: 0o600,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            mtime_ns: now_ns(),
            node: SnapshotEntryKind::Folder,
            hard_link: None,
            attributes: Vec::new(),
        };
        put::put(self, PutSource::Reader(entry, source), options)
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

    /// How far this key reads.
    pub(crate) fn reads(&self) -> ManifestAccess {
        if !self.mains.is_empty() { ManifestAccess::Everything } else { ManifestAccess::Nothing }
    }

    pub(crate) fn naming(&self) -> &VaultNamingKeys {
        &self.naming
    }

    pub(crate) fn sealing(&self) -> &VaultSealingKeys {
        &self.sealing
    }

    pub(crate) fn signer_id(&self) -> SignerId {
        self.signer_id
    }

    pub(crate) fn signer(&self) -> &VaultSigner {
        &self.signer
    }

    /// The signature of the first main key, which is the config's.
    pub(crate) fn first_signer(&self) -> Result<VaultSigner, Error> {
        let first = self.mains.first().ok_or(Error::NotOwner("sign the config"))?;
        VaultSigner::from_seed(&derive("signing", first, &self.config.vault))
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
        let (generation, wrapped) = (self.generation(), self.wrapped.clone());
        ObjectHeader { kind: ObjectKind::Pack, vault: self.config.vault, generation, wrapped }
    }

    /// The main key, which `what` needs.
    pub(crate) fn owner(&self, what: &'static str) -> Result<&VaultSecretKey, Error> {
        self.mains.last().ok_or(Error::NotOwner(what))
    }

    /// The keys of an object with this header.
    pub(crate) fn sealing_of(&self, header: &ObjectHeader) -> Result<Arc<VaultSealingKeys>, Error> {
        self.owner("read")?;
        let generation = usize::from(header.generation);
        let (Some(main), Some(own)) = (self.mains.get(generation), self.sealings.get(generation))
        else {
            return Err(self.unknown_generation(header.generation)?);
        };
        let Some(wrapped) = &header.wrapped else { return Ok(Arc::clone(own)) };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sealing) = sessions.get(wrapped) {
            return Ok(Arc::clone(sealing));
        }
        let refused = || Error::NotAuthentic { what: "a session's key".to_owned() };
        let identity = owner_identity(main, &self.config.vault)?;
        let info = session_info(&self.config.vault);
        let secret = identity.open(&info, wrapped).map_err(|_| refused())?;
        let secret = secret.as_slice().try_into().map_err(|_| refused())?;
        let sealing = Arc::new(VaultSealingKeys::derive(secret, &self.config.vault)?);
        sessions.insert(wrapped.clone(), Arc::clone(&sealing));
        Ok(sealing)
    }
}

impl Vault {
    /// Why an object of a generation without a main key here cannot be opened: the key may have
    /// been changed since this handle was opened, and then the object is as good as any.
    fn unknown_generation(&self, generation: u8) -> Result<Error, Error> {
        let is_changed = generation > self.generation() && self.is_rotating()?;
        let malformed = Error::Malformed { what: "the number of a main key" };
        Ok(if is_changed { Error::Rotated } else { malformed })
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("id", &self.id()).finish_non_exhaustive()
    }
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
