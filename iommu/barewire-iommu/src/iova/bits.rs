//! A bitmap that searches for aligned gaps a word at a time.

use super::storage::IovaStorage;

/// Granules per word.
pub(super) const WORD: u64 = u64::BITS as u64;

/// log2 of the largest gap that has a hint of its own.
const CLASSES: usize = 20;

/// One bit per granule, set if taken. The caller supplies the storage.
#[derive(Debug)]
pub(super) struct Bits<S> {
    words: S,
    /// The granule of bit 0 in word 0; a multiple of [`WORD`].
    first: u64,
    /// The word where the search for a gap of `1 << class` granules begins: after the last gap
    /// found, but not after anything released since. Only a hint: the search wraps around.
    hints: [usize; CLASSES],
    /// No hint is larger.
    highest: usize,
}

impl<S: IovaStorage> Bits<S> {
    /// Creates the bitmap with all granules free.
    pub(super) fn new(mut words: S, first: u64) -> Self {
        debug_assert!(first.is_multiple_of(WORD));
        words.words_mut().fill(0);
        Self { words, first, hints: [0; CLASSES], highest: 0 }
    }

    /// The number of granules.
    pub(super) fn granules(&self) -> u64 {
        self.words.words().len() as u64 * WORD
    }

    /// Takes `count` granules, at least one, that begin at a multiple of `1 << align`, and tells the first.
    #[inline]
    pub(super) fn take(&mut self, count: u64, align: u32) -> Option<u64> {
        let class = (align as usize).min(CLASSES - 1);
        match self.take_in_word(class, count, align) {
            Some(at) => Some(at),
            None => self.take_anywhere(class, count, align),
        }
    }

    /// Takes a gap in the word where the search begins, if it has one: the usual case of a small range.
    #[inline]
    fn take_in_word(&mut self, class: usize, count: u64, align: u32) -> Option<u64> {
        if count > WORD {
            return None;
        }
        let index = self.hints[class];
        let word = self.words.words_mut().get_mut(index)?;
        let starts = gaps(!*word, count as u32) & multiples(align);
        if starts == 0 {
            return None;
        }
        let bit = starts.trailing_zeros();
        *word |= u64::MAX >> (WORD - count) << bit;
        // After a gap that ends before its word, the same word may hold another.
        if u64::from(bit) + count == WORD {
            self.raise(class, index + 1);
        }
        Some(self.first + index as u64 * WORD + u64::from(bit))
    }

    /// `take` by a search of all words.
    #[inline(never)]
    fn take_anywhere(&mut self, class: usize, count: u64, align: u32) -> Option<u64> {
        let words = self.words.words().len();
        let from = self.hints[class].min(words);
        let at = self.find(count, align, from, words).or_else(|| {
            // A gap may begin before the hint and end after it.
            let end = words.min(from + count.div_ceil(WORD) as usize);
            self.find(count, align, 0, end)
        })?;
        self.set(at, count);
        // After a large gap, its words are full.
        self.raise(class, ((at + count - self.first) / WORD) as usize);
        Some(at)
    }

    /// Searches of `class` begin at word `index`, which is not before their last gap.
    #[inline]
    fn raise(&mut self, class: usize, index: usize) {
        self.hints[class] = index;
        self.highest = self.highest.max(index);
    }

    fn find(&self, count: u64, align: u32, from: usize, to: usize) -> Option<u64> {
        let words = &self.words.words()[..to];
        if count <= WORD && count <= 1 << align {
            // Such a gap is inside one word: shifts and masks find all aligned ones at once.
            return words.iter().enumerate().skip(from).find_map(|(i, &word)| {
                let starts = gaps(!word, count as u32) & multiples(align);
                (starts != 0)
                    .then(|| self.first + i as u64 * WORD + u64::from(starts.trailing_zeros()))
            });
        }
        // Whole words, from each multiple to the next.
        let step = 1u64 << align.max(WORD.trailing_zeros());
        let mut at = round_up(self.first + from as u64 * WORD, step);
        let end = self.first + words.len() as u64 * WORD;
        while at.checked_add(count)? <= end {
            match self.last_taken(at, count) {
                None => return Some(at),
                Some(taken) => at = round_up(taken + 1, step),
            }
        }
        None
    }

