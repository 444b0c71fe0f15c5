//! The kernel's drivers: taken for a part of the measurement, and given back.
//!
//! # How it works
//! Before anything is written to `/sys`, a file says how to take it back: [`JOURNAL`], commands for a shell. It is removed
//! once all is as it was. If the process is killed, the file stays; `barewire restore` does what it says and removes it.

use std::fs;
use std::io::ErrorKind;
use std::thread::sleep;
use std::time::{Duration, Instant};

use barewire_linux::Root;
use barewire_linux::survey::{Child, Controller};

use crate::shared::failure::Failure;
use crate::shared::output::note;
use crate::shared::sysfs::{JOURNAL, Write};

/// How long a driver may take to be bound.
const BOUND_WITHIN: Duration = Duration::from_secs(5);

/// A step back.
#[derive(Clone, Debug)]
enum Undo {
    /// Written if its file is there.
    IfThere(Write),
    /// Written, and an error if it cannot be.
    Always(Write),
}

impl Undo {
    fn write(&self) -> &Write {
        match self {
            Self::IfThere(write) | Self::Always(write) => write,
        }
    }

    fn run(&self, root: &Root) -> Result<(), String> {
        match self {
            Self::IfThere(write) => {
                let _ = write.run(root);
                Ok(())
            }
            Self::Always(write) => write.run(root),
        }
    }
}

/// A controller's driver, and that of the chip behind a chip select.
#[derive(Debug)]
pub(super) struct Bindings<'c> {
    root: Root,
    controller: &'c Controller,
    chip: Option<&'c Child>,
    /// What takes back what was done, the last first.
    undo: Vec<Undo>,
}

/// The driver of the device in that directory.
fn driver(root: &Root, directory: &str) -> Option<String> {
    let link = fs::read_link(root.path(format!("{directory}/driver"))).ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

/// Waits for a driver, or for none.
fn awaited(root: &Root, directory: &str, wanted: Option<&str>) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let found = driver(root, directory);
        if found.as_deref() == wanted {
            return Ok(());
        }
        if begun.elapsed() > BOUND_WITHIN {
            let name = |driver: Option<&str>| driver.unwrap_or("no driver").to_owned();
            return Err(format!(
                "{directory} has {}, and had {} before: `barewire restore` offers it again",
                name(found.as_deref()),
                name(wanted)
            ));
        }
        sleep(Duration::from_millis(20));
    }
}

impl<'c> Bindings<'c> {
    /// Of a controller, as they are.
    ///
    /// # Errors
    /// An earlier measurement did not give back what it took.
    pub(super) fn of(
        root: Root,
        controller: &'c Controller,
        chip_select: u8,
    ) -> Result<Self, Failure> {
        if root.path(JOURNAL).exists() {
            return Err(Failure::Failed(format!(
                "{JOURNAL} is there: a measurement runs, or was killed and drivers are not as they were. `barewire restore` gives them \
                 back and removes the file; or `sh {JOURNAL}`, and remove it"
            )));
        }
        let chip = controller.child(chip_select.into());
        Ok(Self { root, controller, chip, undo: Vec::new() })
    }

    fn controller_directory(&self) -> String {
        let device = &self.controller.device;
        format!("/sys/bus/{}/devices/{}", device.bus, device.name)
    }

    /// Whether the kernel's driver has the controller.
    pub(super) fn are_the_kernel_s(&self) -> bool {
        self.controller.device.rival().is_some()
    }

    /// Notes how to take back what comes next, then does it.
    fn step(&mut self, undo: Vec<Undo>, writes: &[Write]) -> Result<(), String> {
        let mut all = undo;
        all.append(&mut self.undo);
        self.undo = all;
        let mut text = String::from(
            "# barewire measure took drivers and was ended before it gave them back. As root: `barewire restore`, or these\n\
             # commands. Then remove this file.\n",
        );
        for step in &self.undo {
            let command = step.write().command();
            text += &match step {
                Undo::Always(_) => command,
                Undo::IfThere(write) => format!("test ! -e {} || {command}", write.path()),
            };
            text.push('\n');
        }
        fs::write(self.root.path(JOURNAL), text)
            .map_err(|error| format!("cannot write {JOURNAL}, so nothing is taken: {error}"))?;
        writes.iter().try_for_each(|write| write.run(&self.root))
    }

