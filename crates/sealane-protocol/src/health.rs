use sealane_codec::{Codec, Writer};

use crate::fields::Fields;
use crate::{HubLevel, Malformed};

/// What a hub says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// Whether all is well.
    pub ok: bool,
    /// Its version.
    pub version: String,
    /// What it is doing, in a word: `healthy`, `storage` or `draining`; a newer one has others.
    pub status: String,
    /// Why it stores nothing, where it does not.
    pub cause: Option<String>,
    /// The level of streams that name none.
    pub level: HubLevel,
    /// How many streams it has.
    pub streams: u64,
}

impl Health {
    /// Writes the answer.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.map(5 + usize::from(self.cause.is_some()));
        writer.key("ok");
        writer.bool(self.ok);
        let texts = [
            ("version", Some(self.version.as_str())),
            ("status", Some(self.status.as_str())),
            ("cause", self.cause.as_deref()),
            ("level", Some(self.level.name())),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                writer.key(key);
                writer.text(text);
            }
        }
        writer.key("streams");
        writer.u64(self.streams);
        writer.end();
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// [`Malformed`] where it is none.
    pub fn read(codec: Codec, body: &[u8]) -> Result<Self, Malformed> {
        let fields = Fields::read(codec, body)?;
        let status = fields.text("status")?.into_owned();
        Ok(Self {
            ok: fields.flag("ok").unwrap_or(status == "healthy"),
            version: fields.text("version")?.into_owned(),
            status,
            cause: fields.text("cause").ok().map(Into::into),
            level: fields.level()?,
            streams: fields.number("streams")?,
        })
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
            let health = Health { ok: false, version, status, cause, level, streams: 3 };
            for codec in Codec::AT_REST {
                let mut body = Vec::new();
                health.write(&mut Writer::new(codec, &mut body));
                assert_eq!(Health::read(codec, &body).as_ref(), Ok(&health));
            }
        }
    }
}