    /// A taken granule among `count` from `at`, which begins a word: the last taken granule of the
    /// last word with any, so that the search continues after it.
    fn last_taken(&self, at: u64, count: u64) -> Option<u64> {
        let index = ((at - self.first) / WORD) as usize;
        let whole = (count / WORD) as usize;
        let words = self.words.words();
        let rest = words.get(index + whole).map_or(0, |word| word & below(count % WORD));
        let found = |i: usize, word: u64| {
            self.first + i as u64 * WORD + u64::from(63 - word.leading_zeros())
        };
        if rest != 0 {
            return Some(found(index + whole, rest));
        }
        let words = &words[index..index + whole];
        // Test all words at once, which vectorises. Look for the position only if one is taken.
        if words.iter().fold(0, |all, word| all | word) == 0 {
            return None;
        }
        let last = words.iter().rposition(|&word| word != 0)?;
        Some(found(index + last, words[last]))
    }

    /// Whether all `count` granules from `at` are free.
    pub(super) fn is_free(&self, at: u64, count: u64) -> bool {
        let words = self.words.words();
        self.pieces(at, count).all(|(index, mask)| words[index] & mask == 0)
    }

    /// Marks the granules as taken.
    pub(super) fn set(&mut self, at: u64, count: u64) {
        debug_assert!(self.is_free(at, count), "taken twice");
        self.fill(at, count, u64::MAX);
    }

    /// Marks the granules as free.
    pub(super) fn clear(&mut self, at: u64, count: u64) {
        debug_assert!(self.is_taken(at, count), "released twice");
        self.fill(at, count, 0);
        let index = ((at - self.first) / WORD) as usize;
        if index < self.highest {
            self.lower(index);
        }
    }

    /// Lowers all hints to word `index`.
    fn lower(&mut self, index: usize) {
        for hint in &mut self.hints {
            *hint = (*hint).min(index);
        }
        self.highest = index;
    }

    fn is_taken(&self, at: u64, count: u64) -> bool {
        let words = self.words.words();
        self.pieces(at, count).all(|(index, mask)| words[index] & mask == mask)
    }

    /// Copies the bits of `value` to theirs, word by word.
    #[inline]
    fn fill(&mut self, at: u64, count: u64, value: u64) {
        let begin = at - self.first;
        let (index, bit) = ((begin / WORD) as usize, begin % WORD);
        // At least one granule, in one word. Small ranges never lie in two.
        if count.wrapping_sub(1) < WORD - bit {
            let mask = u64::MAX >> (WORD - count) << bit;
            let word = &mut self.words.words_mut()[index];
            *word = *word & !mask | value & mask;
        } else {
            self.fill_several(at, count, value);
        }
    }

    #[inline(never)]
    fn fill_several(&mut self, at: u64, count: u64, value: u64) {
        let begin = at - self.first;
        let end = begin + count;
        let (first, last) = ((begin / WORD) as usize, (end / WORD) as usize);
        let (head, tail) = (!below(begin % WORD), below(end % WORD));
        let words = self.words.words_mut();
        let mut change = |index: usize, mask: u64| {
            if mask != 0 {
                words[index] = words[index] & !mask | value & mask;
            }
        };
        if first == last {
            change(first, head & tail);
        } else {
            change(first, head);
            change(last, tail);
            words[first + 1..last].fill(value);
        }
    }

    /// The words that contain `count` granules from `at`, each with the mask of their bits.
    fn pieces(&self, at: u64, count: u64) -> impl Iterator<Item = (usize, u64)> + use<S> {
        let begin = at - self.first;
        let end = begin + count;
        let words = if count == 0 { 0..0 } else { begin / WORD..end.div_ceil(WORD) };
        words.map(move |word| {
            let first = begin.max(word * WORD) - word * WORD;
            let last = end.min((word + 1) * WORD) - word * WORD;
            (word as usize, below(last) & !below(first))
        })
    }
}

/// A mask of the lowest `count` bits, up to 64.
fn below(count: u64) -> u64 {
    if count >= WORD { u64::MAX } else { (1 << count) - 1 }
}

/// A mask of the bits whose position is a multiple of `1 << align`.
fn multiples(align: u32) -> u64 {
    // A table: to compute it takes a division.
    const MASKS: [u64; 7] = {
        let mut masks = [1; 7];
        let mut align = 0;
        while align < 6 {
            masks[align] = u64::MAX / (u64::MAX >> (64 - (1 << align)));
            align += 1;
        }
        masks
    };
    MASKS[(align as usize).min(MASKS.len() - 1)]
}

/// The first multiple of `step`, a power of two, from `at` on.
fn round_up(at: u64, step: u64) -> u64 {
    (at + (step - 1)) & !(step - 1)
}

