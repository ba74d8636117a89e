//! Reading with the main key.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use super::{VaultPlace, session_info};
use crate::Error;
use crate::format::header::ObjectHeader;
use crate::keys::{VaultSealingKeys, VaultSecretKey, owner_identity};

/// The part of an owner's vault that reads: snapshots, files, and whether all of them are whole.
///
/// A [`VaultOwner`](super::VaultOwner) has one. It removes nothing, and adds nothing to the chain.
pub struct VaultReader {
    pub(super) place: VaultPlace,
    /// The main key of this generation.
    pub(super) main: VaultSecretKey,
    /// The main keys of all generations, the newest last.
    pub(super) mains: Vec<VaultSecretKey>,
    /// The sealing keys of those generations.
    pub(super) sealings: Vec<Arc<VaultSealingKeys>>,
    /// The keys of writers' sessions, by their sealed form.
    sessions: Mutex<HashMap<Vec<u8>, Arc<VaultSealingKeys>>>,
}

impl VaultReader {
    pub(super) fn new(
        place: VaultPlace,
        main: VaultSecretKey,
        mains: Vec<VaultSecretKey>,
        sealings: Vec<Arc<VaultSealingKeys>>,
    ) -> VaultReader {
        VaultReader { place, main, mains, sealings, sessions: Mutex::default() }
    }

    /// The keys of an object with this header.
    pub(crate) fn sealing_of(&self, header: &ObjectHeader) -> Result<Arc<VaultSealingKeys>, Error> {
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

    /// Why an object of a generation without a main key here cannot be opened: the key may have
    /// been changed since this handle was opened, and then the object is as good as any.
    fn unknown_generation(&self, generation: u8) -> Result<Error, Error> {
        let is_changed = generation > self.generation() && self.is_rotating()?;
        let malformed = Error::Malformed { what: "the number of a main key" };
        Ok(if is_changed { Error::Rotated } else { malformed })
    }
}

impl Deref for VaultReader {
    type Target = VaultPlace;

    fn deref(&self) -> &VaultPlace {
        &self.place
    }
}

impl std::fmt::Debug for VaultReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VaultReader").field("id", &self.id()).finish_non_exhaustive()
    }
}
