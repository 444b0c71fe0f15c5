//! Whether received bits are the expected ones, sampled a clock late or early.
//!
//! That happens if the clock is too fast for the chip and the wires, or the mode is wrong.

/// Whether `got` is `wanted` one bit late (`true`) or early (`false`), of `width` bits, 2 to 32, the first
/// sent the highest. The bit that came from outside is not compared.
pub(super) fn shifted(got: u32, wanted: u32, width: u32) -> Option<bool> {
    let below_first = u32::MAX >> (u32::BITS - width + 1);
    if got & below_first == wanted >> 1 {
        Some(true)
    } else if got >> 1 == wanted & below_first {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::shifted;

    #[test]
    fn the_bit_from_outside_does_not_matter() {
        for width in [24, 32] {
            let wanted = 0x00ef_4019;
            let first = 1 << (width - 1);
            for late in [wanted >> 1, wanted >> 1 | first] {
                assert_eq!(shifted(late, wanted, width), Some(true), "{width}");
            }
            let whole = u32::MAX >> (32 - width);
            for early in [wanted << 1 & whole, wanted << 1 & whole | 1] {
                assert_eq!(shifted(early, wanted, width), Some(false), "{width}");
            }
            assert_eq!(shifted(wanted, wanted, width), None);
            assert_eq!(shifted(wanted >> 2, wanted, width), None);
        }
    }
}
