//! Results on stdout, whose reader may have gone; notes and errors on stderr.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use crate::shared::failure::Failure;

/// Prints text that ends its own lines.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::io("write to stdout", &error),
    })
}

/// Prints one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(value)
        .map_err(|error| Failure::Failed(format!("cannot make JSON of the result: {error}")))?;
    text(&(line + "\n"))
}

/// Writes a line to stderr. Unlike `eprintln!` it does not panic where stderr cannot be written:
/// the command's own work goes on, and its exit code still tells.
pub(crate) fn stderr_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// [`stderr_line`] as `eprintln!` is written.
macro_rules! note {
    ($($line:tt)*) => { $crate::shared::output::stderr_line(format_args!($($line)*)) };
}
pub(crate) use note;
