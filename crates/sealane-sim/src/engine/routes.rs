//! The routes that machines of the mesh use, all together: do they lead in circles?

use std::sync::Arc;

use sealane_mesh::Table;

use crate::node::Crew;

/// The table of each machine.
#[derive(Debug)]
pub(super) struct Routes(Vec<Option<Arc<Table>>>);

impl Routes {
    pub(super) fn new(machines: usize) -> Self {
        Self(vec![None; machines])
    }

    /// A machine that has left carries nothing on.
    pub(super) fn forget(&mut self, node: u32) {
        if let Some(table) = self.0.get_mut(node as usize) {
            *table = None;
        }
    }

    /// Takes the new table of a machine, and gives the destinations to which its routes now lead
    /// back to itself, with how many hops that takes. Other circles it cannot have closed.
    pub(super) fn take(&mut self, crew: &Crew, node: u32, table: Arc<Table>) -> Vec<(u32, usize)> {
        if let Some(place) = self.0.get_mut(node as usize) {
            *place = Some(Arc::clone(&table));
        }
        let circles = table.routes().filter_map(|route| {
            let mut at = crew.node(route.hop.slot)?;
            for length in 1..=self.0.len() {
                if at == node {
                    return Some((crew.node(route.to)?, length));
                }
                let hop = self.0.get(at as usize)?.as_ref()?.hop(route.to)?;
                at = crew.node(hop.slot)?;
            }
            None
        });
        circles.collect()
    }
}
