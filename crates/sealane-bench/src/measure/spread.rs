/// The middle half of what several rounds gave.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FigureSpread {
    /// A quarter of the rounds gave no more.
    pub low: f64,
    /// Half of them.
    pub median: f64,
    /// Three quarters of them.
    pub high: f64,
}

impl FigureSpread {
    /// Of a figure that was measured once.
    pub(crate) fn single(value: f64) -> Self {
        Self { low: value, median: value, high: value }
    }

    /// Of these rounds, which are sorted by it.
    pub fn of(rounds: &mut [f64]) -> Self {
        rounds.sort_by(f64::total_cmp);
        let [low, median, high] = [0.25, 0.5, 0.75].map(|part| sorted_at(rounds, part));
        Self { low, median, high }
    }

    /// Whether both middle halves have something in common: no difference was seen.
    pub fn meets(&self, other: &FigureSpread) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The value that so large a part of all are not above; 0 where there are none.
pub fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    sorted_at(values, part)
}

fn sorted_at(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * part).round() as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_half_is_in_order() {
        let mut rounds = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(
            FigureSpread::of(&mut rounds),
            FigureSpread { low: 2.0, median: 3.0, high: 4.0 }
        );
        assert_eq!(percentile(&mut rounds, 0.99), 5.0);
        assert_eq!(percentile(&mut [], 0.5), 0.0);
    }
}
