//! The bounds of a machine of the field, most of them of its gateway.

sealane_message::limits! {
    /// Frames that a gateway has heard and that its queue has not taken yet. A further one is
    /// dropped and counted (`busy`).
    MAX_FRAMES_WAITING: usize = 4096, "frames";
    /// Frames that a gateway's queue takes in one commit. More wait for the next one.
    MAX_QUEUE_COMMIT: usize = 512, "frames";
    /// Bytes that a frame in a gateway's queue counts for, beside its own.
    QUEUED_FRAME_BYTES: u64 = 128, "bytes";
    /// Frames that a gateway knows again when they come once more. The oldest half is forgotten at
    /// once.
    MAX_FRAMES_KNOWN: usize = 1 << 15, "frames";
    /// Frames that a gateway reads from its queue at once, to bring them to the hub.
    MAX_UPLOAD_WINDOW: usize = 512, "frames";
    /// Frames of one origin that a gateway brings to the hub in one request.
    MAX_UPLOAD_BATCH: usize = 256, "frames";
    /// Bytes of those frames. A longer frame goes alone.
    MAX_UPLOAD_BATCH_BYTES: usize = 256 << 10, "bytes";
    /// Origins whose frames a gateway brings to the hub at the same time. Others wait.
    MAX_UPLOAD_LANES: usize = 32, "origins";
    /// How long frames of one origin are brought before a gateway looks for more urgent ones.
    MAX_UPLOAD_TURN_MS: u64 = 500, "milliseconds";
    /// How long a gateway waits for frames of an origin that seem to be missing before one that has
    /// come. Then they may come late.
    MAX_ORDER_WAIT_MS: u64 = 10_000, "milliseconds";
    /// Frames of an origin that wait for others. With one more, all go on: the log of an origin
    /// keeps 64.
    MAX_ORDER_HELD: usize = 56, "frames";
    /// How long a gateway waits, at most, before it tries its hub again.
    MAX_HUB_WAIT_MS: u64 = 30_000, "milliseconds";
    /// How long a gateway leaves a stream alone that the hub has refused to it.
    MAX_STREAM_HOLD_MS: u64 = 30_000, "milliseconds";
    /// Frames of the hub that a gateway puts into the mesh in a second. More wait in the hub.
    MAX_DOWN_PER_SECOND: u32 = 50, "frames a second";
    /// Frames that go into the mesh before a gateway stores how far it has read a stream.
    MAX_DOWN_UNSAVED: usize = 64, "frames";
    /// The least bytes for which the frames in the queue of a gateway may count.
    MIN_GATEWAY_QUEUE_BYTES: u64 = 64 << 10, "bytes";
    /// The most bytes for which the frames in the queue of a gateway may count.
    MAX_GATEWAY_QUEUE_BYTES: u64 = 1 << 40, "bytes";
    /// Data types that a gateway carries each way. A further one is refused.
    MAX_GATEWAY_TYPES: usize = 64, "data types";
    /// The readers of a machine's status at once. Others wait.
    MAX_STATUS_READERS: usize = 8, "connections";
    /// The head of a request for the status. A longer one is refused.
    MAX_STATUS_HEAD_BYTES: usize = 4096, "bytes";
    /// The status of a machine, as `sealane mesh status` reads it. A longer one is refused.
    MAX_STATUS_BYTES: usize = 4 << 20, "bytes";
    /// How long a request for the status may take.
    MAX_STATUS_MS: u64 = 5000, "milliseconds";
    /// How long the answers of other machines to a trace are waited for.
    MAX_TRACE_WAIT_MS: u64 = 3000, "milliseconds";
    /// Programs of its user that ask a machine for documents at once. Others wait.
    MAX_DOCUMENT_PROGRAMS: usize = 64, "connections";
    /// Of those, programs that watch. A further one is refused, so that calls for help always get
    /// in.
    MAX_DOCUMENT_WATCHERS: usize = 32, "connections";
    /// A question about documents. A longer one ends the connection.
    MAX_DOCUMENT_QUESTION_BYTES: u64 = 64 << 10, "bytes";
    /// Documents that wait for a program that watches slowly. It asks for those that it misses.
    MAX_DOCUMENTS_UNWATCHED: usize = 256, "documents";
    /// Tasks that wait for the thread of documents. A further program is refused, and neighbours
    /// say again what is lost.
    MAX_DOCUMENT_TASKS: usize = 256, "tasks";
    /// Of those, messages of neighbours: fewer, so that there is room for programs.
    MAX_DOCUMENTS_HEARD: usize = 128, "messages";
    /// Of those, messages of one neighbour. It says again what is lost.
    MAX_DOCUMENTS_HEARD_OF_ONE: usize = 16, "messages";
    /// Lines of chat on the page of the team. Older ones are left out.
    MAX_CHAT_LINES_SHOWN: usize = 50, "lines";
    /// How far a clock may be ahead before the page of the team says so.
    MAX_CLOCK_AHEAD_MS: u64 = 60_000, "milliseconds";
    /// Commands that a member knows, so that it opens none twice. Beyond that the earliest is
    /// forgotten, and a command that was given before it counts as old.
    MAX_COMMANDS_OPENED: usize = 4096, "commands";
    /// Notices of a group that wait to be obeyed. Others come again with the machine's next start.
    MAX_NOTICES_HEARD: usize = 256, "notices";
    /// How often the thread of documents looks whether the mesh has room for more.
    DOCUMENTS_TURN_MS: u64 = 20, "milliseconds";
    /// The pause after a connection that the system did not hand over, as with too many open files.
    ACCEPT_PAUSE_MS: u64 = 100, "milliseconds";
    /// How often a machine looks how full its battery is.
    BATTERY_LOOK_MS: u64 = 30_000, "milliseconds";
    /// How long a stream of the hub is quiet. Then a gateway stores how far it has read it.
    MAX_DOWN_QUIET_MS: u64 = 200, "milliseconds";
    /// How long nothing comes before the keeper of the queue looks whether the gateway ends.
    INTAKE_TURN_MS: u64 = 100, "milliseconds";
    /// How long a gateway waits before it tries a disk again that has failed.
    DISK_RETRY_MS: u64 = 1000, "milliseconds";
    /// How long an order waits before a gateway hands it again to a busy machine.
    ORDER_RETRY_MS: u64 = 50, "milliseconds";
    /// Answers to one frame that a gateway does not understand. Then it leaves the stream alone for
    /// a while.
    MAX_UNCLEAR_ANSWERS: u32 = 4, "answers";
    /// Frames of which a gateway counts those answers.
    MAX_UNCLEAR_FRAMES: usize = 256, "frames";
    /// How long a gateway waits before it tries its hub for the second time. Later waits double.
    MIN_HUB_WAIT_MS: u64 = 100, "milliseconds";
    /// How often a machine looks whether its groups have changed.
    GROUP_LOOK_MS: u64 = 1000, "milliseconds";
    /// How often an end announces itself, and looks what has changed in its group.
    ANNOUNCE_INTERVAL_MS: u64 = 1000, "milliseconds";
    /// How long an end has no packet before it looks whether it is to end. It rests as long after a
    /// fault.
    END_TURN_MS: u64 = 100, "milliseconds";
}
