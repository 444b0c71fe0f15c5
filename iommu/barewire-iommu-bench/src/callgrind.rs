//! Exact instruction counts, by running a program under callgrind.
//!
//! Instructions inside libc are left out: how it fills memory depends on the machine and the
//! version.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why this machine's counts cannot be compared with the reviewed ones, or `None` if they can.
/// `toolchain` is the content of `rust-toolchain.toml`.
pub fn why_not(toolchain: &str) -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("instruction counts are reviewed for x86-64 only".into());
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Some("instruction counts need valgrind (sudo apt-get install valgrind)".into());
    }
    other_compiler(toolchain)
}

/// Why the compiler's counts cannot be compared: it is not the one that `toolchain` pins.
pub(crate) fn other_compiler(toolchain: &str) -> Option<String> {
    let rustc = Command::new("rustc").arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let number = version.split_whitespace().nth(1).unwrap_or_default();
    if !toolchain.contains(&format!("channel = \"{number}\"")) {
        return Some(format!(
            "instruction counts are reviewed for the pinned compiler, not {number}"
        ));
    }
    None
}

/// The program whose instructions a test counts: the one in the directory `BAREWIRE_PROGRAMS` if that is
/// set, else `built`, which cargo built with the test. So a build in profile `counted` can be counted by tests
/// that have another profile themselves.
///
/// # Errors
/// `built` is of another profile: what to run instead.
pub fn program(built: &str) -> Result<PathBuf, String> {
    program_in(std::env::var_os("BAREWIRE_PROGRAMS").map(PathBuf::from).as_deref(), built)
}

fn program_in(dir: Option<&Path>, built: &str) -> Result<PathBuf, String> {
    let built = Path::new(built);
    match (dir, built.file_name()) {
        (Some(dir), Some(name)) => Ok(dir.join(name)),
        // Cargo builds each profile in a directory of its name.
        _ if built.parent().is_some_and(|dir| dir.ends_with("counted")) => Ok(built.into()),
        _ => Err(
            "instructions are counted of a build in profile counted (cargo test --profile counted \
                  -p barewire-iommu-bench --test instructions)"
                .into(),
        ),
    }
}

/// Counts the instructions in all functions whose names contain `symbol`, while `program` runs with
/// `arguments`.
///
/// # Errors
/// A message for the user: why it could not be counted.
pub fn collect(program: &Path, symbol: &str, arguments: &[&str]) -> Result<u64, String> {
    let place = tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
    let profile = place.path().join("callgrind");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(format!("--toggle-collect=*{symbol}*"))
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("valgrind does not run ({error}); install it to count"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind failed: {}", report.lines().last().unwrap_or_default()));
    }
    let profile = std::fs::read_to_string(&profile)
        .map_err(|error| format!("callgrind left no profile: {error}"))?;
    match collected(&profile, &program.to_string_lossy()) {
        0 => Err("callgrind did not find the operation's symbol: is the program stripped?".into()),
        total => Ok(total),
    }
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
    fn a_program_is_taken_from_the_directory_given_or_as_built() {
        let (counted, other) = ("/target/counted/iommu-count", "/target/ci/iommu-count");
        let given = Path::new("/target/counted");
        assert_eq!(program_in(Some(given), other).as_deref(), Ok(Path::new(counted)));
        assert_eq!(program_in(None, counted).as_deref(), Ok(Path::new(counted)));
        assert!(program_in(None, other).is_err_and(|why| why.contains("--profile counted")));
    }

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
