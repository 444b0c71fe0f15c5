//! Doctor's report, as data and as text.

use std::fmt::Write as _;

use serde::Serialize;

/// The result. Scripts rely on its field names.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(super) machine: Machine,
    /// About the machine as a whole.
    pub(super) findings: Vec<Finding>,
    pub(super) controllers: Vec<Controller>,
    /// Buses that can be used now.
    pub(super) ready: Vec<String>,
    /// Buses that can be used after their steps.
    pub(super) after_steps: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) model: String,
    pub(super) compatible: Vec<String>,
    pub(super) kernel: String,
    pub(super) uid: u32,
}

/// A controller.
#[derive(Debug, Serialize)]
pub(super) struct Controller {
    pub(super) name: String,
    /// The address of its registers, if it has any.
    pub(super) base: Option<u64>,
    /// Its name for `controller=`, if barewire drives it.
    pub(super) block: Option<&'static str>,
    pub(super) driver: Option<String>,
    pub(super) kernel_bus: Option<u32>,
    /// Its path in the device tree.
    pub(super) node: String,
    pub(super) findings: Vec<Finding>,
    pub(super) ways: Vec<Way>,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// The fact is as it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Something will not work.
    Problem,
}

/// A fact, and what to do about it.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// The subject, in a word or two.
    pub(super) about: String,
    pub(super) text: String,
    pub(super) steps: Vec<Step>,
}

/// Commands to paste, and those that undo them.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) why: String,
    pub(super) commands: Vec<String>,
    /// The commands that undo it, in their order.
    pub(super) undo: Vec<String>,
}

/// A way to a bus.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    /// `barewire`, `spidev`, `uio` or `mem`.
    pub(super) kind: &'static str,
    /// For `--bus`; `None` where a part of it is not known yet.
    pub(super) bus: Option<String>,
    pub(super) ready: bool,
    /// Obstacles that no command removes.
    pub(super) obstacles: Vec<String>,
    /// Steps to take first, in this order.
    pub(super) steps: Vec<Step>,
    /// Commands that try it.
    #[serde(rename = "try")]
    pub(super) tries: Vec<String>,
}

impl Finding {
    pub(super) fn new(level: Level, about: &str, text: impl Into<String>) -> Self {
        Self { level, about: about.to_owned(), text: text.into(), steps: Vec::new() }
    }

    pub(super) fn with(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl Step {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), commands: Vec::new(), undo: Vec::new() }
    }

    pub(super) fn run(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    pub(super) fn undone_by(mut self, command: impl Into<String>) -> Self {
        self.undo.push(command.into());
        self
    }

    fn write(&self, text: &mut String, indent: &str) {
        let _ = writeln!(text, "{indent}{}", self.why);
        for command in &self.commands {
            let _ = writeln!(text, "{indent}  $ {command}");
        }
        for command in &self.undo {
            let _ = writeln!(text, "{indent}  undo: {command}");
        }
    }
}

impl Way {
    pub(super) fn new(kind: &'static str) -> Self {
        Self { kind, bus: None, ready: false, obstacles: vec![], steps: vec![], tries: vec![] }
    }

    /// Whether commands alone lead to it.
    pub(super) fn is_reachable(&self) -> bool {
        self.obstacles.is_empty()
    }

    fn write(&self, text: &mut String) {
        let bus = self.bus.as_deref().unwrap_or(self.kind);
        let state = match (self.ready, self.is_reachable()) {
            (true, _) => "ready",
            (false, true) => "after these steps, as root:",
            (false, false) => "not now:",
        };
        let _ = writeln!(text, "  {bus}: {state}");
        for obstacle in &self.obstacles {
            let _ = writeln!(text, "    - {obstacle}");
        }
        for step in &self.steps {
            step.write(text, "    ");
        }
        if self.is_reachable() {
            for command in &self.tries {
                let _ = writeln!(text, "    try: {command}");
            }
        }
    }
}

impl Controller {
    fn write(&self, text: &mut String) {
        let block = self.block.map(|block| format!(" ({block})")).unwrap_or_default();
        let driver = self.driver.as_ref().map(|driver| format!("kernel driver {driver}"));
        let driver = driver.unwrap_or_else(|| "no kernel driver".into());
        let bus = self.kernel_bus.map(|bus| format!(", bus {bus}")).unwrap_or_default();
        let base =
            self.base.as_ref().map(|base| format!("at {base:#x}{block}, ")).unwrap_or_default();
        let _ = writeln!(text, "\n{}: {base}{driver}{bus}", self.name);
        self.findings.iter().for_each(|finding| finding.write(text));
        self.ways.iter().for_each(|way| way.write(text));
    }
}

impl Finding {
    fn write(&self, text: &mut String) {
        let mark = match self.level {
            Level::Ok => " ",
            Level::Note => "-",
            Level::Problem => "!",
        };
        let _ = writeln!(text, "{mark} {:<14}{}", self.about, self.text);
        self.steps.iter().for_each(|step| step.write(text, "                "));
    }
}

impl Report {
    pub(super) fn text(&self) -> String {
        let Machine { model, compatible, kernel, uid } = &self.machine;
        let board = match (model.is_empty(), compatible.is_empty()) {
            (true, true) => "a machine without a device tree".to_owned(),
            (true, false) => compatible.join(", "),
            (false, true) => model.clone(),
            (false, false) => format!("{model} ({})", compatible.join(", ")),
        };
        let user = if *uid == 0 { "root".to_owned() } else { format!("user {uid}") };
        let mut text = format!("This machine: {board}, Linux {kernel}, as {user}\n");
        self.findings.iter().for_each(|finding| finding.write(&mut text));
        if self.controllers.is_empty() {
            text += "\nNo SPI controller is in the device tree, or none is enabled there.\n";
        }
        self.controllers.iter().for_each(|controller| controller.write(&mut text));
        text.push('\n');
        let mut list = |title: &str, buses: &[String]| {
            for bus in buses {
                let _ = writeln!(text, "{title} --bus {bus}");
            }
        };
        list("Ready now:        ", &self.ready);
        list("After its steps:  ", &self.after_steps);
        if self.ready.is_empty() && self.after_steps.is_empty() {
            text += "No bus of this machine can be used yet; simulated boards always can: --bus sim:imx8mp\n";
        }
        text
    }
}
