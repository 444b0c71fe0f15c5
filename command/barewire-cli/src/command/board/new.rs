//! `barewire board new`: a commented file of a board of the user's own.

use std::path::PathBuf;

use serde::Serialize;

use super::show;
use crate::shared::failure::Failure;
use crate::shared::{files, output};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file, which must not be there yet; `-` prints it
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// The shipped board that it begins from
    #[arg(long, value_name = "BOARD", default_value = "rpi3")]
    like: String,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct NewBoard<'r> {
    file: &'r str,
    bus: String,
    like: &'r str,
}

/// The file, with what is begun from in braces. Examples begin with `#:`.
const TEMPLATE: &str = include_str!("new.toml");

/// Runs it.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let Args { file, like, json } = args;
    let like = like.strip_prefix("sim:").unwrap_or(like);
    let text = text(like, show::text(like)?);
    if file.as_os_str() == "-" {
        return output::text(&text);
    }
    let shown = file.display().to_string();
    let is_known = file.extension().is_some_and(|ending| ending == "toml") || shown.contains('/');
    if !is_known || shown.contains(',') {
        let what = format!(
            "{shown}: a bus is named after it, sim:FILE: call it FILE.toml, without a comma"
        );
        return Err(Failure::Usage(what));
    }
    files::write_new(file, &text)?;
    if *json {
        return output::json(&NewBoard { file: &shown, bus: format!("sim:{shown}"), like });
    }
    output::text(&format!(
        "{shown} is a board like {like}. Change it, then:\n  barewire list {shown}        checks it and says what is on it\n  \
         barewire xfer --bus sim:{shown} --cs 0 00\n"
    ))
}

/// The file of a board like `like`, whose own file is `of_like`.
fn text(like: &str, of_like: &str) -> String {
    let chips: Vec<&str> = of_like.split("\n\n").filter(|part| part.contains("[[chip]]")).collect();
    let kind = of_like.lines().find_map(|line| line.strip_prefix("kind = \"")?.strip_suffix('"'));
    TEMPLATE
        .replace("{like}", like)
        .replace("{kind}", kind.unwrap_or_default())
        .replace("{chips}", &format!("{}\n", chips.join("\n\n").trim_end()))
        .replace("#: ", "# ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use barewire_sim::BoardSpec;
    use barewire_sim::board::board_names;

    use super::*;

    fn read(text: &str) -> &'static BoardSpec {
        let spec = BoardSpec::from_toml("new.toml", text, Path::new(""));
        spec.unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn a_new_board_is_the_one_that_it_is_like() {
        for name in board_names() {
            let like = BoardSpec::find(name).expect("a board");
            let spec = read(&text(name, BoardSpec::text_of(name).expect("a board")));
            let BoardSpec { title: _, name: _, like: _, ref chips, .. } = *spec;
            assert_eq!(format!("{chips:?}"), format!("{:?}", like.chips), "{name}");
            assert_eq!((spec.cs, spec.gpio, spec.kind), (like.cs, like.gpio, like.kind));
            assert_eq!(
                (&spec.profile, spec.controller_base),
                (&like.profile, like.controller_base)
            );
        }
    }

    /// Each example alone, in the place of the board's chips and what else it replaces.
    #[test]
    fn each_example_of_the_template_is_right() {
        let mut examples: Vec<String> = Vec::new();
        for line in TEMPLATE.replace("{like}", "rpi3").replace("{kind}", "bcm2835").lines() {
            let Some(line) = line.strip_prefix("#: ") else { continue };
            match examples.last_mut() {
                Some(example) if !line.starts_with('[') => *example += &format!("\n{line}"),
                _ => examples.push(line.into()),
            }
        }
        assert_eq!(examples.len(), 14, "{examples:#?}");
        for example in &examples {
            let costs = if example.starts_with("costs") { "" } else { "costs = \"rpi5\"\n" };
            read(&format!("like = \"rpi3\"\n{costs}{example}\n"));
        }
    }
}
