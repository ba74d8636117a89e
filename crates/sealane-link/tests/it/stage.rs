//! A relay on an address of this machine that nothing else uses, and its neighbours' sockets.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};

use sealane_frame::{FrameBuf, FrameKind, GroupTag, HeaderFields, PeerTag, seal_frame};
use sealane_link::{Config, DropReason, LinkRelay, RelayCard};
use sealane_seal::{
    Announcement, Binding, Class, Epoch, EpochSecret, Epochs, Group, GroupId, History, Sealer,
    SenderContext, SigningKey, Slot, Suite,
};
pub(crate) use sealane_testing::{PATIENCE, loopback_host as host, until as wait_until};

/// Members of the group: the first ones are neighbours.
const MEMBERS: u8 = 9;

pub(crate) fn group() -> GroupTag {
    GroupTag::from_bytes([0x9a; 4])
}

/// The tag of the member in a slot.
pub(crate) fn tag(slot: u8) -> PeerTag {
    PeerTag::from_bytes([0xa1, 0, 0, 0, 0, 0, 0, slot])
}

/// The tag of a relay.
pub(crate) fn relay_tag(number: u8) -> PeerTag {
    PeerTag::from_bytes([0xb1, 0, 0, 0, 0, 0, 0, number])
}

pub(crate) fn card() -> RelayCard {
    let members = (0..MEMBERS).map(|slot| (Slot::new(slot.into()).unwrap(), tag(slot)));
    RelayCard::new(group(), Epoch(0), members)
}

/// A free address of a host.
pub(crate) fn address(host: &str) -> SocketAddr {
    UdpSocket::bind((host, 0)).unwrap().local_addr().unwrap()
}

/// A relay, and one socket for each of its neighbours: the members of the first slots.
pub(crate) struct Stage {
    pub(crate) relay: LinkRelay,
    pub(crate) at: SocketAddr,
    pub(crate) peers: Vec<UdpSocket>,
}

impl Stage {
    /// Each neighbour takes what is for it, and the last one all the rest.
    pub(crate) fn new(neighbours: usize) -> Stage {
        let host = host();
        let at = address(&host);
        let peers: Vec<_> = (0..neighbours).map(|_| socket(&host)).collect();
        let text = text(0, at, &addresses(&peers), "");
        Stage { relay: start(&text), at, peers }
    }

    pub(crate) fn send(&self, from: usize, unit: &[u8]) {
        self.peers[from].send_to(unit, self.at).unwrap();
    }

    pub(crate) fn receive(&self, at: usize) -> Vec<u8> {
        receive(&self.peers[at])
    }

    /// Waits until so many units were dropped for a reason.
    pub(crate) fn wait_for(&self, why: DropReason, count: u64) {
        let name = why.name();
        wait_until(name, || self.relay.tally().dropped(why) >= count);
        assert_eq!(self.relay.tally().dropped(why), count, "{name}");
    }

    /// Nothing more has come to anybody but the notes of the relay's start.
    pub(crate) fn assert_silence(&self) {
        for (index, peer) in self.peers.iter().enumerate() {
            assert_eq!(receive_all(peer), Vec::<Vec<u8>>::new(), "neighbour {index}");
        }
    }
}

pub(crate) fn start(text: &str) -> LinkRelay {
    LinkRelay::start(&Config::parse(text).unwrap(), &[card()]).unwrap()
}

pub(crate) fn socket(host: &str) -> UdpSocket {
    let socket = UdpSocket::bind((host, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

pub(crate) fn addresses(peers: &[UdpSocket]) -> Vec<SocketAddr> {
    peers.iter().map(|peer| peer.local_addr().unwrap()).collect()
}

/// A configuration: one link, and a neighbour `nK` in slot K at each address.
pub(crate) fn text(own: u8, at: SocketAddr, neighbours: &[SocketAddr], rest: &str) -> String {
    let mut text = format!(
        "version = 1\ntag = \"{}\"\n[[link]]\nname = \"l\"\nudp = \"{at}\"\n",
        relay_tag(own)
    );
    for (slot, address) in neighbours.iter().enumerate() {
        text += &neighbour(&format!("n{slot}"), tag(slot as u8), *address);
        text += &route(&format!("slot {slot}"), &format!("n{slot}"));
    }
    text + rest
}

pub(crate) fn neighbour(name: &str, tag: PeerTag, address: SocketAddr) -> String {
    format!(
        "[[neighbour]]\nname = \"{name}\"\ntag = \"{tag}\"\nlink = \"l\"\naddress = \"{address}\"\n"
    )
}

pub(crate) fn route(to: &str, via: &str) -> String {
    format!("[[route]]\nto = \"{to}\"\nvia = \"{via}\"\n")
}

/// The next frame or fragment; notes are passed over.
pub(crate) fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut unit = vec![0; 1 << 16];
    loop {
        let (length, _) = socket.recv_from(&mut unit).expect("nothing came");
        if unit[0] != 1 {
            unit.truncate(length);
            return unit;
        }
    }
}

/// The units that have come by now.
pub(crate) fn receive_all(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_nonblocking(true).unwrap();
    let (mut units, mut unit) = (vec![], vec![0; 1 << 16]);
    loop {
        match socket.recv_from(&mut unit) {
            Ok((_, _)) if unit[0] == 1 => {}
            Ok((length, _)) => units.push(unit[..length].to_vec()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                socket.set_nonblocking(false).unwrap();
                return units;
            }
        }
    }
}

/// A member that seals.
pub(crate) struct Maker {
    sealer: Sealer,
    slot: u8,
    buf: FrameBuf,
}

impl Maker {
    pub(crate) fn new(slot: u8) -> Maker {
        let group = Group::new(GroupId([7; 32]), Suite::Aes256Gcm);
        let secret = EpochSecret::new([1; 32]);
        let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
        let number = Slot::new(slot.into()).unwrap();
        let context = SenderContext([slot; 8]);
        // From here on counters take one byte, so that equal bodies make frames of one length.
        let mut sealer = Sealer::new(group, number, context, &epochs, 8).unwrap();
        sealer.set_signing_key(SigningKey::from_seed(&[slot; 32]).unwrap());
        Maker { sealer, slot, buf: FrameBuf::new() }
    }

    /// The header fields of a frame to a member, which relay 0 is to take.
    pub(crate) fn fields(&self, to: PeerTag) -> HeaderFields {
        HeaderFields {
            next_hop: relay_tag(0),
            destination: to,
            ..HeaderFields::new(group(), tag(self.slot), 1)
        }
    }

    pub(crate) fn frame(&mut self, to: PeerTag, body: &[u8]) -> Vec<u8> {
        let fields = self.fields(to);
        self.seal(&fields, body)
    }

    pub(crate) fn seal(&mut self, fields: &HeaderFields, body: &[u8]) -> Vec<u8> {
        let link = Binding::link();
        seal_frame(&mut self.sealer, fields, &link, body, &mut self.buf).unwrap().to_vec()
    }

    pub(crate) fn announcement(&mut self) -> Vec<u8> {
        let fields = HeaderFields {
            kind: FrameKind::Control,
            class: Class::Signed,
            codec: 0,
            data_type: sealane_frame::ANNOUNCEMENT_TYPE,
            ..self.fields(PeerTag::BROADCAST)
        };
        self.seal(&fields, &Announcement { start: 1, orders: 0 }.to_bytes())
    }
}
