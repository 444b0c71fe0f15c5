//! A traffic as a TOML file.

use std::fs;
use std::path::Path;

use barewire_sim::BoardSpec;
use barewire_sim::bound::{Interruption, Path as BusPath, Task, Traffic};
use serde::Deserialize;

use crate::shared::failure::Failure;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    inheritance: bool,
    wake_up_ns: Option<u64>,
    #[serde(default)]
    task: Vec<FileTask>,
    #[serde(default)]
    interruption: Vec<FileInterruption>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTask {
    name: String,
    chip_select: u8,
    speed_hz: u32,
    #[serde(default)]
    priority: u8,
    period_us: u64,
    path: FilePath,
    messages: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FilePath {
    Sync,
    Prepared,
    Lock,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileInterruption {
    name: String,
    task: String,
    period_us: u64,
    keeps_us: u64,
}

/// Longer messages would take too long to simulate.
const BYTES_MAX: usize = 1 << 20;

/// Reads the traffic that `path` describes, for a board of `spec`.
///
/// # Errors
/// [`Failure::Failed`] if it cannot be read, [`Failure::Usage`] if it does not say what it has to.
pub(super) fn read(path: &Path, spec: &BoardSpec) -> Result<Traffic, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::io(format_args!("read {}", path.display()), &error))?;
    parse(&text, spec).map_err(|what| Failure::Usage(format!("{}: {what}", path.display())))
}

fn parse(text: &str, spec: &BoardSpec) -> Result<Traffic, String> {
    let told = |error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("line {}: {}", before.matches('\n').count() + 1, error.message())
    };
    let File { inheritance, wake_up_ns, task, interruption } =
        toml::from_str(text).map_err(told)?;
    if task.is_empty() {
        return Err("it has no [[task]]".into());
    }
    let mut tasks: Vec<Task> = Vec::new();
    for task in task {
        if tasks.iter().any(|other| other.name == task.name) {
            return Err(format!("two tasks are called {:?}", task.name));
        }
        tasks.push(task.checked(spec)?);
    }
    let find = |it: FileInterruption| {
        let task = tasks.iter().position(|task| task.name == it.task);
        let FileInterruption { name, period_us, keeps_us, .. } = it;
        let task =
            task.ok_or_else(|| format!("interruption {name:?}: there is no task {:?}", it.task))?;
        if period_us == 0 || keeps_us == 0 {
            return Err(format!("interruption {name:?}: period_us and keeps_us are above 0"));
        }
        Ok(Interruption { name, task, period_us, keeps_us })
    };
    let interruptions = interruption.into_iter().map(find).collect::<Result<_, _>>()?;
    if wake_up_ns == Some(0) {
        return Err("wake_up_ns is above 0: no thread wakes up at once".into());
    }
    Ok(Traffic { inheritance, wake_up_ns, tasks, interruptions })
}

impl FileTask {
    fn checked(self, spec: &BoardSpec) -> Result<Task, String> {
        let wrong = |what: String| Err(format!("task {:?}: {what}", self.name));
        let lines = spec.cs.len();
        if usize::from(self.chip_select) >= lines {
            let what = format!("{} has chip selects 0 to {}", spec.name, lines - 1);
            return wrong(format!("chip_select = {}: {what}", self.chip_select));
        }
        if self.period_us == 0 {
            return wrong("period_us is above 0".into());
        }
        if self.messages.is_empty() || self.messages.iter().any(Vec::is_empty) {
            return wrong(
                "messages is a list of messages, each a list of its transfers' lengths".into(),
            );
        }
        if self.messages.iter().flatten().any(|&bytes| bytes == 0 || bytes > BYTES_MAX) {
            return wrong(format!("a transfer has 1 to {BYTES_MAX} bytes"));
        }
        if self.priority == u8::MAX {
            return wrong("priority is 0 to 254".into());
        }
        let path = match self.path {
            FilePath::Sync => BusPath::Sync,
            FilePath::Prepared => BusPath::Prepared,
            FilePath::Lock => BusPath::Lock,
        };
        let Self { name, chip_select, speed_hz, priority, period_us, messages, .. } = self;
        Ok(Task { name, chip_select, speed_hz, priority, period_us, path, messages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "name = \"a\"\nchip_select = 0\nspeed_hz = 1000000\nperiod_us = 100\n\
                        path = \"sync\"\nmessages = [[4]]\n";

    fn parse(text: &str) -> Result<Traffic, String> {
        super::parse(text, BoardSpec::find("imx8mp").expect("a board"))
    }

    #[test]
    fn the_example_is_read() {
        let traffic =
            parse(include_str!("../../../../../examples/canecho.toml")).expect("is right");
        assert_eq!(traffic.tasks.len(), 2);
        assert_eq!(
            (traffic.tasks[0].path, traffic.tasks[1].path),
            (BusPath::Prepared, BusPath::Sync)
        );
        assert_eq!(traffic.interruptions[0].task, 1);
    }

    #[test]
    fn each_mistake_is_named() {
        for (from, to, said) in [
            ("name", "nam", "line 2: unknown field `nam`"),
            ("speed_hz = 1000000\n", "", "missing field `speed_hz`"),
            ("\"sync\"", "\"async\"", "unknown variant `async`"),
            ("chip_select = 0", "chip_select = 77", "has chip selects 0 to"),
            ("period_us = 100", "period_us = 0", "period_us is above 0"),
            ("[[4]]", "[]", "a list of messages"),
            ("[[4]]", "[[]]", "a list of messages"),
            ("[[4]]", "[[4, 0]]", "1 to 1048576 bytes"),
            ("period_us = 100", "period_us = 100\npriority = 255", "priority is 0 to 254"),
        ] {
            let error = parse(&format!("[[task]]\n{}", TASK.replace(from, to))).expect_err(to);
            assert!(error.contains(said), "{to}: {error}");
        }
        assert!(parse("").expect_err("no task").contains("no [[task]]"));
        let twice = format!("[[task]]\n{TASK}[[task]]\n{TASK}");
        assert!(parse(&twice).expect_err("twice").contains("two tasks are called \"a\""));
        let sleepless = format!("wake_up_ns = 0\n[[task]]\n{TASK}");
        assert!(parse(&sleepless).expect_err("at once").contains("wake_up_ns"));
        for (task, keeps, said) in [("b", 1, "there is no task \"b\""), ("a", 0, "above 0")] {
            let it =
                format!("name = \"t\"\ntask = \"{task}\"\nperiod_us = 1\nkeeps_us = {keeps}\n");
            let text = format!("[[task]]\n{TASK}[[interruption]]\n{it}");
            assert!(parse(&text).expect_err(said).contains(said));
        }
    }
}
