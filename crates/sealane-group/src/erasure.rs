//! When a forward-secret group erases the secrets of epochs that have ended.
//!
//! A folder registers the consumers that read with its keys. Secrets of epochs before that of the
//! slowest of them are erased; without a consumer the present epoch and the one before it stay. No
//! ended epoch stays longer than the folder's *forget-after*, however slow a consumer is.
//!
//! That time is counted while the machine runs, sleep included. No setting of its clock moves it:
//! a clock that steps ahead erases nothing early, and one that is put back keeps nothing for good.

use sealane_seal::{Epoch, Epochs, History};

use crate::folder::{IdentityKeys, KeyFolderLock};
use crate::limits::{FORGET_AFTER_MS, MAX_CONSUMERS_REGISTERED, MIN_LEDGER_STEP_MS};
use crate::member::GroupMember;
use crate::state::GroupState;
use crate::wire::GroupFieldReader;
use crate::{Error, GroupDocument, now_ms};

/// The name of a consumer in a key folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerId([u8; 16]);

impl ConsumerId {
    /// The consumer of that name of a hub's streams.
    pub fn new(hub_address: &str, pattern: &str, name: &str) -> ConsumerId {
        let mut hasher = blake3::Hasher::new_derive_key("Sealane 1.0 consumer of a group");
        for part in [hub_address, pattern, name] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        ConsumerId(id)
    }
}

/// How long the machine has run since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct MachineUptime {
    /// Which start of the machine.
    boot: [u8; 16],
    uptime_ms: u64,
}

impl MachineUptime {
    fn now() -> MachineUptime {
        let read = |path| std::fs::read_to_string(path).ok();
        let boot = read("/proc/sys/kernel/random/boot_id");
        let uptime = read("/proc/uptime").and_then(|text| {
            let seconds: f64 = text.split(' ').next()?.parse().ok()?;
            Some((seconds * 1000.0) as u64)
        });
        let (Some(boot), Some(uptime_ms)) = (boot, uptime) else {
            // A system that does not say has its clock alone.
            return MachineUptime { boot: [0; 16], uptime_ms: now_ms() };
        };
        let mut hash = [0; 16];
        blake3::Hasher::new().update(boot.trim().as_bytes()).finalize_xof().fill(&mut hash);
        MachineUptime { boot: hash, uptime_ms }
    }

    /// The time since another moment, as far as the machine ran.
    fn since(self, earlier: MachineUptime) -> u64 {
        if self.boot == earlier.boot {
            return self.uptime_ms.saturating_sub(earlier.uptime_ms);
        }
        self.uptime_ms
    }
}

/// The account that a folder keeps of a forward-secret group's ended epochs and their readers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ErasureLedger {
    counted: MachineUptime,
    forget_after_ms: u64,
    /// How long ago each ended epoch ended.
    ended: Vec<(Epoch, u64)>,
    consumers: Vec<(ConsumerId, Epoch)>,
}

impl ErasureLedger {
    fn new(now: MachineUptime) -> ErasureLedger {
        let (ended, consumers) = (Vec::new(), Vec::new());
        ErasureLedger { counted: now, forget_after_ms: FORGET_AFTER_MS, ended, consumers }
    }

    /// Counts the time up to now, and the epochs that are held.
    fn count(&mut self, epochs: &Epochs, now: MachineUptime) {
        let passed_ms = now.since(self.counted);
        self.counted = now;
        let age_ms = |epoch: Epoch| {
            let known = self.ended.iter().find(|(ended, _)| *ended == epoch);
            known.map_or(0, |(_, age_ms)| age_ms.saturating_add(passed_ms))
        };
        let ended = epochs.held().map(|(epoch, _)| epoch).filter(|epoch| *epoch < epochs.newest());
        self.ended = ended.map(|epoch| (epoch, age_ms(epoch))).collect();
    }

