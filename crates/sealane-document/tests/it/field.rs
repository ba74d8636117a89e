//! Twenty machines over seven hops, with all that the air does to them, end up with the same bytes.

pub(crate) mod net;

use sealane_mesh::{Medium, Span};
use sealane_seal::Form;

use net::{Link, Net};

/// Eight rows: seven hops from the first to the last.
pub(crate) const ROWS: [usize; 20] =
    [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 7];
/// They have no keys.
pub(crate) const KEYLESS: [usize; 2] = [6, 15];
/// It is removed by the re-key.
const REMOVED: usize = 18;

pub(crate) fn bad_air(medium: Medium) -> Link {
    Link { medium, loss_percent: 30, repeat_percent: 5, late: Span::millis(30) }
}

/// What a member says of itself.
fn write_all(net: &mut Net, node: usize, round: u8) {
    net.write(node, 1, &[1, round]);
    net.write(node, 2, &[0, 0, round, 0, 0, 0]);
    net.write(node, 3, &[0, round, 0, 0, 0, 0, 0, 1, 0]);
    net.write(node, 4, &[0, round, 0, 0, 0, 0, 0, 1, 2, 3, 0, 1, 2, 3, 0]);
    net.write(node, 72, &[round; 40]);
    if node % 5 == 0 {
        net.write(node, 5, b"all well here");
    }
}

fn writers(net: &Net) -> Vec<usize> {
    (0..net.nodes.len()).filter(|node| net.nodes[*node].sealer.is_some()).collect()
}

fn seeds() -> u64 {
    std::env::var("SEALANE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(20)
}

/// One life of a team: words, a partition with words on both sides, a member that is away, a
/// re-key that removes another one and reaches the half that is cut off later.
fn live(seed: u64) -> Net {
    let mut net = Net::new(seed, &ROWS, &KEYLESS, bad_air(Medium::ble(247)));
    net.run(Span::seconds(8));
    for node in writers(&net) {
        write_all(&mut net, node, 1);
    }
    net.run(Span::millis(500 + net.random.below(2000)));
    net.cut = Some(8 + net.random.below(5) as usize);
    let away = 1 + net.random.below(4) as usize;
    net.down(away);
    for round in 2..5 {
        for node in writers(&net) {
            if net.random.below(3) > 0 && node != away {
                write_all(&mut net, node, round);
            }
        }
        net.run(Span::seconds(1));
    }
    net.team.removed.push(vec![REMOVED as u16]);
    let cut = net.cut.unwrap();
    for node in (0..cut).filter(|node| *node != away) {
        net.rekey(node);
    }
    net.run(Span::seconds(2));
    // Who was removed goes on in the old epoch, and in the name of another one.
    write_all(&mut net, REMOVED, 9);
    net.cut = None;
    net.up(away);
    net.run(Span::seconds(1));
    for node in (0..ROWS.len()).filter(|node| *node != REMOVED) {
        net.rekey(node);
    }
    let until = net.now + Span::seconds(120);
    assert!(net.run_until(until, |net| net.is_same()), "seed {seed}: still not the same");
    net
}

#[test]
fn all_members_end_up_with_the_same_bytes() {
    let mut longest = Span(0);
    for seed in 1..=seeds() {
        let net = live(seed);
        let members = net.members();
        assert_eq!(members.len(), 17, "all but two without keys and the one that was removed");
        let held = net.held(members[0]);
        for node in &members {
            assert_eq!(net.held(*node), held, "seed {seed}: {node}");
        }
        for node in &members {
            let own = held.iter().filter(|frame| {
                let entry = sealane_document::entry_of(frame, sealane_seal::Epoch(1)).unwrap();
                usize::from(entry.origin.number()) == *node
            });
            assert!(own.count() >= 5, "seed {seed}: {node} is there with all registers");
        }
        longest = longest.max(Span(net.now.0));
    }
    println!("{} seeds, 0 divergences; the longest life took {} s", seeds(), longest.0 / 1_000_000);
}

/// A medium of the proof, and what it is called.
fn media() -> [(&'static str, Medium); 4] {
    let lora51 = Medium { mtu: 51, duty_ppm: 1_000_000, ..Medium::lora_sf7() };
    let lora222 = Medium { duty_ppm: 1_000_000, ..Medium::lora_sf7() };
    [
        ("BLE MTU 23", Medium::ble(23)),
        ("BLE MTU 247", Medium::ble(247)),
        ("LoRa 51", Medium { form: Form::Compact, ..lora51 }),
        ("LoRa 222", lora222),
    ]
}
