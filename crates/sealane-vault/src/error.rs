use std::io;

sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why something was not kept, not read, or not restored.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum Error {
        /// The store cannot be reached or failed.
        #[error("the store failed at `{key}`: {cause}")]
        #[code("SL-VAULT-01", "StoreFailed", retry = Later, exit = Storage)]
        #[cause("the store of a vault cannot be reached or failed")]
        #[hint("Check the path or address, the permissions and the credentials, and run it again.")]
        Store {
            /// The object's key.
            key: String,
            /// The error of the system.
            cause: io::Error,
        },
        /// The store has no room left. Nothing that was reported as kept is lost.
        #[error("the store is full (at `{key}`)")]
        #[code("SL-VAULT-02", "StoreFull", retry = Later, exit = Storage)]
        #[cause("the store of a vault has no room left")]
        #[hint("Make room and run it again: what was reported as kept is kept, the rest goes on \
                from there.")]
        StoreFull {
            /// The object's key.
            key: String,
        },
        /// An object that is referred to is not in the store.
        #[error("the object `{0}` is missing")]
        #[code("SL-VAULT-03", "ObjectMissing")]
        #[cause("an object of a vault is missing")]
        #[hint("Run `sealane vault verify` to see what needs it, and bring the object back from a \
                copy.")]
        Missing(String),
        /// An object is larger than its kind may be.
        #[error("`{what}` is larger than it may be")]
        #[code("SL-VAULT-04", "ObjectTooLarge")]
        #[cause("an object of a vault is larger than its kind may be")]
        #[hint("It was changed or is no object of a vault; bring it back from a copy.")]
        TooLarge {
            /// The object or the part of it.
            what: String,
        },
        /// An object ends before its own lengths say.
        #[error("`{0}` ends too early")]
        #[code("SL-VAULT-05", "ObjectTruncated")]
        #[cause("an object of a vault ends too early")]
        #[hint("It was cut; bring it back from a copy.")]
        Truncated(String),
        /// Bytes that do not follow `spec/vault.md`.
        #[error("{what} is malformed")]
        #[code("SL-VAULT-06", "ObjectMalformed")]
        #[cause("bytes of a vault do not follow its format")]
        #[hint("They were changed or come from a defective writer; bring the object back from a \
                copy.")]
        Malformed {
            /// The kind of bytes that was read.
            what: &'static str,
        },
        /// An object of a later version of the format.
        #[error("`{0}` is of a later version of the format")]
        #[code("SL-VAULT-07", "VaultVersion")]
        #[cause("an object of a vault is of a later version of the format")]
        #[hint("Use a newer `sealane`.")]
        Version(String),
        /// A seal that does not open: wrong key, or a byte was changed.
        #[error("{what} does not open under this vault's keys")]
        #[code("SL-VAULT-08", "VaultNotAuthentic")]
        #[cause("a sealed part of a vault does not open under its keys")]
        #[hint("It was changed, or belongs to another vault; bring the object back from a copy.")]
        NotAuthentic {
            /// The object that was to be opened.
            what: String,
        },
        /// A signature that does not verify.
        #[error("the signature of `{0}` does not verify")]
        #[code("SL-VAULT-09", "VaultSignature")]
        #[cause("a signature within a vault does not verify")]
        #[hint("The object was changed or forged; do not trust the store, and compare with a \
                copy.")]
        Signature(String),
        /// A file or folder of this machine.
        #[error("`{path}`: {cause}")]
        #[code("SL-VAULT-10", "VaultFile")]
        #[cause("a file or folder of this machine cannot be read or written")]
        #[hint("Check the path and its permissions.")]
        File {
            /// Its path.
            path: String,
            /// The error of the system.
            cause: io::Error,
        },
        /// The cipher, compression or randomness library refused.
        #[error("the {0} library failed")]
        #[code("SL-VAULT-11", "VaultLibrary")]
        #[cause("a library that the vault uses failed")]
        #[hint("Report it; nothing was kept that is not whole.")]
        Library(&'static str),
        /// The local manifest, which can be made again from the store.
        #[error("the local manifest of the vault failed: {0}")]
        #[code("SL-VAULT-12", "VaultManifest")]
        #[cause("the local manifest of a vault failed")]
        #[hint("Remove manifest.db in the vault's state folder; it is made again from the store.")]
        Manifest(#[from] rusqlite::Error),
        /// Neither a state folder was named nor has the user a home.
        #[error("there is no state folder")]
        #[code("SL-VAULT-13", "VaultNoState")]
        #[cause("there is no folder for a vault's local state")]
        #[hint("Set HOME or XDG_STATE_HOME, or name a folder with --state.")]
        NoState,
        /// A pattern of what is to be left out.
        #[error("a pattern is malformed: {0}")]
        #[code("SL-VAULT-14", "VaultPattern", exit = Usage)]
        #[cause("a pattern of what is to be left out is malformed")]
        #[hint("Write patterns as a .gitignore has them.")]
        Pattern(String),
        /// A put of the vault itself, or of the folder of what it is about to send.
        #[error("`{}` is the vault itself", .0.display())]
        #[code("SL-VAULT-15", "VaultRoot", exit = Usage)]
        #[cause("a path of a put is the folder of the vault itself")]
        #[hint("Name another path. To have a second copy of a vault, copy its folder.")]
        Root(std::path::PathBuf),
        /// Another thread failed, and says why: whoever waits for both tells what that one says.
        #[error("another part of the work failed")]
        #[same_as(Library)]
        Stopped,
        /// Characters or checksum of a recovery code are wrong.
        #[error("the recovery code is mistyped")]
        #[code("SL-VAULT-17", "RecoveryCode", exit = Usage)]
        #[cause("a recovery code is mistyped")]
        #[hint("Compare it with the paper: nine groups of four; O is read as 0, and I and L as 1.")]
        RecoveryCode,
        /// Wrong passphrase, code or identity.
        #[error("no key slot of the vault opens with that secret")]
        #[code("SL-VAULT-18", "WrongKey")]
        #[cause("no key slot of a vault opens with what was given")]
        #[hint("Check the passphrase, code or key file, and that it is this vault's.")]
        WrongKey,
        /// A vault is not made over another.
        #[error("there is a vault already")]
        #[code("SL-VAULT-19", "VaultExists", exit = Usage)]
        #[cause("there is a vault already in that place")]
        #[hint("Open it, or choose another place.")]
        Exists,
        /// The store has no config.
        #[error("there is no vault in `{0}`")]
        #[code("SL-VAULT-20", "NoVault", exit = Usage)]
        #[cause("there is no vault in that place")]
        #[hint("Check the path or address; `sealane vault init` makes one.")]
        NoVault(String),
        /// The store serves an older state than was seen.
        #[error(
            "the store was rolled back: snapshot {seen} was seen here, its newest is {found} \
             (head {head})"
        )]
        #[code("SL-VAULT-21", "RolledBack")]
        #[cause("the store of a vault serves an older state than was seen here")]
        #[hint("Do not trust it: bring the missing snapshots back from a copy, or find out who \
                removed them. If it is a copy that lags, `--accept-rollback HEAD` reads it. With a \
                verb that writes, that flag gives up what is missing.")]
        RolledBack {
            /// The newest snapshot that was seen here.
            seen: u64,
            /// The newest that the store has.
            found: u64,
            /// The head of the store.
            head: String,
        },
        /// The store serves another history.
        #[error("the store was forked: snapshot {0} is another than was seen here")]
        #[code("SL-VAULT-22", "Forked")]
        #[cause("the store of a vault serves another history than was seen here")]
        #[hint("Do not trust it: compare with a copy, and find out who else writes with this \
                vault's keys.")]
        Forked(u64),
        /// A snapshot is missing or does not fit those around it.
        #[error("the chain of snapshots is broken at {0}")]
        #[code("SL-VAULT-23", "ChainBroken")]
        #[cause("the chain of a vault's snapshots is broken")]
        #[hint("A snapshot is missing or was exchanged: bring it back from a copy.")]
        Chain(u64),
        /// A prune came between.
        #[error("a prune condemned data that this put relied on")]
        #[code("SL-VAULT-24", "PruneRaced", retry = Later)]
        #[cause("a prune condemned data that a put relied on")]
        #[hint("Run the put again: it keeps that data anew.")]
        Pruned,
        /// A writer's key adds and does nothing else.
        #[error("a writer's key cannot {0}")]
        #[code("SL-VAULT-25", "WriterCannot")]
        #[cause("a writer's key adds to a vault and can do nothing else")]
        #[hint("Use a passphrase, recovery code or identity of the vault.")]
        NotOwner(&'static str),
        /// No snapshot has that number.
        #[error("there is no snapshot `{0}`")]
        #[code("SL-VAULT-26", "NoSnapshot", exit = Usage)]
        #[cause("a vault has no such snapshot")]
        #[hint("`sealane vault ls` lists them.")]
        NoSnapshot(String),
        /// No entry has that path.
        #[error("the snapshot has no `{0}`")]
        #[code("SL-VAULT-27", "NoEntry")]
        #[cause("a snapshot has no such path")]
        #[hint("`sealane vault ls SNAPSHOT` lists its paths.")]
        NoEntry(String),
        /// A restore never writes outside of its target.
        #[error("`{0}` would leave the target folder")]
        #[code("SL-VAULT-28", "Escapes")]
        #[cause("a path of a snapshot would leave the target folder")]
        #[hint("The target has a symbolic link, or the snapshot is hostile: restore into an empty \
                folder.")]
        Escapes(String),
        /// A restore does not overwrite what it did not write.
        #[error("`{0}` is there already and differs")]
        #[code("SL-VAULT-29", "FileInTheWay")]
        #[cause("a restore found another file in its place")]
        #[hint("Restore into another folder, or say --overwrite.")]
        TargetExists(String),
        /// Too many lost races for the next snapshot.
        #[error("other writers were always faster")]
        #[code("SL-VAULT-30", "SnapshotRaced", retry = Later)]
        #[cause("other writers took every next number of a snapshot")]
        #[hint("Run it again; what was kept need not be kept again.")]
        Raced,
        /// Nobody can be asked for a passphrase.
        #[error("no passphrase was given")]
        #[code("SL-VAULT-33", "NoPassphrase", exit = Usage)]
        #[cause("no passphrase of a vault was given and nobody can be asked")]
        #[hint("Use --passphrase-file, SEALANE_PASSPHRASE, or a terminal.")]
        NoPassphrase,
        /// No slot has that id.
        #[error("the vault has no key slot `{0}`")]
        #[code("SL-VAULT-49", "NoSlot", exit = Usage)]
        #[cause("a vault has no such key slot")]
        #[hint("`sealane vault key ls` lists them.")]
        NoSlot(String),
        /// A passphrase is stretched in more memory than the system gives.
        #[error("a passphrase of the vault takes {kib} KiB of memory, and the system gives less")]
        #[code("SL-VAULT-50", "NoMemory", retry = Later)]
        #[cause("a passphrase of a vault takes more memory than the system gives")]
        #[hint("Free memory, or open the vault with its recovery code or an identity, which take \
                none.")]
        NoMemory {
            /// How much it takes.
            kib: u32,
        },
        /// The last slot that opens a vault is not removed.
        #[error("it is the last slot that opens the vault")]
        #[code("SL-VAULT-32", "LastSlot")]
        #[cause("a slot is the last that opens its vault")]
        #[hint("Add another passphrase or recovery code first.")]
        LastSlot,
        /// A place holds another vault, or another owner's, than it was pinned to.
        #[error("`{place}` was exchanged: it holds {found}, and {pinned} was expected")]
        #[code("SL-VAULT-40", "VaultExchanged")]
        #[cause("a place holds another vault, or one of another owner, than was expected there")]
        #[hint("Do not put anything there: whoever made that vault can read it. If you replaced \
                the vault yourself, name the new one once with --expect VAULT:OWNER.")]
        Exchanged {
            /// Where the vault is.
            place: String,
            /// The vault and owner that were expected.
            pinned: String,
            /// The vault and owner that are there.
            found: String,
        },
        /// A recovery wrote nothing at all.
        #[error("nothing was recovered")]
        #[code("SL-VAULT-41", "NothingRecovered")]
        #[cause("a recovery found nothing to restore")]
        #[hint("Name an older snapshot with --snapshot, and compare with a copy of the objects.")]
        NothingRecovered,
        /// A file of more pieces than a reader takes.
        #[error("`{0}` has too many pieces")]
        #[code("SL-VAULT-42", "TooManyPieces")]
        #[cause("a file has more pieces than readers of a vault take")]
        #[hint("It has very many holes: leave it out with --exclude, or fill the holes.")]
        TooManyPieces(String),
        /// The bucket's server writes where an object is, whatever it is told.
        #[error("the store `{0}` ignores `If-None-Match`: it writes over objects that are there")]
        #[code("SL-VAULT-43", "StoreOverwrites", exit = Storage)]
        #[cause("the server of a bucket ignores `If-None-Match: *` and writes over objects")]
        #[hint("Two who put at the same time would lose a snapshot there, and neither would \
                notice. Use a newer version of the server, another bucket, or a folder.")]
        Overwrites(String),
        /// The store said yes to an object, and does not have it.
        #[error("the store said that it has `{0}`, and does not have it")]
        #[code("SL-VAULT-44", "StoreForgot", retry = Later, exit = Storage)]
        #[cause("the store of a vault does not have an object that it said it had")]
        #[hint("Nothing that needs it was reported as kept: run it again. If no `prune --now` ran \
                at the same time, the store loses data.")]
        Forgot(String),
        /// The main key was changed, or is being changed, by another run.
        #[error("the vault's main key is being changed")]
        #[code("SL-VAULT-47", "KeyRotated", retry = Later)]
        #[cause("the main key of a vault was changed meanwhile, or a change was not completed")]
        #[hint("Run it again: it opens with the new key, and what was kept need not be kept again. \
                If a `key rotate` was interrupted, run that again first.")]
        Rotated,
        /// A prune came between a reader and what it reads.
        #[error("snapshot {0} was removed while it was read")]
        #[code("SL-VAULT-48", "SnapshotRemoved")]
        #[cause("a prune removed a snapshot of a vault, and what it kept, while it was read")]
        #[hint("Take another snapshot: `sealane vault ls` lists them. Without --now a prune leaves \
                what it removes to readers for a day.")]
        Removed(u64),
        /// Only others have snapshots in the vault.
        #[error("there is no snapshot of {asked}; the newest of others are {there}")]
        #[code("SL-VAULT-45", "NoOwnSnapshot", exit = Usage)]
        #[cause("a vault has no snapshot of this host and the owner, and no other was named")]
        #[hint("Name a snapshot by its number, as `sealane vault ls` lists them, or say whose with \
                --host and --signer.")]
        NoOwnSnapshot {
            /// The host and signer that were asked for.
            asked: String,
            /// The hosts and signers that are there, with their numbers.
            there: String,
        },
        /// No path of the snapshots that were looked through matches.
        #[error("no path in the snapshots of {whose} matches `{pattern}`")]
        #[code("SL-VAULT-46", "NoMatch")]
        #[cause("no path in the snapshots that were looked through matches a pattern")]
        #[hint("Patterns are as in a .gitignore: *.pdf, or accounts/2024/*. --anyone looks through \
                the snapshots of all hosts and signers.")]
        NoMatch {
            /// The pattern.
            pattern: String,
            /// The owner of these snapshots.
            whose: String,
        },
        /// Something that may name data cannot be read: nothing is removed.
        #[error("what may name data cannot be read, so that nothing is removed: {0}")]
        #[code("SL-VAULT-51", "SnapshotUnread")]
        #[cause("a snapshot of a vault is missing or cannot be read, and may name data")]
        #[hint("Run it again later, bring the objects back from a copy, or give the snapshot up, \
                and what only it needs, with `--give-up N` of `sealane vault prune`.")]
        Unread(String),
        /// An older snapshot is not taken for the newest unasked.
        #[error("snapshot {number} would be taken, since a newer one cannot be read: {unread}")]
        #[code("SL-VAULT-52", "OlderOnly")]
        #[cause("the newest snapshot of a vault cannot be read, and no older one was asked for")]
        #[hint("Bring the objects back from a copy, or take the older one: name its number, or \
                say --allow-older.")]
        OlderOnly {
            /// The newest that can be read.
            number: u64,
            /// The unreadable objects, and why.
            unread: String,
        },
        /// The owner has removed this writer.
        #[error("writer {slot} was removed: nothing of it behind snapshot {until} is believed")]
        #[code("SL-VAULT-53", "WriterEnded")]
        #[cause("the owner of a vault has removed a writer")]
        #[hint("Nothing was kept. Ask the owner for a new key: `sealane vault key writer`.")]
        WriterEnded {
            /// Its slot.
            slot: String,
            /// The last snapshot that is believed of it.
            until: u64,
        },
        /// No slot opens, and some that might are damaged.
        #[error("no key slot of the vault opens, and some are damaged: {0}")]
        #[code("SL-VAULT-54", "SlotsDamaged")]
        #[cause("key slots of a vault are damaged or missing, so that a secret may be right")]
        #[hint("The secret may be right. Bring the slots back from a copy, or open the vault with \
                another passphrase, recovery code or identity, and run `sealane vault repair`.")]
        SlotsDamaged(String),
        /// A place in which a vault was is empty.
        #[error("`{place}` is empty, and held the vault {pinned}")]
        #[code("SL-VAULT-55", "VaultGone", exit = Usage)]
        #[cause("a place is empty in which there was a vault")]
        #[hint("Is the disk mounted, and is it the right bucket? `sealane vault init --replace` \
                makes a new vault there.")]
        VaultGone {
            /// The place.
            place: String,
            /// The vault and owner that it held.
            pinned: String,
        },
        /// A range that begins behind the end of its file.
        #[error("`{path}` has {size} bytes, and the range begins behind them")]
        #[code("SL-VAULT-56", "RangeBehindEnd", exit = Usage)]
        #[cause("a range of a file of a vault begins behind the file's end")]
        #[hint("`sealane vault ls SNAPSHOT PATH` shows the size.")]
        BehindEnd {
            /// The file.
            path: String,
            /// Its length.
            size: u64,
        },
        /// The system gave no thread.
        #[error("a thread could not be started")]
        #[code("SL-VAULT-31", "VaultThread")]
        #[cause("a thread could not be started")]
        #[hint("Use fewer --threads; the system's limit is reached.")]
        Thread,
    }
}

