//! The data folder that a verb acts on, and whether it is the folder of the hub in use.
//!
//! Flags, variables and contexts name hubs, and choose no folder. A verb that took the default
//! folder while a hub runs on another would copy, change or praise another node in silence.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sealane::Client;

use crate::CliFailure;
use crate::config::{EffectiveSetting, SettingKey, SettingOrigin, SettingsFile};

/// How a hub and a folder of this machine belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FolderMatch {
    /// The hub runs on the folder.
    Same,
    /// The hub runs on another one.
    Other,
    /// There is no store in the folder, so that no hub runs on it yet.
    Empty,
    /// It cannot be told, and why.
    Unknown(String),
}

/// The data folder of a verb.
///
/// # Errors
/// [`CliFailure::OtherNode`] where the hub in use runs on another folder, or where the hub is named
/// more plainly than the folder and cannot be asked.
pub(crate) async fn of_node(
    file: &SettingsFile,
    data: Option<&String>,
    server: Option<&String>,
) -> Result<PathBuf, CliFailure> {
    find(file, data, server, FolderNeed::Store).await
}

/// The data folder of a verb that makes a store, as [`of_node`].
///
/// # Errors
/// As [`of_node`].
pub(crate) async fn of_new_node(
    file: &SettingsFile,
    data: Option<&String>,
    server: Option<&String>,
) -> Result<PathBuf, CliFailure> {
    find(file, data, server, FolderNeed::Room).await
}

/// The need that a verb has of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FolderNeed {
    /// The store of the hub in use.
    Store,
    /// Room for a new store.
    Room,
}

async fn find(
    file: &SettingsFile,
    data: Option<&String>,
    server: Option<&String>,
    need: FolderNeed,
) -> Result<PathBuf, CliFailure> {
    let data = file.setting(SettingKey::Data, data);
    let hub = file.setting(SettingKey::Server, server);
    let folder = PathBuf::from(&data.value);
    let (named_hub, named_folder) = (plainness(&hub), plainness(&data));
    // Only a flag says that this very folder is meant, whatever hub runs. A folder of a variable
    // or of nobody may be another node's than that which answers.
    if data.origin == SettingOrigin::Flag && named_folder > named_hub {
        return Ok(folder);
    }
    let client = file.client(server, None)?.patience(Duration::ZERO);
    let cause = match compare(&client, &folder).await {
        FolderMatch::Same => return Ok(folder),
        // The hub is away, and was named no more plainly than the folder: nothing says that they
        // are two.
        FolderMatch::Unknown(_) if named_folder >= named_hub => return Ok(folder),
        FolderMatch::Empty if need == FolderNeed::Room && named_folder >= named_hub => {
            return Ok(folder);
        }
        FolderMatch::Other => "it runs on another folder".to_owned(),
        // A hub that answers has a store, so that it runs elsewhere.
        FolderMatch::Empty => "no node has run on that folder yet".to_owned(),
        FolderMatch::Unknown(cause) => cause,
    };
    let (address, origin) = (client.address(), hub.origin.to_string());
    Err(CliFailure::OtherNode { address, origin, folder, cause })
}

/// How plainly a setting was named: the higher, the nearer to this command. 0: not at all.
fn plainness(setting: &EffectiveSetting) -> u8 {
    match setting.origin {
        SettingOrigin::Default => 0,
        SettingOrigin::File(_) => 1,
        SettingOrigin::Context(_) => 2,
        SettingOrigin::Environment(_) => 3,
        SettingOrigin::Flag => 4,
    }
}

/// Whether a hub runs on a folder of this machine: both say the id of their store.
pub(crate) async fn compare(client: &Client, folder: &Path) -> FolderMatch {
    let health = match client.health().await {
        Ok(health) => health,
        Err(error) => return FolderMatch::Unknown(error.to_string()),
    };
    let Some(theirs) = health.store else {
        return FolderMatch::Unknown(
            "it is older than this program, and names no store".to_owned(),
        );
    };
    match sealane_stream::store_id(folder) {
        Ok(Some(ours)) if ours.to_string() == theirs => FolderMatch::Same,
        Ok(_) => FolderMatch::Other,
        Err(sealane_stream::Error::NoStore(_)) => FolderMatch::Empty,
        Err(error) => FolderMatch::Unknown(error.to_string()),
    }
}
