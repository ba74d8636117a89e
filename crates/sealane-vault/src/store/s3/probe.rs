//! Whether a bucket's server creates an object only where none is.
//!
//! A vault takes the next number of its chain by creating an object under the condition that none
//! is there. A server that ignores the condition lets the later of two writers replace the snapshot
//! of the earlier one, and tells both that all is well.

use super::{CreateOutcome, S3Store, failure, says};
use crate::Error;
use crate::keys::random;
use crate::wire::hex;

const PREFIX: &str = "probe/";

/// The finding of two writes under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum S3ProbeOutcome {
    /// The server keeps to what it had first.
    Kept,
    /// It writes over it.
    Replaced,
    /// The object is gone.
    Nothing,
}

impl S3Store {
    /// Asks the server once.
    pub(crate) fn check_condition(&self) -> Result<(), Error> {
        if self.asked.get().is_some() {
            return Ok(());
        }
        // If a run may not remove objects, its probe is still here. It is used again, lest each run
        // leaves another object.
        let left = self.list(PREFIX)?.into_iter().next().map(|object| object.key);
        let shown =
            left.map_or_else(|| Ok(S3ProbeOutcome::Nothing), |left| self.ask_twice(&left))?;
        // Others may have removed that name between two writes. They do not know this one.
        let own = name()?;
        let shown = if shown == S3ProbeOutcome::Kept { shown } else { self.ask_twice(&own)? };
        match shown {
            S3ProbeOutcome::Kept => {
                self.asked.get_or_init(|| ());
                Ok(())
            }
            S3ProbeOutcome::Replaced => Err(Error::Overwrites(self.location.clone())),
            S3ProbeOutcome::Nothing => Err(Error::Forgot(own)),
        }
    }

    /// Writes two contents under one key. The second is to be refused, and the first to be there.
    fn ask_twice(&self, key: &str) -> Result<S3ProbeOutcome, Error> {
        let (first, second) = (content()?, content()?);
        if self.ask(key, &first)? == CreateOutcome::Existed {
            return Ok(S3ProbeOutcome::Kept);
        }
        let refused = self.ask(key, &second)? == CreateOutcome::Existed;
        let shown = match self.get(key, first.len()) {
            Ok(found) if refused && found == first => Ok(S3ProbeOutcome::Kept),
            Ok(_) => Ok(S3ProbeOutcome::Replaced),
            Err(Error::Missing(_)) => Ok(S3ProbeOutcome::Nothing),
            Err(error) => Err(error),
        };
        // Credentials that only add leave it behind. No reader looks there.
        let _ = self.delete(key);
        shown
    }

    fn ask(&self, key: &str, content: &[u8]) -> Result<CreateOutcome, Error> {
        self.create(key, content).map_err(|cause| match says(&cause, &["501", "NotImplemented"]) {
            true => Error::Overwrites(self.location.clone()),
            false => failure(key, cause),
        })
    }
}

fn name() -> Result<String, Error> {
    Ok(format!("{PREFIX}{}", hex(&random::<8>()?)))
}

/// A sentence for whoever finds it, of the same length each time.
fn content() -> Result<Vec<u8>, Error> {
    let number = hex(&random::<8>()?);
    Ok(format!("A vault asked here whether objects are written over: {number}\n").into_bytes())
}
