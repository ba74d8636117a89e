//! The surroundings of a machine: made once, then only read, and swapped as a whole.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sealane_frame::{GroupTag, PeerTag};

use crate::address::LinkAddress;
use crate::config::{Config, LinkConfig, NeighbourConfig, RouteAddress, RouteConfig, RouteTarget};
use crate::limits::{MAX_RELAY_GROUPS, NEIGHBOUR_FRAMES_PER_SECOND};
use crate::routing::{FoundNeighbour, RoutingFound};
use crate::status::GroupStatus;
use crate::traffic::NeighbourTraffic;
use crate::{LinkError, RelayCard};

/// A machine at the other end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RelayNeighbour {
    pub(crate) name: String,
    pub(crate) tag: PeerTag,
    pub(crate) link: usize,
    pub(crate) address: LinkAddress,
    pub(crate) frames_per_second: u32,
    /// It is reached by the machine that routes alone.
    pub(crate) is_radio: bool,
    /// The units that came from it and went to it.
    pub(crate) traffic: Arc<NeighbourTraffic>,
}

/// A route as it was configured.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConfiguredRoute {
    /// The target: a tag, a slot, or `*`.
    pub to: String,
    /// The neighbour that takes it.
    pub via: String,
}

/// The index of a neighbour in its table.
pub(crate) type NeighbourIndex = u16;

/// Own address, neighbours, members and routes. The data path only reads it.
#[derive(Debug)]
pub(crate) struct RelayTable {
    own: PeerTag,
    end: PeerTag,
    neighbours: Vec<RelayNeighbour>,
    by_address: HashMap<(usize, LinkAddress), NeighbourIndex>,
    members: MemberTable,
    groups: Vec<GroupStatus>,
    routes: Vec<ConfiguredRoute>,
}

impl RelayTable {
    /// The table of a configuration and the cards that it names, and of what the machine that
    /// routes has found.
    ///
    /// # Errors
    ///
    /// [`LinkError::ConfigValue`], [`LinkError::UnknownMember`].
    pub(crate) fn new(
        config: &Config,
        cards: &[RelayCard],
        own: OwnAddresses,
        found: &RoutingFound,
    ) -> Result<Self, LinkError> {
        let value = |what: &str| LinkError::ConfigValue(what.to_owned());
        check(cards)?;
        let configured = config.tag.map(|who| find(cards, who)).transpose()?;
        let OwnAddresses { hop, end } = own;
        let own = hop.or(configured).ok_or_else(|| value("tag: a relay needs an own address"))?;
        // A machine of a mesh has the address that its keys give it. With another one in the file,
        // neighbours would send to a tag that this machine does not take.
        if configured.is_some_and(|tag| tag != own) {
            return Err(value("tag: it is not the address of this member"));
        }
        // A plain relay has one address. With both fields equal the data path compares without
        // asking which it is.
        let end = end.unwrap_or(own);
        let (mut neighbours, mut by_address) = (Vec::new(), HashMap::new());
        for (index, one) in config.neighbours.iter().enumerate() {
            let neighbour = neighbour(config, cards, one)?;
            // A machine that is its own neighbour would send frames to itself in a loop.
            if neighbour.tag == own || neighbour.tag == end {
                return Err(value("neighbour: its tag is the own one"));
            }
            by_address.insert((neighbour.link, neighbour.address), index as NeighbourIndex);
            neighbours.push(neighbour);
        }
        for one in &found.neighbours {
            let index = neighbours.len() as NeighbourIndex;
            // The configured neighbour of an address takes precedence over a found one.
            if let Entry::Vacant(free) = by_address.entry((one.link, one.address)) {
                free.insert(index);
                neighbours.push(found_neighbour(config, one));
            }
        }
        let ways = RouteSources { config, found, neighbours: &neighbours };
        let members = members(&ways, cards, [own, end])?;
        let group = |card: &RelayCard| GroupStatus {
            tag: card.group(),
            epoch: card.epoch(),
            members: card.members().count(),
        };
        let route = |route: &RouteConfig| ConfiguredRoute {
            to: route.to.to_string(),
            via: route.via.clone(),
        };
        let groups = cards.iter().map(group).collect();
        let routes = config.routes.iter().map(route).collect();
        Ok(Self { own, end, neighbours, by_address, members, groups, routes })
    }

