use std::io;
use std::path::PathBuf;

use sealane_frame::FrameError;
use sealane_seal::Error as SealError;

use crate::GroupDocument;

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
            /// The error of the system.
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
        Malformed(GroupDocument),
        /// A document of a later version of this software.
        #[error("the {document} has version {version}, which this program does not know yet")]
        #[code("SL-GROUP-07", "NewerVersion")]
        #[cause("a document is of a later version of Sealane")]
        #[hint("Update this program.")]
        NewerVersion {
            /// The kind of document.
            document: GroupDocument,
            /// Its version.
            version: u8,
        },
        /// A document of a version before the first release.
        #[error("the {document} has version {version}, from before the first release")]
        #[code("SL-GROUP-30", "OlderVersion")]
        #[cause("a document is of a version from before the first release")]
        #[hint("Make it anew; the identity stays as it is. Leave the old group with `sealane group \
                leave GROUP`, found it again with `sealane group new`, and have its members join \
                by new cards.")]
        OlderVersion {
            /// The kind of document.
            document: GroupDocument,
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
        Signature(GroupDocument),
        /// Peer's fault: what was encrypted to this identity does not open.
        #[error("the {0} does not open with this identity")]
        #[same_as(UnknownCard)]
        NotForUs(GroupDocument),
        /// The invitation's card was not made here, or was used up.
        #[error("the card was used before, or does not wait in this folder")]
        #[code("SL-GROUP-12", "UnknownCard")]
        #[cause("a card was used before, or a document is for no card or identity of this folder")]
        #[hint("Make a new card with `sealane key card` and have it invited; a card joins once.")]
        UnknownCard,
        /// An authority's folder that was copied or restored, or cards that were.
        #[error("{} was copied or restored: orders may have been given elsewhere", .0.display())]
        #[code("SL-GROUP-13", "CopiedFolder")]
        #[cause("the key folder of an authority, or the cards in a key folder, were copied or \
                 restored")]
        #[hint("An authority begins anew with `sealane group renew GROUP`; for a join, make a new \
                card with `sealane key card`.")]
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
        #[error("all slots of the group were given: make a new group")]
        #[same_as(Refused)]
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
        #[hint("Drop it: a member tries to act as the authority.")]
        Unauthorized(u16),
        /// The authority has given orders that this member could not obey: it seals nothing, since
        /// one of them may have removed somebody.
        #[error("order {missing} of the authority is missing; {known} were given")]
        #[code("SL-GROUP-22", "Behind")]
        #[cause("this member has not obeyed all orders that it knows were given, or lacks a \
                 certificate that one names")]
        #[hint("Ask the authority for `sealane group resend GROUP`, or for the order file; \
                somebody may be holding orders back.")]
        Behind {
            /// The first order that is missing.
            missing: u64,
            /// How many were given, as far as is known.
            known: u64,
        },
        /// The order names a certificate that has not arrived.
        #[error("the certificate that the order names has not arrived")]
        #[same_as(Behind)]
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
        OtherGroup(GroupDocument),
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
        /// The request contradicts itself or the group.
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
        /// The control stream has lost orders that it had shown before.
        #[error("the control stream ends at order {shown}, and has shown {seen} before")]
        #[code("SL-GROUP-31", "OrdersRolledBack")]
        #[cause("a group's control stream has lost orders that it had shown before")]
        #[hint("Have the authority publish them again: `sealane group publish GROUP`. Whoever may \
                remove streams of the hub may have removed it.")]
        RolledBack {
            /// How many orders it shows now.
            shown: u64,
            /// How many it had shown.
            seen: u64,
        },
        /// No heartbeat of the authority has come for longer than the charter allows.
        #[error("no heartbeat of the authority for {age_s} s; the charter allows {allowed_s} s")]
        #[code("SL-GROUP-32", "Stale")]
        #[cause("no heartbeat of the authority has come for longer than the charter allows")]
        #[hint("Check the link to the hub and this machine's clock. If both are good, the hub may \
                be holding orders back.")]
        Stale {
            /// How old the newest heartbeat is, in seconds.
            age_s: u64,
            /// How old it may be.
            allowed_s: u64,
        },
        /// A name that a member has, or one that people would take for it.
        #[error("`{name}` looks like `{taken}`, the name of a member")]
        #[code("SL-GROUP-33", "NameTaken")]
        #[cause("a member has that name, or one that looks the same")]
        #[hint("Have the card made under another name: `sealane key card --name NAME`.")]
        NameTaken {
            /// The name on the card.
            name: String,
            /// The member's.
            taken: String,
        },
        /// Peer's fault: something of a member that is about to be removed.
        #[error("slot {slot} is about to be removed by order {order}")]
        #[code("SL-GROUP-34", "LeavingMember")]
        #[cause("a member has sent something after its removal was announced")]
        #[hint("Drop it; the order that removes the member is on its way.")]
        Leaving {
            /// The sender.
            slot: u16,
            /// The order that removes it.
            order: u64,
        },
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
