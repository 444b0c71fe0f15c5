//! The flash chips' content: random, the same on every machine, and judged after a guest is gone.

use crate::check::{Check, Verdict};

/// Seeds of a flash's content and of what guests write into it.
const SEED_CONTENT: u64 = 0x0062_6172_6577_6972;
const SEED_NEW: u64 = 0x0067_7565_7374_7300;

/// How much of the flash a guest gets as a file to compare with, and how much it has to write.
const REFERENCE_BYTES: usize = 4 << 20;
pub(super) const NEW_BYTES: usize = 1 << 20;

/// Random bytes by xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
/// generators, scrambled", 2016, <https://doi.org/10.1145/2845077>).
fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 7);
    while bytes.len() < length {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend(state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// The initial content of a flash of `length` bytes.
pub(super) fn content(length: usize) -> Vec<u8> {
    random(SEED_CONTENT, length)
}

/// The beginning of it, with which guests compare.
pub(super) fn reference(content: &[u8]) -> &[u8] {
    &content[..content.len().min(REFERENCE_BYTES)]
}

/// The bytes that guests write.
pub(super) fn new_bytes() -> Vec<u8> {
    random(SEED_NEW, NEW_BYTES)
}

/// Judges the flash's file: it has what the guest said it wrote, and nothing else changed.
///
/// `wrote` has offsets and lengths; each range holds the beginning of [`new_bytes`].
pub(super) fn judge(before: &[u8], after: &[u8], wrote: &[(usize, usize)]) -> Check {
    const NAME: &str = "flash-file";
    let new = new_bytes();
    let mut expected = before.to_vec();
    for &(offset, length) in wrote {
        let fits = offset.checked_add(length).is_some_and(|end| end <= expected.len());
        if !fits || length > new.len() {
            let why = format!("the guest wrote {length} bytes at {offset}, which does not fit");
            return Check::new(NAME, Verdict::Failed, why);
        }
        expected[offset..offset + length].copy_from_slice(&new[..length]);
    }
    if after.len() != expected.len() {
        let why = format!("the file has {} bytes of {}", after.len(), expected.len());
        return Check::new(NAME, Verdict::Failed, why);
    }
    let mut wrong = (0..after.len()).filter(|&at| after[at] != expected[at]);
    match wrong.next() {
        None => Check::new(NAME, Verdict::Passed, ""),
        Some(first) => {
            let count = 1 + wrong.count();
            let why = format!("{count} bytes are wrong, the first at {first:#x}");
            Check::new(NAME, Verdict::Failed, why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_random_and_always_the_same() {
        let bytes = content(4096);
        assert_eq!(bytes, content(4096));
        assert_eq!(&content(8192)[..4096], bytes);
        assert_ne!(&new_bytes()[..4096], bytes);
        let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
        assert!((15_500..17_300).contains(&ones), "{ones} of 32768");
        assert_eq!(reference(&bytes).len(), 4096);
    }

    #[test]
    fn what_was_written_is_expected_and_all_else_is_not() {
        let before = content(8192);
        let mut after = before.clone();
        after[100..300].copy_from_slice(&new_bytes()[..200]);
        assert_eq!(judge(&before, &after, &[(100, 200)]).verdict, Verdict::Passed);
        assert_eq!(judge(&before, &before, &[]).verdict, Verdict::Passed);
        let missing = judge(&before, &before, &[(100, 200)]);
        assert!(missing.why.contains("the first at 0x6"), "{missing:?}");
        after[8191] ^= 1;
        let elsewhere = judge(&before, &after, &[(100, 200)]);
        assert_eq!(elsewhere.why, "1 bytes are wrong, the first at 0x1fff");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let before = content(64);
        for wrote in [(0, 65), (64, 1), (usize::MAX, 2)] {
            assert_eq!(judge(&before, &before, &[wrote]).verdict, Verdict::Failed);
        }
        assert_eq!(judge(&before, &before[..63], &[]).verdict, Verdict::Failed);
    }
}
