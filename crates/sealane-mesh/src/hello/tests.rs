use proptest::prelude::*;

use super::*;

fn slot() -> impl Strategy<Value = Slot> {
    (0..1024_u16).prop_map(|slot| Slot::new(slot).unwrap())
}

fn hello() -> impl Strategy<Value = HelloMessage> {
    let neighbours = prop::collection::vec((slot(), 0..16_u8, 0..16_u8), 0..=MAX_HELLO_NEIGHBOURS);
    let echoes = prop::collection::vec((any::<u8>(), any::<u32>(), any::<u32>()), 0..=8);
    let gateways = prop::collection::vec((slot(), any::<u16>(), any::<u16>()), 0..=2);
    let fixed = (any::<[bool; 2]>(), any::<u16>(), any::<u32>(), 5..=u16::MAX, any::<u8>());
    (fixed, 0..1_u32 << 24, neighbours, echoes, gateways).prop_map(
        |(([sleeps, asks], sequence, sent, interval, load), hop_counter, near, echoes, far)| {
            let count = near.len() as u8;
            let near =
                near.into_iter().map(|(slot, heard, told)| HelloNeighbour { slot, heard, told });
            let echoes = echoes.into_iter().filter(|_| count > 0);
            let echoes =
                echoes.map(|(index, sent, heard)| HelloEcho { index: index % count, sent, heard });
            let far = far.into_iter().map(|(slot, sequence, metric)| RouteDistance {
                slot,
                sequence,
                metric,
            });
            let (neighbours, echoes, gateways) = (near.collect(), echoes.collect(), far.collect());
            HelloMessage {
                sleeps,
                asks,
                sequence,
                sent,
                interval,
                load,
                hop_counter,
                neighbours,
                echoes,
                gateways,
                digest: (sequence % 2 == 0).then_some([sequence as u8; 8]),
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_reads_back(hello in hello()) {
        let bytes = hello.to_bytes();
        prop_assert_eq!(HelloMessage::parse(&bytes), Ok(hello));
        for cut in 0..bytes.len() {
            prop_assert!(HelloMessage::parse(&bytes[..cut]).is_err());
        }
        prop_assert_eq!(HelloMessage::parse(&[&bytes[..], &[0]].concat()), Err(MeshError::TooLong));
    }

    #[test]
    fn what_reads_is_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(hello) = HelloMessage::parse(&bytes) {
            prop_assert_eq!(hello.to_bytes(), bytes);
        }
    }
}

#[test]
fn values_that_cannot_be_are_refused() {
    let good = HelloMessage { interval: 50, ..HelloMessage::default() };
    let bytes = good.to_bytes();
    assert_eq!(bytes.len(), HELLO_BYTES_MIN);
    for (at, byte, error) in [
        (0, 0x80, MeshError::UnknownVersion),
        (0, 0x00, MeshError::UnknownVersion),
        (0, 0x49, MeshError::Range),
        (0, 0x70, MeshError::Range),
        (1, 4, MeshError::Truncated),
        (1, 8, MeshError::Range),
        (14, 33, MeshError::Range),
        (14, 1, MeshError::Truncated),
    ] {
        let mut bad = bytes.clone();
        bad[at] = byte;
        assert_eq!(HelloMessage::parse(&bad), Err(error), "{at} {byte:x}");
    }
    let hasty = HelloMessage { interval: 4, ..good };
    assert_eq!(HelloMessage::parse(&hasty.to_bytes()), Err(MeshError::Range));
}

#[test]
fn who_asks_names_strangers_or_asks_everybody() {
    let slot = |number| Slot::new(number).unwrap();
    let near = HelloNeighbour { slot: slot(1), heard: 15, told: 15 };
    let mut hello = HelloMessage { asks: true, neighbours: vec![near], ..HelloMessage::default() };
    assert!([1, 2, 3].map(slot).iter().all(|one| hello.asks_of(*one)));
    hello.neighbours.extend([2, 4].map(slot).map(HelloNeighbour::stranger));
    assert_eq!([1, 2, 3, 4].map(|one| hello.asks_of(slot(one))), [false, true, false, true]);
    hello.asks = false;
    assert!(![1, 2, 3].map(slot).iter().any(|one| hello.asks_of(*one)));
}