/// The positions where `count` (1 to 64) set bits begin. Doubles: a run of four is two runs of two.
#[inline]
fn gaps(free: u64, count: u32) -> u64 {
    if count == 1 {
        return free;
    }
    let mut starts = free;
    let mut have = 1;
    // Shifts by constants: no step waits for the arithmetic of the one before.
    for more in [1, 2, 4, 8, 16, 32] {
        if 2 * more > count {
            break;
        }
        starts &= starts >> more;
        have = 2 * more;
    }
    // The rest after the last doubling. A run of `have` begins there already.
    if have < count { starts & starts >> (count - have) } else { starts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn gaps_begin_where_enough_ones_do() {
        for free in [0, 1, 0b1011_0111, u64::MAX, u64::MAX << 7, 0x8000_0000_0000_0001] {
            for count in 1..=64 {
                let mut expected = 0u64;
                for at in 0..=(64 - count) {
                    let mask = below(u64::from(count)) << at;
                    expected |= u64::from(free & mask == mask) << at;
                }
                assert_eq!(gaps(free, count), expected, "{free:#x} {count}");
            }
        }
    }

    #[test]
    fn multiples_are() {
        for align in 0..9 {
            let expected = (0..64)
                .filter(|bit| bit % (1u64 << align) == 0)
                .fold(0, |mask, bit| mask | 1 << bit);
            assert_eq!(multiples(align), expected, "{align}");
        }
    }

    /// Whether there is a fitting gap, by testing every granule.
    fn naive(taken: &BTreeSet<u64>, first: u64, end: u64, count: u64, align: u32) -> bool {
        (first..end)
            .filter(|at| at.is_multiple_of(1 << align))
            .any(|at| at + count <= end && (at..at + count).all(|g| !taken.contains(&g)))
    }

    /// Every pattern of taken nibbles in the first, middle and last word.
    #[test]
    fn a_gap_is_found_wherever_there_is_one() {
        let step = if cfg!(miri) { 32749 } else { 13 };
        for pattern in (0u64..1 << 16).step_by(step) {
            let word = (0..16).fold(0, |w, i| w | ((pattern >> i & 1) * 0xf) << (4 * i));
            let words = vec![word, !word, word.rotate_left(7)];
            let first = 5 * WORD;
            let taken: BTreeSet<u64> = (0..3 * WORD)
                .filter(|bit| words[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
                .map(|bit| first + bit)
                .collect();
            for (count, align) in [(1, 0), (3, 2), (5, 3), (16, 4), (33, 6), (65, 7), (100, 6)] {
                let mut bits = Bits::new(words.clone(), first);
                bits.words.clone_from(&words);
                for hint in 0..4 {
                    bits.hints = [hint; CLASSES];
                    bits.highest = hint;
                    let found = bits.take(count, align);
                    let there = naive(&taken, first, first + 3 * WORD, count, align);
                    assert_eq!(found.is_some(), there, "{pattern:#x} {count} {align} {hint}");
                    if let Some(at) = found {
                        assert!(at.is_multiple_of(1 << align));
                        assert!((at..at + count).all(|g| !taken.contains(&g)));
                        bits.clear(at, count);
                    }
                    assert_eq!(bits.words, words);
                }
            }
        }
    }

    /// Each search begins no later than at the first range released since, whatever that range's
    /// size.
    #[test]
    fn released_gaps_are_found_first() {
        for (count, align) in [(1, 0), (4, 2), (64, 6), (100, 7)] {
            let mut bits = Bits::new(vec![0; 64], 0);
            let first = bits.take(count, align).expect("room");
            // Searches of all sizes continue after the last range found.
            let others: Vec<u64> = [(1, 0), (2, 1), (32, 5), (128, 7), (512, 9)]
                .map(|(n, a)| bits.take(n, a).expect("room"))
                .into();
            assert!(others.iter().all(|at| *at > first));
            bits.clear(first, count);
            assert!(bits.hints.iter().all(|hint| *hint as u64 <= first / WORD));
            assert_eq!(bits.take(count, align), Some(first));
            // Once more, from hints that some searches have raised again.
            bits.take(512, 9).expect("room");
            bits.clear(first, count);
            assert!(bits.hints.iter().all(|hint| *hint as u64 <= first / WORD));
        }
    }

    #[test]
    fn pieces_are_the_granules() {
        let bits = Bits::new(vec![0; 4], 64);
        for (at, count) in [(64, 1), (64, 64), (70, 100), (127, 2), (128, 128), (64, 256)] {
            let granules: Vec<u64> = bits
                .pieces(at, count)
                .flat_map(|(i, mask)| {
                    (0..64).filter(move |b| mask >> b & 1 == 1).map(move |b| 64 + i as u64 * 64 + b)
                })
                .collect();
            assert_eq!(granules, (at..at + count).collect::<Vec<_>>());
        }
    }
}