    /// The first epoch that is needed, by whoever reads here.
    fn first_needed(&self) -> Epoch {
        let before_last = self.ended.last().map_or(Epoch(0), |(epoch, _)| *epoch);
        self.consumers.iter().map(|(_, epoch)| *epoch).min().unwrap_or(before_last)
    }

    /// The first epoch that is not too old to be kept.
    fn first_fresh(&self) -> Epoch {
        let is_old = |(_, age_ms): &&(Epoch, u64)| *age_ms >= self.forget_after_ms;
        let oldest = self.ended.iter().filter(is_old).map(|(epoch, _)| epoch.0).max();
        Epoch(oldest.map_or(0, |epoch| epoch.saturating_add(1)))
    }

    /// Moves a consumer's cursor, which never goes back.
    fn move_to(&mut self, consumer: ConsumerId, epoch: Epoch) -> Result<bool, Error> {
        if let Some((_, known)) = self.consumers.iter_mut().find(|(id, _)| *id == consumer) {
            let has_moved = *known < epoch;
            *known = epoch.max(*known);
            return Ok(has_moved);
        }
        if self.consumers.len() >= MAX_CONSUMERS_REGISTERED {
            return Err(Error::Refused("too many consumers read with this key folder"));
        }
        self.consumers.push((consumer, epoch));
        Ok(true)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.counted.boot.to_vec();
        bytes.extend(self.counted.uptime_ms.to_be_bytes());
        bytes.extend(self.forget_after_ms.to_be_bytes());
        bytes.extend((self.ended.len() as u16).to_be_bytes());
        for (epoch, age_ms) in &self.ended {
            bytes.extend(epoch.0.to_be_bytes());
            bytes.extend(age_ms.to_be_bytes());
        }
        bytes.extend((self.consumers.len() as u16).to_be_bytes());
        for (consumer, epoch) in &self.consumers {
            bytes.extend(consumer.0);
            bytes.extend(epoch.0.to_be_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<ErasureLedger, Error> {
        let mut reader = GroupFieldReader::new(GroupDocument::ErasureFile, bytes);
        let counted = MachineUptime { boot: reader.array()?, uptime_ms: reader.u64()? };
        let forget_after_ms = reader.u64()?;
        let count = reader.count(usize::from(u16::MAX), 16)?;
        let mut ended = Vec::with_capacity(count);
        for _ in 0..count {
            ended.push((Epoch(reader.u64()?), reader.u64()?));
        }
        let count = reader.count(MAX_CONSUMERS_REGISTERED, 24)?;
        let mut consumers = Vec::with_capacity(count);
        for _ in 0..count {
            consumers.push((ConsumerId(reader.array()?), Epoch(reader.u64()?)));
        }
        reader.end()?;
        Ok(ErasureLedger { counted, forget_after_ms, ended, consumers })
    }
}

/// The reason to look at what can be erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErasureCause {
    /// Time has passed.
    Time,
    /// An epoch has begun, or a consumer has gone on.
    Progress,
}

impl IdentityKeys {
    /// Erases what nobody needs of a forward-secret group, in the state that is given; whether it
    /// changed. Somebody that holds the lock keeps the state.
    pub(crate) fn erase_past(
        &self,
        lock: &KeyFolderLock,
        name: &str,
        state: &mut GroupState,
        cause: ErasureCause,
    ) -> Result<bool, Error> {
        self.erase_past_at(lock, name, state, cause, MachineUptime::now())
    }

    fn erase_past_at(
        &self,
        lock: &KeyFolderLock,
        name: &str,
        state: &mut GroupState,
        cause: ErasureCause,
        now: MachineUptime,
    ) -> Result<bool, Error> {
        if state.charter.history != History::ForwardSecret {
            return Ok(false);
        }
        let kept = self.ledger(lock, name)?;
        let mut ledger = kept.clone().unwrap_or_else(|| ErasureLedger::new(now));
        ledger.count(&state.epochs, now);
        let held = state.epochs.held().count();
        state.epochs.passed(ledger.first_fresh());
        if cause == ErasureCause::Progress {
            state.epochs.passed(ledger.first_needed());
        }
        ledger.count(&state.epochs, now);
        let is_due = kept.as_ref().is_none_or(|kept| {
            let same =
                (&kept.consumers, kept.ended.len()) == (&ledger.consumers, ledger.ended.len());
            !same || now.since(kept.counted) >= MIN_LEDGER_STEP_MS
        });
        if is_due || cause == ErasureCause::Progress {
            self.save_ledger(lock, name, &ledger)?;
        }
        Ok(state.epochs.held().count() != held)
    }

    /// The account of a group; none if there is none yet.
    fn ledger(&self, _: &KeyFolderLock, name: &str) -> Result<Option<ErasureLedger>, Error> {
        if !self.group_folder(name)?.join("erasure").exists() {
            return Ok(None);
        }
        let payload = self.read_plain(name, "erasure", GroupDocument::ErasureFile)?;
        Ok(Some(ErasureLedger::from_bytes(&payload).unwrap_or_else(|_| {
            // Nobody knows which consumers stood there: one that never moves stands for them, and
            // holds all until it is too old.
            let mut ledger = ErasureLedger::new(MachineUptime::now());
            ledger.consumers.push((ConsumerId([0; 16]), Epoch(0)));
            ledger
        })))
    }

    fn save_ledger(
        &self,
        _: &KeyFolderLock,
        name: &str,
        ledger: &ErasureLedger,
    ) -> Result<(), Error> {
        self.write_plain(name, "erasure", GroupDocument::ErasureFile, &ledger.to_bytes())
    }
}

impl GroupMember {
    /// Registers a consumer that reads with this folder's keys, or moves it on: it has read all
    /// that was sealed before `epoch`. A new one stands at the oldest epoch that is held.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] beyond [`MAX_CONSUMERS_REGISTERED`]; [`Error::Io`].
    pub fn consumer_at(&mut self, consumer: ConsumerId, epoch: Option<Epoch>) -> Result<(), Error> {
        if self.history() != History::ForwardSecret {
            return Ok(());
        }
        self.change(|keys, lock, name, state| {
            let mut ledger = keys.ledger(lock, name)?;
            let ledger = ledger.get_or_insert_with(|| ErasureLedger::new(MachineUptime::now()));
            let oldest = state.epochs.held().next().map_or(Epoch(0), |(epoch, _)| epoch);
            let known = ledger.consumers.iter().any(|(id, _)| *id == consumer);
            let at = epoch.unwrap_or(if known { Epoch(0) } else { oldest });
            if !ledger.move_to(consumer, at)? {
                return Ok(false);
            }
            keys.save_ledger(lock, name, ledger)?;
            let cause = if epoch.is_some() { ErasureCause::Progress } else { ErasureCause::Time };
            keys.erase_past(lock, name, state, cause)
        })
    }

    /// Erases what is older than the folder allows, however slow its consumers are.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn forget_aged(&mut self) -> Result<(), Error> {
        self.change(|keys, lock, name, state| {
            keys.erase_past(lock, name, state, ErasureCause::Time)
        })
    }

    /// Sets after how many milliseconds an ended epoch is erased at the latest.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a group that keeps its history; [`Error::Io`].
    pub fn set_forget_after(&mut self, forget_after_ms: u64) -> Result<(), Error> {
        if self.history() != History::ForwardSecret {
            return Err(Error::Refused("the group keeps its history: `group forget` erases it"));
        }
        self.change(|keys, lock, name, state| {
            let now = MachineUptime::now();
            let mut ledger = keys.ledger(lock, name)?.unwrap_or_else(|| ErasureLedger::new(now));
            ledger.forget_after_ms = forget_after_ms;
            keys.save_ledger(lock, name, &ledger)?;
            keys.erase_past(lock, name, state, ErasureCause::Time)
        })
    }
}

#[cfg(test)]
mod tests;
