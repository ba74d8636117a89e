use std::fmt;

/// The kinds of bytes that people hand on and folders keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Document {
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

impl Document {
    /// The version that this program writes and reads.
    pub(crate) fn version(self) -> u8 {
        match self {
            Document::Letter | Document::IdentityFile | Document::CardsFile => 1,
            _ => 2,
        }
    }

    /// The four letters that it begins with.
    pub(crate) fn magic(self) -> [u8; 4] {
        *match self {
            Document::Card => b"SLCD",
            Document::Certificate => b"SLCT",
            Document::Invitation => b"SLIV",
            Document::Order => b"SLOR",
            Document::Renewal => b"SLRN",
            Document::Letter => b"SLLT",
            Document::Beater => b"SLBE",
            Document::Backup => b"SLBK",
            Document::IdentityFile => b"SLID",
            Document::CardsFile => b"SLCS",
            Document::GroupFile => b"SLGR",
            Document::CountersFile => b"SLCN",
            Document::ControlFile => b"SLHB",
            Document::SessionsFile => b"SLSS",
            Document::LeavingFile => b"SLLV",
        }
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Document::Card => "card",
            Document::Certificate => "certificate",
            Document::Invitation => "invitation",
            Document::Order => "order",
            Document::Renewal => "renewal",
            Document::Letter => "encrypted key",
            Document::Beater => "beater file",
            Document::Backup => "backup",
            Document::IdentityFile => "identity file",
            Document::CardsFile => "file of waiting cards",
            Document::GroupFile => "group file",
            Document::CountersFile => "counters file",
            Document::ControlFile => "file of control streams",
            Document::SessionsFile => "file of live sessions",
            Document::LeavingFile => "file of announced removals",
        })
    }
}
