//! `--draw`: one message, in characters or as an SVG.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use barewire_scope::picture::{self, Kept, Paper};
use barewire_scope::{Options, Scope};

use super::failed;
use super::message::Lines;
use super::picture::{EDGES_MAX, Subject, waves};
use crate::shared::failure::Failure;
use crate::shared::files::Output;
use crate::shared::interrupt;
use crate::shared::output;
use crate::shared::progress::{BYTES, Progress};
use crate::shared::text::figure;

/// Where the width is not known.
const COLUMNS: usize = 100;

/// Draws message `nth`: in the terminal, or to `out`.
pub(super) fn run(
    path: &Path,
    options: &Options,
    nth: u64,
    out: Option<(&Path, Output)>,
) -> Result<(), Failure> {
    let mut scope = Scope::open(path, options.clone()).map_err(failed)?;
    let progress = Progress::with_template("reading", scope.capture().file_bytes(), false, BYTES);
    let (mut messages, mut found) = (0, None);
    let mut lines = Lines::new(false, false, scope.capture());
    while found.is_none() {
        let more = scope.step(&mut |wires, message, told| {
            if messages == nth {
                lines.add(wires, message, told);
                let (message, told) = (message.clone(), told.clone());
                found = Some((wires.clone(), Kept { nth, message, told }));
            }
            messages += 1;
        });
        if !more.map_err(failed)? {
            break;
        }
        progress.set(scope.capture().read_bytes());
        interrupt::check()?;
    }
    let Some((wires, kept)) = found else {
        let (path, last) = (path.display(), messages.saturating_sub(1));
        return Err(Failure::Failed(match messages {
            0 => format!("{path} has no message to draw"),
            _ => format!(
                "{path} has {}: --draw takes 0 to {last}",
                figure::counted(messages, "message")
            ),
        }));
    };
    drop(progress);
    let (tick, channels) = (scope.capture().tick(), scope.capture().channels().to_vec());
    let rows = picture::lines(&wires, &channels, kept.message.select);
    let waves = waves(path, options, &wires, std::slice::from_ref(&kept), EDGES_MAX, false)?;
    if let Some((out_path, out)) = out {
        let kinds = scope.finish().map(|summary| summary.kinds).unwrap_or_default();
        let file = path.display().to_string();
        let subject = Subject { file, tick, channels: &channels, wires: &wires };
        let name = format!("{}, message {nth}: {}", subject.file, subject.name(&kept, &kinds));
        let drawn: String =
            waves.iter().map(|wave| super::picture::svg(&subject, wave, &name)).collect();
        return super::picture::end(out, out_path, &drawn);
    }
    lines.write(0)?;
    let paper = Paper { columns: columns(), ascii: is_ascii(), word_bits: wires.word_bits };
    let drawn: String = waves.iter().map(|wave| picture::draw(wave, &rows, tick, paper)).collect();
    output::text(&drawn)
}

/// The width of the terminal.
fn columns() -> usize {
    let size =
        rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|_| io::stdout().is_terminal());
    size.map_or(COLUMNS, |size| usize::from(size.ws_col)).max(40)
}

/// Whether the locale or the terminal has no characters of boxes.
fn is_ascii() -> bool {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    let is_utf8 = |locale: String| locale.to_ascii_lowercase().replace('-', "").contains("utf8");
    let term = std::env::var("TERM").unwrap_or_default();
    let is_old = io::stdout().is_terminal() && (term == "dumb" || term.starts_with("vt"));
    is_old || locale.is_some_and(|locale| !is_utf8(locale))
}
