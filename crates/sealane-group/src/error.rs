use std::io;
use std::path::PathBuf;

use sealane_frame::FrameError;
use sealane_seal::Error as SealError;

use crate::Document;

sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why a key, a group, or an order was refused. Nothing has changed then.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum Error {
        /// The folder has no identity yet.
        #[error("{} holds no identity", .0.display())]
        #[code("SL-GROUP-01", "NoIdentity", exit = Usage)]
        #[cause("the key folder holds no identity")]
        #[hint("Make one with `sealane key new`, or bring one back with `sealane key restore \
                FILE`.")]
        NoIdentity(PathBuf),
        /// An identity is there already; it is never overwritten.
        #[error("{} holds an identity already", .0.display())]
        #[code("SL-GROUP-02", "IdentityExists", exit = Usage)]
        #[cause("the key folder holds an identity already")]
        #[hint("Name another folder with --keys; an identity is never overwritten.")]
        IdentityExists(PathBuf),
        /// A file or folder could not be read or written.
        #[error("{}: {cause}", path.display())]
        #[code("SL-GROUP-03", "KeyFile", exit = Storage)]
        #[cause("a file of the key folder cannot be read or written")]
        #[hint("Check the path, its owner, and that the disk has room.")]
        Io {
            /// Which.
            path: PathBuf,
            /// What the system said.
            cause: io::Error,
        },
        /// Others than the owner may read or write a file that holds secrets.
        #[error("{} can be read or written by others than its owner", .0.display())]
        #[code("SL-GROUP-04", "ExposedFile")]
        #[cause("others than the owner may read or write a secret file")]
        #[hint("Run `chmod -R go-rwx` on the key folder; if others had access, make new keys.")]
        Exposed(PathBuf),
        /// A file's checksum or form is wrong.
        #[error("{} is damaged", .0.display())]
        #[code("SL-GROUP-05", "DamagedFile")]
        #[cause("a file of the key folder is damaged")]
        #[hint("Bring the identity back from a backup, and ask the authority for a new \
                invitation.")]
        Damaged(PathBuf),
        /// Bytes that are no such document, or were cut or changed.
        #[error("this is no well-formed {0}")]
        #[code("SL-GROUP-06", "MalformedDocument")]
        #[cause("a card, invitation, order or file is malformed")]
        #[hint("It was cut or changed on its way, or is something else; ask for it again.")]
        Malformed(Document),
        /// A document of a later version of this software.
        #[error("the {document} has version {version}, and this program reads version 1")]
        #[code("SL-GROUP-07", "NewerVersion")]
        #[cause("a document is of a later version of Sealane")]
        #[hint("Update this program.")]
        NewerVersion {
            /// What it is.
            document: Document,
            /// Its version.
            version: u8,
        },
        /// A passphrase is needed and none was given.
        #[error("the keys are protected by a passphrase, and none was given")]
        #[code("SL-GROUP-08", "PassphraseMissing", exit = Usage)]
        #[cause("the keys need a passphrase")]
        #[hint("Use a terminal, --passphrase-file FILE, or the variable SEALANE_PASSPHRASE.")]
        PassphraseMissing,
        /// The passphrase is wrong, or the file that it protects was changed.
        #[error("the passphrase does not open the keys")]
        #[code("SL-GROUP-09", "PassphraseWrong")]
        #[cause("the passphrase does not open the keys")]
        #[hint("Try again; without the passphrase the keys are lost, and only a new identity \
                helps.")]
        PassphraseWrong,
        /// Peer's fault: one of a document's signatures does not verify.
        #[error("a signature of the {0} does not verify")]
        #[code("SL-GROUP-10", "DocumentSignature")]
        #[cause("a signature of a document does not verify")]
        #[hint("It was changed or forged, or made by another authority; ask for it over another \
                way.")]
        Signature(Document),
        /// Peer's fault: what was encrypted to this identity does not open.
        #[error("the {0} does not open with this identity")]
        #[code("SL-GROUP-11", "NotForUs")]
        #[cause("a document was encrypted to somebody else, or changed")]
        #[hint("Give the sender this folder's card: `sealane key card`.")]
        NotForUs(Document),
        /// The invitation's card was not made here, or was used up.
        #[error("the invitation answers a card that is not waiting in this folder")]
        #[code("SL-GROUP-12", "UnknownCard")]
        #[cause("an invitation answers no card that waits here")]
        #[hint("Make a new card with `sealane key card` and have it invited; a card joins once.")]
        UnknownCard,
        /// A folder that was copied or restored.
        #[error("{} was copied or restored: it may be in use elsewhere", .0.display())]
        #[code("SL-GROUP-13", "CopiedFolder")]
        #[cause("a key folder was copied or restored")]
        #[hint("Take a new slot: `sealane key card`, invite, join; an authority runs `group \
                renew`.")]
        Elsewhere(PathBuf),
        /// The file system does not tell when a file was made.
        #[error("the file system of {} does not tell when a file was made", .0.display())]
        #[code("SL-GROUP-14", "NoWitness")]
        #[cause("the file system does not tell when a file was made")]
        #[hint("Keep the key folder on ext4, XFS, Btrfs, APFS or tmpfs.")]
        NoWitness(PathBuf),
        /// No group of that name is in the folder.
        #[error("there is no group `{0}`")]
        #[code("SL-GROUP-15", "UnknownGroup", exit = Usage)]
        #[cause("there is no group of that name")]
        #[hint("`sealane group ls` lists the groups of the key folder.")]
        UnknownGroup(String),
        /// Another group of that name is in the folder.
        #[error("there is a group `{0}` already")]
        #[code("SL-GROUP-16", "GroupExists", exit = Usage)]
        #[cause("there is a group of that name already")]
        #[hint("Choose another name; `join` takes --as NAME.")]
        GroupExists(String),
        /// No member has that name, slot or key.
        #[error("the group has no member `{0}`")]
        #[code("SL-GROUP-17", "UnknownMember", exit = Usage)]
        #[cause("the group has no such member")]
        #[hint("`sealane group show GROUP` lists names, slots and fingerprints.")]
        UnknownMember(String),
        /// A name that cannot be one.
        #[error("`{0}` cannot be a name")]
        #[code("SL-GROUP-18", "InvalidName", exit = Usage)]
        #[cause("a text cannot be a name")]
        #[hint("Names have 1 to 64 bytes; those of groups a-z, 0-9, `-`, `_` and `.`, first a \
                letter.")]
        Name(String),
        /// All slots of the group were given.
        #[error("all slots of the group were given")]
        #[code("SL-GROUP-19", "RosterFull")]
        #[cause("all slots of the group were given")]
        #[hint("Make a new group: slots are not given again, and a pair has two.")]
        RosterFull,
        /// Only the group's authority can do that.
        #[error("this identity is not the authority of the group")]
        #[code("SL-GROUP-20", "NotAuthority")]
        #[cause("only the group's authority can do that")]
        #[hint("Use the key folder in which the group was made.")]
        NotAuthority,
        /// Peer's fault: an order that the authority did not give.
        #[error("slot {0} is not the authority's, and gave an order")]
        #[code("SL-GROUP-21", "UnauthorizedOrder")]
        #[cause("an order is not the authority's")]
        #[hint("Drop it; a member tries to act as the authority.")]
        Unauthorized(u16),
        /// Orders before this one have not arrived.
        #[error("an earlier order of the authority is missing")]
        #[code("SL-GROUP-22", "OrderMissing")]
        #[cause("an earlier order of the authority is missing")]
        #[hint("Read the group's orders from their beginning, or ask for a new invitation.")]
        OrderMissing,
        /// The order names a certificate that has not arrived.
        #[error("the certificate that the order names has not arrived")]
        #[code("SL-GROUP-23", "CertificateMissing")]
        #[cause("a certificate has not arrived")]
        #[hint("Read the group's orders from their beginning; certificates come before \
                admissions.")]
        CertificateMissing,
        /// The authority has removed this member.
        #[error("this member was removed from the group")]
        #[code("SL-GROUP-24", "RemovedMember")]
        #[cause("this member was removed from the group")]
        #[hint("Ask the authority; a new card and invitation give a new slot.")]
        Removed,
        /// Something of another group.
        #[error("the {0} belongs to another group")]
        #[code("SL-GROUP-25", "OtherGroup")]
        #[cause("a document belongs to another group")]
        #[hint("Name the group that it was made for.")]
        OtherGroup(Document),
        /// The authority is not the one that was expected.
        #[error("the authority's fingerprint is {0}, which is not the expected one")]
        #[code("SL-GROUP-26", "OtherAuthority")]
        #[cause("the authority is not the expected one")]
        #[hint("Compare fingerprints over another way; do not join if they differ.")]
        OtherAuthority(String),
        /// A text that is no public key.
        #[error("the text is no public key of Sealane")]
        #[code("SL-GROUP-27", "KeyText", exit = Usage)]
        #[cause("a text is no public key")]
        #[hint("A public key is one line that begins with `sealane1`; copy it whole.")]
        KeyText,
        /// What was asked for contradicts itself or the group.
        #[error("{0}")]
        #[code("SL-GROUP-28", "GroupRefused")]
        #[cause("what was asked for does not fit the group")]
        #[hint("The message says why.")]
        Refused(&'static str),
        /// The frame of an order.
        #[error(transparent)]
        #[inner(0)]
        Frame(#[from] FrameError),
        /// The seal.
        #[error(transparent)]
        #[inner(0)]
        Seal(#[from] SealError),
        /// A library of cryptography failed, which a correct build never sees.
        #[error("the library of cryptography failed")]
        #[code("SL-GROUP-29", "GroupCipher")]
        #[cause("a library of cryptography failed")]
        #[hint("Report it; nothing was changed.")]
        Cipher,
    }
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |cause| Error::Io { path, cause }
    }
}
