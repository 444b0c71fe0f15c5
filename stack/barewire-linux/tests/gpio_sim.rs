//! The kernel's own GPIO character devices, on its `gpio-sim` driver.
//!
//! Runs where configfs has `gpio-sim` (`modprobe gpio-sim; mount -t configfs none /sys/kernel/config`)
//! and the tests may write there, which root may. Elsewhere it says what is missing, and passes. With
//! `BAREWIRE_GPIO_SIM=1` what is missing is a failure.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use barewire_linux::Root;
use barewire_linux::gpio::{
    CharacterDevices, CsFault, GpioChip, GpioError, GpioLine, InterruptLine, Kernel, KernelPins,
    Sense, Sensed,
};

use barewire::controller::gpio::GpioBank;

const CONFIG: &str = "/sys/kernel/config/gpio-sim";

/// A simulated chip; its directory is removed when dropped.
struct GpioSim {
    config: PathBuf,
    label: String,
    /// `/sys/devices/platform/gpio-sim.N/gpiochipM`.
    sysfs: PathBuf,
    node: PathBuf,
}

impl GpioSim {
    /// A chip of eight lines, or why there can be none.
    fn new(name: &str) -> Result<Self, String> {
        let label = format!("barewire-{name}-{}", std::process::id());
        let config = PathBuf::from(CONFIG).join(&label);
        let bank = config.join("bank");
        let done =
            |what: &str, result: std::io::Result<()>| result.map_err(|e| format!("{what}: {e}"));
        done(CONFIG, fs::create_dir(&config))?;
        let mut chip = Self { config, label, sysfs: PathBuf::new(), node: PathBuf::new() };
        done("bank", fs::create_dir(&bank))?;
        done("num_lines", fs::write(bank.join("num_lines"), "8"))?;
        done("label", fs::write(bank.join("label"), &chip.label))?;
        done("live", fs::write(chip.config.join("live"), "1"))?;
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok::<_, String>(text.trim().to_owned())
        };
        let device = read(chip.config.join("dev_name"))?;
        let node = read(bank.join("chip_name"))?;
        chip.sysfs = PathBuf::from("/sys/devices/platform").join(device).join(&node);
        chip.node = PathBuf::from("/dev").join(node);
        Ok(chip)
    }

    /// A line's level as the world behind it sees it.
    fn value(&self, line: u32) -> String {
        let path = self.sysfs.join(format!("sim_gpio{line}/value"));
        fs::read_to_string(path).expect("gpio-sim has the line").trim().to_owned()
    }

    /// The world behind a line drives it.
    fn pull(&self, line: u32, high: bool) {
        let pull = if high { "pull-up" } else { "pull-down" };
        fs::write(self.sysfs.join(format!("sim_gpio{line}/pull")), pull).expect("pulled");
    }

    fn line(&self, offset: u32) -> GpioLine {
        GpioLine { chip: GpioChip::Labelled(self.label.clone()), offset }
    }
}

impl Drop for GpioSim {
    fn drop(&mut self) {
        let _ = fs::write(self.config.join("live"), "0");
        let _ = fs::remove_dir(self.config.join("bank"));
        let _ = fs::remove_dir(&self.config);
    }
}

/// A chip, unless this machine cannot have one.
fn chip(name: &str) -> Option<GpioSim> {
    match GpioSim::new(name) {
        Ok(chip) => Some(chip),
        Err(why) if std::env::var_os("BAREWIRE_GPIO_SIM").is_none() => {
            println!("SKIPPED: no gpio-sim on this machine ({why})");
            None
        }
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn a_chip_select_moves_as_it_is_told_and_nothing_else_does() {
    let Some(chip) = chip("cs") else { return };
    let open = CharacterDevices.open(&chip.node).expect("opens");
    assert_eq!(open.info().expect("asked").lines, 8);
    assert!(!open.line(3).expect("asked").used);
    chip.pull(3, true);
    chip.pull(5, true);
    let lines = open.request(&[3, 5, 6]).expect("free");
    assert_eq!(chip.value(3), "1", "as is");
    let info = open.line(3).expect("asked");
    assert!(info.used && info.consumer == "barewire", "{info:?}");
    assert_eq!(open.request(&[2, 3]).map(drop), Err(barewire_linux::Errno::BUSY));
    assert!(!open.line(2).expect("asked").used, "all or none");

    let fault = CsFault::default();
    let mut pins = KernelPins::new(lines, fault.clone());
    // Bit 1 is line 5, bit 0 line 3: made outputs one after the other, as a controller does.
    pins.output(0b10, false);
    pins.output(0b01, true);
    assert_eq!((chip.value(3), chip.value(5)), ("1".into(), "0".into()));
    pins.drive(0b01, false);
    pins.drive(0b10, true);
    assert_eq!((chip.value(3), chip.value(5)), ("0".into(), "1".into()));
    pins.drive(0b01, true);
    assert_eq!((chip.value(3), chip.value(5)), ("1".into(), "1".into()));
    assert_eq!(fault.take(), None);
    // Driving a line that is no output fails with an error.
    pins.drive(0b100, true);
    assert_eq!(fault.take(), Some(barewire_linux::Errno::PERM));
    assert_eq!(fault.take(), None);
    drop(pins);
    assert!(!open.line(3).expect("asked").used, "released");
}

#[test]
fn an_int_line_wakes_its_waiter() {
    let Some(chip) = chip("int") else { return };
    chip.pull(4, true);
    let root = Root::system();
    let open = |sense| InterruptLine::open(&root, &CharacterDevices, &chip.line(4), sense);
    let mut int = open(Sense::Low).expect("free");
    let again = open(Sense::Low).expect_err("ours");
    assert!(matches!(again, GpioError::InUse { .. }), "{again}");
    assert!(int.is_at_rest().expect("asked"));
    assert_eq!(int.wait(Duration::from_millis(30)), Ok(Sensed::TimedOut));

    // On a busy machine the line may fall before the wait begins. Then the wait does not sleep, and
    // the test tries again.
    let mut falls = 0;
    let edge = loop {
        chip.pull(4, true);
        falls += 1;
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                chip.pull(4, false);
            });
            assert_eq!(int.wait(Duration::from_secs(60)), Ok(Sensed::Active));
        });
        if let Some(edge) = int.last_edge() {
            break edge;
        }
    };
    assert_eq!((edge.rising, edge.sequence), (false, falls));
    assert!(edge.timestamp_ns > 0);
    assert_eq!(
        int.wait(Duration::ZERO),
        Ok(Sensed::Active),
        "INT stays active until the chip is served"
    );
    chip.pull(4, true);
    assert_eq!(int.wait(Duration::from_millis(30)), Ok(Sensed::TimedOut));
    drop(int);
    chip.pull(4, false);
    let mut int = open(Sense::High).expect("released");
    assert!(int.is_at_rest().expect("asked"));
    chip.pull(4, true);
    assert_eq!(int.wait(Duration::from_secs(60)), Ok(Sensed::Active));
}
