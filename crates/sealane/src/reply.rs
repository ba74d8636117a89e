//! The fields of an answer, read from the bytes as they came.

use std::borrow::Cow;

use sealane_codec::Codec;
use sealane_message::Topic;

use crate::Error;

/// A map in an answer.
pub(crate) struct Reply<'a> {
    codec: Codec,
    fields: Vec<(Cow<'a, str>, &'a [u8])>,
}

impl<'a> Reply<'a> {
    pub(crate) fn read(codec: Codec, raw: &'a [u8]) -> Result<Self, Error> {
        let fields = sealane_codec::fields(codec, raw).map_err(|error| wrong(&error))?;
        Ok(Self { codec, fields })
    }

    pub(crate) fn raw(&self, name: &str) -> Option<&'a [u8]> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, raw)| *raw)
    }

    fn need(&self, name: &str) -> Result<&'a [u8], Error> {
        self.raw(name).ok_or_else(|| Error::Protocol(format!("`{name}` is missing")))
    }

    pub(crate) fn number(&self, name: &str) -> Result<u64, Error> {
        sealane_codec::read_u64(self.codec, self.need(name)?).map_err(|error| wrong(&error))
    }

    /// The number, 0 where it is absent or null.
    pub(crate) fn number_or_zero(&self, name: &str) -> u64 {
        self.number(name).unwrap_or(0)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|raw| sealane_codec::read_bool(self.codec, raw) == Ok(true))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Cow<'a, str>, Error> {
        sealane_codec::read_text(self.codec, self.need(name)?).map_err(|error| wrong(&error))
    }

    pub(crate) fn topic(&self, name: &str) -> Result<Topic, Error> {
        Ok(self.text(name)?.parse()?)
    }

    pub(crate) fn elements(&self, name: &str) -> Result<Vec<&'a [u8]>, Error> {
        sealane_codec::elements(self.codec, self.need(name)?).map_err(|error| wrong(&error))
    }

    /// The maps of a list; none where the list is absent.
    pub(crate) fn maps(&self, name: &str) -> Result<Vec<Reply<'a>>, Error> {
        if self.raw(name).is_none() {
            return Ok(Vec::new());
        }
        self.elements(name)?.into_iter().map(|raw| Reply::read(self.codec, raw)).collect()
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Error> {
        let read = |raw| sealane_codec::read_text(self.codec, raw).map(Cow::into_owned);
        let texts: Result<_, _> = self.elements(name)?.into_iter().map(read).collect();
        texts.map_err(|error| wrong(&error))
    }
}

fn wrong(error: &sealane_codec::CodecError) -> Error {
    Error::Protocol(error.to_string())
}
