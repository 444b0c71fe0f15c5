//! The file of costs of `costs=FILE` and of the lab's `--costs FILE`.

use std::path::Path;

use barewire_sim::profile::CostFile;

use crate::files;

/// Reads the text of a file of costs: JSON if it begins with `{`, as `barewire measure` writes it, else TOML.
///
/// # Errors
/// If it is of another form, with the line where it is TOML; or as [`CostFile::check`].
pub fn parse(text: &str) -> Result<CostFile, String> {
    let file: CostFile = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| error.to_string())?,
        false => toml::from_str(text).map_err(|error| {
            let before = text.get(..error.span().map_or(0, |span| span.start));
            let line = before.unwrap_or_default().matches('\n').count() + 1;
            format!("line {line}: {}", error.message())
        })?,
    };
    file.check()?;
    Ok(file)
}

/// Reads a file of costs.
///
/// # Errors
/// If it cannot be read, or as [`parse`]; the error names it.
pub fn read(path: &Path) -> Result<CostFile, String> {
    let text = files::read_text(path).map_err(|error| error.to_string())?;
    parse(&text).map_err(|why| format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let json = r#"{"provenance":"measured on a board","profile":"imx8mp","other":1,"costs":
            [{"name":"register_read_ps","unit":"ps","value":250000,"low":240000,"high":300000}]}"#;
        let toml = "provenance = \"measured on a board\"\nprofile = \"imx8mp\"\n[[cost]]\n\
            name = \"register_read_ps\"\nvalue = 250000\nlow = 240000\nhigh = 300000\n";
        let file = parse(json).expect("JSON");
        assert_eq!(Ok(&file), parse(toml).as_ref());
        assert_eq!(file.cost[0].low, 240_000.0);
    }

    #[test]
    fn a_wrong_file_says_what_is_wrong() {
        assert!(parse("{").is_err_and(|error| error.contains("EOF")));
        assert!(parse("a = 1\ncost = 7").is_err_and(|error| error.contains("line 2")));
        let upside_down = "[[cost]]\nname = \"wake_ps\"\nvalue = 2\nlow = 3\nhigh = 4";
        assert!(parse(upside_down).is_err_and(|error| error.contains("its own range")));
    }
}
