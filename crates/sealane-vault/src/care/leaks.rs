use crate::Error;
use crate::format::config::VaultMetadata;
use crate::format::roster::VaultRoster;
use crate::keys::{Argon2Cost, SlotKind};
use crate::store::VaultStore;
use crate::vault::{read_config, slots};
use crate::wire::hex;

/// Objects of one kind, as the storage provider sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeakGroup {
    /// The first part of their keys.
    pub prefix: String,
    /// How many there are.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The size of the smallest and of the largest.
    pub sizes: (u64, u64),
    /// When the first and the last were written: milliseconds since 1970-01-01 UTC.
    pub written_ms: (i64, i64),
}

/// All that can be seen of a vault without a key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VaultLeaks {
    /// The vault's random identity.
    pub vault: String,
    /// When it was made: nanoseconds since 1970-01-01 UTC.
    pub created_ns: i64,
    /// Whether names are readable.
    pub metadata: VaultMetadata,
    /// The owner's verifying key.
    pub owner: String,
    /// Kinds of the key slots, and what it costs to guess.
    pub slots: Vec<(SlotKind, Option<Argon2Cost>)>,
    /// The objects in the store.
    pub groups: Vec<LeakGroup>,
    /// The first five lines of a readable listing, if there is one.
    pub names: Vec<String>,
}

/// Everything that a storage provider sees of the vault in `store`. Takes no key, because the
/// provider has none.
///
/// # Errors
/// [`Error::NoVault`], and errors of the store.
pub fn leaks(store: &VaultStore) -> Result<VaultLeaks, Error> {
    let config = read_config(store)?;
    let mut groups: Vec<LeakGroup> = Vec::new();
    let mut listing = None;
    for object in store.list("")? {
        let prefix = object.key.split('/').next().unwrap_or_default().to_owned();
        if prefix == "listings" {
            listing = Some(object.key.clone());
        }
        let (size, time) = (object.size, object.modified_ms);
        match groups.iter_mut().find(|group| group.prefix == prefix) {
            Some(group) => {
                group.objects += 1;
                group.bytes += size;
                group.sizes = (group.sizes.0.min(size), group.sizes.1.max(size));
                group.written_ms = (group.written_ms.0.min(time), group.written_ms.1.max(time));
            }
            None => groups.push(LeakGroup {
                prefix,
                objects: 1,
                bytes: size,
                sizes: (size, size),
                written_ms: (time, time),
            }),
        }
    }
    let names = match listing {
        Some(key) => {
            let text = store.get(&key, usize::MAX)?;
            let text = String::from_utf8_lossy(&text);
            text.lines().take(5).map(str::to_owned).collect()
        }
        None => Vec::new(),
    };
    let slots = slots(store, &config.vault, &VaultRoster::default())?.slots;
    Ok(VaultLeaks {
        vault: hex(&config.vault),
        created_ns: config.created_ns,
        metadata: config.metadata,
        owner: hex(&config.owner),
        slots: slots.iter().map(|slot| (slot.kind, slot.cost)).collect(),
        groups,
        names,
    })
}
