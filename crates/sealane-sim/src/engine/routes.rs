//! The routes that machines of the mesh use, all together: do they lead in circles?

/// The next hop of each machine to each other one.
#[derive(Debug)]
pub(super) struct Routes(Vec<Vec<Option<u32>>>);

/// Where a machine sends what is for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) to: u32,
    pub(super) next: u32,
}

/// A way that leads back to where it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Circle {
    pub(super) to: u32,
    /// In hops.
    pub(super) length: usize,
}

impl Routes {
    pub(super) fn new(machines: usize) -> Self {
        Self(vec![vec![]; machines])
    }

    /// A machine that has left carries nothing on.
    pub(super) fn forget(&mut self, node: u32) {
        if let Some(hops) = self.0.get_mut(node as usize) {
            hops.clear();
        }
    }

    /// Takes all ways of a machine, and gives those that now lead back to it.
    ///
    /// Only ways with another next hop than before are followed: no others can close a circle.
    pub(super) fn take(&mut self, node: u32, ways: impl Iterator<Item = Way>) -> Vec<Circle> {
        let mut hops = vec![None; self.0.len()];
        for way in ways {
            if let Some(hop) = hops.get_mut(way.to as usize) {
                *hop = Some(way.next);
            }
        }
        let Some(place) = self.0.get_mut(node as usize) else { return vec![] };
        let before = std::mem::replace(place, hops.clone());
        let is_new = |(to, hop): &(usize, &Option<u32>)| before.get(*to) != Some(*hop);
        let new = hops.iter().enumerate().filter(is_new);
        new.filter_map(|(to, hop)| self.follow(node, to as u32, (*hop)?)).collect()
    }

    fn follow(&self, node: u32, to: u32, first: u32) -> Option<Circle> {
        let mut at = first;
        for length in 1..=self.0.len() {
            if at == node {
                return Some(Circle { to, length });
            }
            at = (*self.0.get(at as usize)?.get(to as usize)?)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(ways: &[(u32, u32)]) -> impl Iterator<Item = Way> {
        ways.iter().map(|(to, next)| Way { to: *to, next: *next })
    }

    #[test]
    fn a_circle_is_found_when_it_closes_and_not_before() {
        let mut routes = Routes::new(5);
        assert_eq!(routes.take(0, ways(&[(4, 1), (1, 1)])), []);
        assert_eq!(routes.take(1, ways(&[(4, 2), (0, 0)])), []);
        assert_eq!(routes.take(2, ways(&[(4, 3)])), []);
        let circle = Circle { to: 4, length: 3 };
        assert_eq!(routes.take(2, ways(&[(4, 0), (1, 1)])), [circle]);
        assert_eq!(routes.take(2, ways(&[(4, 0), (1, 1)])), [], "it is told once");
        assert_eq!(routes.take(2, ways(&[(4, 3)])), []);
        // Who has left closes nothing.
        routes.forget(0);
        assert_eq!(routes.take(2, ways(&[(4, 0)])), []);
        assert_eq!(routes.take(0, ways(&[(4, 1)])), [circle]);
    }
}
