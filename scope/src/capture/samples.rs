//! Samples of equal width to changes: equal samples are skipped, eight bytes at a time.

use super::Edge;

/// Where the samples of a capture stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples {
    /// The bytes of a sample, 1 to 8, the lowest first.
    pub(super) unit: usize,
    /// The bits that are channels.
    pub(super) mask: u64,
    /// The samples so far.
    pub(super) at: u64,
    /// The last one; none before the first.
    pub(super) last: Option<u64>,
}

impl Samples {
    /// Appends the changes in `bytes`, which are whole samples.
    pub(super) fn scan(&mut self, bytes: &[u8], edges: &mut Vec<Edge>) {
        match self.unit {
            1 => self.scan_units::<1>(bytes, edges),
            2 => self.scan_units::<2>(bytes, edges),
            3 => self.scan_units::<3>(bytes, edges),
            4 => self.scan_units::<4>(bytes, edges),
            5 => self.scan_units::<5>(bytes, edges),
            6 => self.scan_units::<6>(bytes, edges),
            7 => self.scan_units::<7>(bytes, edges),
            _ => self.scan_units::<8>(bytes, edges),
        }
    }

    fn scan_units<const N: usize>(&mut self, bytes: &[u8], edges: &mut Vec<Edge>) {
        let mask = self.mask;
        let (mut rest, mut at) = (bytes, self.at);
        let Some(first) = rest.first_chunk::<N>() else { return };
        let mut last = self.last.unwrap_or_else(|| {
            edges.push(Edge { at, levels: le(first) & mask });
            le(first) & mask
        });
        while let Some((unit, behind)) = rest.split_first_chunk::<N>() {
            let levels = le(unit) & mask;
            if levels != last {
                edges.push(Edge { at, levels });
                last = levels;
            } else if 8 % N == 0 {
                // Equal: perhaps the next ones are, too.
                let skipped = equal::<N>(behind, last, mask);
                at += 1 + (skipped / N) as u64;
                rest = &behind[skipped..];
                continue;
            }
            at += 1;
            rest = behind;
        }
        (self.at, self.last) = (at, Some(last));
    }
}

/// How many bytes at the beginning, in steps of 32, are samples equal to `levels` where `mask` is set.
fn equal<const N: usize>(bytes: &[u8], levels: u64, mask: u64) -> usize {
    let spread = |value: u64| (0..8 / N).fold(0, |all, n| all | value << (8 * N * n));
    let (levels, mask) = (spread(levels), spread(mask));
    let differ = |bytes: &[u8]| {
        bytes.first_chunk().map_or(0, |eight| (u64::from_le_bytes(*eight) ^ levels) & mask)
    };
    let same = |chunk: &&[u8]| {
        differ(chunk) | differ(&chunk[8..]) | differ(&chunk[16..]) | differ(&chunk[24..]) == 0
    };
    32 * bytes.chunks_exact(32).take_while(same).count()
}

fn le<const N: usize>(unit: &[u8; N]) -> u64 {
    let mut eight = [0; 8];
    eight[..N].copy_from_slice(unit);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// What the loop skips is what a plain comparison of samples skips, for each width, mask and border of pieces.
        #[test]
        fn changes_are_those_of_a_plain_comparison(
            unit in 1_usize..9,
            mask: u64,
            runs in prop::collection::vec((any::<u64>(), 1_usize..90), 1..9),
            piece in 1_usize..70,
        ) {
            let mask = mask & u64::MAX >> (64 - 8 * unit) | 1;
            let values: Vec<u64> = runs.iter().flat_map(|&(value, times)| vec![value; times]).collect();
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()[..unit].to_vec()).collect();
            let mut samples = Samples { unit, mask, at: 0, last: None };
            let mut edges = Vec::new();
            bytes.chunks(piece * unit).for_each(|piece| samples.scan(piece, &mut edges));
            let mut expected: Vec<Edge> = Vec::new();
            for (at, value) in values.iter().enumerate() {
                let levels = value & mask;
                if expected.last().is_none_or(|last| last.levels != levels) {
                    expected.push(Edge { at: at as u64, levels });
                }
            }
            prop_assert_eq!(edges, expected);
            prop_assert_eq!(samples.at, values.len() as u64);
        }
    }
}
