//! The configuration of a machine: that of its links, and the tables of what runs beside them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sealane_link::{Config, LinkError, MeshConfig, RelayCard, read_tables};
use sealane_seal::policy::Policy;
use serde::Deserialize;

use crate::documents::DocumentsConfig;
use crate::gateway::GatewayConfig;
use crate::{MachineError, Result};

/// The configuration of a machine at its start. If asked, the machine reads the file again.
#[derive(Debug, Clone)]
pub struct MachineConfig {
    /// The file itself: other files are named as seen from its folder.
    pub file: PathBuf,
    /// Its links, its mesh and its interface.
    pub links: Config,
    /// The hub of a gateway.
    pub gateway: Option<GatewayConfig>,
    /// Its settings for documents.
    pub documents: Option<DocumentsConfig>,
    /// Where all that its links carry is written as pcap: set by a program, and by no file.
    pub capture: Option<PathBuf>,
    /// Where the page of the team is served: set by a program, and by no file.
    pub view: Option<SocketAddr>,
}

/// The tables that links do not know.
#[derive(Deserialize)]
struct BesideLinks {
    gateway: Option<GatewayConfig>,
    documents: Option<DocumentsConfig>,
}

impl MachineConfig {
    /// Reads a configuration. Its relay cards are read when the machine starts.
    ///
    /// # Errors
    ///
    /// [`MachineError::File`], or [`MachineError::Link`] for what the text says.
    pub fn read(file: &Path) -> Result<MachineConfig> {
        let text = text(file)?;
        MachineConfig::parse(file, &text).map_err(|cause| MachineError::link(file, cause))
    }

    fn parse(file: &Path, text: &str) -> Result<MachineConfig, LinkError> {
        let links = Config::parse(text)?;
        let BesideLinks { gateway, documents } = read_tables(text)?;
        gateway.as_ref().map_or(Ok(()), GatewayConfig::check)?;
        documents.as_ref().map_or(Ok(()), |one| one.check(links.routing.is_some()))?;
        let (file, capture, view) = (file.to_owned(), None, None);
        Ok(MachineConfig { file, links, gateway, documents, capture, view })
    }

    /// Another file that the configuration names.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(name)
    }

    /// The folder of the mesh's keys, where the configuration names one.
    pub fn mesh_keys(&self) -> Option<PathBuf> {
        let keys = self.links.routing.as_ref()?.keys.as_ref()?;
        Some(self.file.parent().unwrap_or(Path::new("")).join(keys))
    }

    /// Where programs of this user ask for documents.
    ///
    /// # Errors
    ///
    /// [`LinkError::ConfigValue`]: the configuration names no socket.
    pub fn documents_socket(&self) -> Result<PathBuf> {
        let socket = self.documents.as_ref().and_then(|documents| documents.socket.as_ref());
        let socket = socket.ok_or_else(|| self.value("documents.socket is missing: where to ask"));
        Ok(self.beside(socket?))
    }

    /// Where the machine tells how it is.
    ///
    /// # Errors
    ///
    /// [`LinkError::ConfigValue`]: the configuration names no address.
    pub fn status_address(&self) -> Result<SocketAddr> {
        let missing = || self.value("status is missing: where it tells how it is");
        self.links.status.ok_or_else(missing)
    }

    /// An error of this configuration.
    pub fn refused(&self, cause: LinkError) -> MachineError {
        MachineError::link(&self.file, cause)
    }

    /// A value that cannot be, or is missing.
    pub(crate) fn value(&self, what: &str) -> MachineError {
        self.refused(LinkError::ConfigValue(what.to_owned()))
    }

    /// The interface of a member.
    pub(crate) fn mesh(&self) -> Result<&MeshConfig> {
        let missing = || self.value("[mesh] is missing: the interface");
        self.links.mesh.as_ref().ok_or_else(missing)
    }

    /// The policy that documents are sealed and paced by.
    pub(crate) fn policy(&self, documents: &DocumentsConfig) -> Result<Policy> {
        let Some(name) = &documents.policy else { return Ok(Policy::default()) };
        let file = self.beside(name);
        let wrong = |cause| MachineError::Policy { file: file.clone(), cause: Box::new(cause) };
        Policy::from_toml(&text(&file)?).map_err(wrong)
    }
}

/// A configuration with the relay cards that it names.
#[derive(Debug, Clone)]
pub(crate) struct MachinePlan {
    pub(crate) config: MachineConfig,
    pub(crate) cards: Vec<RelayCard>,
}

impl MachinePlan {
    pub(crate) fn of(config: MachineConfig) -> Result<MachinePlan> {
        let card = |name: &String| {
            let path = config.beside(name);
            let card = RelayCard::parse(&text(&path)?);
            card.map_err(|cause| MachineError::link(&path, cause))
        };
        let cards = config.links.cards.iter().map(card).collect::<Result<_>>()?;
        Ok(MachinePlan { config, cards })
    }

    /// Reads the same file again. A program's own settings stay.
    pub(crate) fn read_again(&self) -> Result<MachinePlan> {
        let mut config = MachineConfig::read(&self.config.file)?;
        // Flags of the command line are not in the file, and hold until the machine ends.
        config.capture.clone_from(&self.config.capture);
        config.view.clone_from(&self.config.view);
        MachinePlan::of(config)
    }
}

fn text(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|cause| MachineError::file(file, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version = 1\n[[link]]\nname = \"l\"\nudp = \"127.0.0.1:1\"\n\
         [routing]\ngroup = \"g\"\n[gateway]\nhub = \"h\"\nqueue = \"q\"\n\
         [documents]\nstore = \"s\"\n";

    fn parse(text: &str) -> Result<MachineConfig, String> {
        MachineConfig::parse(Path::new("f/m.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn each_table_is_read_by_the_part_that_it_is_for_and_a_strange_one_by_none() {
        let config = parse(TEXT).unwrap();
        assert!(config.gateway.is_some() && config.documents.is_some());
        assert_eq!(config.beside("s"), Path::new("f/s"));
        for (from, to, what) in [
            ("[gateway]", "[gatewey]", "line 7: unknown field `gatewey`"),
            ("queue", "queues", "line 9: unknown field `queues`"),
            ("store = \"s\"", "store = \"s\"\nshop = 1", "line 12: unknown field `shop`"),
            ("store = \"s\"", "store = \"\"", "documents.store is empty"),
            ("[routing]\ngroup = \"g\"\n", "", "[documents] needs [routing]"),
            ("hub = \"h\"", "hub = \"h\"\nup = [4, 4]", "gateway: up: location is there twice"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let error = parse(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(what), "{what}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = MachineConfig::read(Path::new("nowhere/m.toml")).unwrap_err();
        assert!(matches!(&error, MachineError::File { .. }));
        assert_eq!(error.info().code, "SL-MACHINE-01");
        assert!(error.to_string().starts_with("nowhere/m.toml: "), "{error}");
    }
}
