//! Words that were meant.

use strsim::levenshtein;

/// The one of `known` that `word` is a slip of, if it is like any.
pub(super) fn near(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word = word.to_lowercase();
    // Half a word is one, too: `reference`, `clock`.
    let part = |whole: &str| word.len() >= 3 && whole.contains(&word);
    let like = |whole: &str| levenshtein(&word, whole) <= 1 + whole.len() / 4;
    let near = known.iter().copied().filter(|&whole| part(whole) || like(whole));
    let nearest = near.min_by_key(|whole| levenshtein(&word, whole));
    // One letter is as near to "cs" as any other word is.
    nearest.filter(|_| word.chars().count() > 1)
}
