use std::collections::HashSet;

use super::Vault;
use crate::Error;
use crate::format::header::{ObjectHeader, ObjectKind};
use crate::format::index::read_index;
use crate::format::pack::{ObjectHash, PackEnds, PackRecord, pack_key};
use crate::limits::{MAX_INDEX_BYTES, MAX_READ_AHEAD_BYTES};
use crate::manifest::{ChunkManifest, PackOrigin};
use crate::store::ListedObject;
use crate::wire::from_hex;

impl Vault {
    /// Brings the manifest up to date with the packs that the store has. Gives whether it was not.
    pub(crate) fn sync(&self) -> Result<bool, Error> {
        let packs = self.pack_objects()?;
        let there: HashSet<ObjectHash> = packs.iter().map(|(hash, _)| *hash).collect();
        let condemned = self.condemned()?;
        self.manifest.transaction(|manifest| {
            let known = manifest.packs()?;
            known.difference(&there).try_for_each(|gone| manifest.forget_pack(gone))?;
            if !self.mains.is_empty() && there.len() > known.intersection(&there).count() {
                self.read_indexes(manifest, &there)?;
                self.add_packs(manifest, &packs)?;
            }
            manifest.condemn(&condemned)?;
            Ok(manifest.packs()? != known)
        })
    }

    /// The same for a manifest that is made from the packs alone.
    pub(crate) fn sync_packs(&self, manifest: &ChunkManifest) -> Result<bool, Error> {
        let packs = self.pack_objects()?;
        let there: HashSet<ObjectHash> = packs.iter().map(|(hash, _)| *hash).collect();
        manifest.transaction(|manifest| {
            let known = manifest.packs()?;
            known.difference(&there).try_for_each(|gone| manifest.forget_pack(gone))?;
            self.add_packs(manifest, &packs)?;
            Ok(manifest.packs()? != known)
        })
    }

    /// Reads the trailers of those packs that a manifest lacks.
    fn add_packs(
        &self,
        manifest: &ChunkManifest,
        packs: &[(ObjectHash, u64)],
    ) -> Result<(), Error> {
        let known = manifest.packs()?;
        let packs: Vec<_> = packs.iter().filter(|(hash, _)| !known.contains(hash)).collect();
        self.read_trailers(packs.into_iter().copied(), &mut |_, pack| match pack {
            Ok(pack) => manifest.add_pack(&pack, self.origin(&pack)),
            // The content of this pack is missing then. A put keeps it anew, and `verify` and every
            // reader that needs it say so.
            Err(error) if error.is_damage() => Ok(()),
            Err(error) => Err(error),
        })
    }

