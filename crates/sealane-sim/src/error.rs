use std::io;
use std::path::PathBuf;

sealane_message::errors! {
    /// The error codes of the simulator.
    pub const ERRORS;

    /// Why a scenario does not run, or a log is not read.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum SimError {
        /// No TOML, too long, or a key that is none.
        #[error("{0}")]
        #[same_as(Value)]
        Syntax(String),
        /// A value that cannot be, or that does not go with another.
        #[error("{0}")]
        #[code("SL-SIM-02", "ScenarioMalformed", exit = Usage)]
        #[cause("the scenario is not TOML, has a key that is none, a value that cannot be, or a \
                 name of nothing")]
        #[hint("Correct what the text names; spec/scenario.md lists the keys and their values.")]
        Value(String),
        /// A trace of vehicles that is none.
        #[error("{0}")]
        #[code("SL-SIM-03", "TraceMalformed", exit = Usage)]
        #[cause("a trace of vehicles is malformed, too long, or does not fit the scenario")]
        #[hint("Write it with `sumo --fcd-output FILE`; spec/scenario.md says what is read of it.")]
        Trace(String),
        /// A log that is none.
        #[error("{0}")]
        #[code("SL-SIM-04", "LogMalformed", exit = Usage)]
        #[cause("what is replayed is no whole log of a run")]
        #[hint("Write it again: sealane sim run FILE --json > LOG.")]
        Log(String),
        /// A file that cannot be read or written.
        #[error("{}: {cause}", file.display())]
        #[code("SL-SIM-05", "SimFile", exit = Usage)]
        #[cause("a file of the simulator cannot be read or written")]
        #[hint("Check the path and its permissions.")]
        File {
            /// The file.
            file: PathBuf,
            /// The cause.
            cause: io::Error,
        },
        /// Standard output, or another place that takes the log.
        #[error("the output: {0}")]
        #[code("SL-SIM-06", "SimOutput")]
        #[cause("the log or the summary of a run could not be written")]
        #[hint("Check where the output goes, and whether there is room.")]
        Output(io::Error),
        /// A run that has more to do than there is room for.
        #[error("at {at} s more than {most} steps are still to be done")]
        #[code("SL-SIM-07", "TooMuchPending", exit = Usage)]
        #[cause("a run has more to do than there is room for")]
        #[hint("Make the delays of its media, or its traffic, smaller.")]
        Pending {
            /// The virtual time.
            at: crate::SimTime,
            /// The bound.
            most: usize,
        },
        /// Namespaces, interfaces or programs of a live run that cannot be made.
        #[error("{0}")]
        #[code("SL-SIM-08", "LiveImpossible")]
        #[cause("a namespace, interface, program or address of a live run cannot be had")]
        #[hint("Run it as root with iproute2; `ip netns list` names what another run has.")]
        Live(String),
        /// An order to a live run that cannot be done.
        #[error("{0}")]
        #[code("SL-SIM-09", "OrderRefused", exit = Usage)]
        #[cause("an order to a live run is none, or names nothing that it has")]
        #[hint("`sealane sim ctl --help` lists the orders, and `ctl FILE status` the machines.")]
        Order(String),
        /// No live run of a scenario answers.
        #[error("{}: {cause}", socket.display())]
        #[code("SL-SIM-10", "NoLiveRun")]
        #[cause("no live run of this scenario answers at its socket")]
        #[hint("Start it: sealane sim live FILE; it says where it listens.")]
        NoRun {
            /// Where it would answer.
            socket: PathBuf,
            /// The cause.
            cause: io::Error,
        },
        /// Keys of a live run's mesh that cannot be made or opened.
        #[error("keys of `{machine}`: {cause}")]
        #[code("SL-SIM-11", "LiveKeys")]
        #[cause("the keys of a live run's mesh cannot be made, or are not there in its folder")]
        #[hint("Let [mesh] name a folder that is not there yet, or one of the same machines.")]
        Keys {
            /// The machine.
            machine: String,
            /// The cause.
            cause: sealane_group::Error,
        },
    }
}
