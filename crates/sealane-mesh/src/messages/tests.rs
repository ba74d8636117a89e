use proptest::prelude::*;

use super::*;

fn slot(number: u16) -> Slot {
    Slot::new(number % 1024).unwrap()
}

proptest! {
    #[test]
    fn routes_read_back(
        sequence: u16,
        routes in prop::collection::vec(
            (any::<[u16; 3]>(), any::<bool>(), prop::option::of(any::<[u64; 3]>())), 0..40,
        ),
    ) {
        let routes = routes.into_iter().map(|([to, sequence, metric], is_gateway, attached)| {
            let tag = |number: u64| PeerTag::from_bytes(number.to_be_bytes());
            let distance = RouteDistance { slot: slot(to), sequence, metric };
            let attached = attached.map(|tags| tags.map(tag).to_vec());
            AdvertisedRoute { distance, is_gateway, attached }
        });
        let message = RouteMessage { sequence, routes: routes.collect() };
        let bytes = message.to_bytes();
        let lengths: usize = message.routes.iter().map(AdvertisedRoute::bytes).sum();
        prop_assert_eq!(bytes.len(), ROUTES_BYTES_MIN + lengths);
        prop_assert_eq!(RouteMessage::parse(&bytes), Ok(message));
    }

    #[test]
    fn the_others_read_back(
        words: [u16; 6], number: u32, long: u64, flag: bool, hops: u8,
    ) {
        let [a, b, c, d, e, f] = words;
        let probe = NeighbourProbe { is_answer: flag, to: slot(a), number };
        prop_assert_eq!(NeighbourProbe::parse(&probe.to_bytes()), Ok(probe));
        let missing = MissingParts { to: slot(b), id: c, parts: long };
        prop_assert_eq!(MissingParts::parse(&missing.to_bytes()), Ok(missing));
        let to = flag.then(|| slot(d));
        let requests = [RouteRequest { slot: slot(a), sequence: e, hops, to }; 3];
        let written = RouteRequest::write(&requests);
        prop_assert_eq!(RouteRequest::parse(&written), Ok(requests.to_vec()));
        let counts = vec![(slot(e), f), (slot(f), e)];
        let report = GatewayReport { is_complete: flag, start: long, sequence: number, counts };
        prop_assert_eq!(GatewayReport::parse(&report.to_bytes()), Ok(report));
    }

    #[test]
    fn what_reads_is_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(message) = RouteMessage::parse(&bytes) {
            prop_assert_eq!(message.to_bytes(), &bytes[..]);
        }
        if let Ok(requests) = RouteRequest::parse(&bytes) {
            prop_assert_eq!(RouteRequest::write(&requests), &bytes[..]);
        }
        if let Ok(probe) = NeighbourProbe::parse(&bytes) {
            prop_assert_eq!(probe.to_bytes(), &bytes[..]);
        }
        if let Ok(missing) = MissingParts::parse(&bytes) {
            prop_assert_eq!(missing.to_bytes(), &bytes[..]);
        }
        if let Ok(report) = GatewayReport::parse(&bytes) {
            prop_assert_eq!(report.to_bytes(), &bytes[..]);
        }
    }
}

#[test]
fn more_than_may_be_is_refused() {
    let mut many = vec![0x40, 0, 0];
    (0..=MAX_MESSAGE_ROUTES).for_each(|_| many.extend([1, 0, 2, 0, 3, 0]));
    assert_eq!(RouteMessage::parse(&many), Err(MeshError::Range));
    let crowded = [0x40, 0, 0, 1, 0x40, 0, 0, 0, 0, 9];
    assert_eq!(RouteMessage::parse(&crowded), Err(MeshError::Range));
    let stranger = [0x40, 0, 0, 0, 0x04, 0, 0, 0, 0];
    assert_eq!(RouteMessage::parse(&stranger), Err(MeshError::Range), "slot 1024");
    let mut report = GatewayReport::default().to_bytes();
    (0..=MAX_REPORTED).for_each(|_| report.extend([1, 0, 0, 0]));
    assert_eq!(GatewayReport::parse(&report), Err(MeshError::Range));
    assert_eq!(NeighbourProbe::parse(&[0x42, 0, 0, 0, 0, 0, 0]), Err(MeshError::Range));
    assert_eq!(NeighbourProbe::parse(&[0x40, 0, 0, 0, 0, 0, 0, 0]), Err(MeshError::TooLong));
    assert_eq!(MissingParts::parse(&[0x40; 12]), Err(MeshError::Range));
}
