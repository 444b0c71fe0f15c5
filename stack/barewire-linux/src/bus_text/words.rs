//! Words that were meant.

/// The one of `known` that `word` is a slip of, if it is like any.
pub(super) fn near(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word = word.to_lowercase();
    // Half a word is one, too: `reference`, `clock`.
    let part = |whole: &str| word.len() >= 3 && whole.contains(&word);
    let like = |whole: &str| edits(&word, whole) <= 1 + whole.len() / 4;
    let near = known.iter().copied().filter(|&whole| part(whole) || like(whole));
    let nearest = near.min_by_key(|whole| edits(&word, whole));
    // One letter is as near to "cs" as any other word is.
    nearest.filter(|_| word.chars().count() > 1)
}

/// How many letters must be added, dropped or changed to make one word the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, &wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != wanted);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in
            [("", "", 0), ("", "cs", 2), ("cs", "", 2), ("cs", "sc", 2), ("kitten", "sitting", 3)]
        {
            assert_eq!(edits(one, other), count, "{one:?} {other:?}");
        }
    }
}