    /// Reads headers and trailers of packs, from a bucket several at a time, in their order.
    pub(crate) fn read_trailers(
        &self,
        packs: impl IntoIterator<Item = (ObjectHash, u64)>,
        take: &mut dyn FnMut(ObjectHash, Result<PackRecord, Error>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let packs: Vec<(ObjectHash, u64)> = packs.into_iter().collect();
        for some in packs.chunks(self.store.requests_at_once()) {
            let (store, vault) = (&self.store, &self.config.vault);
            let ends =
                store.for_each(some, |(hash, size)| PackEnds::read(store, hash, *size, vault));
            let mut ends: Vec<_> = some.iter().map(|(hash, _)| *hash).zip(ends).collect();
            while !ends.is_empty() {
                let count = trailers_together(&ends);
                let together: Vec<_> = ends.drain(..count).collect();
                let trailers = store.for_each(&together, |(_, ends)| {
                    let ends = ends.as_ref().ok()?;
                    Some(ends.trailer(store))
                });
                for ((hash, ends), trailer) in together.into_iter().zip(trailers) {
                    let open = |header: &ObjectHeader| self.sealing_of(header);
                    let opened = ends.and_then(|ends| match trailer {
                        Some(trailer) => ends.open(trailer?, open),
                        None => Err(Error::Missing(pack_key(&hash))),
                    });
                    take(hash, opened)?;
                }
            }
        }
        Ok(())
    }

    fn read_indexes(
        &self,
        manifest: &ChunkManifest,
        there: &HashSet<ObjectHash>,
    ) -> Result<(), Error> {
        let mut unread = Vec::new();
        for object in self.store.list("index/")? {
            if let Some(hash) = hash_of(&object)
                && !manifest.has_read_index(&hash)?
            {
                unread.push(object);
            }
        }
        self.store.get_each(&unread, MAX_INDEX_BYTES, &mut |object, bytes| match bytes {
            Ok(bytes) => self.read_one_index(manifest, there, object, &bytes),
            // A prune removes an index when its packs are gone.
            Err(Error::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        })
    }

    fn read_one_index(
        &self,
        manifest: &ChunkManifest,
        there: &HashSet<ObjectHash>,
        object: &ListedObject,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let Some(hash) = hash_of(object) else { return Ok(()) };
        // The sealer of an index may put any claim about any pack into it. So the claims of a
        // writer are read from the trailers of its own packs.
        let open = |header: &ObjectHeader| match header.wrapped {
            None if header.generation == self.generation() => self.sealing_of(header),
            _ => Err(Error::Malformed { what: "an index" }),
        };
        let packs = match read_index(&object.key, bytes, &self.config.vault, open) {
            Ok(packs) => packs,
            // All that it says stands in the packs, too.
            Err(error) if error.is_damage() => return manifest.index_read(&hash),
            Err(error) => return Err(error),
        };
        for pack in packs {
            if there.contains(&pack.hash) {
                // A holder of the newest main key vouches for everything that an older key
                // sealed.
                manifest.add_pack(&pack, PackOrigin::Owner)?;
            }
        }
        manifest.index_read(&hash)
    }

    /// Whether the owner wrote a pack, as far as its header tells.
    pub(crate) fn origin(&self, pack: &PackRecord) -> PackOrigin {
        let own = ObjectHeader::owners(ObjectKind::Pack, &self.config.vault, self.generation());
        if pack.header == own.write() { PackOrigin::Owner } else { PackOrigin::Other }
    }

    /// A pack's header and trailer.
    pub(crate) fn read_pack(&self, hash: &ObjectHash, size: u64) -> Result<PackRecord, Error> {
        let ends = PackEnds::read(&self.store, hash, size, &self.config.vault)?;
        let trailer = ends.trailer(&self.store)?;
        ends.open(trailer, |header| self.sealing_of(header))
    }

    /// The packs that the store has, and their sizes.
    pub(crate) fn pack_objects(&self) -> Result<Vec<(ObjectHash, u64)>, Error> {
        let objects = self.store.list("packs/")?;
        let packs = objects.iter().filter_map(|object| {
            let hash = hash_of(object)?;
            (pack_key(&hash) == object.key).then_some((hash, object.size))
        });
        Ok(packs.collect())
    }

    /// The packs that a prune will remove.
    pub(crate) fn condemned(&self) -> Result<HashSet<ObjectHash>, Error> {
        Ok(self.store.list("condemned/")?.iter().filter_map(hash_of).collect())
    }

    /// A manifest made from the packs alone.
    pub(crate) fn manifest_from_packs(&self) -> Result<ChunkManifest, Error> {
        let manifest = ChunkManifest::temporary()?;
        self.sync_packs(&manifest)?;
        Ok(manifest)
    }
}

/// The hash that ends an object's key.
pub(crate) fn hash_of(object: &ListedObject) -> Option<ObjectHash> {
    from_hex(object.key.rsplit('/').next()?)
}

/// How many trailers are read together: one at least. A footer may name any length.
fn trailers_together(ends: &[(ObjectHash, Result<PackEnds, Error>)]) -> usize {
    let mut bytes = 0_u64;
    let fits = |(_, ends): &&(ObjectHash, Result<PackEnds, Error>)| {
        bytes += ends.as_ref().map_or(0, PackEnds::trailer_bytes);
        bytes <= MAX_READ_AHEAD_BYTES
    };
    ends.iter().take_while(fits).count().max(1)
}
