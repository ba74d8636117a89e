/// The closed registry of codecs. The numbers are stable: they stand in stored records.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Codec {
    /// RFC 8259.
    Json = 1,
    /// The MessagePack specification without extension types.
    MsgPack = 2,
    /// RFC 8949, written deterministically.
    Cbor = 3,
    /// MessagePack with msgpackr's record extension. Its dictionary belongs to a connection, so
    /// it is never stored.
    MsgPackRecords = 4,
}

impl Codec {
    /// All codecs, in our order of preference.
    pub const ALL: [Codec; 4] = [Codec::Json, Codec::MsgPack, Codec::Cbor, Codec::MsgPackRecords];

    /// Those in which bodies are stored: what [`Codec::at_rest`] gives.
    pub const AT_REST: [Codec; 3] = [Codec::Json, Codec::MsgPack, Codec::Cbor];

    /// The name in queries, sub-protocols, configuration and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Json => "json",
            Codec::MsgPack => "msgpack",
            Codec::Cbor => "cbor",
            Codec::MsgPackRecords => "msgpack-records",
        }
    }

    /// The codec of that exact, lower-case name.
    pub fn from_name(name: &str) -> Option<Codec> {
        Codec::ALL.into_iter().find(|codec| codec.name() == name)
    }

    /// The codec of that number in a stored record.
    pub fn from_id(id: u8) -> Option<Codec> {
        Codec::ALL.into_iter().find(|&codec| codec as u8 == id)
    }

    /// The media type that we send. `negotiate::content_type` accepts more.
    pub fn content_type(self) -> &'static str {
        match self {
            Codec::Json => "application/json",
            Codec::MsgPack => "application/msgpack",
            Codec::Cbor => "application/cbor",
            Codec::MsgPackRecords => "application/vnd.msgpack-records",
        }
    }

    /// Whether it needs binary frames.
    pub fn is_binary(self) -> bool {
        self != Codec::Json
    }

    /// The codec in which a body that came in this one is stored.
    pub fn at_rest(self) -> Codec {
        match self {
            Codec::MsgPackRecords => Codec::MsgPack,
            codec => codec,
        }
    }
}

/// The kind of a datum, told by its first byte or character.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DatumKind {
    /// The absent value.
    Null,
    /// True or false.
    Bool,
    /// An integer.
    Int,
    /// A float.
    Float,
    /// Text.
    Text,
    /// Bytes. JSON has none.
    Bytes,
    /// Values in order.
    Array,
    /// Values under keys.
    Map,
}

impl DatumKind {
    /// The kind in an error message.
    pub fn name(self) -> &'static str {
        match self {
            DatumKind::Null => "null",
            DatumKind::Bool => "true or false",
            DatumKind::Int => "an integer from 0 up",
            DatumKind::Float => "a float",
            DatumKind::Text => "text",
            DatumKind::Bytes => "bytes",
            DatumKind::Array => "an array",
            DatumKind::Map => "a map",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_lead_back() {
        for codec in Codec::ALL {
            assert_eq!(Codec::from_name(codec.name()), Some(codec));
            assert_eq!(Codec::from_id(codec as u8), Some(codec));
            assert!(Codec::AT_REST.contains(&codec.at_rest()));
        }
        assert_eq!(Codec::from_name("JSON"), None);
        assert_eq!(Codec::from_id(0), None);
    }
}
