//! The files that a relay reads before it runs: cards of groups, and its configuration.

use sealane_link::limits::{
    MAX_NEIGHBOURS, MAX_PREFIXES, MAX_RELAY_CARD_BYTES, MAX_RELAY_LINKS, MAX_ROUTES,
    MAX_UNIT_BYTES, MIN_UNIT_BYTES,
};
use sealane_link::{Config, RelayCard};

/// An input taken for a relay card. A card that is read is written and read again as the same. No
/// tag begins like another unit.
pub fn relay_card(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match RelayCard::parse(text) {
        Ok(card) => {
            assert!(bytes.len() <= MAX_RELAY_CARD_BYTES);
            let written = card.to_text();
            assert_eq!(RelayCard::parse(&written).expect("what was written"), card);
            for (slot, tag) in card.members() {
                assert!(slot.number() < 1024);
                assert!(!matches!(tag.to_bytes()[0], 0 | 1 | 0xff), "{tag}");
                assert_eq!(card.tag(slot), Some(tag));
            }
        }
        Err(error) => {
            assert_eq!(error.info().code, "SL-LINK-03");
            assert!(!error.to_string().is_empty());
        }
    }
}

/// An input taken for a configuration. A configuration that is read is within its bounds, and hangs
/// together.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let config = match Config::parse(text) {
        Ok(config) => config,
        Err(error) => {
            assert_eq!(error.info().code, "SL-LINK-02", "{error}");
            return;
        }
    };
    assert!(config.links.len() <= MAX_RELAY_LINKS && config.routes.len() <= MAX_ROUTES);
    assert!(config.neighbours.len() <= MAX_NEIGHBOURS);
    for link in &config.links {
        assert!((MIN_UNIT_BYTES..=MAX_UNIT_BYTES).contains(&link.unit_bytes()));
    }
    for one in &config.neighbours {
        assert_eq!(config.links.iter().filter(|link| link.name == one.link).count(), 1);
        assert!(one.frames_per_second > 0);
    }
    assert!(config.status.is_none_or(|status| status.ip().is_loopback()));
    let prefixes = |mesh: &sealane_link::MeshConfig| -> usize {
        mesh.members.iter().map(|member| member.prefixes.len()).sum()
    };
    assert!(config.mesh.as_ref().map_or(0, prefixes) <= MAX_PREFIXES);
    assert_eq!(config.packet_bytes().is_err(), config.links.is_empty());
}
