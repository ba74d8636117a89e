//! The data folder that a verb acts on, and whether it is the folder of the hub in use.
//!
//! Flags, variables and contexts name hubs, and choose no folder. If one of them names a hub, a
//! verb that took the default folder would copy, change or praise another node in silence.

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
/// [`CliFailure::OtherNode`] where a hub is named more plainly than the folder is, and does not run
/// on it.
pub(crate) async fn of_node(
    file: &SettingsFile,
    data: Option<&String>,
    server: Option<&String>,
) -> Result<PathBuf, CliFailure> {
    let data = file.setting(SettingKey::Data, data);
    let hub = file.setting(SettingKey::Server, server);
    let folder = PathBuf::from(&data.value);
    let (named_hub, named_folder) = (plainness(&hub), plainness(&data));
    // A hub that nobody named and a folder that nobody named are those of one machine's user.
    if named_hub == 0 || named_folder > named_hub {
        return Ok(folder);
    }
    let client = file.client(server, None)?.patience(Duration::ZERO);
    let cause = match compare(&client, &folder).await {
        FolderMatch::Same => return Ok(folder),
        // Both were named alike, and nothing says that they are two.
        FolderMatch::Unknown(_) | FolderMatch::Empty if named_folder == named_hub => {
            return Ok(folder);
        }
        FolderMatch::Other => "it runs on another folder".to_owned(),
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
