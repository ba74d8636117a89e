use sealane_seal::{Group, GroupId, History, Suite};

use crate::crypto::{AuthorityVerifier, random};
use crate::limits::LATTICE_KEY_BYTES;
use crate::wire::{GroupFieldReader, put_name};
use crate::{Error, Fingerprint, GroupDocument, NewGroup};

const PAIR: u8 = 1;
const FORWARD_SECRET: u8 = 2;
const STRICT: u8 = 4;

/// The properties of a group that never change. The group's id is a hash of them. So if a machine
/// knows the id, it takes no other authority, suite or history for the group's.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct GroupCharter {
    pub(crate) name: String,
    pub(crate) suite: Suite,
    pub(crate) is_pair: bool,
    pub(crate) history: History,
    /// How old the newest heartbeat may be, in seconds; 0: any age.
    pub(crate) heartbeat_age_s: u32,
    /// Whether a member without a heartbeat of that age seals nothing but what is urgent.
    pub(crate) is_strict: bool,
    pub(crate) authority: AuthorityVerifier,
    nonce: [u8; 32],
}

impl GroupCharter {
    pub(crate) fn new(
        name: &str,
        options: NewGroup,
        authority: AuthorityVerifier,
    ) -> Result<GroupCharter, Error> {
        let NewGroup { suite, history, is_pair, heartbeat_age_s, is_strict } = options;
        if is_strict && heartbeat_age_s == 0 {
            return Err(Error::Refused("a strict group needs an age of heartbeats"));
        }
        let (name, nonce) = (name.to_owned(), random()?);
        Ok(GroupCharter {
            name,
            suite,
            is_pair,
            history,
            heartbeat_age_s,
            is_strict,
            authority,
            nonce,
        })
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.suite.number().to_be_bytes().to_vec();
        let pair = if self.is_pair { PAIR } else { 0 };
        let history = if self.history == History::ForwardSecret { FORWARD_SECRET } else { 0 };
        bytes.push(pair | history | if self.is_strict { STRICT } else { 0 });
        bytes.extend(self.heartbeat_age_s.to_be_bytes());
        bytes.extend(self.nonce);
        bytes.extend(self.authority.curve);
        bytes.extend_from_slice(self.authority.lattice.as_slice());
        put_name(&mut bytes, &self.name);
        bytes
    }

    pub(crate) fn from_bytes(document: GroupDocument, bytes: &[u8]) -> Result<GroupCharter, Error> {
        let mut reader = GroupFieldReader::new(document, bytes);
        let suite = Suite::from_number(reader.u16()?).ok_or_else(|| reader.malformed())?;
        let flags = reader.u8()?;
        if flags & !(PAIR | FORWARD_SECRET | STRICT) != 0 {
            return Err(reader.malformed());
        }
        let is_secret = flags & FORWARD_SECRET != 0;
        let history = if is_secret { History::ForwardSecret } else { History::Kept };
        let is_strict = flags & STRICT != 0;
        let heartbeat_age_s = reader.u32()?;
        let nonce = reader.array()?;
        let curve = reader.array()?;
        let lattice = Box::new(reader.array::<LATTICE_KEY_BYTES>()?);
        let name = reader.name()?;
        reader.end()?;
        let authority = AuthorityVerifier { curve, lattice };
        let is_pair = flags & PAIR != 0;
        Ok(GroupCharter {
            name,
            suite,
            is_pair,
            history,
            heartbeat_age_s,
            is_strict,
            authority,
            nonce,
        })
    }

    pub(crate) fn id(&self) -> GroupId {
        GroupId(blake3::derive_key("Sealane 1.0 group id", &self.to_bytes()))
    }

    pub(crate) fn group(&self) -> Group {
        let make = if self.is_pair { Group::pair } else { Group::new };
        make(self.id(), self.suite)
    }

    /// The fingerprint that people compare before they trust the group.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let AuthorityVerifier { curve, lattice } = &self.authority;
        Fingerprint::of("Sealane 1.0 fingerprint of an authority", &[curve, lattice.as_slice()])
    }
}
