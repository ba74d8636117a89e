use sealane_frame::FrameError;

sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why a message of the mesh is refused, or a machine does not start.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum MeshError {
        /// A message that ends before its fields do.
        #[error("a message of the mesh ends too early")]
        #[code("SL-MESH-01", "MeshMessageMalformed")]
        #[cause("a message of the mesh is malformed")]
        #[hint("Look for a neighbour of another version, a link that cuts or pads frames, or a \
                faulty member: the event names its slot.")]
        Truncated,
        /// Bytes behind the last field.
        #[error("a message of the mesh is longer than its fields")]
        #[same_as(Truncated)]
        TooLong,
        /// A version that this program does not speak.
        #[error("a message of the mesh of an unknown version")]
        #[code("SL-MESH-03", "UnknownMeshVersion")]
        #[cause("a message of the mesh is of a version that this program does not speak")]
        #[hint("Update this program, or the neighbour that sent it.")]
        UnknownVersion,
        /// A field with a value that it cannot have.
        #[error("a field of a message of the mesh is out of range")]
        #[same_as(Truncated)]
        Range,
        /// A frame of kind 2 that is none of the mesh.
        #[error("no message of the mesh")]
        #[code("SL-MESH-05", "NoMeshMessage")]
        #[cause("a frame is of another group, class or type than messages of the mesh have")]
        #[hint("Nothing to do: another mesh may be in reach.")]
        NotOurs,
        /// The tag of a hop seal is not right.
        #[error("the hop seal does not verify")]
        #[code("SL-MESH-06", "HopSealInvalid")]
        #[cause("the hop seal of a frame does not verify")]
        #[hint("Somebody outside of the mesh sends here, or a neighbour holds another epoch.")]
        HopSeal,
        /// A unit that was here before, by its hop seal.
        #[error("the hop seal was used before")]
        #[code("SL-MESH-07", "HopSealReplayed")]
        #[cause("a frame with this hop seal was here before")]
        #[hint("Drop it; duplicates on the way are normal, many are an attack.")]
        HopReplayed,
        /// Caller's fault: a configuration that cannot be.
        #[error("the machine of the mesh is not configured so: {0}")]
        #[code("SL-MESH-08", "MeshConfigValue", exit = Usage)]
        #[cause("the configuration of a machine of the mesh has a value that cannot be")]
        #[hint("Correct what the text names; spec/mesh.md lists the bounds.")]
        Config(&'static str),
        /// The frame around the message was refused, or its seal.
        #[error(transparent)]
        #[inner(0)]
        Frame(#[from] FrameError),
    }
}

impl From<sealane_seal::Error> for MeshError {
    fn from(error: sealane_seal::Error) -> Self {
        Self::Frame(FrameError::Seal(error))
    }
}
