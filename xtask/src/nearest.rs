//! Finds the command or step that a mistyped name probably meant.

/// How many single-character insertions, deletions and replacements turn `a` into `b`.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // One row of the usual table at a time: row[j] is the distance from the part of `a` read so
    // far to the first j characters of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The one of `known` nearest to `word`, unless even that is nothing like it.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let alike = |name: &&&str| distance(word, name) * 2 <= word.chars().count().max(name.len());
    known.iter().min_by_key(|name| distance(word, name)).filter(alike).copied()
}

/// The message for a `what` (command, step, option) called `word` that does not exist.
pub(crate) fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let meant = match nearest(word, known) {
        Some(name) => format!("did you mean `{name}`? "),
        None => String::new(),
    };
    format!("unknown {what} `{word}`; {meant}(known: {})", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_done_by_hand() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("fmt", "fmt", 0),
            ("fmt", "fnt", 1),
            ("clipy", "clippy", 1),
            ("tidyy", "tidy", 1),
            ("kitten", "sitting", 3),
            ("docs", "miri", 4),
        ] {
            assert_eq!(distance(a, b), expected, "{a} to {b}");
            assert_eq!(distance(b, a), expected, "{b} to {a}");
        }
    }

    #[test]
    fn the_nearest_name_wins() {
        assert_eq!(nearest("tests", &["tidy", "test", "tools"]), Some("test"));
        assert_eq!(nearest("no-std", &["docs", "no_std"]), Some("no_std"));
    }

    #[test]
    fn nothing_alike_is_no_suggestion() {
        assert_eq!(nearest("qqqqqq", &["fmt", "docs"]), None);
        assert_eq!(nearest("fmt", &[]), None);
        assert_eq!(
            unknown("step", "qqqqqq", &["fmt", "docs"]),
            "unknown step `qqqqqq`; (known: fmt, docs)"
        );
    }
}
