//! The errors that a hub may answer, without a dependency on hub and node.

/// The errors that hubs answer, each with its name on the wire and whether it passes.
macro_rules! hub_errors {
    ($($(#[doc = $doc:literal])+ $Name:ident: $retry:ident,)+) => {
        /// An error by which a hub refuses, as far as this version of the library knows it. A newer
        /// hub may have others; [`Error::refusal`](crate::Error::refusal) gives the name of any.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum HubError {
            $($(#[doc = $doc])+ $Name,)+
        }

        impl HubError {
            /// The error of this name on the wire, where it is known.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($Name) => Some(Self::$Name),)+
                    _ => None,
                }
            }

            /// Whether the same request may be sent again.
            pub fn retry(self) -> sealane_message::Retry {
                match self {
                    $(Self::$Name => sealane_message::Retry::$retry,)+
                }
            }
        }
    };
}

mod list;

pub use list::HubError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_that_of_the_hub() {
        for info in sealane_protocol::ERRORS.iter().chain(sealane_node::ERRORS) {
            let known = HubError::named(info.name).map(HubError::retry);
            assert_eq!(known, Some(info.retry), "{}", info.name);
        }
        assert_eq!(HubError::named("OutOfOrbit"), None);
    }
}