    /// Gives the chip to spidev, unless spidev has it.
    ///
    /// # Errors
    /// There is no chip, others use it, or a write failed.
    pub(super) fn lend_chip(&mut self) -> Result<String, String> {
        let Some(bus) = self.controller.bus else { return Err("the controller has no bus".into()) };
        let Some((chip, device)) = self.chip.and_then(|it| Some((it, it.device.clone()?))) else {
            return Err("the device tree has no chip behind this chip select".into());
        };
        let node = format!("/dev/spidev{bus}.{}", chip.chip_select);
        if chip.driver.as_deref() == Some("spidev") {
            return Ok(node);
        }
        if let Some(busy) = chip.uses.iter().find(|it| it.class != "mtd" || !it.used_by.is_empty())
        {
            return Err(format!(
                "{} of the chip is in use: leave it, or end its use first",
                busy.name
            ));
        }
        let directory = format!("/sys/bus/spi/devices/{device}");
        let spidev =
            |file: &str| Write::new(&device, format!("/sys/bus/spi/drivers/spidev/{file}"));
        if !self.root.path("/sys/bus/spi/drivers/spidev").exists() {
            return Err("spidev is not loaded: `modprobe spidev`".into());
        }
        let asked = |name: &str| Write::new(name, format!("{directory}/driver_override"));
        let mut undo = vec![
            Undo::IfThere(spidev("unbind")),
            Undo::Always(asked(chip.asked_driver.as_deref().unwrap_or_default())),
        ];
        let mut writes = Vec::new();
        if let Some(driver) = &chip.driver {
            undo.push(Undo::Always(Write::new(&device, "/sys/bus/spi/drivers_probe".into())));
            writes.push(Write::new(&device, format!("/sys/bus/spi/drivers/{driver}/unbind")));
        }
        writes.extend([asked("spidev"), spidev("bind")]);
        self.step(undo, &writes)?;
        let begun = Instant::now();
        while !self.root.path(&node).exists() && begun.elapsed() < BOUND_WITHIN {
            sleep(Duration::from_millis(20));
        }
        Ok(node)
    }

    /// Takes the controller from the kernel's driver.
    ///
    /// # Errors
    /// A chip of the bus is in use, or a write failed.
    pub(super) fn take_controller(&mut self) -> Result<(), String> {
        let device = &self.controller.device;
        let Some(driver) = &device.driver else { return Ok(()) };
        for chip in self.controller.devices() {
            if let Some(busy) = chip.uses.iter().find(|it| !it.used_by.is_empty()) {
                return Err(format!(
                    "{} is in use ({}): end its use first",
                    busy.name,
                    busy.used_by.join(", ")
                ));
            }
        }
        let mut undo = vec![Undo::Always(Write::new(
            &device.name,
            format!("/sys/bus/{}/drivers_probe", device.bus),
        ))];
        // Chips become devices again with the controller's driver; one that spidev had has to be asked for again.
        for chip in self.controller.devices() {
            let (Some(name), Some(asked)) = (&chip.device, &chip.asked_driver) else { continue };
            let directory = format!("/sys/bus/spi/devices/{name}");
            undo.extend([
                Undo::IfThere(Write::new(name, format!("{directory}/driver/unbind"))),
                Undo::Always(Write::new(asked, format!("{directory}/driver_override"))),
                Undo::Always(Write::new(name, "/sys/bus/spi/drivers_probe".into())),
            ]);
        }
        let unbind =
            Write::new(&device.name, format!("/sys/bus/{}/drivers/{driver}/unbind", device.bus));
        self.step(undo, &[unbind])
    }

