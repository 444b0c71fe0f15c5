//! `cargo xtask faults`: plants faults in the bus, one at a time in a copy of the tree, and expects the judge of
//! `barewire bound` to find each.
//!
//! A judge that finds nothing may be blind. Each fault makes the bus later than it promises, so some schedule exceeds a
//! bound, or no thread can go on.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::console::Console;
use crate::report::End;

/// A fault: `new` in the place of `old`, which the file contains once.
struct Fault {
    what: &'static str,
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

const BUS: &str = "stack/barewire/src/bus";

const FAULTS: [Fault; 10] = [
    Fault {
        what: "the oldest message is always next, whatever its priority",
        file: "queue.rs",
        old: "if self.urgent == 0 ||",
        new: "if true ||",
    },
    Fault {
        what: "a message may be overtaken 200 times",
        file: "queue.rs",
        old: "OVERTAKEN_MAX: u8 = 16",
        new: "OVERTAKEN_MAX: u8 = 200",
    },
    Fault {
        what: "a holder runs 4,000 messages of others",
        file: "queue.rs",
        old: "SERVE_MAX: usize = 16",
        new: "SERVE_MAX: usize = 4_000",
    },
    Fault {
        what: "the newest message goes first",
        file: "queue.rs",
        old: "                ends.tail.set_next(first);\n                ends.head",
        new: "                tail.set_next(Some(ends.head));\n                self.ends = Some(Ends { \
              head: first.unwrap_or(tail), tail: ends.tail });\n                return first;",
    },
    Fault {
        what: "a holder does not count what it runs",
        file: "serve.rs",
        old: "self.served += 1;",
        new: "self.served += 0;",
    },
    Fault {
        what: "an owner that is handed the bus is not woken",
        file: "serve.rs",
        old: "                self.bus.wake_sleeper(sleeper, self.panics);\n                return true;",
        new: "                let _ = sleeper;\n                return true;",
    },
    Fault {
        what: "a sleeper whose message ran is not woken",
        file: "serve.rs",
        old: "panics.insist(|| self.platform.wake(word));",
        new: "let _ = word;",
    },
    Fault {
        what: "a lock that is dropped leaves those who wait",
        file: "acquire.rs",
        old: "unsafe { bus.held() }.release_contended(SERVE_MAX);",
        new: "unsafe { bus.held() }.pass_on();",
    },
    Fault {
        what: "an urgent message that waited for the bus runs others' before it returns",
        file: "acquire.rs",
        old: "held.release_for(|| priority);",
        new: "held.release_for(|| 0);",
    },
    Fault {
        what: "a lock that lends priority is not handed to its next waiter",
        file: "inherit.rs",
        old: "inheritance.unlock(word);",
        new: "let _ = inheritance;",
    },
];

/// Schedules of each traffic.
const SCHEDULES: &str = "2000";
/// A judge that takes longer waits for a thread that never goes on.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    NotBuilt,
}

/// Runs the judge on the tree as it is, and with each fault.
///
/// # Errors
/// If the tree cannot be copied, or a fault's text is not in its file.
pub(crate) fn run(root: &Path, console: Console) -> Result<End, String> {
    let tree = root.join("target/faults/tree");
    copy(root, &tree)?;
    let mut blind = match judge(&tree) {
        Verdict::Passed => 0,
        Verdict::Failed | Verdict::NotBuilt => {
            return Err("the judge does not pass without a fault: cargo run --release -p barewire-sim --example bound".into());
        }
    };
    for fault in &FAULTS {
        let path = tree.join(BUS).join(fault.file);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if text.matches(fault.old).count() != 1 {
            return Err(format!("{}/{} does not contain {:?} once", BUS, fault.file, fault.old));
        }
        let write = |text: &str| {
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        write(&text.replace(fault.old, fault.new))?;
        let verdict = judge(&tree);
        write(&text)?;
        let told = match verdict {
            Verdict::Failed => "found",
            Verdict::Passed => "NOT FOUND",
            Verdict::NotBuilt => "DOES NOT COMPILE",
        };
        blind += usize::from(verdict != Verdict::Failed);
        console.say(&format!("{told}: {}", fault.what));
    }
    console.say(&format!(
        "FIGURE: bound: {} of {} planted faults found",
        FAULTS.len() - blind,
        FAULTS.len()
    ));
    Ok(End::of_check(blind == 0))
}

/// Copies the files that git tracks, as they are in the working tree.
fn copy(root: &Path, tree: &Path) -> Result<(), String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let listed = listed.map_err(|error| format!("git ls-files: {error}"))?.stdout;
    for name in String::from_utf8_lossy(&listed).split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root.join(name), tree.join(name));
        // A file that did not change keeps its time, so that it is not compiled again.
        if !from.is_file() || fs::read(&from).ok() == fs::read(&to).ok() {
            continue;
        }
        let made = to.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::copy(&from, &to)).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn judge(tree: &Path) -> Verdict {
    let cargo = |verb: &str| {
        let mut command = Command::new("cargo");
        command.args([verb, "--profile", "ci", "-p", "barewire-sim", "--example", "bound"]);
        command.current_dir(tree).env("CARGO_TARGET_DIR", tree.join("../build"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    if !cargo("build").status().is_ok_and(|status| status.success()) {
        return Verdict::NotBuilt;
    }
    let program = tree.join("../build/ci/examples/bound");
    let mut command = Command::new(program);
    command.arg(SCHEDULES).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return Verdict::NotBuilt };
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Verdict::Passed,
            Ok(None) if begun.elapsed() < LIMIT => thread::sleep(Duration::from_millis(50)),
            Ok(Some(_)) => return Verdict::Failed,
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Verdict::Failed;
            }
        }
    }
}
