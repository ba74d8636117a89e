sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why bytes are not a frame, or a frame cannot be sent on, split, joined or put in another
    /// form.
    ///
    /// [`FrameError::NoRoom`], [`FrameError::BodyTooLong`], [`FrameError::Unsplittable`] and
    /// [`FrameError::NoCompactForm`] are the caller's fault; the others are the peer's, or damage
    /// on the way.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum FrameError {
        /// Fewer bytes than the header announces.
        #[error("the frame ends before its header does")]
        #[code("SL-FRAME-01", "FrameTooShort")]
        #[cause("the bytes end before the frame does")]
        #[hint("Hand over each frame whole; split what a link cannot carry at once into \
                fragments.")]
        TooShort,
        /// A version that this program does not speak.
        #[error("a frame of an unknown version")]
        #[code("SL-FRAME-02", "UnknownFrameVersion")]
        #[cause("the frame's version is not one that this program speaks")]
        #[hint("Version 1 was never released: seal its messages anew. Of a later version: update \
                this program. Else check that the bytes are a frame in the form of this link.")]
        UnknownVersion,
        /// A kind that this version does not have.
        #[error("a frame of an unknown kind")]
        #[code("SL-FRAME-03", "UnknownFrameKind")]
        #[cause("the frame's kind is not one of this version")]
        #[hint("Check that the bytes are a frame in the form of this link.")]
        UnknownKind,
        /// A spare flag or a compression without meaning is not zero.
        #[error("bits of the header that must be zero are not")]
        #[code("SL-FRAME-04", "ReservedBits")]
        #[cause("bits of the header that must be zero are not")]
        #[hint("Check the sender; these bits are kept for later versions.")]
        ReservedBits,
        /// The header's body length is not what the frame holds.
        #[error("the frame's length is not what its header says")]
        #[code("SL-FRAME-05", "FrameLengthMismatch")]
        #[cause("the frame is longer or shorter than its header says")]
        #[hint("Look for a link that cuts or pads frames.")]
        LengthMismatch,
        /// The body is longer than [`crate::limits::MAX_FRAME_BODY_BYTES`].
        #[error("the body is too long")]
        #[code("SL-FRAME-06", "BodyTooLong")]
        #[cause("the body is longer than MAX_FRAME_BODY_BYTES")]
        #[hint("Carry large bodies as several messages, or by reference to an object.")]
        BodyTooLong,
        /// The SFrame header is not in its shortest form or has a key id that no sender has.
        #[error("the SFrame header is malformed")]
        #[code("SL-FRAME-07", "BadSealHeader")]
        #[cause("the SFrame header is not in its shortest form or its key id is out of range")]
        #[hint("Check that the sender writes RFC 9605 headers with the key ids of this system.")]
        BadSealHeader,
        /// Class or sequence of the header differ from key id and counter of the SFrame header.
        #[error("class or sequence of the two headers differ")]
        #[code("SL-FRAME-08", "HeadersDisagree")]
        #[cause("class or sequence of the frame differ from key id and counter of its seal")]
        #[hint("The frame was altered on its way, or its sender is faulty.")]
        HeadersDisagree,
        /// Another hop was to take this frame.
        #[error("the frame's next hop is somebody else")]
        #[code("SL-FRAME-09", "NotForUs")]
        #[cause("the frame's next hop is another node")]
        #[hint("Nothing to do: a shared medium lets a node hear the frames of others.")]
        NotForUs,
        /// The frame has made all its hops.
        #[error("the frame may not travel further")]
        #[code("SL-FRAME-10", "HopLimitSpent")]
        #[cause("the frame has made as many hops as it may")]
        #[hint("Look for a loop, or raise the sender's hop limit up to MAX_HOP_LIMIT.")]
        HopLimitSpent,
        /// The full header holds what the compact form does not carry.
        #[error("the frame has no compact form on this link")]
        #[code("SL-FRAME-11", "NoCompactForm")]
        #[cause("the frame holds what the compact form of this link does not carry")]
        #[hint("Define the dictionary byte and the member's slot, announce the sender's context, \
                or use the full form.")]
        NoCompactForm,
        /// The connection has not defined this dictionary byte.
        #[error("a dictionary byte that was not defined")]
        #[code("SL-FRAME-12", "UnknownEntry")]
        #[cause("the frame uses a dictionary byte that this connection has not defined")]
        #[hint("Define dictionary bytes before they are used; a new connection begins with none.")]
        UnknownEntry,
        /// The dictionary byte stands for something else already.
        #[error("a dictionary byte was defined twice")]
        #[code("SL-FRAME-13", "EntryConflict")]
        #[cause("a dictionary byte was defined again with another meaning")]
        #[hint("Take a free byte, or open a new connection.")]
        EntryConflict,
        /// No member of the group has this slot, as far as the link knows.
        #[error("a slot of which the member is not known")]
        #[code("SL-FRAME-14", "UnknownSource")]
        #[cause("the member of a slot is not known on this link")]
        #[hint("Take over the group's current roster.")]
        UnknownSource,
        /// The frame fits whole, or would need too many fragments.
        #[error("the frame cannot be split in this way")]
        #[code("SL-FRAME-15", "Unsplittable")]
        #[cause("the frame fits whole or would need more than MAX_FRAGMENTS fragments")]
        #[hint("Send what fits as it is, and large frames over links that carry more at once.")]
        Unsplittable,
        /// A fragment whose place is outside of its frame.
        #[error("a fragment that does not fit its frame")]
        #[code("SL-FRAME-16", "BadFragment")]
        #[cause("a fragment's place lies outside of its frame")]
        #[hint("Check that all fragments but the last have one length.")]
        BadFragment,
        /// Fragments of two frames under one id.
        #[error("a fragment of another frame of the same id")]
        #[code("SL-FRAME-17", "MixedFragments")]
        #[cause("fragments of two frames came under one id")]
        #[hint("Let each sender count its ids up; the frame that was begun first is kept.")]
        MixedFragments,
        /// The same part came twice with different bytes.
        #[error("a fragment that differs from its first copy")]
        #[code("SL-FRAME-18", "FragmentConflict")]
        #[cause("a fragment came again with other bytes")]
        #[hint("Somebody sends in the name of this peer, or its fragments are damaged; the first \
                is kept.")]
        FragmentConflict,
        /// More peers send fragments than [`crate::limits::MAX_PARTIAL_PEERS`].
        #[error("too many peers send fragments")]
        #[same_as(NoRoom)]
        TooManyPeers,
        /// A batch whose lengths do not fill it, or that holds a batch.
        #[error("a malformed batch")]
        #[code("SL-FRAME-20", "BadBatch")]
        #[cause("the lengths of a batch do not fill it or it holds what may not be batched")]
        #[hint("Put frames and fragments of 1 to MAX_BATCHED_BYTES bytes into a batch, and no \
                other batch.")]
        BadBatch,
        /// The buffer or ring has no room for the frame.
        #[error("no room for the frame")]
        #[code("SL-FRAME-21", "NoRoom", retry = Later)]
        #[cause("the buffer or ring has no room for the frame, or more peers send fragments at \
                 once than MAX_PARTIAL_PEERS")]
        #[hint("Release frames that were sent, or make the slots larger. Frames that stay \
                incomplete are given up after MAX_PARTIAL_AGE_MS.")]
        NoRoom,
        /// A compact frame of a context that its sender has not announced on this link.
        #[error("the sender has not announced this start of its own")]
        #[code("SL-FRAME-22", "UnannouncedSource")]
        #[cause("a compact frame is of a context that its sender has not announced on this link")]
        #[hint("Ask the sender to announce itself.")]
        Unannounced,
        /// The seal was refused, or could not be made.
        #[error(transparent)]
        #[inner(0)]
        Seal(#[from] sealane_seal::Error),
    }
}
