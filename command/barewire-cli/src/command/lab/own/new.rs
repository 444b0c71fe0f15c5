//! `barewire lab new`: a commented experiment of the user's own.

use std::path::PathBuf;

use barewire_lab::own::{Driver, OwnExperiment};
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::{files, output};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file, which must not be there yet; `-` prints it
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// The board: a shipped one, or a file of your own beside the experiment
    #[arg(long, value_name = "BOARD", default_value = "rpi3")]
    board: String,
    /// The kernel: 3.14 to 6.12
    #[arg(long, value_name = "VERSION", default_value = "6.12")]
    kernel: String,
    /// Take the messages of a kernel's trace of events/spi, with their median times; - is stdin
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,
    /// SPI's clock in the trace, in Hz; without it, by what a byte more takes
    #[arg(long, value_name = "HZ", requires = "trace")]
    speed_hz: Option<u64>,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct NewExperiment<'r> {
    file: &'r str,
    board: &'r str,
    kernel: &'r str,
}

/// The file, with what is begun from in braces. Examples begin with `#:`, those of ECSPI with `#%`.
const TEMPLATE: &str = include_str!("new.toml");

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Args { file, board, kernel, trace, speed_hz, json } = args;
    let folder = file.parent().unwrap_or(std::path::Path::new(""));
    let boards = |name: &str| crate::command::lab::given::board(folder, name);
    let text = match trace {
        Some(path) => {
            let shown = path.display().to_string();
            let origin = super::Origin { file: &shown, board, kernel, speed_hz: *speed_hz };
            let trace = crate::command::lab::fit::trace_of(path)?;
            super::traced(&trace, origin).map_err(Failure::Failed)?
        }
        None => text(board, kernel, &boards).map_err(Failure::Usage)?,
    };
    let own = OwnExperiment::read("new", &text, &boards)
        .map_err(|what| Failure::Usage(super::without_place(&what)))?;
    if file.as_os_str() == "-" {
        return output::text(&text);
    }
    let shown = file.display().to_string();
    if file.extension().is_none_or(|ending| ending != "toml") {
        return Err(Failure::Usage(format!("{shown}: call it FILE.toml, so that others know it")));
    }
    files::write_new(file, &text)?;
    if *json {
        return output::json(&NewExperiment { file: &shown, board, kernel });
    }
    let (count, s) = (own.messages.len(), if own.messages.len() == 1 { "" } else { "s" });
    let last = own.messages.last().expect("an experiment has messages");
    let name = own.message("register").unwrap_or(last).name.clone();
    output::text(&format!(
        "{shown} has {count} message{s} on {board} through Linux {kernel}. Change it, then:\n  \
         barewire lab run {shown}\n  barewire lab explain {shown}:{name}\n  barewire lab gain {shown}\n  \
         barewire lab sweep --experiment {shown} --length 1..64\n"
    ))
}

/// The file, if the board and the kernel will do.
fn text(
    board: &str,
    kernel: &str,
    boards: crate::command::lab::given::Boards<'_>,
) -> Result<String, String> {
    let filled = |cs: u8, speed_hz: &str| {
        TEMPLATE
            .replace("{board}", board)
            .replace("{kernel}", kernel)
            .replace("{cs}", &cs.to_string())
            .replace("{speed}", speed_hz)
            .replace("#: ", "# ")
    };
    let checked = |text: &str| OwnExperiment::read("new", text, boards);
    let first = filled(0, "1_000_000");
    // The line in the file that is not there yet says nothing to the user.
    let own = checked(&first).map_err(|what| super::without_place(&what))?;
    let speed_hz = match own.driver {
        Driver::Bcm2835 => "3_600_000",
        Driver::Imx => "16_000_000",
        Driver::Mcspi => "2_000_000",
    };
    // Comments on what the board has not are left out.
    let text = filled(own.cs, speed_hz);
    let lines = text.lines().filter(|line| own.driver == Driver::Imx || !line.starts_with("#% "));
    Ok(lines.map(|line| line.replace("#% ", "# ") + "\n").collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn boards(name: &str) -> Result<&'static barewire_sim::BoardSpec, String> {
        crate::command::lab::given::board(Path::new(""), name)
    }

    #[test]
    fn a_new_experiment_is_right_on_each_board_that_has_a_driver() {
        for board in ["rpi3", "imx8mp", "imx6dl", "sabrelite", "beaglebone"] {
            for kernel in ["3.14", "4.4", "5.18", "5.19", "6.1", "6.12"] {
                let text = text(board, kernel, &boards).expect(board);
                let own = OwnExperiment::read("new", &text, &boards)
                    .unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(own.messages.len(), 3, "{board}");
            }
        }
        let error = text("zynq", "6.1", &boards).expect_err("it has no driver");
        assert!(error.starts_with("zynq has the controller Cadence SPI"), "{error}");
        let error = text("rpi3", "9.0", &boards).expect_err("no such kernel");
        assert!(error.starts_with("the kernel is \"9.0\""), "{error}");
    }

    /// Each example, alone, in the place of its comment.
    #[test]
    fn each_example_of_the_template_is_right() {
        let mark = |line: &str| line.starts_with("#: ") || line.starts_with("#% ");
        let lines: Vec<&str> = TEMPLATE.lines().collect();
        let mut begins: Vec<usize> = Vec::new();
        for (nth, line) in lines.iter().enumerate() {
            // A table's keys stay with it.
            let follows = nth > 0 && mark(lines[nth - 1]) && !line.contains('[');
            if mark(line) && !follows {
                begins.push(nth);
            }
        }
        assert_eq!(begins.len(), 8);
        for begin in begins {
            let end = (begin..).find(|&nth| !lines.get(nth).is_some_and(|line| mark(line)));
            let end = end.expect("the file ends");
            let text: String = lines
                .iter()
                .enumerate()
                .map(|(nth, line)| match (begin..end).contains(&nth) {
                    true => format!("{}\n", &line[3..]),
                    false => format!("{line}\n"),
                })
                .collect();
            let is_imx = lines[begin].starts_with("#% ");
            let text = text.replace("{board}", if is_imx { "imx8mp" } else { "rpi3" });
            let text = text.replace("{kernel}", "6.12").replace("{speed}", "1_000_000");
            let text = text.replace("{cs}", "0");
            OwnExperiment::read("new", &text, &boards)
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}
