//! The few ways to a destination that are kept.

use crate::limits::MAX_CANDIDATES;

/// Up to [`MAX_CANDIDATES`], one behind the other, in the order in which they came. They lie where
/// their destination does: to choose ways to many is to read them all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RouteCandidates<T>([Option<T>; MAX_CANDIDATES]);

impl<T> Default for RouteCandidates<T> {
    fn default() -> Self {
        Self([const { None }; MAX_CANDIDATES])
    }
}

impl<T> RouteCandidates<T> {
    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map_while(Option::as_ref)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.0.get_mut(at)?.as_mut()
    }

    /// Takes one behind the others. Whether there was room.
    pub(crate) fn push(&mut self, one: T) -> bool {
        let free = self.0.iter_mut().find(|place| place.is_none());
        free.map(|free| *free = Some(one)).is_some()
    }

    /// Takes out those that are not to be kept.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        if self.iter().all(&keeps) {
            return;
        }
        for place in &mut self.0 {
            place.take_if(|one| !keeps(one));
        }
        // Those that stay come first, as they came.
        self.0.sort_by_key(Option::is_none);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_kept_in_the_order_in_which_they_came() {
        let mut few = RouteCandidates::default();
        assert!(few.is_empty());
        assert!((0..MAX_CANDIDATES).all(|one| few.push(one)) && !few.push(99));
        few.retain(|one| *one != 0);
        assert_eq!((few.iter().copied().collect::<Vec<_>>(), few.len()), (vec![1, 2], 2));
        assert!(few.push(7) && !few.is_empty());
        if let Some(one) = few.get_mut(1) {
            *one = 5;
        }
        assert_eq!(few.iter().copied().collect::<Vec<_>>(), [1, 5, 7]);
        assert_eq!(few.get_mut(MAX_CANDIDATES), None);
    }
}
