//! `barewire restore`: gives chips and controllers back to the kernel drivers they had.
//!
//! Nothing is remembered between commands: the state that doctor's steps leave behind is visible. A controller without
//! a driver is offered to the kernel's drivers again (`drivers_probe`), which also sets its pins and clock. A chip
//! without a driver is offered too, and one that was asked for spidev (`driver_override`) loses that first. A device
//! that no driver takes is an error. Overlays and the kernel's command line are not undone here: doctor prints how.

use std::fmt;
use std::fs;

use barewire_linux::Root;
use barewire_linux::survey::{Child, Controller, Survey};
use serde::Serialize;

use super::doctor::{held, waits};
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::sysfs::{JOURNAL, Write};

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

/// One device given back. Scripts rely on the field names.
#[derive(Debug, Serialize)]
struct Action {
    device: String,
    commands: Vec<String>,
    /// The driver that has it afterwards.
    driver: Option<String>,
    /// Why none has.
    problem: Option<String>,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let actions = restore(&Root::system(), args);
    forget(&Root::system(), args, &actions);
    if args.json {
        output::json(&actions)?;
    } else {
        output::text(&text(&actions))?;
    }
    let failed: Vec<String> = actions.iter().filter_map(Action::failure).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(failed.join("; "))),
    }
}

/// Removes what a measurement left behind that was killed, once all is given back.
fn forget(root: &Root, args: &Args, actions: &[Action]) {
    if !args.dry_run && actions.iter().all(|action| action.problem.is_none()) {
        let _ = fs::remove_file(root.path(JOURNAL));
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
    let directory = format!("/sys/bus/{}/devices/{}", device.bus, device.name);
    let mut action = Action::new(&device.name);
    if !controller.mapped_by.is_empty() && !args.force {
        let processes: Vec<String> = controller.mapped_by.iter().map(u32::to_string).collect();
        action.problem = Some(format!(
            "process {} has its registers mapped: end it first (--force does not wait)",
            processes.join(", ")
        ));
        return action;
    }
    let hindrance = held(controller).or_else(|| waiting(&controller.awaits));
    let why = DriverlessDevice { directory: &directory, asked: None, hindrance };
    action.run(root, args, &[probe], &why);
    action
}

fn of_child(root: &Root, args: &Args, child: &Child) -> Option<Action> {
    let device = child.device.as_deref()?;
    let lent = |asked: &&str| *asked == "spidev";
    let asked = child.asked_driver.as_deref();
    let driver = child.driver.as_deref();
    if asked.filter(lent).is_none() && driver.is_some() {
        return None;
    }
    let directory = format!("/sys/bus/spi/devices/{device}");
    let mut writes = Vec::new();
    if asked.and(driver).filter(lent).is_some() {
        writes.push(Write::new(device, "/sys/bus/spi/drivers/spidev/unbind".into()));
    }
    if asked.filter(lent).is_some() {
        writes.push(Write::new("", format!("{directory}/driver_override")));
    }
    writes.push(Write::new(device, "/sys/bus/spi/drivers_probe".into()));
    let mut action = Action::new(device);
    let asked = asked.filter(|asked| !lent(asked));
    let why = DriverlessDevice { directory: &directory, asked, hindrance: waiting(&child.awaits) };
    action.run(root, args, &writes, &why);
    Some(action)
}

fn waiting(awaits: &[String]) -> Option<String> {
    (!awaits.is_empty()).then(|| waits(awaits))
}

/// A device that no driver took when it was offered, and the likely reasons.
struct DriverlessDevice<'a> {
    /// The device's.
    directory: &'a str,
    /// The one driver that may take it.
    asked: Option<&'a str>,
    /// The obstacle to every driver.
    hindrance: Option<String>,
}

impl fmt::Display for DriverlessDevice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { directory, asked, hindrance } = self;
        f.write_str("offered, and no driver took it: ")?;
        match (asked, hindrance) {
            (Some(asked), _) => write!(
                f,
                "only {asked} may (driver_override), and did not; `echo > {directory}/driver_override` lets all, then run this again"
            ),
            (None, Some(why)) => f.write_str(why),
            (None, None) => write!(
                f,
                "`modprobe \"$(cat {directory}/modalias)\"` loads the kernel's driver for it; if that is loaded, `dmesg` says why it failed"
            ),
        }
    }
}

