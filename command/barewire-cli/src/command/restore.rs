//! `barewire restore`: gives chips and controllers back to the kernel drivers they had.
//!
//! Nothing is remembered between commands: what doctor's steps leave behind can be seen. A controller
//! without a driver is offered to the kernel's drivers again (`drivers_probe`), which also sets its pins
//! and clock. A chip that was asked for spidev (`driver_override`) loses the override and is offered
//! too. Overlays and the kernel's command line are not undone here: doctor prints how.

use std::fs;

use barewire_linux::Root;
use barewire_linux::survey::{Child, Controller, Survey};
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::output;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Give a controller back even while a process has its registers mapped
    #[arg(long)]
    force: bool,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// One thing given back; its field names are an interface.
#[derive(Debug, Serialize)]
struct Action {
    device: String,
    commands: Vec<String>,
    /// The driver that has it afterwards; `None` if it was not done, or no driver took it.
    driver: Option<String>,
    /// Why it was not done.
    problem: Option<String>,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let actions = restore(&Root::system(), args);
    if args.json {
        output::json(&actions)?;
    } else {
        output::text(&text(&actions, args.dry_run))?;
    }
    let failed: Vec<String> = actions.iter().filter_map(Action::failure).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(failed.join("; "))),
    }
}

/// Controllers first: a chip is a device again once its controller has a driver.
fn restore(root: &Root, args: &Args) -> Vec<Action> {
    let lost = |controller: &&Controller| controller.device.driver.is_none();
    let survey = Survey::of(root);
    let controllers = survey.controllers.iter().filter(lost);
    let mut actions: Vec<Action> = controllers.map(|it| of_controller(root, args, it)).collect();
    let survey = Survey::of(root);
    for child in survey.controllers.iter().flat_map(Controller::devices) {
        actions.extend(of_child(root, args, child));
    }
    actions
}

fn of_controller(root: &Root, args: &Args, controller: &Controller) -> Action {
    let device = &controller.device;
    let probe = Write::new(&device.name, format!("/sys/bus/{}/drivers_probe", device.bus));
    let link = format!("/sys/bus/{}/devices/{}/driver", device.bus, device.name);
    let mut action = Action::new(&device.name);
    if !controller.mapped_by.is_empty() && !args.force {
        let processes: Vec<String> = controller.mapped_by.iter().map(u32::to_string).collect();
        action.problem = Some(format!(
            "process {} has its registers mapped: end it first (--force does not wait)",
            processes.join(", ")
        ));
        return action;
    }
    action.run(root, args, &[probe], &link);
    action
}

fn of_child(root: &Root, args: &Args, child: &Child) -> Option<Action> {
    let device = child.device.as_deref()?;
    child.asked_driver.as_deref().filter(|asked| *asked == "spidev")?;
    let directory = format!("/sys/bus/spi/devices/{device}");
    let mut writes = Vec::new();
    if child.driver.as_deref() == Some("spidev") {
        writes.push(Write::new(device, "/sys/bus/spi/drivers/spidev/unbind".into()));
    }
    writes.push(Write::new("", format!("{directory}/driver_override")));
    writes.push(Write::new(device, "/sys/bus/spi/drivers_probe".into()));
    let mut action = Action::new(device);
    action.run(root, args, &writes, &format!("{directory}/driver"));
    Some(action)
}

/// A line written to a file of sysfs.
struct Write {
    text: String,
    path: String,
}

impl Write {
    fn new(text: &str, path: String) -> Self {
        Self { text: text.to_owned(), path }
    }

    fn command(&self) -> String {
        let space = if self.text.is_empty() { "" } else { " " };
        format!("echo{space}{} > {}", self.text, self.path)
    }

    fn run(&self, root: &Root) -> Result<(), String> {
        let written = fs::write(root.path(&self.path), format!("{}\n", self.text));
        written.map_err(|error| format!("cannot write {}: {error}", self.path))
    }
}

impl Action {
    fn new(device: &str) -> Self {
        Self { device: device.to_owned(), commands: Vec::new(), driver: None, problem: None }
    }

    fn run(&mut self, root: &Root, args: &Args, writes: &[Write], link: &str) {
        self.commands = writes.iter().map(Write::command).collect();
        if args.dry_run {
            return;
        }
        self.problem = writes.iter().find_map(|write| write.run(root).err());
        let driver = fs::read_link(root.path(link)).ok();
        self.driver = driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    }

