//! How objects of a bucket are listed and read: several at a time, and what was read before not
//! again.

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt};

use super::super::look::{ListingGroup, TAIL_FROM};
use super::super::{ListedObject, ObjectTaker};
use super::{S3Store, failure, read_failure};
use crate::Error;
use crate::limits::{MAX_READ_AHEAD_BYTES, MAX_STORE_REQUESTS, MAX_TAIL_OBJECTS};

/// An object as the bucket gave it.
struct S3Object {
    bytes: Vec<u8>,
    tag: Option<String>,
}

impl S3Store {
    pub(crate) fn get(&self, key: &str, max: usize) -> Result<Vec<u8>, Error> {
        Ok(self.wait(self.read(key, max))?.bytes)
    }

    /// Reads what was just written, and remembers it.
    pub(in crate::store) fn get_back(&self, key: &str, max: usize) -> Result<Vec<u8>, Error> {
        let found = self.wait(self.read(key, max))?;
        if let Some(cache) = self.cache.get() {
            cache.add(key, found.tag.as_deref(), &found.bytes);
            cache.write();
        }
        Ok(found.bytes)
    }

    pub(in crate::store) fn get_listed(
        &self,
        object: &ListedObject,
        max: usize,
    ) -> Result<Vec<u8>, Error> {
        let mut given = None;
        self.get_each(std::slice::from_ref(object), max, &mut |_, read| {
            given = Some(read?);
            Ok(())
        })?;
        given.ok_or_else(|| Error::Missing(object.key.clone()))
    }

    pub(in crate::store) fn get_seen(&self, key: &str, max: usize) -> Result<Vec<u8>, Error> {
        match self.look.object(key) {
            Some(object) => self.get_listed(&object, max),
            None => self.get(key, max),
        }
    }

    pub(in crate::store) fn get_each(
        &self,
        objects: &[ListedObject],
        max: usize,
        take: &mut ObjectTaker<'_>,
    ) -> Result<(), Error> {
        let mut rest = objects;
        while !rest.is_empty() {
            let (some, more) = rest.split_at(together(rest));
            rest = more;
            let known = |object| self.cache.get().and_then(|cache| cache.get(object));
            let cached: Vec<Option<Vec<u8>>> = some.iter().map(known).collect();
            let missing = some.iter().zip(&cached).filter(|(_, cached)| cached.is_none());
            let missing: Vec<&ListedObject> = missing.map(|(object, _)| object).collect();
            let mut read = self.read_all(&missing, max).into_iter();
            for (object, cached) in some.iter().zip(cached) {
                let bytes = match cached {
                    Some(bytes) if bytes.len() > max => {
                        Err(Error::TooLarge { what: object.key.clone() })
                    }
                    Some(bytes) => Ok(bytes),
                    None => match read.next() {
                        // Another one has come since the listing, or the listing was wrong.
                        Some(Err(Error::TooLarge { .. })) if object.size < max as u64 => {
                            self.get(&object.key, max)
                        }
                        Some(Err(error)) if !error.is_damage() => return Err(error),
                        Some(read) => read,
                        None => Err(Error::Library("stream")),
                    },
                };
                take(object, bytes)?;
            }
        }
        Ok(())
    }

    /// Reads objects, several at a time, and remembers them. The store's word for a size bounds
    /// what is read ahead. Behind a failure that is no damage nothing more is read: each one would
    /// wait for the same outage.
    fn read_all(&self, objects: &[&ListedObject], max: usize) -> Vec<Result<Vec<u8>, Error>> {
        if objects.is_empty() {
            return Vec::new();
        }
        let bound = |object: &ListedObject| usize::try_from(object.size).unwrap_or(max).min(max);
        let reads: Vec<_> =
            objects.iter().map(|object| self.read(&object.key, bound(object))).collect();
        let until_over = |is_over: &mut bool, one: Result<S3Object, Error>| {
            let goes_on = !std::mem::replace(is_over, is_outage(&one));
            std::future::ready(goes_on.then_some(one))
        };
        let reads = stream::iter(reads).buffered(MAX_STORE_REQUESTS).scan(false, until_over);
        let read = self.wait(reads.collect::<Vec<_>>());
        let keep = |(object, read): (&&ListedObject, Result<S3Object, Error>)| {
            let S3Object { bytes, tag } = read?;
            // Another one may have come since the listing.
            if let Some(cache) = self.cache.get().filter(|_| tag == object.tag) {
                cache.add(&object.key, tag.as_deref(), &bytes);
            }
            Ok(bytes)
        };
        let bytes = objects.iter().zip(read).map(keep).collect();
        if let Some(cache) = self.cache.get() {
            cache.write();
        }
        bytes
    }

