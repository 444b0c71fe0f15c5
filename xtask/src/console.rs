//! Output for people: headers, colours, and lines that never stop the run.

use std::io::{self, IsTerminal, Write};

/// How a piece of text is meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tone {
    Strong,
    Good,
    Bad,
    Warning,
}

/// Where the run's own lines go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    colour: bool,
    silent: bool,
    /// The name of the step, put before each of its lines while two steps run side by side.
    step: Option<&'static str>,
}

impl Console {
    /// Uses colours if stdout is a terminal and `NO_COLOR` is not set.
    pub(crate) fn detect() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: io::stdout().is_terminal() && !refused, silent: false, step: None }
    }

    /// For tests of code that prints. Without it, their lines would look like those of the run that
    /// runs the tests.
    #[cfg(test)]
    pub(crate) fn silent() -> Self {
        Self { colour: false, silent: true, step: None }
    }

    /// The same for a step that runs beside another: each of its lines begins with its name.
    pub(crate) fn of_step(self, step: &'static str) -> Self {
        Self { step: Some(step), ..self }
    }

    /// `line` as it is printed, with its end. It is written at once, so that no other line gets in.
    pub(crate) fn framed(self, line: &[u8]) -> Vec<u8> {
        let step = self.step.map(|step| format!("{step:<12} | ")).unwrap_or_default();
        [step.as_bytes(), line, b"\n"].concat()
    }

    /// Whether children should colour their output too.
    pub(crate) fn colour(self) -> bool {
        self.colour
    }

    /// `text`, coloured if colours are on.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Strong => "1",
            Tone::Good => "32",
            Tone::Bad => "1;31",
            Tone::Warning => "1;33",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Prints a line. A reader that closed the pipe (`| head`) must not turn a good run into
    /// a panic, so a failed write is ignored: the exit code still tells the result.
    pub(crate) fn say(self, line: &str) {
        if !self.silent {
            let lines = line.split('\n').flat_map(|line| self.framed(line.as_bytes()));
            let _ = io::stdout().write_all(&lines.collect::<Vec<_>>());
        }
    }

    /// Prints a line on stderr: progress of a command whose stdout is its result.
    pub(crate) fn aside(self, line: &str) {
        if !self.silent {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    /// Prints the heading of a step, with an empty line above it.
    pub(crate) fn header(self, text: &str) {
        self.say(&format!("\n{}", self.paint(Tone::Strong, &format!("==== {text}"))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_text_is_left_alone() {
        assert_eq!(Console::silent().paint(Tone::Bad, "failed"), "failed");
    }

    #[test]
    fn lines_of_a_step_beside_another_begin_with_its_name() {
        let console = Console::silent();
        assert_eq!(console.framed(b"test a ... ok"), b"test a ... ok\n");
        let framed = console.of_step("miri").framed(b"test a ... ok");
        assert_eq!(framed, b"miri         | test a ... ok\n");
    }

    #[test]
    fn with_colour_text_is_wrapped_and_closed() {
        let painted = Console { colour: true, ..Console::silent() }.paint(Tone::Good, "passed");
        assert!(painted.starts_with("\x1b[32m") && painted.ends_with("\x1b[0m"), "{painted:?}");
    }
}