    fn failure(&self) -> Option<String> {
        let problem = self.problem.as_ref()?;
        Some(format!("{}: {problem}", self.device))
    }
}

fn text(actions: &[Action], dry_run: bool) -> String {
    if actions.is_empty() {
        return "Nothing to restore: every controller has a driver, and no chip was asked for spidev.\n"
            .into();
    }
    let mut text = String::new();
    for Action { device, commands, driver, problem } in actions {
        let end = match (problem, driver) {
            (Some(_), _) => "not restored".to_owned(),
            (None, Some(driver)) => format!("restored to {driver}"),
            (None, None) if dry_run => "would be restored".to_owned(),
            (None, None) => "offered, and no driver took it".to_owned(),
        };
        text += &format!("{device}: {end}\n");
        commands.iter().for_each(|command| text += &format!("  {command}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const NOT_DRY: Args = Args { dry_run: false, force: false, json: false };

    /// A controller without a driver, and a chip of another that was lent to spidev.
    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().expect("a directory");
        let make = |path: &str| fs::create_dir_all(dir.path().join(path)).expect("a directory");
        make("sys/bus/platform/devices/30820000.spi");
        make("sys/bus/platform/devices/30830000.spi/spi_master/spi1");
        make("sys/bus/platform/drivers/spi_imx");
        make("sys/bus/spi/devices/spi1.0");
        make("sys/bus/spi/drivers/spidev");
        let link =
            |target: &str, path: &str| symlink(target, dir.path().join(path)).expect("a link");
        link("../../drivers/spi_imx", "sys/bus/platform/devices/30830000.spi/driver");
        link("../../drivers/spidev", "sys/bus/spi/devices/spi1.0/driver");
        fs::write(dir.path().join("sys/bus/spi/devices/spi1.0/driver_override"), "spidev\n")
            .expect("a file");
        let root = Root::at(dir.path());
        (dir, root)
    }

    fn read(root: &Root, path: &str) -> Option<String> {
        fs::read_to_string(root.path(path)).ok()
    }

    #[test]
    fn what_was_lent_is_given_back() {
        let (_dir, root) = tree();
        let actions = restore(&root, &NOT_DRY);
        assert_eq!(actions.len(), 2);
        assert_eq!(
            read(&root, "/sys/bus/platform/drivers_probe").as_deref(),
            Some("30820000.spi\n")
        );
        assert_eq!(read(&root, "/sys/bus/spi/drivers/spidev/unbind").as_deref(), Some("spi1.0\n"));
        assert_eq!(
            read(&root, "/sys/bus/spi/devices/spi1.0/driver_override").as_deref(),
            Some("\n")
        );
        assert_eq!(read(&root, "/sys/bus/spi/drivers_probe").as_deref(), Some("spi1.0\n"));
        assert!(text(&actions, false).contains("30820000.spi: offered, and no driver took it"));
    }

    #[test]
    fn a_dry_run_writes_nothing() {
        let (_dir, root) = tree();
        let actions = restore(&root, &Args { dry_run: true, ..NOT_DRY });
        assert_eq!(read(&root, "/sys/bus/platform/drivers_probe"), None);
        assert_eq!(
            read(&root, "/sys/bus/spi/devices/spi1.0/driver_override").as_deref(),
            Some("spidev\n")
        );
        let text = text(&actions, true);
        assert!(text.contains("  echo 30820000.spi > /sys/bus/platform/drivers_probe\n"), "{text}");
        assert!(text.contains("  echo > /sys/bus/spi/devices/spi1.0/driver_override\n"), "{text}");
    }

    #[test]
    fn registers_that_are_mapped_are_left_alone() {
        let (dir, root) = tree();
        fs::create_dir_all(dir.path().join("proc/77")).expect("a directory");
        let maps = "ffff9000-ffffa000 rw-s 30820000 00:05 87 /dev/mem\n";
        fs::write(dir.path().join("proc/77/maps"), maps).expect("a file");
        let action = &restore(&root, &NOT_DRY)[0];
        assert!(action.failure().is_some_and(|why| why.contains("process 77")), "{action:?}");
        assert_eq!(read(&root, "/sys/bus/platform/drivers_probe"), None);
        assert_eq!(restore(&root, &Args { force: true, ..NOT_DRY })[0].problem, None);
    }
}