    /// Gives everything back, and waits until the drivers are those of before.
    ///
    /// # Errors
    /// A write failed, or another driver or none has a device now. The file stays, and says what to do.
    pub(super) fn restore(&mut self) -> Result<(), String> {
        if self.undo.is_empty() {
            return Ok(());
        }
        let undo = std::mem::take(&mut self.undo);
        undo.iter().try_for_each(|step| step.run(&self.root))?;
        awaited(
            &self.root,
            &self.controller_directory(),
            self.controller.device.driver.as_deref(),
        )?;
        for chip in self.controller.devices() {
            if let Some(device) = &chip.device {
                awaited(
                    &self.root,
                    &format!("/sys/bus/spi/devices/{device}"),
                    chip.driver.as_deref(),
                )?;
            }
        }
        match fs::remove_file(self.root.path(JOURNAL)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(format!("cannot remove {JOURNAL}: {error}"))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Bindings<'_> {
    fn drop(&mut self) {
        if let Err(why) = self.restore() {
            note!("barewire: measure: {why}; {JOURNAL} has the commands");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use barewire_linux::survey::Survey;

    use super::*;

    /// A controller with the kernel's driver, and a flash chip with its own.
    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |path: &str| dir.path().join(path);
        for path in [
            "run",
            "dev",
            "sys/bus/platform/devices/30830000.spi/spi_master/spi1",
            "sys/bus/platform/drivers/spi_imx",
            "sys/bus/spi/devices/spi1.0",
            "sys/bus/spi/drivers/spi-nor",
            "sys/bus/spi/drivers/spidev",
            "proc/device-tree/spi@30830000/flash@0",
        ] {
            fs::create_dir_all(at(path)).expect("a directory");
        }
        let link = |target: &str, path: &str| symlink(target, at(path)).expect("a link");
        link("../../drivers/spi_imx", "sys/bus/platform/devices/30830000.spi/driver");
        link("../../drivers/spi-nor", "sys/bus/spi/devices/spi1.0/driver");
        fs::write(at("dev/spidev1.0"), "").expect("a node");
        fs::write(at("sys/bus/spi/devices/spi1.0/driver_override"), "(null)\n").expect("a file");
        let root = Root::at(dir.path());
        (dir, root)
    }

    fn read(root: &Root, path: &str) -> Option<String> {
        fs::read_to_string(root.path(path)).ok()
    }

    #[test]
    fn what_is_taken_is_given_back_and_until_then_a_file_says_how() {
        let (_dir, root) = tree();
        let survey = Survey::of(&root);
        let controller = survey.controllers.first().expect("a controller");
        let mut bindings = Bindings::of(root.clone(), controller, 0).expect("nothing is taken");
        assert!(bindings.are_the_kernel_s());
        assert_eq!(read(&root, JOURNAL), None);
        bindings.take_controller().expect("taken");
        let unbound = read(&root, "/sys/bus/platform/drivers/spi_imx/unbind");
        assert_eq!(unbound.as_deref(), Some("30830000.spi\n"));
        let journal = read(&root, JOURNAL).expect("the file");
        assert!(
            journal.contains("\necho 30830000.spi > /sys/bus/platform/drivers_probe\n"),
            "{journal}"
        );
        // The links of this tree stay, so the drivers are as before.
        drop(bindings);
        let probed = read(&root, "/sys/bus/platform/drivers_probe");
        assert_eq!((probed.as_deref(), read(&root, JOURNAL)), (Some("30830000.spi\n"), None));
    }

    #[test]
    fn after_a_kill_the_file_is_there_and_the_next_measurement_is_refused() {
        let (_dir, root) = tree();
        let survey = Survey::of(&root);
        let controller = survey.controllers.first().expect("a controller");
        let mut bindings = Bindings::of(root.clone(), controller, 0).expect("nothing is taken");
        bindings.take_controller().expect("taken");
        std::mem::forget(bindings);
        let refused = Bindings::of(root.clone(), controller, 0).expect_err("one was killed");
        assert!(refused.to_string().contains("barewire restore"), "{refused}");
        assert!(read(&root, JOURNAL).is_some_and(|text| text.contains("drivers_probe")));
        assert_eq!(read(&root, "/sys/bus/platform/drivers_probe"), None);
    }

    #[test]
    fn nothing_is_taken_if_the_file_cannot_be_written() {
        let (dir, root) = tree();
        fs::remove_dir(dir.path().join("run")).expect("removed");
        let survey = Survey::of(&root);
        let controller = survey.controllers.first().expect("a controller");
        let mut bindings = Bindings::of(root.clone(), controller, 0).expect("nothing is taken");
        let refused = bindings.take_controller().expect_err("no file");
        assert!(refused.contains("so nothing is taken"), "{refused}");
        assert_eq!(read(&root, "/sys/bus/platform/drivers/spi_imx/unbind"), None);
    }
}
