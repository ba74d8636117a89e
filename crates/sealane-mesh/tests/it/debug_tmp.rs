use crate::net::*;
use sealane_mesh::*;
#[test]
fn dbg_ways() {
    let mut net = Net::new(2, 4, Medium::dot11p());
    let delay = |ms| Link { delay: Span::millis(ms), ..Link::default() };
    net.chain(&[0, 2, 3], delay(50));
    (0..4).for_each(|slot| net.start(slot, Role::Member));
    net.run(Span::seconds(20));
    net.chain(&[0, 1, 3], delay(10));
    for _ in 0..20 {
        net.run(Span::seconds(2));
        println!(
            "{:?} {:?}",
            net.now,
            net.node(0)
                .mesh
                .neighbours()
                .iter()
                .map(|n| (n.slot, n.cost, n.round_trip))
                .collect::<Vec<_>>()
        );
        println!(
            "   {:?}",
            net.node(0)
                .table
                .routes()
                .map(|r| (r.to, r.hop.slot, r.metric, r.candidates))
                .collect::<Vec<_>>()
        );
        println!(
            "  1: {:?}",
            net.node(1)
                .table
                .routes()
                .map(|r| (r.to, r.hop.slot, r.metric, r.candidates))
                .collect::<Vec<_>>()
        );
    }
    println!("{:?}", net.node(0).mesh.counters());
}
#[test]
fn dbg_flaps() {
    let (side, count) = (3, 9);
    let mut net = Net::new(3, count as u16, Medium::dot11p());
    let link = Link { loss_percent: 20, ..Link::default() };
    for one in 0..count {
        if one % side + 1 < side {
            net.join(one, one + 1, link);
        }
        if one + side < count {
            net.join(one, one + side, link);
        }
        net.start(one, Role::Member);
    }
    net.run(Span::seconds(60));
    for n in net.nodes.values_mut() {
        n.events.clear();
    }
    net.run(Span::seconds(180));
    let (mut silent, mut changed, mut lost) = (0, 0, 0);
    for n in net.nodes.values() {
        for (_, e) in &n.events {
            match e {
                Event::NextHopSilent { .. } => silent += 1,
                Event::RouteChanged { .. } => changed += 1,
                Event::RouteLost { .. } => lost += 1,
                _ => {}
            }
        }
    }
    println!("silent {silent} changed {changed} lost {lost}");
    for (t, e) in &net.node(4).events {
        println!("{t:?} {e:?}");
    }
}