    async fn read(&self, key: &str, max: usize) -> Result<S3Object, Error> {
        let at = self.at(key);
        let found = self.outage.wait_out(&self.location, || async {
            let found = self.bucket.get(&at).await?;
            let tag = found.meta.e_tag.clone();
            if found.meta.size > max as u64 {
                return Ok(None);
            }
            Ok(Some(S3Object { bytes: found.bytes().await?.into(), tag }))
        });
        let found = found.await.map_err(|cause| read_failure(key, cause))?;
        found.ok_or_else(|| Error::TooLarge { what: key.to_owned() })
    }

    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, Error> {
        if let Some(objects) = self.look.below(prefix) {
            return Ok(objects);
        }
        let objects = match ListingGroup::of(prefix).filter(|_| self.look.is_open()) {
            Some(ListingGroup::Tail) => match self.list_tail()? {
                Some(tail) => {
                    self.look.keep(ListingGroup::Tail, &tail);
                    tail.into_iter().filter(|object| object.key.starts_with(prefix)).collect()
                }
                None => self.list_below(prefix)?,
            },
            Some(group) => {
                let objects = self.list_below(prefix)?;
                self.look.keep(group, &objects);
                objects
            }
            None => self.list_below(prefix)?,
        };
        if let Some(cache) = self.cache.get() {
            cache.retain(prefix, &objects);
        }
        Ok(objects)
    }

    fn list_below(&self, prefix: &str) -> Result<Vec<ListedObject>, Error> {
        let under = self.at(prefix);
        let found = self.request(|| self.bucket.list(Some(&under)).try_collect::<Vec<_>>());
        Ok(self.listed(found.map_err(|cause| failure(prefix, cause))?))
    }

    /// The objects behind the packs; none if there are too many for one request.
    fn list_tail(&self) -> Result<Option<Vec<ListedObject>>, Error> {
        if !self.look.takes_tail() {
            return Ok(None);
        }
        let (under, from) = (self.at(""), self.at(TAIL_FROM));
        let list = || {
            let found = self.bucket.list_with_offset(Some(&under), &from);
            found.take(MAX_TAIL_OBJECTS + 1).try_collect::<Vec<_>>()
        };
        let found = self.request(list).map_err(|cause| failure("", cause))?;
        if found.len() > MAX_TAIL_OBJECTS {
            self.look.tail_is_long();
            return Ok(None);
        }
        let mut objects = self.listed(found);
        // A server may know nothing of where a list is to begin.
        objects.retain(|object| object.key.as_str() > TAIL_FROM);
        Ok(Some(objects))
    }

    fn listed(&self, found: Vec<object_store::ObjectMeta>) -> Vec<ListedObject> {
        let own = match self.prefix.as_ref() {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        let object = |found: object_store::ObjectMeta| {
            let key = found.location.as_ref().strip_prefix(&own)?.to_owned();
            let modified_ms = found.last_modified.timestamp_millis();
            Some(ListedObject { key, size: found.size, modified_ms, tag: found.e_tag })
        };
        let mut objects: Vec<ListedObject> = found.into_iter().filter_map(object).collect();
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        objects
    }
}

/// Whether a read failed by something else than the object's own state.
fn is_outage(read: &Result<S3Object, Error>) -> bool {
    read.as_ref().is_err_and(|error| !error.is_damage())
}

/// How many objects are read together: one at least.
fn together(objects: &[ListedObject]) -> usize {
    let mut bytes = 0_u64;
    let fits = |object: &&ListedObject| {
        bytes = bytes.saturating_add(object.size);
        bytes <= MAX_READ_AHEAD_BYTES
    };
    objects.iter().take_while(fits).count().max(1)
}
