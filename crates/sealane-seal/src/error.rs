sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why a message was not sealed or not opened.
    ///
    /// Nothing that fails leaves plaintext behind: a refused body is zeroed wherever a key was
    /// applied to it or was about to be.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum Error {
        /// Peer's fault: the SFrame header breaks the grammar of `spec/seal.md`.
        #[error("the sealed header is malformed")]
        #[code("SL-SEAL-01", "SealHeaderMalformed")]
        #[cause("the header of a sealed message is malformed")]
        #[hint("Look at the bytes with `sealane inspect`; they were cut, changed, or are no sealed \
                message.")]
        Header,
        /// Peer's fault: fewer bytes than header and tag need.
        #[error("the sealed bytes end too early")]
        #[code("SL-SEAL-02", "SealTruncated")]
        #[cause("a sealed message ends too early")]
        #[hint("Ask for the message again; the link or a fragment lost its end.")]
        Truncated,
        /// Peer's fault: the tag does not verify. Wrong key, or a byte was changed.
        #[error("the tag does not verify")]
        #[code("SL-SEAL-03", "NotAuthentic")]
        #[cause("the tag of a sealed message does not verify")]
        #[hint("Check that both sides hold the same group, suite and epoch; if so, it was changed \
                on its way.")]
        NotAuthentic,
        /// Peer's fault: the tag verifies and the sender's signature does not.
        #[error("the signature does not verify")]
        #[code("SL-SEAL-04", "SignatureInvalid")]
        #[cause("the signature of a sealed message does not verify")]
        #[hint("Check the sender's verifying key in the roster; a member may be posing as \
                another.")]
        Signature,
        /// Peer's fault, or a duplicate on the way: this counter was accepted before.
        #[error("the message was accepted before")]
        #[code("SL-SEAL-05", "Replayed")]
        #[cause("a message was accepted before")]
        #[hint("Drop it; a duplicate on the way is normal, many are an attack.")]
        Replayed,
        /// Too far behind the newest counter of its sender for the window to remember.
        #[error("the counter lies behind the replay window")]
        #[code("SL-SEAL-06", "BehindWindow")]
        #[cause("a message lies behind the replay window of its sender")]
        #[hint("Read it from the stream instead; live reading takes 1,024 messages out of order.")]
        Stale,
        /// The message's epoch is older than what may still arrive live.
        #[error("the epoch was left behind")]
        #[code("SL-SEAL-07", "EpochPast")]
        #[cause("a live message is of an epoch that was left behind")]
        #[hint("Let the sender catch up with the group's epoch; older messages are read from the \
                stream.")]
        EpochPast,
        /// No secret is held for the message's epoch, and none can be ratcheted to.
        #[error("no secret is held for the epoch")]
        #[code("SL-SEAL-08", "EpochUnknown")]
        #[cause("no secret is held for the epoch of a message")]
        #[hint("Catch up with the group's epochs; a forward-secret group has erased those it has \
                read.")]
        EpochUnknown,
        /// The class is not one that this group uses, or contradicts the layout.
        #[error("the class does not fit the group or the layout")]
        #[code("SL-SEAL-09", "ClassMismatch")]
        #[cause("the class of a message does not fit its group or layout")]
        #[hint("Use class P in a group of two and class C in any other.")]
        Class,
        /// Peer's fault, or a roster that is behind: nobody has that slot in that epoch.
        #[error("nobody has that slot in that epoch")]
        #[code("SL-SEAL-10", "NotMember")]
        #[cause("a message is of a slot that nobody has in its epoch")]
        #[hint("Read the group's orders; a member that was removed, or was not admitted yet, may \
                be posing as one.")]
        NotMember,
        /// A message of the opener's own slot came back.
        #[error("a message of the reader's own slot came back")]
        #[code("SL-SEAL-11", "Reflected")]
        #[cause("a message of the reader's own slot came back")]
        #[hint("Drop it; if it was not sent from here, take a new slot.")]
        Reflected,
        /// A live message of a context that its sender has not announced on this link.
        #[error("the sender has not announced its context")]
        #[code("SL-SEAL-12", "Unannounced")]
        #[cause("a live message is of a context that was not announced")]
        #[hint("Ask the sender to announce itself. Recorded messages of an earlier start are \
                refused in the same way.")]
        Unannounced,
        /// The counters of the context, or of the epoch, are used up.
        #[error("the counters are used up")]
        #[code("SL-SEAL-13", "CountersUsedUp")]
        #[cause("a sender has used up the counters of its context or of the epoch")]
        #[hint("Draw a new context; at the end of an epoch's counters, advance the group.")]
        CountersUsedUp,
        /// More unknown contexts than are tried until the caller allows more.
        #[error("too many announcements of unknown contexts")]
        #[code("SL-SEAL-14", "TooManyTrials")]
        #[cause("more announcements of unknown contexts came than are tried at once")]
        #[hint("Wait; if it goes on, somebody on the link makes them up.")]
        TooManyTrials,
        /// Caller's fault: the buffer lacks head room or tail room around the body.
        #[error("the buffer has no room for header or tag")]
        #[code("SL-SEAL-15", "NoRoomForSeal")]
        #[cause("the buffer has no room for the header or the tag")]
        #[hint("Leave `MAX_HEADER_BYTES` before the body and `tail_bytes` of its class behind it.")]
        NoRoom,
        /// Caller's fault: a body or authenticated header beyond its limit.
        #[error("the body or its authenticated header is too large")]
        #[code("SL-SEAL-16", "SealTooLarge")]
        #[cause("a body or its authenticated header is too large to be sealed")]
        #[hint("Split the message.")]
        TooLarge,
        /// Caller's fault: class S without a signing key.
        #[error("no signing key is set")]
        #[code("SL-SEAL-17", "NoSigningKey")]
        #[cause("a class S message needs a signing key and none is set")]
        #[hint("Give the sealer the member's signing key.")]
        NoSigningKey,
        /// An order or a call that moves the epoch back, nowhere, or too far.
        #[error("the epoch cannot move there")]
        #[code("SL-SEAL-18", "EpochStep")]
        #[cause("an epoch cannot move back, stay, move more than 1,024 steps, or have two secrets")]
        #[hint("Check the order; a member further behind needs the group's secret again.")]
        EpochStep,
        /// More epoch secrets than are kept at once.
        #[error("too many epochs are held")]
        #[code("SL-SEAL-19", "TooManyEpochs")]
        #[cause("more epoch secrets than are held at once")]
        #[hint("Forget the epochs that no stream retains any more: `sealane group forget`.")]
        TooManyEpochs,
        /// Bytes of a persisted state, key, or control order that are not one.
        #[error("the state or order is malformed")]
        #[code("SL-SEAL-20", "SealStateMalformed")]
        #[cause("a persisted state, a key or a control order is malformed")]
        #[hint("Restore the file it came from; do not edit it.")]
        Malformed,
        /// The cipher library refused, which a correct build never sees.
        #[error("the cipher library failed")]
        #[code("SL-SEAL-22", "CipherFailed")]
        #[cause("the cipher library failed")]
        #[hint("Report it; the message was not sealed.")]
        Cipher,
    }
}