    /// Goes on with the counts of those who were neighbours before.
    pub(crate) fn go_on_counting(&mut self, before: &RelayTable) {
        for one in &mut self.neighbours {
            // A neighbour that moved to another address goes on counting; on another link it is
            // new.
            let is_same = |known: &&RelayNeighbour| (known.tag, known.link) == (one.tag, one.link);
            // Tag and link say which neighbour it is. Its name or address may change without its
            // counts starting again.
            if let Some(known) = before.neighbours.iter().find(is_same) {
                one.traffic = Arc::clone(&known.traffic);
            }
        }
    }

    /// All members of all groups.
    pub(crate) fn members(&self) -> impl Iterator<Item = &RelayMember> {
        self.members.places.iter().flatten()
    }

    pub(crate) fn groups(&self) -> &[GroupStatus] {
        &self.groups
    }

    pub(crate) fn routes(&self) -> &[ConfiguredRoute] {
        &self.routes
    }

    /// The own address.
    pub(crate) fn own(&self) -> PeerTag {
        self.own
    }

    /// The address of the member whose machine this is; the own one where it is nobody's.
    pub(crate) fn end(&self) -> PeerTag {
        self.end
    }

    /// The neighbours, in the order of the configuration; behind them those that were found.
    pub(crate) fn neighbours(&self) -> &[RelayNeighbour] {
        &self.neighbours
    }

    pub(crate) fn neighbour(&self, index: NeighbourIndex) -> Option<&RelayNeighbour> {
        self.neighbours.get(usize::from(index))
    }

    /// The neighbour that sends from that address on that link.
    pub(crate) fn at(&self, link: usize, address: LinkAddress) -> Option<NeighbourIndex> {
        self.by_address.get(&(link, address)).copied()
    }

    /// The table's entry for a member.
    #[inline]
    pub(crate) fn member(&self, tag: PeerTag) -> Option<&RelayMember> {
        self.members.find(tag)
    }
}

/// A member of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RelayMember {
    pub(crate) tag: PeerTag,
    pub(crate) group: GroupTag,
    /// The neighbour that takes what is for it.
    pub(crate) via: Option<NeighbourIndex>,
    /// It lives on a gateway, which reports what came to it, by a way that was found: what goes
    /// there is counted.
    pub(crate) is_reported: bool,
}

/// The members of all groups, found by tag. At most half of the places are taken, and who is in the
/// table is decided by its cards alone, so that a look-up is short whatever comes.
#[derive(Debug)]
struct MemberTable {
    places: Vec<Option<RelayMember>>,
    /// The bits that the hash is shifted by.
    shift: u32,
}

impl MemberTable {
    fn new(all: &[RelayMember]) -> Self {
        // Twice as many places as members keep the runs of taken places short. A power of two makes
        // the remainder a shift.
        let bits = (2 * all.len()).next_power_of_two().trailing_zeros().max(1);
        let mut members = Self { places: vec![None; 1 << bits], shift: u64::BITS - bits };
        for member in all {
            let place = members.place(member.tag);
            if let Some(free) = place.and_then(|at| members.places.get_mut(at)) {
                *free = Some(*member);
            }
        }
        members
    }

