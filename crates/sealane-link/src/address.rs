//! Addresses of machines on links: one kind for each kind of link.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use sealane_message::InputError;
use serde::{Deserialize, Deserializer};

/// Where a machine is on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkAddress {
    /// Address and port of UDP.
    Udp(SocketAddr),
    /// The address of a network card.
    Ethernet([u8; 6]),
    /// The number of a port within this process.
    Memory(u32),
}

impl fmt::Display for LinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkAddress::Udp(address) => write!(f, "{address}"),
            LinkAddress::Ethernet([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
            LinkAddress::Memory(port) => write!(f, "memory {port}"),
        }
    }
}

impl FromStr for LinkAddress {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let memory = text.strip_prefix("memory ").and_then(|port| port.parse().ok());
        let udp = || text.parse().ok().map(LinkAddress::Udp);
        let address = memory.map(LinkAddress::Memory).or_else(udp).or_else(|| ethernet(text));
        address.ok_or_else(|| {
            format!("`{text}` is no address as 10.0.0.1:9190, [fd00::1]:9190 or 02:00:00:00:00:01")
                .into()
        })
    }
}

/// Six pairs of hexadecimal digits of one machine: the lowest bit of the first byte is that of
/// groups.
fn ethernet(text: &str) -> Option<LinkAddress> {
    let mut bytes = [0; 6];
    let mut pairs = text.split(':');
    for byte in &mut bytes {
        let pair = pairs.next().filter(|pair| pair.len() == 2)?;
        let is_hex = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = u8::from_str_radix(pair, 16).ok().filter(|_| is_hex)?;
    }
    let [first, ..] = bytes;
    let is_machine = first & 1 == 0 && bytes != [0; 6] && pairs.next().is_none();
    is_machine.then_some(LinkAddress::Ethernet(bytes))
}

impl<'de> Deserialize<'de> for LinkAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back_as_it_is_written() {
        for text in ["10.0.0.1:9190", "[fd00::1]:9190", "02:00:0a:ff:00:01", "memory 7"] {
            assert_eq!(text.parse::<LinkAddress>().unwrap().to_string(), text);
        }
        assert_eq!(
            "02:00:0A:FF:00:01".parse::<LinkAddress>(),
            Ok(LinkAddress::Ethernet([2, 0, 0x0a, 0xff, 0, 1]))
        );
    }

    #[test]
    fn what_is_no_address_of_one_machine_is_refused() {
        for text in [
            "",
            "10.0.0.1",
            "fd00::1",
            "memory",
            "memory -1",
            "02:00:00:00:00",
            "02:00:00:00:00:00:01",
            "2:0:0:0:0:1",
            "+2:00:00:00:00:01",
            "00:00:00:00:00:00",
            "ff:ff:ff:ff:ff:ff",
            "01:00:5e:00:00:01",
        ] {
            assert!(text.parse::<LinkAddress>().is_err(), "{text}");
        }
    }
}
