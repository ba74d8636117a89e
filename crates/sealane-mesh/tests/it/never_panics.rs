//! Whatever comes, nothing panics, and memory is bounded: debug assertions look after both.

use proptest::prelude::*;
use sealane_mesh::{
    Config, InterfaceId, Mesh, MeshAddress, MeshInput, MeshMedium, MeshProvision, MeshTime,
};

fn mesh(medium: MeshMedium) -> Mesh {
    let provision = MeshProvision::new([7; 32], 3).unwrap();
    let keys = provision.keys(0, [1; 8], 1).unwrap();
    let mut mesh = Mesh::new(Config::default(), keys, MeshTime(0)).unwrap();
    mesh.take(MeshTime(0), MeshInput::Up { interface: InterfaceId(0), medium });
    mesh
}

fn feed(mesh: &mut Mesh, units: &[Vec<u8>]) {
    for (at, unit) in units.iter().enumerate() {
        let (interface, from) = (InterfaceId(0), MeshAddress(at as u64 % 5));
        mesh.take(
            MeshTime(at as u64 * 1000),
            MeshInput::Heard { interface, from, unit: unit.into() },
        );
        mesh.take(MeshTime(at as u64 * 1000), MeshInput::Data { frame: unit.into() });
        while mesh.next_output().is_some() {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_units_in_any_form(
        units in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..40),
    ) {
        for medium in [MeshMedium::dot11p(), MeshMedium::wire(1500), MeshMedium::ble(20)] {
            feed(&mut mesh(medium), &units);
        }
    }

    #[test]
    fn units_that_look_like_ours(
        units in prop::collection::vec(
            (0..9_usize, prop::collection::vec(any::<u8>(), 60..160)), 0..40,
        ),
    ) {
        let starts: [&[u8]; 9] = [
            &[2, 0, 2, 2, 0, 0, 1, 0], &[2, 0, 2, 1, 2, 0, 3, 0], &[2, 15, 2, 0, 1, 0, 7, 0],
            &[0xa0, 0, 1, 1], &[0xa0, 0, 1, 2], &[0, 1, 0, 0, 0, 200, 0, 0], &[0x40, 0x41],
            &[1, 5], &[3],
        ];
        let units: Vec<_> = units
            .into_iter()
            .map(|(start, rest)| [starts[start], &rest].concat())
            .collect();
        for medium in [MeshMedium::dot11p(), MeshMedium::wire(1500), MeshMedium::ble(20)] {
            feed(&mut mesh(medium), &units);
        }
    }
}

#[test]
fn time_that_goes_back_or_jumps_far_does_no_harm() {
    let mut mesh = mesh(MeshMedium::lora_sf7());
    for at in [5, 1, u64::MAX / 2, 7, u64::MAX, 0] {
        mesh.take(MeshTime(at), MeshInput::Tick);
        while mesh.next_output().is_some() {}
    }
}