impl Error {
    /// Whether an object is not what it was when it was written, or is no object of the vault.
    /// Such an object is skipped and named; everything else is a failure of the work itself.
    pub(crate) fn is_damage(&self) -> bool {
        use Error::{Malformed, Missing, NotAuthentic, Signature, TooLarge, Truncated, Version};
        matches!(
            self,
            Malformed { .. }
                | Missing(_)
                | NotAuthentic { .. }
                | Signature(_)
                | TooLarge { .. }
                | Truncated(_)
                | Version(_)
        )
    }

    /// The message with its code, as reports name it.
    pub(crate) fn named(&self) -> String {
        format!("{self} [{}]", self.info().code)
    }

    /// A failure of the store at `key`, with a full one told apart.
    pub(crate) fn store(key: &str, cause: io::Error) -> Error {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        if full.contains(&cause.kind()) {
            return Error::StoreFull { key: key.to_owned() };
        }
        Error::Store { key: key.to_owned(), cause }
    }

    /// A failure to read `key`, with a missing and a short object told apart.
    pub(crate) fn read(key: &str, cause: io::Error) -> Error {
        match cause.kind() {
            io::ErrorKind::NotFound => Error::Missing(key.to_owned()),
            io::ErrorKind::UnexpectedEof => Error::Truncated(key.to_owned()),
            _ => Error::store(key, cause),
        }
    }

    /// A failure with a file of this machine.
    pub(crate) fn file(path: &std::path::Path, cause: io::Error) -> Error {
        Error::File { path: path.display().to_string(), cause }
    }
}
