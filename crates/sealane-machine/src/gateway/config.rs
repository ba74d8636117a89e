//! The part of a configuration that makes a machine a gateway: `spec/gateway.md`.

use sealane_link::LinkError;
use sealane_message::DataType;
use serde::{Deserialize, Deserializer};

use crate::limits::{MAX_GATEWAY_QUEUE_BYTES, MAX_GATEWAY_TYPES, MIN_GATEWAY_QUEUE_BYTES};

/// The settings of a gateway for its hub and its queue. Files are as they are written in the
/// configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayConfig {
    /// The hub's address.
    pub hub: String,
    /// The file whose first line is the token that the hub is shown.
    pub token: Option<String>,
    /// The file of the certificates that are trusted instead of the system's.
    pub ca: Option<String>,
    /// The file of the queue.
    pub queue: String,
    /// The bytes for which the frames in the queue may count.
    #[serde(default = "usual_queue_bytes")]
    pub queue_bytes: u64,
    /// The data types that go to the hub.
    #[serde(default = "usual_up")]
    pub up: Vec<CarriedType>,
    /// The data types that come from the hub.
    #[serde(default = "usual_down")]
    pub down: Vec<CarriedType>,
}

/// A data type by its name or number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CarriedType(pub DataType);

impl GatewayConfig {
    /// The checks that need no other part of the configuration.
    pub(crate) fn check(&self) -> Result<(), LinkError> {
        let value = |what: String| Err(LinkError::ConfigValue(format!("gateway: {what}")));
        let bound = MIN_GATEWAY_QUEUE_BYTES..=MAX_GATEWAY_QUEUE_BYTES;
        if !bound.contains(&self.queue_bytes) {
            let (least, most) = bound.into_inner();
            return value(format!("queue_bytes = {}: {least} to {most}", self.queue_bytes));
        }
        for (list, types) in [("up", &self.up), ("down", &self.down)] {
            if types.len() > MAX_GATEWAY_TYPES {
                return value(format!("{list}: more than {MAX_GATEWAY_TYPES} data types"));
            }
            for (index, CarriedType(one)) in types.iter().enumerate() {
                if *one == DataType::PACKET {
                    return value(format!("{list}: packets are for links and no stream"));
                }
                if types.iter().take(index).any(|CarriedType(other)| other == one) {
                    return value(format!("{list}: {one} is there twice"));
                }
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for CarriedType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum EtherTypeText {
            Number(u16),
            Name(String),
        }
        match EtherTypeText::deserialize(deserializer) {
            Ok(EtherTypeText::Number(number)) => Ok(Self(DataType::from_number(number))),
            Ok(EtherTypeText::Name(name)) => {
                let none = |_| serde::de::Error::custom(format!("`{name}` is no data type"));
                name.parse().map(Self).map_err(none)
            }
            Err(_) => Err(serde::de::Error::custom("a data type is a name or a number")),
        }
    }
}

/// 64 MiB: some 200,000 frames of telemetry.
fn usual_queue_bytes() -> u64 {
    64 << 20
}

/// All that documents and applications send.
fn usual_up() -> Vec<CarriedType> {
    let documents = [
        DataType::COUNTER,
        DataType::HEARTBEAT,
        DataType::VITALS,
        DataType::LOCATION,
        DataType::CHAT,
        DataType::RECEIPT,
        DataType::EMERGENCY,
        DataType::ACKNOWLEDGEMENT,
        DataType::CLEAR,
    ];
    let applications = (64..80).map(DataType::from_number);
    documents.into_iter().chain(applications).map(CarriedType).collect()
}

fn usual_down() -> Vec<CarriedType> {
    [DataType::CHAT, DataType::COMMAND, DataType::SENSITIVE_CHAT].map(CarriedType).to_vec()
}

#[cfg(test)]
mod tests {
    use sealane_link::read_tables;

    use super::*;

    const TEXT: &str = "hub = \"https://hub.example\"\ntoken = \"gateway.token\"\n\
         queue = \"gateway.queue\"\nqueue_bytes = 1048576\nup = [\"location\", 72]\ndown = [11]\n";

    fn gateway(text: &str) -> Result<GatewayConfig, String> {
        let gateway: GatewayConfig = read_tables(text).map_err(|error| error.to_string())?;
        gateway.check().map_err(|error| error.to_string()).map(|()| gateway)
    }

    #[test]
    fn each_wrong_value_is_named() {
        let read = gateway(TEXT).unwrap();
        let numbers: Vec<_> = read.up.iter().map(|CarriedType(one)| one.number()).collect();
        assert_eq!(numbers, [4, 72]);
        let least = gateway("hub = \"h\"\nqueue = \"q\"").unwrap();
        assert_eq!((least.queue_bytes, least.up.len(), least.down.len()), (64 << 20, 25, 3));
        for (from, to, what) in [
            ("hub =", "hubs =", "hubs"),
            ("queue = \"gateway.queue\"\n", "", "queue"),
            ("1048576", "1000", "queue_bytes = 1000"),
            ("\"location\"", "\"position\"", "`position` is no data type"),
            ("72", "70000", "a name or a number"),
            ("72", "4", "location is there twice"),
            ("[11]", "[\"packet\"]", "down: packets"),
        ] {
            assert!(TEXT.contains(from), "{from}");
            let error = gateway(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(what), "{what}: {error}");
        }
        let many: Vec<_> = (100..165).map(|number: u16| number.to_string()).collect();
        let many = TEXT.replacen("[11]", &format!("[{}]", many.join(", ")), 1);
        assert!(gateway(&many).unwrap_err().contains("more than 64"));
    }
}
