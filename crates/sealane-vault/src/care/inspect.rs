use crate::Error;
use crate::format::chunk::ChunkKind;
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::index::read_index;
use crate::format::pack::{ObjectHash, PackRecord, pack_key};
use crate::format::roster::{NO_END, VaultRosterSlot};
use crate::format::rotation::{VaultRotation, rotation_key};
use crate::format::snapshot::snapshot_number;
use crate::limits::MAX_INDEX_BYTES;
use crate::vault::Vault;
use crate::wire::{from_hex, hex};

/// A field of an object: what it is called, and its value in words.
pub type VaultObjectField = (String, String);

impl Vault {
    /// Explains one object of the store.
    ///
    /// # Errors
    /// The reason why the object is refused.
    pub fn inspect(&self, key: &str) -> Result<Vec<VaultObjectField>, Error> {
        let name = key.rsplit('/').next().unwrap_or_default();
        let first = key.split('/').next().unwrap_or_default();
        match first {
            "config" => Ok(self.inspect_config()),
            "packs" => {
                let hash: ObjectHash =
                    from_hex(name).ok_or_else(|| Error::Missing(key.to_owned()))?;
                let size = self.store().size(key)?;
                let size = size.ok_or_else(|| Error::Missing(key.to_owned()))?;
                Ok(pack_facts(&self.read_pack(&hash, size)?))
            }
            "index" => {
                let bytes = self.store().get(key, MAX_INDEX_BYTES)?;
                let open = |header: &ObjectHeader| self.sealing_of(header);
                let packs = read_index(key, &bytes, self.vault_id(), open)?;
                let row = |pack: &PackRecord| {
                    let what = format!("{} bytes, {} chunks", pack.size, pack.chunks.len());
                    (pack_key(&pack.hash), what)
                };
                Ok(packs.iter().map(row).collect())
            }
            "snapshots" => {
                let number = snapshot_number(key).ok_or_else(|| Error::Missing(key.to_owned()))?;
                self.inspect_snapshot(number)
            }
            "keys" => {
                let slots = self.all_slots()?;
                let slot = slots.iter().find(|slot| hex(&slot.id) == name);
                let slot = slot.ok_or_else(|| Error::Missing(key.to_owned()))?;
                Ok(vec![
                    fact("kind", ObjectKind::Slot as u8),
                    fact("slot", format!("{:?}", slot.kind)),
                ])
            }
            "roster" => {
                let row = |slot: &VaultRosterSlot| {
                    let until = match slot.until {
                        NO_END => String::new(),
                        until => format!(", believed up to {until}"),
                    };
                    (hex(&slot.id), format!("{:?}{until}", slot.kind))
                };
                Ok(self.roster().slots.iter().map(row).collect())
            }
            "rotations" => {
                let change = self.rotations().find(|change| rotation_key(change.generation) == key);
                change.map(rotation_facts).ok_or_else(|| Error::Missing(key.to_owned()))
            }
            _ => Err(Error::Missing(key.to_owned())),
        }
    }

    fn inspect_config(&self) -> Vec<VaultObjectField> {
        vec![
            fact("kind", ObjectKind::Config as u8),
            fact("vault", self.id()),
            fact("metadata", format!("{:?}", self.metadata()).to_lowercase()),
            fact("owner", hex(&self.signer().verifying_key())),
            fact("anchor", self.anchor()),
        ]
    }

    fn inspect_snapshot(&self, number: u64) -> Result<Vec<VaultObjectField>, Error> {
        let sealed = self.load(number, &self.signers()?)?;
        let body = sealed.open(self.sealing_of(&sealed.header)?.as_ref())?;
        Ok(vec![
            fact("number", number),
            fact("hash", hex(&sealed.hash)),
            fact("previous", hex(&sealed.link.previous)),
            fact("signer", hex(&sealed.link.signer)),
            fact("what", if body.prune { "prune" } else { "snapshot" }),
            fact("timeMs", body.time_ns.div_euclid(1_000_000)),
            fact("source", body.source),
            fact("note", body.note),
            fact("paths", shown(&body.paths)),
            fact("tags", body.tags.join(", ")),
            fact("files", body.counts.files),
            fact("bytes", body.counts.bytes),
            fact("pages", body.pages.len()),
            fact("removed", sealed.link.removed.len()),
        ])
    }
}

fn rotation_facts(change: &VaultRotation) -> Vec<VaultObjectField> {
    vec![
        fact("generation", change.generation),
        fact("before", hex(&change.before)),
        fact("after", hex(&change.after)),
        fact("slots", change.slots.len()),
    ]
}

fn shown(paths: &[Vec<u8>]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| String::from_utf8_lossy(path)).collect();
    paths.join(", ")
}

fn pack_facts(pack: &PackRecord) -> Vec<VaultObjectField> {
    let mut facts = vec![
        fact("size", pack.size),
        fact("session", pack.header.len() > 24),
        fact("chunks", pack.chunks.len()),
    ];
    for (kind, name) in
        [(ChunkKind::Data, "data"), (ChunkKind::Page, "pages"), (ChunkKind::List, "lists")]
    {
        let of_kind = || pack.chunks.iter().filter(|head| head.descriptor.kind == kind);
        let plain: u64 = of_kind().map(|head| u64::from(head.plain_bytes)).sum();
        let sealed: u64 = of_kind().map(|head| u64::from(head.sealed_bytes)).sum();
        let count = of_kind().count();
        facts.push(fact(name, format!("{count} chunks, {plain} bytes, {sealed} sealed")));
    }
    facts
}

fn fact(name: &str, value: impl ToString) -> VaultObjectField {
    (name.to_owned(), value.to_string())
}
