//! The routes that machines of the mesh use, all together: do they lead in circles?

/// The next hop of each machine to each other one.
#[derive(Debug)]
pub(super) struct SimRouteTable {
    hops: Vec<Vec<Option<u32>>>,
    /// The ways that a machine had before, and to whom they are others now; kept for their room.
    before: Vec<Option<u32>>,
    changed: Vec<u32>,
}

/// Where a machine sends what is for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimRoute {
    pub(super) to: u32,
    pub(super) next: u32,
}

/// A way that leads back to where it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimRouteLoop {
    pub(super) to: u32,
    /// In hops.
    pub(super) length: usize,
}

impl SimRouteTable {
    pub(super) fn new(machines: usize) -> Self {
        Self { hops: vec![vec![]; machines], before: vec![], changed: vec![] }
    }

    /// A machine that has left carries nothing on.
    pub(super) fn forget(&mut self, node: u32) {
        if let Some(hops) = self.hops.get_mut(node as usize) {
            hops.clear();
        }
    }

    /// Takes all ways of a machine, and gives those that now lead back to it.
    ///
    /// Only ways with another next hop than before are followed: no others can close a circle.
    pub(super) fn take(
        &mut self,
        node: u32,
        ways: impl Iterator<Item = SimRoute>,
    ) -> Vec<SimRouteLoop> {
        let machines = self.hops.len();
        let Some(hops) = self.hops.get_mut(node as usize) else { return vec![] };
        std::mem::swap(hops, &mut self.before);
        self.before.resize(machines, None);
        self.changed.clear();
        hops.clear();
        hops.resize(machines, None);
        for SimRoute { to, next } in ways {
            let Some(hop) = hops.get_mut(to as usize) else { continue };
            *hop = Some(next);
            if self.before.get(to as usize) != Some(&Some(next)) {
                self.changed.push(to);
            }
        }
        let followed = self.changed.iter().filter_map(|to| self.follow(node, *to));
        followed.collect()
    }

    /// The circle on which a machine's way to another one lies, if it does.
    fn follow(&self, node: u32, to: u32) -> Option<SimRouteLoop> {
        let next = |at: u32| *self.hops.get(at as usize)?.get(to as usize)?;
        let mut at = next(node)?;
        for length in 1..=self.hops.len() {
            if at == node {
                return Some(SimRouteLoop { to, length });
            }
            at = next(at)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(ways: &[(u32, u32)]) -> impl Iterator<Item = SimRoute> {
        ways.iter().map(|(to, next)| SimRoute { to: *to, next: *next })
    }

    #[test]
    fn a_circle_is_found_when_it_closes_and_not_before() {
        let mut routes = SimRouteTable::new(5);
        assert_eq!(routes.take(0, ways(&[(4, 1), (1, 1)])), []);
        assert_eq!(routes.take(1, ways(&[(4, 2), (0, 0)])), []);
        assert_eq!(routes.take(2, ways(&[(4, 3)])), []);
        let circle = SimRouteLoop { to: 4, length: 3 };
        assert_eq!(routes.take(2, ways(&[(4, 0), (1, 1)])), [circle]);
        assert_eq!(routes.take(2, ways(&[(4, 0), (1, 1)])), [], "it is told once");
        assert_eq!(routes.take(2, ways(&[(4, 3)])), []);
        // A machine that has left closes no loop.
        routes.forget(0);
        assert_eq!(routes.take(2, ways(&[(4, 0)])), []);
        assert_eq!(routes.take(0, ways(&[(4, 1)])), [circle]);
    }
}