impl Action {
    fn new(device: &str) -> Self {
        Self { device: device.to_owned(), commands: Vec::new(), driver: None, problem: None }
    }

    fn run(&mut self, root: &Root, args: &Args, writes: &[Write], why: &DriverlessDevice<'_>) {
        self.commands = writes.iter().map(Write::command).collect();
        if args.dry_run {
            return;
        }
        self.problem = writes.iter().find_map(|write| write.run(root).err());
        let driver = fs::read_link(root.path(format!("{}/driver", why.directory))).ok();
        self.driver = driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        if self.driver.is_none() {
            self.problem.get_or_insert_with(|| why.to_string());
        }
    }

    fn failure(&self) -> Option<String> {
        let problem = self.problem.as_ref()?;
        Some(format!("{}: {problem}", self.device))
    }
}

fn text(actions: &[Action]) -> String {
    if actions.is_empty() {
        return "Nothing to restore: every controller and chip has a driver, and no chip was asked for spidev.\n"
            .into();
    }
    let mut text = String::new();
    for Action { device, commands, driver, problem } in actions {
        let end = match (problem, driver) {
            (Some(_), _) => "not restored".to_owned(),
            (None, Some(driver)) => format!("restored to {driver}"),
            (None, None) => "would be restored".to_owned(),
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

    fn write(root: &Root, path: &str, text: &str) {
        fs::write(root.path(path), text).expect("a file");
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
    }

    /// The state after doctor's first step: no driver is bound, and `driver_override` is empty.
    #[test]
    fn a_chip_that_was_only_unbound_is_offered() {
        let (dir, root) = tree();
        fs::remove_file(dir.path().join("sys/bus/spi/devices/spi1.0/driver")).expect("unbound");
        write(&root, "/sys/bus/spi/devices/spi1.0/driver_override", "(null)\n");
        let actions = restore(&root, &NOT_DRY);
        assert_eq!(actions[1].commands, ["echo spi1.0 > /sys/bus/spi/drivers_probe"]);
        assert_eq!(read(&root, "/sys/bus/spi/drivers_probe").as_deref(), Some("spi1.0\n"));
    }

    #[test]
    fn what_no_driver_takes_is_an_error_with_its_remedy() {
        let (dir, root) = tree();
        let failures = || -> Vec<String> {
            restore(&root, &NOT_DRY).iter().filter_map(Action::failure).collect()
        };
        let [controller] = &failures()[..] else { panic!("spi1.0 is still linked to a driver") };
        let modprobe = "modprobe \"$(cat /sys/bus/platform/devices/30820000.spi/modalias)\"";
        assert!(controller.starts_with("30820000.spi: ") && controller.contains(modprobe));
        fs::remove_file(dir.path().join("sys/bus/spi/devices/spi1.0/driver")).expect("unbound");
        write(&root, "/sys/bus/platform/devices/30820000.spi/waiting_for_supplier", "1\n");
        write(&root, "/sys/bus/spi/devices/spi1.0/driver_override", "mine\n");
        let [controller, chip] = &failures()[..] else { panic!("neither has a driver") };
        assert!(controller.contains("waits for"), "{controller}");
        assert!(chip.contains("only mine may"), "{chip}");
        assert!(chip.contains("echo > /sys/bus/spi/devices/spi1.0/driver_override"), "{chip}");
        assert_eq!(
            read(&root, "/sys/bus/spi/devices/spi1.0/driver_override").as_deref(),
            Some("mine\n"),
            "it is not barewire's"
        );
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
        assert!(actions.iter().all(|action| action.failure().is_none()), "{actions:?}");
        let text = text(&actions);
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
        let _ = restore(&root, &Args { force: true, ..NOT_DRY });
        assert!(read(&root, "/sys/bus/platform/drivers_probe").is_some(), "it was offered");
    }
}
