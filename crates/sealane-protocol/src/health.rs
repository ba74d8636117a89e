use sealane_codec::{Codec, DatumWriter, typed};

use crate::forms::AsText;
use crate::{HubLevel, Malformed};

/// The hub's report on itself.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Health {
    /// Whether all is well.
    #[serde(default)]
    pub ok: bool,
    /// Its version.
    pub version: String,
    /// The state of the hub, in a word: `healthy`, `storage` or `draining`; a newer one has others.
    pub status: String,
    /// Why it stores nothing, where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The level of streams that name none.
    #[serde(with = "AsText")]
    pub level: HubLevel,
    /// How many streams it has.
    pub streams: u64,
    /// The id of its store, which no copy of it shares; none: an older hub has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

impl Health {
    /// Writes the answer.
    pub fn write(&self, writer: &mut DatumWriter<'_>) {
        typed::write(self, writer);
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Malformed> {
        let health: Self = typed::read(codec, body)?;
        // The first hubs did not say `ok`.
        Ok(Self { ok: health.ok || health.status == "healthy", ..health })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn what_is_written_is_read_back() {
        for cause in [None, Some("the disk is full".to_owned())] {
            let (version, status) = ("0.1.0".into(), "storage".into());
            let level = Level::Disk.into();
            let store = Some("0a1b".to_owned());
            let health = Health { ok: false, version, status, cause, level, streams: 3, store };
            for codec in Codec::AT_REST {
                let mut body = Vec::new();
                health.write(&mut DatumWriter::new(codec, &mut body));
                assert_eq!(Health::read(codec, &body).as_ref(), Ok(&health));
            }
        }
    }
}
