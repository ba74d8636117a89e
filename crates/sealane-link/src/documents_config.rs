//! The part of a configuration that has a machine keep documents.

use serde::Deserialize;

use crate::LinkError;

/// What a machine does with documents (`spec/document.md`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentsConfig {
    /// The file that they are kept in, as seen from the folder of the configuration.
    pub store: String,
    /// Where programs of this user ask for them: a Unix socket, named in the same way. An end has
    /// one; a relay cannot read what it keeps.
    pub socket: Option<String>,
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
        match has_routing {
            true => Ok(()),
            false => value("[documents] needs [routing]: neighbours exchange them over the mesh"),
        }
    }
}
