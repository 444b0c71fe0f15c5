//! Names of devices as patterns: `0000:01:*`, `eth?`.

/// A name in which `*` stands for any text and `?` for one character.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pattern(String);

impl Pattern {
    /// Any text is a pattern, but none.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a device has a name: 0000:01:00.0 or 0000:01:*".into());
        }
        Ok(Self(text.into()))
    }

    /// Whether the whole name is as the pattern says. Takes time in proportion to the product of both
    /// lengths at most.
    pub(super) fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut at, mut read) = (0, 0);
        // The last star, and the number of characters that it matches so far.
        let mut star = None;
        while read < name.len() {
            match pattern.get(at) {
                Some(b'*') => {
                    star = Some((at, read));
                    at += 1;
                }
                Some(&byte) if byte == b'?' || byte == name[read] => {
                    at += 1;
                    read += 1;
                }
                _ => {
                    let Some((star_at, taken)) = star else { return false };
                    star = Some((star_at, taken + 1));
                    (at, read) = (star_at + 1, taken + 1);
                }
            }
        }
        pattern[at..].iter().all(|&byte| byte == b'*')
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("eth0", "eth0", true),
            ("eth0", "eth01", false),
            ("eth?", "eth0", true),
            ("eth?", "eth", false),
            ("*", "", true),
            ("*", "0000:01:00.0", true),
            ("0000:01:*", "0000:01:00.0", true),
            ("0000:01:*", "0000:02:00.0", false),
            ("*.0", "0000:01.0:00.0", true),
            ("*1*3*", "0123", true),
            ("*1*3*4", "0123", false),
            ("a*b?", "aabb", true),
        ] {
            let pattern = Pattern::parse(pattern).expect("a pattern");
            assert_eq!(pattern.matches(name), expected, "{pattern} {name}");
        }
        assert!(Pattern::parse("").is_err());
    }
}
