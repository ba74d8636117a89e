//! The part of a configuration that has a machine keep documents.

use sealane_link::{Config, LinkConfig, LinkError};
use sealane_mesh::MeshMedium;
use serde::Deserialize;

/// The document settings of a machine (`spec/document.md`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentsConfig {
    /// The file that they are kept in, as seen from the folder of the configuration.
    pub store: String,
    /// Where programs of this user ask for them: a Unix socket, named in the same way. An end has
    /// one; a relay cannot read what it keeps.
    pub socket: Option<String>,
    /// The policy that documents are sealed and paced by, named in the same way; without it, the
    /// one that is built in.
    pub policy: Option<String>,
    /// How full the battery is, in percent, where the machine cannot find out by itself.
    pub battery_percent: Option<u8>,
}

/// How messages about documents fit the links of a mesh.
pub(crate) struct DocumentsAir {
    /// The bytes of a message that suits all of them.
    pub(crate) message_bytes: usize,
    /// On one of them air time is scarce.
    pub(crate) is_scarce: bool,
}

/// The usual bytes that a wire carries at once.
const WIRE_BYTES: usize = 1500;

/// The limits that fit these links.
pub(crate) fn air_of(links: &Config) -> DocumentsAir {
    let media: Vec<MeshMedium> = links.links.iter().filter_map(LinkConfig::mesh_medium).collect();
    let message_bytes = media.iter().map(MeshMedium::documents_bytes).min();
    DocumentsAir {
        message_bytes: message_bytes
            .unwrap_or_else(|| MeshMedium::wire(WIRE_BYTES).documents_bytes()),
        is_scarce: media.iter().any(MeshMedium::has_duty),
    }
}

impl DocumentsConfig {
    pub(crate) fn check(&self, has_routing: bool) -> Result<(), LinkError> {
        let value = |what: &str| Err(LinkError::ConfigValue(what.to_owned()));
        if self.store.is_empty() {
            return value("documents.store is empty");
        }
        if self.socket.as_ref().is_some_and(String::is_empty) {
            return value("documents.socket is empty");
        }
        if self.policy.as_ref().is_some_and(String::is_empty) {
            return value("documents.policy is empty");
        }
        if self.battery_percent.is_some_and(|percent| percent > 100) {
            return value("documents.battery_percent is more than 100");
        }
        match has_routing {
            true => Ok(()),
            false => value("[documents] needs [routing]: neighbours exchange them over the mesh"),
        }
    }
}
