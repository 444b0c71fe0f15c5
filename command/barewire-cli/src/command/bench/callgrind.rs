//! Exact instruction counts, by running a program under callgrind.
//!
//! Instructions inside libc are left out: how it fills memory depends on the machine and the
//! version.

use std::path::Path;
use std::process::{Command, Stdio};

/// Counts the instructions in all functions whose names contain `symbol`, while `program` runs with
/// `arguments`.
///
/// # Errors
/// A message for the user: why it could not be counted.
pub(super) fn collect(program: &Path, symbol: &str, arguments: &[&str]) -> Result<u64, String> {
    let profiles = profiles(program, symbol, arguments, None)?;
    match profiles.iter().map(|profile| collected(profile, &program.to_string_lossy())).sum() {
        0 => Err(NO_SYMBOL.into()),
        total => Ok(total),
    }
}

/// The same for each single call of these functions, of which there must be `calls`; their names
/// continue `symbol` with `_`.
///
/// # Errors
/// As [`collect`]; also if the number of calls differs.
pub(super) fn collect_each(
    program: &Path,
    symbol: &str,
    arguments: &[&str],
    calls: usize,
) -> Result<Vec<u64>, String> {
    // Another pattern than that of `--toggle-collect`, because callgrind 3.19 keeps only one option
    // per pattern.
    let after = format!("--dump-after=*{symbol}_*");
    let mut profiles = profiles(program, symbol, arguments, Some(&after))?;
    // The last dump covers the instructions after the last call.
    profiles.pop();
    if profiles.len() != calls {
        return Err(format!("callgrind saw {} calls of {calls}: {NO_SYMBOL}", profiles.len()));
    }
    Ok(profiles.iter().map(|profile| collected(profile, &program.to_string_lossy())).collect())
}

const NO_SYMBOL: &str = "callgrind did not find the operation's symbol: is the program stripped?";

/// The profiles that callgrind writes while `program` runs, in order.
fn profiles(
    program: &Path,
    symbol: &str,
    arguments: &[&str],
    option: Option<&str>,
) -> Result<Vec<String>, String> {
    let place = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    let profile = place.path().join("callgrind");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(format!("--toggle-collect=*{symbol}*"))
        .args(option)
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("valgrind does not run ({error}); install it to count"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind failed: {}", report.lines().last().unwrap_or_default()));
    }
    let numbered = (1..).map(|number| profile.with_extension(number.to_string()));
    let mut profiles = Vec::new();
    for path in numbered.take_while(|path| path.exists()).chain([profile.clone()]) {
        let profile = std::fs::read_to_string(&path)
            .map_err(|error| format!("callgrind left no profile: {error}"))?;
        profiles.push(profile);
    }
    Ok(profiles)
}

/// Sums the instructions of `program`'s own functions in a callgrind profile.
///
/// A line of two numbers is a source line and its cost, in the object named by the last `ob=` line.
/// The line after `calls=` is the callee's cost, which is also in the callee's own lines.
fn collected(profile: &str, program: &str) -> u64 {
    let mut lines = profile.lines();
    let (mut own, mut total) = (false, 0);
    while let Some(line) = lines.next() {
        if let Some(object) = line.strip_prefix("ob=") {
            own = object == program;
        } else if line.starts_with("calls=") {
            lines.next();
        } else if own && line.starts_with(|first: char| first.is_ascii_digit()) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok());
            total += cost.unwrap_or_default();
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_s_own_lines_are_added_up() {
        let profile = "# callgrind format\nevents: Ir\nsummary: 560\n\n\
            ob=/lib/libc.so.6\nfn=memset\n336 400\n\n\
            ob=/bin/barewire\nfl=a.rs\nfn=one\n10 100\nfi=b.rs\n11 50\n\
            cob=/lib/libc.so.6\ncfn=memset\ncalls=1 336\n12 400\n13 10\n";
        assert_eq!(collected(profile, "/bin/barewire"), 160);
        assert_eq!(collected(profile, "/bin/other"), 0);
    }
}
