//! A user's own figures: lines of `id,value`.

/// Reads them; a first line `id,value`, empty lines and comments after `#` are skipped.
pub(super) fn parse(text: &str) -> Result<Vec<(String, f64)>, String> {
    let mut figures: Vec<(String, f64)> = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() || nth == 0 && line.starts_with("id,") {
            continue;
        }
        let wrong = |why: &str| format!("line {}: {why}", nth + 1);
        let (id, value) = line.split_once(',').ok_or_else(|| wrong("not id,value"))?;
        let (id, value) = (id.trim(), value.trim());
        let value = value.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
        let value = value.ok_or_else(|| wrong("the value is not a number above 0"))?;
        if figures.iter().any(|figure| figure.0 == id) {
            return Err(wrong(&format!("{id} is there twice")));
        }
        figures.push((id.into(), value));
    }
    if figures.is_empty() { Err("no line of id,value".into()) } else { Ok(figures) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_others_refused_by_number() {
        let text = "id,value\n# mine\njander-rfc-irq-A, 171\n\nellis-cs-hold,0.5 # scope\n";
        let figures = [("jander-rfc-irq-A".to_owned(), 171.0), ("ellis-cs-hold".to_owned(), 0.5)];
        assert_eq!(parse(text), Ok(figures.to_vec()));
        for (text, part) in [
            ("", "no line"),
            ("id,value\n", "no line"),
            ("a", "line 1: not id,value"),
            ("a,1\nb,x", "line 2: the value"),
            ("a,-1", "above 0"),
            ("a,inf", "above 0"),
            ("a,1,us", "above 0"),
            ("a,1\na,2", "line 2: a is there twice"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