    /// The place of a tag: its own, or the free one where it would be.
    #[inline]
    fn place(&self, tag: PeerTag) -> Option<usize> {
        // No keyed hash is needed: nobody but the cards puts tags into the table.
        let hash = u64::from_le_bytes(tag.to_bytes()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (first, mask) = ((hash >> self.shift) as usize, self.places.len() - 1);
        (0..self.places.len()).map(|step| (first + step) & mask).find(|&at| {
            self.places.get(at).is_none_or(|place| place.is_none_or(|member| member.tag == tag))
        })
    }

    #[inline]
    fn find(&self, tag: PeerTag) -> Option<&RelayMember> {
        self.places.get(self.place(tag)?)?.as_ref()
    }
}

/// The cards tell of different groups, and of no tag twice.
fn check(cards: &[RelayCard]) -> Result<(), LinkError> {
    let value = |what: String| Err(LinkError::ConfigValue(what));
    if cards.len() > MAX_RELAY_GROUPS {
        return value(format!("cards: {} are more than {MAX_RELAY_GROUPS}", cards.len()));
    }
    let mut tags = HashSet::new();
    // A tag on two cards would be a member of two groups, and frames of one would go to the other.
    for card in cards {
        for (_, tag) in card.members() {
            // A tag in two groups would let the order of the cards decide which group's frames
            // pass.
            if !tags.insert(tag) {
                return value(format!("cards: {} is on two places of them", tag));
            }
        }
    }
    let is_twice = |(at, card): (usize, &RelayCard)| {
        cards.iter().take(at).any(|other| other.group() == card.group())
    };
    match cards.iter().enumerate().any(is_twice) {
        true => value("cards: two are of one group".to_owned()),
        false => Ok(()),
    }
}

/// The address of one who is named.
fn find(cards: &[RelayCard], who: RouteAddress) -> Result<PeerTag, LinkError> {
    match (who, cards) {
        (RouteAddress::Tag(tag), _) => Ok(tag),
        (RouteAddress::Slot(slot), [card]) => card
            .tag(slot)
            .ok_or_else(|| LinkError::UnknownMember(format!("slot {}", slot.number()))),
        // Each group has slots of its own, so that a slot means nothing beside a second card.
        (RouteAddress::Slot(slot), _) => Err(LinkError::ConfigValue(format!(
            "slot {}: a slot names a member where there is one card, not {}",
            slot.number(),
            cards.len()
        ))),
    }
}

fn neighbour(
    config: &Config,
    cards: &[RelayCard],
    one: &NeighbourConfig,
) -> Result<RelayNeighbour, LinkError> {
    let link = config.links.iter().position(|link| link.name == one.link).unwrap_or_default();
    let (address, frames_per_second) = (one.address, one.frames_per_second);
    let (name, traffic, is_radio) = (one.name.clone(), Arc::default(), false);
    let tag = find(cards, one.tag)?;
    Ok(RelayNeighbour { name, tag, link, address, frames_per_second, is_radio, traffic })
}

fn found_neighbour(config: &Config, one: &FoundNeighbour) -> RelayNeighbour {
    let link = config.links.get(one.link);
    let name = link.map(|link| link.name.as_str()).unwrap_or_default();
    RelayNeighbour {
        name: format!("slot {} on {name}", one.slot),
        tag: one.tag,
        link: one.link,
        address: one.address,
        frames_per_second: NEIGHBOUR_FRAMES_PER_SECOND,
        is_radio: link.is_some_and(LinkConfig::is_radio),
        traffic: Arc::default(),
    }
}

/// The sources of next hops: the configuration, the ways that were found, and the neighbours.
struct RouteSources<'t> {
    config: &'t Config,
    found: &'t RoutingFound,
    neighbours: &'t [RelayNeighbour],
}

impl RouteSources<'_> {
    /// The neighbour that was found to take what is for a member.
    fn found(&self, to: PeerTag) -> Option<NeighbourIndex> {
        let via = self.found.ways.get(&to)?;
        let is_via = |one: &RelayNeighbour| (one.link, one.tag) == (via.link, via.tag);
        let at = self.neighbours.iter().position(is_via)?;
        NeighbourIndex::try_from(at).ok()
    }
}

/// The addresses of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnAddresses {
    /// The one that hops know; that of the configuration where there is none.
    pub(crate) hop: Option<PeerTag>,
    /// That of the member whose machine this is.
    pub(crate) end: Option<PeerTag>,
}

