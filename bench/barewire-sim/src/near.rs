//! Finds the known name that a mistyped one probably meant.

/// The one of `known` nearest to `word`, unless even that is nothing like it.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |name: &str| strsim::jaro_winkler(&word.to_lowercase(), &name.to_lowercase());
    known
        .iter()
        .copied()
        .filter(|name| likeness(name) > 0.75)
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
}

/// The message for a `what` (board, option, fault) called `word` that does not exist.
pub fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let meant = match nearest(word, known) {
        Some(name) => format!("did you mean {name:?}? "),
        None => String::new(),
    };
    format!("there is no {what} {word:?}: {meant}(known: {})", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_wins_and_nothing_alike_is_no_suggestion() {
        let known = ["imx8mp", "sabrelite"];
        assert_eq!(nearest("imx8m", &known), Some("imx8mp"));
        assert_eq!(nearest("SABRELIGHT", &known), Some("sabrelite"));
        assert_eq!(nearest("zzz", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(
            unknown("board", "imx8", &known),
            "there is no board \"imx8\": did you mean \"imx8mp\"? (known: imx8mp, sabrelite)"
        );
    }
}
