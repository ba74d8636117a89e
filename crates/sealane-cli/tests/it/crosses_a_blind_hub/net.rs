//! Two machines and a hub between them: network namespaces that only see the hub, joined to it by
//! a wire each.

use std::path::Path;
use std::process::Command;

use sealane_node::access::TokenSecret;
use sealane_testing::{NetSpace, lay_wire};

/// Where the hub listens.
pub(crate) const PORT: u16 = 9087;

/// The token that the members show the hub, which others can reach.
pub(crate) fn token() -> TokenSecret {
    TokenSecret::new([7; 32])
}

/// The namespaces of one test; they go with it.
pub(crate) struct Net {
    sides: [NetSpace; 2],
    hub: NetSpace,
}

impl Net {
    /// Two wires: 10.77.1.1 to the hub at 10.77.1.2, and 10.77.2.1 to the hub at 10.77.2.2.
    pub(crate) fn make() -> Net {
        let net = Net { sides: ["a", "b"].map(NetSpace::new), hub: NetSpace::new("hub") };
        for (side, number) in net.sides.iter().zip(1..) {
            let at = |host: u8| [format!("10.77.{number}.{host}/30")];
            lay_wire(&format!("wire{number}"), [(side, &at(1)), (&net.hub, &at(2))]);
        }
        net
    }

    pub(crate) fn side(&self, side: usize) -> &NetSpace {
        &self.sides[side]
    }

    pub(crate) fn hub(&self) -> &NetSpace {
        &self.hub
    }

    /// A command within the namespace of side 0 or 1, with the hub's address as that side sees it.
    pub(crate) fn on_side(&self, side: usize, program: &Path) -> Command {
        let mut command = self.sides[side].command(program);
        command.env("SEALANE_SERVER", Self::hub_address(side));
        command.env("SEALANE_TOKEN", token().reveal());
        command
    }

    /// The hub's address, as side 0 or 1 sees it.
    pub(crate) fn hub_address(side: usize) -> String {
        format!("10.77.{}.2:{PORT}", side + 1)
    }

    /// A command within the hub's namespace.
    pub(crate) fn on_hub(&self, program: &Path) -> Command {
        self.hub.command(program)
    }
}
