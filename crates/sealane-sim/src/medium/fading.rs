//! How likely a transmission arrives over a distance.

/// Loss by distance with Nakagami-m fading: how many of the waves that arrive add up.
///
/// The mean power falls with the distance to the `exponent`; around it the power of each
/// transmission follows a gamma distribution of shape `m` (Nakagami 1960). `m` = 1 is Rayleigh,
/// without a line of sight; 3 is a street with one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NakagamiFading {
    /// 1 to 10.
    pub m: u32,
    /// How fast the power falls: 2 in the open, 3 to 4 in a city.
    pub exponent: f64,
    /// Where the mean power is what is just received, in metres.
    pub range_m: f64,
}

impl NakagamiFading {
    /// The chance that a transmission over `metres` is received: the part of the gamma
    /// distribution above the threshold, which for a whole `m` is a sum of `m` terms.
    pub fn arrives(&self, metres: f64) -> f64 {
        if metres <= 0.0 {
            return 1.0;
        }
        let needed = f64::from(self.m) * (metres / self.range_m).powf(self.exponent);
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..self.m {
            term *= needed / f64::from(k);
            sum += term;
        }
        ((-needed).exp() * sum).clamp(0.0, 1.0)
    }

    /// Beyond this distance less than one transmission in a million arrives.
    pub fn reach_m(&self) -> f64 {
        let (mut near, mut far) = (0.0, self.range_m);
        while self.arrives(far) > 1e-6 {
            far *= 2.0;
        }
        while far - near > 0.001 * self.range_m {
            let middle = f64::midpoint(near, far);
            if self.arrives(middle) > 1e-6 { near = middle } else { far = middle }
        }
        far
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rayleigh_is_an_exponential() {
        let fading = NakagamiFading { m: 1, exponent: 2.0, range_m: 100.0 };
        for metres in [10.0, 100.0, 250.0] {
            let known = (-(metres / 100.0_f64).powi(2)).exp();
            assert!((fading.arrives(metres) - known).abs() < 1e-12, "{metres}");
        }
    }

    #[test]
    fn a_larger_m_is_a_sharper_edge_and_farther_is_never_better() {
        let [soft, sharp] = [1, 5].map(|m| NakagamiFading { m, exponent: 2.5, range_m: 200.0 });
        assert!(sharp.arrives(100.0) > soft.arrives(100.0));
        assert!(sharp.arrives(400.0) < soft.arrives(400.0));
        for fading in [soft, sharp] {
            let chances: Vec<_> = (0..1000).map(|m| fading.arrives(f64::from(m))).collect();
            assert!(chances.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12));
            assert!(fading.arrives(fading.reach_m()) <= 1e-6);
            assert!(fading.arrives(fading.reach_m() * 0.98) > 1e-6);
        }
    }
}