/// All members with their routes.
fn members(
    ways: &RouteSources<'_>,
    cards: &[RelayCard],
    own: [PeerTag; 2],
) -> Result<MemberTable, LinkError> {
    let RouteSources { config, .. } = ways;
    let (mut routes, mut rest) = (HashMap::new(), None);
    for route in &config.routes {
        let value = |what: String| LinkError::ConfigValue(what);
        let via = config.neighbours.iter().position(|one| one.name == route.via);
        let via = via.and_then(|via| NeighbourIndex::try_from(via).ok());
        let via = via.ok_or_else(|| value(format!("route: no neighbour is `{}`", route.via)))?;
        let before = match route.to {
            RouteTarget::Rest => rest.replace(via),
            RouteTarget::One(who) => routes.insert(find(cards, who)?, via),
        };
        if before.is_some() {
            return Err(value(format!(
                "route: two lead to the same, one of them via `{}`",
                route.via
            )));
        }
    }
    // Such a route would be a loop of one machine.
    if own.iter().any(|own| routes.contains_key(own)) {
        return Err(LinkError::ConfigValue("route: it leads to this machine itself".to_owned()));
    }
    let mut all = Vec::new();
    for card in cards {
        let group = card.group();
        all.extend(card.members().map(|(_, tag)| {
            // A route that names a member is the operator's word, and wins over what was found. The
            // route for the rest comes last.
            let (named, found) = (routes.remove(&tag), ways.found(tag));
            // The own tag stands on a card too, and must not get the route for the rest.
            let via = named.or(found).or(rest).filter(|_| !own.contains(&tag));
            let is_found = named.is_none() && found.is_some() && via.is_some();
            let is_reported = is_found && ways.found.gateways.contains(&tag);
            RelayMember { tag, group, via, is_reported }
        }));
    }
    // Each route that named a member was taken out above. One that is left names nobody, and may be
    // a typing error.
    match routes.keys().next() {
        Some(tag) => Err(LinkError::UnknownMember(tag.to_string())),
        None => Ok(MemberTable::new(&all)),
    }
}

#[cfg(test)]
mod tests {
    use sealane_seal::{Epoch, Slot};

    use super::*;

    fn tag(number: u8) -> PeerTag {
        PeerTag::from_bytes([0xa1, 0, 0, 0, 0, 0, 0, number])
    }

    fn card(group: u8, slots: std::ops::Range<u8>) -> RelayCard {
        let members = slots.map(|slot| (Slot::new(slot.into()).unwrap(), tag(slot)));
        RelayCard::new(GroupTag::from_bytes([group; 4]), Epoch(0), members)
    }

    fn config(rest: &str) -> Config {
        let text = "version = 1\ntag = \"a1000000000000f0\"\n[[link]]\nname = \"l\"\n\
             udp = \"127.0.0.1:1\"\n[[neighbour]]\nname = \"a\"\ntag = \"slot 1\"\nlink = \"l\"\n\
             address = \"127.0.0.1:2\"\n[[neighbour]]\nname = \"b\"\ntag = \"slot 2\"\n\
             link = \"l\"\naddress = \"127.0.0.1:3\"\n";
        Config::parse(&format!("{text}{rest}")).unwrap()
    }

