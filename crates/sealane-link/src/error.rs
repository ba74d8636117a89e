use std::io;
use std::net::SocketAddr;

sealane_message::errors! {
    /// The meaning of every code of this crate.
    pub const ERRORS;

    /// Why a machine does not relay: its configuration, its cards, or its links.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum LinkError {
        /// No TOML, too long, or an unknown key.
        #[error("{0}")]
        #[same_as(ConfigValue)]
        ConfigSyntax(String),
        /// A value that cannot be, or that does not go with another.
        #[error("{0}")]
        #[code("SL-LINK-02", "LinkConfig", exit = Usage)]
        #[cause("the configuration of links is not TOML, has an unknown key or a value that its \
                 key cannot have, or names something that is not there")]
        #[hint("Correct what the text names; spec/link.md lists the keys and their values.")]
        ConfigValue(String),
        /// A relay card that is none.
        #[error("this is no relay card: {0}")]
        #[code("SL-LINK-03", "RelayCard", exit = Usage)]
        #[cause("a relay card is malformed, or none tells of a tag or slot that is named")]
        #[hint("Check that the card is of this group, and write it again: \
                sealane group relay-card GROUP > FILE.")]
        Card(String),
        /// A route or tag that names a member of which no card tells.
        #[error("{0} is no member of the groups that the relay cards tell of")]
        #[same_as(Card)]
        UnknownMember(String),
        /// A link that cannot be opened.
        #[error("link {link}: {cause}")]
        #[code("SL-LINK-05", "LinkNotOpened")]
        #[cause("a link cannot be opened, or the interface of a mesh cannot be made")]
        #[hint("Check that its address or interface is there, or the name of a new one free, and \
                that this user may open it: root, or CAP_NET_ADMIN with /dev/net/tun.")]
        Open {
            /// Its name in the configuration.
            link: String,
            /// The system's error.
            cause: io::Error,
        },
        /// An interface that cannot be made.
        #[error("interface {interface}: {cause}")]
        #[same_as(Open)]
        Interface {
            /// The name that it was to have.
            interface: String,
            /// The system's error.
            cause: io::Error,
        },
        /// An interface that somebody has deleted.
        #[error("the interface {interface} is gone")]
        #[code("SL-LINK-09", "InterfaceGone", retry = Later)]
        #[cause("somebody has deleted the interface of a mesh while it was in use")]
        #[hint("Start it again: it makes the interface anew. Under systemd, Restart=on-failure \
                does so.")]
        InterfaceGone {
            /// The name that it had.
            interface: String,
        },
        /// A relay or end that does not tell its status.
        #[error("{address}: {cause}")]
        #[code("SL-LINK-08", "StatusNotReached", exit = NotReachable)]
        #[cause("no relay or end tells its status where the configuration says")]
        #[hint("Check that it runs, and was started with this `status` in its configuration.")]
        StatusNotReached {
            /// Where it was asked for.
            address: SocketAddr,
            /// The system's error.
            cause: io::Error,
        },
        /// A machine of the mesh to which no way leads.
        #[error("no way leads to the machine in slot {slot}")]
        #[code("SL-LINK-10", "NoWay", retry = Later, exit = NotReachable)]
        #[cause("no machine of the mesh knows a way to that one now, or no answer came in time")]
        #[hint("See the machines that are reached: sealane mesh status CONFIG.")]
        NoWay {
            /// Its slot.
            slot: u16,
        },
        /// A reload that would open or close links.
        #[error("the links are not those that it was started with")]
        #[code("SL-LINK-06", "LinksChanged", exit = Usage)]
        #[cause("a configuration that is read again has other links, interface or status")]
        #[hint("Start it again to change these. Neighbours, routes and cards change without a \
                restart.")]
        LinksChanged,
    }
}
