//! Products and quotients of clocks and times, without 128-bit numbers.
//!
//! What is divided here is divided when a device is opened, a clock changes, or a block keeps one waiting. With the feature
//! `small` it is divided bit by bit, in a few dozen bytes of code and some hundred instructions: the compiler's divisions of 32,
//! 64 and 128 bits are 0.4, 0.9 and three kilobytes on a Cortex-M0, which has none.

/// `n / d`, and the rest.
///
/// All ones if `d` is 0.
// A call where the processor has no such division: it is not a few instructions then.
#[cfg(not(feature = "small"))]
#[cfg_attr(target_pointer_width = "64", inline)]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) const fn divide(n: u64, d: u32) -> (u64, u32) {
    // In place of the division's own test: a message has no way to a panic.
    if d == 0 {
        return (u64::MAX, 0);
    }
    (n / d as u64, (n % d as u64) as u32)
}

/// `n / d`, and the rest.
///
/// All ones if `d` is 0.
#[cfg(feature = "small")]
#[inline(never)]
pub(crate) const fn divide(n: u64, d: u32) -> (u64, u32) {
    bit_by_bit(n, d)
}

#[cfg(any(test, feature = "small"))]
const fn bit_by_bit(n: u64, d: u32) -> (u64, u32) {
    if d == 0 {
        return (u64::MAX, 0);
    }
    // Of `rest`, 33 bits at most are used: it is below `d` before the shift.
    let (mut quotient, mut rest, mut bit) = (n, 0_u64, 0);
    while bit < u64::BITS {
        rest = rest << 1 | quotient >> 63;
        quotient <<= 1;
        if rest >= d as u64 {
            rest -= d as u64;
            quotient |= 1;
        }
        bit += 1;
    }
    (quotient, rest as u32)
}

/// `a × b / c`, rounded down, and whether something was cut. Saturates.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
const fn ratio(a: u64, b: u32, c: u32) -> (u64, bool) {
    if !cfg!(feature = "small") && a <= u32::MAX as u64 {
        let (quotient, rest) = divide(a * b as u64, c);
        return (quotient, rest > 0);
    }
    // The product has 96 bits; they are divided as two digits of 32 and the rest.
    let low = (a & u32::MAX as u64) * b as u64;
    let high = (a >> 32) * b as u64 + (low >> 32);
    let (upper, rest) = divide(high, c);
    let (lower, rest) = divide((rest as u64) << 32 | low & u32::MAX as u64, c);
    if upper > u32::MAX as u64 { (u64::MAX, false) } else { (upper << 32 | lower, rest > 0) }
}

/// `a × b / c`, rounded down. Saturates, also where `c` is 0.
pub(crate) const fn mul_div(a: u64, b: u32, c: u32) -> u64 {
    ratio(a, b, c).0
}

/// `a × b / c`, rounded up. Saturates, also where `c` is 0.
pub(crate) const fn mul_div_ceil(a: u64, b: u32, c: u32) -> u64 {
    let (quotient, cut) = ratio(a, b, c);
    quotient.saturating_add(cut as u64)
}

/// `n / d`, rounded up.
///
/// All ones if `d` is 0.
pub(crate) const fn div_ceil(n: u64, d: u32) -> u64 {
    let (quotient, rest) = divide(n, d);
    quotient + (rest > 0) as u64
}

/// `n / d`, rounded down.
///
/// All ones if `d` is 0.
pub(crate) const fn quotient(n: u32, d: u32) -> u32 {
    divide(n as u64, d).0 as u32
}

/// `n / d`, rounded up.
///
/// All ones if `d` is 0.
pub(crate) const fn quotient_ceil(n: u32, d: u32) -> u32 {
    div_ceil(n as u64, d) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saturated(exact: u128) -> u64 {
        u64::try_from(exact).unwrap_or(u64::MAX)
    }

    proptest::proptest! {
        #[test]
        fn as_with_128_bits(a: u64, b: u32, c in 1..=u32::MAX, small in 0..64_u32) {
            let a = a >> small;
            let product = u128::from(a) * u128::from(b);
            proptest::prop_assert_eq!(mul_div(a, b, c), saturated(product / u128::from(c)));
            proptest::prop_assert_eq!(mul_div_ceil(a, b, c), saturated(product.div_ceil(u128::from(c))));
            proptest::prop_assert_eq!(div_ceil(a, c), a.div_ceil(c.into()));
            proptest::prop_assert_eq!(quotient(b, c), b / c);
            proptest::prop_assert_eq!(quotient_ceil(b, c), b.div_ceil(c));
        }

        #[test]
        fn bit_by_bit_is_division(n: u64, d in 1..=u32::MAX, small in 0..64_u32, smaller in 0..32_u32) {
            for (n, d) in [(n, d), (n >> small, d), (n, (d >> smaller).max(1)), (u64::MAX, d), (n, 1)] {
                proptest::prop_assert_eq!(bit_by_bit(n, d), (n / u64::from(d), (n % u64::from(d)) as u32));
            }
        }
    }

    #[test]
    fn the_edges() {
        assert_eq!(mul_div_ceil(u64::MAX, u32::MAX, u32::MAX), u64::MAX);
        // 2⁶⁴ − 1, and a rest.
        assert_eq!(mul_div_ceil(0x9249_2492_4924_9249, 7, 4), u64::MAX);
        assert_eq!(mul_div_ceil(u64::MAX, u32::MAX, 1), u64::MAX);
        assert_eq!(mul_div_ceil(0, 0, 1), 0);
        assert_eq!(bit_by_bit(u64::MAX, u32::MAX), (u64::MAX / u64::from(u32::MAX), 0));
    }
}