    fn refused(rest: &str, cards: &[RelayCard]) -> String {
        RelayTable::new(&config(rest), cards, OwnAddresses::default(), &RoutingFound::default())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_nearest_route_wins_and_others_take_the_rest() {
        let rest = "[[route]]\nto = \"slot 9\"\nvia = \"a\"\n[[route]]\nto = \"*\"\nvia = \"b\"\n";
        let table = RelayTable::new(
            &config(rest),
            &[card(7, 0..200)],
            OwnAddresses::default(),
            &RoutingFound::default(),
        )
        .unwrap();
        for slot in 0..200 {
            let expected = if slot == 9 { tag(1) } else { tag(2) };
            let via = table.member(tag(slot)).unwrap().via.unwrap();
            assert_eq!(table.neighbour(via).unwrap().tag, expected, "{slot}");
        }
        assert!(table.member(tag(200)).is_none() && table.member(tag(201)).is_none());
        assert_eq!(table.at(0, "127.0.0.1:3".parse().unwrap()), Some(1));
        assert_eq!(table.at(1, "127.0.0.1:3".parse().unwrap()), None);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let route = |to: &str, via: &str| format!("[[route]]\nto = \"{to}\"\nvia = \"{via}\"\n");
        let one = [card(7, 0..9)];
        assert!(refused(&route("slot 9", "a"), &one).contains("slot 9 is no member"));
        assert!(refused(&route("a100000000000009", "a"), &one).contains("is no member"));
        assert!(refused(&route("a1000000000000f0", "a"), &one).contains("itself"));
        assert!(refused(&route("slot 1", "c"), &one).contains("`c`"));
        assert!(refused(&route("slot 1", "a").repeat(2), &one).contains("two lead"));
        assert!(refused(&route("*", "a").repeat(2), &one).contains("two lead"));
        assert!(refused("", &[card(7, 0..9), card(8, 9..10)]).contains("not 2"));
        let together = |one, other| check(&[one, other]).unwrap_err().to_string();
        assert!(together(card(7, 0..9), card(7, 9..10)).contains("one group"));
        assert!(together(card(7, 0..9), card(8, 8..10)).contains("two places"));
        assert!(refused("", &[]).contains("not 0"));
        let nobody = Config::parse("version = 1").unwrap();
        let untagged =
            RelayTable::new(&nobody, &[], OwnAddresses::default(), &RoutingFound::default())
                .unwrap_err()
                .to_string();
        assert!(untagged.contains("an own address"), "{untagged}");
        let other = RelayTable::new(
            &config(""),
            &one,
            OwnAddresses { hop: Some(tag(0)), end: None },
            &RoutingFound::default(),
        )
        .unwrap_err()
        .to_string();
        assert!(other.contains("not the address of this member"), "{other}");
    }

    #[test]
    fn a_named_route_wins_over_what_was_found_and_that_over_the_rest() {
        let rest = "[[route]]\nto = \"slot 9\"\nvia = \"a\"\n[[route]]\nto = \"*\"\nvia = \"b\"\n";
        let neighbour = |number: u16, port: u16| FoundNeighbour {
            slot: number,
            tag: tag(number as u8),
            link: 0,
            address: LinkAddress::Udp(([127, 0, 0, 1], port).into()),
        };
        let via = |number| crate::routing::LinkNeighbour { link: 0, tag: tag(number) };
        // The second one is where the configuration has another neighbour.
        let neighbours = vec![neighbour(0xe0, 9), neighbour(0xe1, 2)];
        let ways = [(tag(7), via(0xe0)), (tag(8), via(0xe1)), (tag(9), via(0xe0))].into();
        let gateways = [tag(7), tag(9)].into();
        let found = RoutingFound { neighbours, ways, gateways };
        let table =
            RelayTable::new(&config(rest), &[card(7, 0..10)], OwnAddresses::default(), &found)
                .unwrap();
        let takes =
            |slot| table.neighbour(table.member(tag(slot)).unwrap().via.unwrap()).unwrap().tag;
        assert_eq!([takes(7), takes(8), takes(9), takes(3)], [tag(0xe0), tag(2), tag(1), tag(2)]);
        // A frame that goes to a gateway by a way that was found is counted.
        let is_reported = |slot| table.member(tag(slot)).unwrap().is_reported;
        assert_eq!([is_reported(7), is_reported(8), is_reported(9)], [true, false, false]);
        assert_eq!(table.neighbours().len(), 3);
        assert_eq!(table.at(0, "127.0.0.1:2".parse().unwrap()), Some(0));
    }

    #[test]
    fn a_machine_is_not_its_own_neighbour() {
        let text = refused(
            "",
            &[RelayCard::new(
                GroupTag::from_bytes([7; 4]),
                Epoch(0),
                [(Slot::new(1).unwrap(), tag(0xf0)), (Slot::new(2).unwrap(), tag(2))],
            )],
        );
        assert!(text.contains("the own one"), "{text}");
    }
}
