//! Results on stdout, whose reader may have gone; notes and errors on stderr.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::shared::failure::Failure;

/// Whether stdout has an output's data. It is the process's, as stdout is.
static HAS_DATA: AtomicBool = AtomicBool::new(false);

/// From here on results go to stderr: stdout is for [`data`].
pub(crate) fn keep_stdout_for_data() {
    HAS_DATA.store(true, Ordering::Relaxed);
}

/// Prints text that ends its own lines.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Prints one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    text(&json_line(value)?)
}

/// One line of JSON, with its end.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let line = serde_json::to_string(value)
        .map_err(|error| Failure::Failed(format!("cannot make JSON of the result: {error}")))?;
    Ok(line + "\n")
}

/// Writes bytes of a result as they are.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    if HAS_DATA.load(Ordering::Relaxed) {
        let _ = io::stderr().write_all(bytes);
        return Ok(());
    }
    data(bytes)
}

/// Writes an output's bytes to stdout.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::io("write to stdout", &error),
    })
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
