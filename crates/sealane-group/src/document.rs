use std::fmt;

/// The kinds of bytes that people hand on and folders keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupDocument {
    /// A member's public identity, with a nonce for one join.
    Card,
    /// The authority's statement about a member.
    Certificate,
    /// The document that a new member joins with.
    Invitation,
    /// A message of the authority to the members.
    Order,
    /// A new beginning of a group, by an authority that lost its counters.
    Renewal,
    /// Bytes that were encrypted to an identity.
    Letter,
    /// The description of a group for a beater.
    Beater,
    /// An identity and its groups, to be kept elsewhere.
    Backup,
    /// The identity's file in the key folder.
    IdentityFile,
    /// The cards that wait for an invitation, in the key folder.
    CardsFile,
    /// A group's file in the key folder.
    GroupFile,
    /// The counters of a slot, in the key folder.
    CountersFile,
    /// How far control streams were read, in the key folder.
    ControlFile,
    /// The sessions that were accepted of live senders, in the key folder.
    SessionsFile,
    /// The members that are about to be removed, in the key folder.
    LeavingFile,
}

impl GroupDocument {
    /// The version that this program writes and reads.
    pub(crate) fn version(self) -> u8 {
        match self {
            GroupDocument::Letter | GroupDocument::IdentityFile | GroupDocument::CardsFile => 1,
            _ => 2,
        }
    }

    /// The four letters that it begins with.
    pub(crate) fn magic(self) -> [u8; 4] {
        *match self {
            GroupDocument::Card => b"SLCD",
            GroupDocument::Certificate => b"SLCT",
            GroupDocument::Invitation => b"SLIV",
            GroupDocument::Order => b"SLOR",
            GroupDocument::Renewal => b"SLRN",
            GroupDocument::Letter => b"SLLT",
            GroupDocument::Beater => b"SLBE",
            GroupDocument::Backup => b"SLBK",
            GroupDocument::IdentityFile => b"SLID",
            GroupDocument::CardsFile => b"SLCS",
            GroupDocument::GroupFile => b"SLGR",
            GroupDocument::CountersFile => b"SLCN",
            GroupDocument::ControlFile => b"SLHB",
            GroupDocument::SessionsFile => b"SLSS",
            GroupDocument::LeavingFile => b"SLLV",
        }
    }
}

impl fmt::Display for GroupDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GroupDocument::Card => "card",
            GroupDocument::Certificate => "certificate",
            GroupDocument::Invitation => "invitation",
            GroupDocument::Order => "order",
            GroupDocument::Renewal => "renewal",
            GroupDocument::Letter => "encrypted key",
            GroupDocument::Beater => "beater file",
            GroupDocument::Backup => "backup",
            GroupDocument::IdentityFile => "identity file",
            GroupDocument::CardsFile => "file of waiting cards",
            GroupDocument::GroupFile => "group file",
            GroupDocument::CountersFile => "counters file",
            GroupDocument::ControlFile => "file of control streams",
            GroupDocument::SessionsFile => "file of live sessions",
            GroupDocument::LeavingFile => "file of announced removals",
        })
    }
}
