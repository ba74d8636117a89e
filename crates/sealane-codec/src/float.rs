//! Half-precision floats (IEEE 754 binary16), which CBOR writes where they keep the value.

/// The smallest normal half is 2^-14; below it, halves are multiples of 2^-24.
const HALF_SUBNORMAL_UNIT: f64 = 1.0 / 16_777_216.0;

/// The value of a half. Infinite and NaN halves give infinite and NaN doubles.
pub(crate) fn from_half(half: u16) -> f64 {
    let exponent = i32::from(half >> 10 & 0x1f);
    let mantissa = f64::from(half & 0x3ff);
    let magnitude = match exponent {
        0 => mantissa * HALF_SUBNORMAL_UNIT,
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * HALF_SUBNORMAL_UNIT * f64::from(1_u32 << (exponent - 1)),
    };
    if half & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// The half of exactly this value, if there is one.
pub(crate) fn to_half(n: f64) -> Option<u16> {
    let bits = n.to_bits();
    let sign = (bits >> 48 & 0x8000) as u16;
    let magnitude = n.abs();
    let units = magnitude / HALF_SUBNORMAL_UNIT;
    let half = if units < 1024.0 {
        // A subnormal half counts units; zero is the first of them.
        sign | units as u16
    } else if magnitude <= 65_504.0 {
        // The doubles' exponent bias is 1023, the halves' 15; 42 bits of mantissa must be zero.
        let exponent = (bits >> 52 & 0x7ff) as u16 - 1008;
        sign | exponent << 10 | (bits >> 42 & 0x3ff) as u16
    } else {
        return None;
    };
    (from_half(half).to_bits() == bits).then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_half_leads_back() {
        for half in 0..=u16::MAX {
            let n = from_half(half);
            if n.is_finite() {
                assert_eq!(to_half(n), Some(half), "{half:#06x} = {n}");
            }
        }
    }

    #[test]
    fn only_exact_values_become_halves() {
        assert_eq!(from_half(0x3c01), 1.0009765625);
        assert_eq!(from_half(0x0001), 5.960464477539063e-8);
        for n in [1.1, 65_505.0, 65_536.0, 1e300, 5e-324, 1.0 + f64::EPSILON, f64::INFINITY] {
            assert_eq!(to_half(n), None, "{n}");
        }
    }
}
