//! Messages of `sealane-mesh`, and a machine that members tell whatever they like.

use sealane_frame::{
    ANNOUNCEMENT_TYPE, CompactView, FrameBuf, FrameDictionary, FrameKind, FrameRoster,
    HeaderFields, LinkContext, LongFrame, PeerTag, seal_frame,
};
use sealane_mesh::{
    Config, GatewayReport, HelloEcho, HelloMessage, HelloNeighbour, InterfaceId, Keys, Mesh,
    MeshAddress, MeshInput, MeshMedium, MeshOutput, MeshProvision, MeshTime, MessageType,
    MissingParts, NeighbourProbe, OrderPieces, OrdersHeld, PiecesAsked, RemovalMessage,
    RouteMessage, RouteRequest, RouteTrace,
};
use sealane_seal::{Announcement, Binding, Class, Sealer, Slot};

const RADIO: InterfaceId = InterfaceId(0);

/// A hello of anybody: what is read is written as the same bytes.
pub fn hello(bytes: &[u8]) {
    match HelloMessage::parse(bytes) {
        Ok(hello) => assert_eq!(hello.to_bytes(), bytes),
        Err(error) => assert!(error.info().code.starts_with("SL-MESH-")),
    }
}

/// The other messages likewise; and two members tell a machine what stands in the bytes, one
/// message after the other, behind a byte of length and one of what, who and when. Its memory is
/// bounded, and it reaches nobody but members.
pub fn route_message(bytes: &[u8]) {
    laws(bytes);
    let provision = MeshProvision::new([7; 32], 6).unwrap();
    let mut net = FuzzedMesh::new(&provision);
    let mut rest = bytes;
    while let Some(([length, how], after)) = rest.split_first_chunk() {
        let (body, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        let what = MessageType::ALL[usize::from(how & 7)];
        net.now += u64::from(how >> 4) * 40_000;
        net.tell(usize::from(how >> 3 & 1), what, body);
    }
    let table = net.mesh.table();
    assert!(table.routes().all(|route| route.to.number() < 6));
    assert!(net.mesh.neighbours().len() <= 2);
}

/// Orders that neighbours tell are read and written as the same bytes. Two members also tell a
/// machine the messages in the bytes, as above. The machine takes no order and no removal without
/// the authority's signature. It takes each signed one, whatever else was told.
pub fn orders(bytes: &[u8]) {
    order_laws(bytes);
    let provision = MeshProvision::new([7; 32], 6).unwrap();
    let mut net = FuzzedMesh::new(&provision);
    let kinds = [MessageType::Held, MessageType::Asked, MessageType::Pieces, MessageType::Removal];
    let mut rest = bytes;
    while let Some(([length, how], after)) = rest.split_first_chunk() {
        let (body, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        net.now += u64::from(how >> 4) * 40_000;
        net.tell(usize::from(how >> 3 & 1), kinds[usize::from(how & 3)], body);
        // Bytes from the wire are as good as those of a hub or a file.
        let group = provision.group_tag();
        net.mesh.take(MeshTime(net.now), MeshInput::Notice { group, notice: body.into() });
    }
    let forged = |mesh: &Mesh| mesh.counters().notices > 0 || !mesh.leaving().is_empty();
    assert!(!forged(&net.mesh), "an order that nobody has signed");
    let group = provision.group_tag();
    for number in 0..2 {
        let notice = provision.order(number, &[1; 200]).unwrap();
        net.mesh.take(MeshTime(net.now), MeshInput::Notice { group, notice: (&notice).into() });
    }
    assert_eq!(net.mesh.counters().notices, 2, "what is signed is taken");
}

fn order_laws(bytes: &[u8]) {
    if let Ok(held) = OrdersHeld::parse(bytes) {
        assert_eq!(held.to_bytes(), bytes);
    }
    if let Ok(asked) = PiecesAsked::parse(bytes) {
        assert_eq!(asked.to_bytes(), bytes);
    }
    if let Ok(pieces) = OrderPieces::parse(bytes) {
        assert_eq!(pieces.to_bytes(), bytes);
    }
    if let Ok(removal) = RemovalMessage::parse(bytes) {
        assert_eq!(removal.to_bytes(), bytes);
    }
}

fn laws(bytes: &[u8]) {
    if let Ok(message) = RouteMessage::parse(bytes) {
        assert_eq!(message.to_bytes(), bytes);
    }
    if let Ok(requests) = RouteRequest::parse(bytes) {
        assert_eq!(RouteRequest::write(&requests), bytes);
    }
    if let Ok(probe) = NeighbourProbe::parse(bytes) {
        assert_eq!(probe.to_bytes(), bytes);
    }
    if let Ok(missing) = MissingParts::parse(bytes) {
        assert_eq!(missing.to_bytes(), bytes);
    }
    if let Ok(trace) = RouteTrace::parse(bytes) {
        assert_eq!(trace.to_bytes(), bytes);
    }
    if let Ok(report) = GatewayReport::parse(bytes) {
        assert_eq!(report.to_bytes(), bytes);
    }
}

/// A machine, and two members that it takes for neighbours.
struct FuzzedMesh {
    mesh: Mesh,
    members: [(Sealer, HeaderFields); 2],
    now: u64,
}

impl FuzzedMesh {
    fn new(provision: &MeshProvision) -> Self {
        let keys = provision.keys(0, [1; 8], 1).unwrap();
        let mut mesh = Mesh::new(Config::default(), keys, MeshTime(0)).unwrap();
        mesh.take(MeshTime(0), MeshInput::Up { interface: RADIO, medium: MeshMedium::dot11p() });
        let members = [1, 2].map(|slot| member(provision, slot));
        let mut net = Self { mesh, members, now: 1 };
        let sent = stamp(&mut net.mesh, provision);
        for one in 0..2 {
            let body = Announcement { start: 1, orders: 0 }.to_bytes();
            let fields = HeaderFields {
                kind: FrameKind::Control,
                class: Class::Signed,
                data_type: ANNOUNCEMENT_TYPE,
                ..net.members[one].1
            };
            net.unit(one, &fields, &body);
            let hello = HelloMessage {
                sequence: 1,
                interval: 50,
                neighbours: vec![HelloNeighbour {
                    slot: Slot::new(0).unwrap(),
                    heard: 15,
                    told: 15,
                }],
                echoes: sent
                    .map(|sent| HelloEcho { index: 0, sent, heard: 0 })
                    .into_iter()
                    .collect(),
                ..HelloMessage::default()
            };
            net.tell(one, MessageType::Hello, &hello.to_bytes());
        }
        assert_eq!(net.mesh.neighbours().iter().filter(|one| one.cost.is_some()).count(), 2);
        net
    }

    fn tell(&mut self, by: usize, what: MessageType, body: &[u8]) {
        let fields = HeaderFields { data_type: what as u16, ..self.members[by].1 };
        self.unit(by, &fields, body);
    }

    fn unit(&mut self, by: usize, fields: &HeaderFields, body: &[u8]) {
        let (mut buf, mut unit) = (FrameBuf::new(), vec![]);
        let sealer = &mut self.members[by].0;
        let frame = seal_frame(sealer, fields, &Binding::link(), body, &mut buf).unwrap();
        LongFrame::of(frame).unwrap().write(&mut unit);
        let from = MeshAddress(by as u64);
        self.mesh.take(
            MeshTime(self.now),
            MeshInput::Heard { interface: RADIO, from, unit: (&unit).into() },
        );
        while let Some(output) = self.mesh.next_output() {
            if let MeshOutput::Send { unit, .. } = output {
                assert!(unit.len() <= MeshMedium::dot11p().mtu);
            }
        }
    }
}

fn member(provision: &MeshProvision, slot: u16) -> (Sealer, HeaderFields) {
    let keys = provision.keys(slot, [slot as u8; 8], 1).unwrap();
    let Keys { group, slot, context, epochs, signing, .. } = keys;
    let mut sealer = Sealer::new(group, slot, context, &epochs, 0).unwrap();
    sealer.set_signing_key(signing);
    let tag = provision.tag(slot.number());
    let fields = HeaderFields {
        hop_limit: 0,
        kind: FrameKind::Routing,
        class: Class::Authenticated,
        codec: 0,
        ..HeaderFields::new(provision.group_tag(), tag, 1)
    };
    (sealer, fields)
}

/// The time stamp of the machine's first hello.
fn stamp(mesh: &mut Mesh, provision: &MeshProvision) -> Option<u32> {
    let dictionary = FrameDictionary::fixed(&[provision.group_tag()]);
    let roster = FrameRoster::new();
    let (next_hop, previous_hop) = (PeerTag::BROADCAST, PeerTag::NOBODY);
    let link = LinkContext { dictionary: &dictionary, roster: &roster, next_hop, previous_hop };
    let mut stamp = None;
    while let Some(output) = mesh.next_output() {
        let MeshOutput::Send { unit, .. } = output else { continue };
        let Ok(view) = CompactView::parse(&unit, &link) else { continue };
        let body = &unit[view.header_bytes()..unit.len() - 16];
        stamp = HelloMessage::parse(body).ok().map(|hello| hello.sent).or(stamp);
    }
    stamp
}
