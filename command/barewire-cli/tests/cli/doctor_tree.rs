//! `barewire doctor` and `list` with a directory tree as the whole machine: a board whose device tree is wrong.
//!
//! The command runs in a root directory of its own, in a user namespace where the tests are not root.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::command::Ran;
use super::program::program;

const NODE: &str = "sys/firmware/devicetree/base/soc/spi@30820000";

/// An ECSPI that UIO has, with a flash chip on its own line.
struct Machine(TempDir);

impl Machine {
    /// `None` where user namespaces are not allowed.
    fn new() -> Option<Self> {
        let allowed = Command::new("unshare").args(["--user", "--map-root-user", "true"]).output();
        if !allowed.as_ref().is_ok_and(|ran| ran.status.success()) {
            println!("SKIPPED: no user namespace here: {allowed:?}");
            return None;
        }
        let machine = Self(tempfile::tempdir().expect("a directory"));
        let device = "sys/bus/platform/devices/30820000.spi";
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "6.12.0\n"),
            ("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"),
            ("sys/firmware/devicetree/base/compatible", "fsl,imx8mp-evk\0fsl,imx8mp\0"),
            ("dev/uio0", ""),
            ("sys/class/uio/uio0/maps/map0/addr", "0x30820000"),
            ("sys/class/uio/uio0/maps/map0/size", "0x10000"),
            ("sys/class/uio/uio0/maps/map0/offset", "0x0"),
            ("sys/parent/30820000.spi/uevent", ""),
            ("sys/parent/of_node/compatible", "simple-pm-bus\0"),
            ("sys/parent/of_node/clocks", "\0\0\0\x02\0\0\0\x10"),
            ("sys/firmware/devicetree/base/#address-cells", "\0\0\0\x01"),
            ("sys/firmware/devicetree/base/#size-cells", "\0\0\0\x01"),
            ("sys/firmware/devicetree/base/soc/#address-cells", "\0\0\0\x01"),
            ("sys/firmware/devicetree/base/soc/#size-cells", "\0\0\0\x01"),
            ("sys/firmware/devicetree/base/soc/ranges", ""),
            ("sys/firmware/devicetree/base/clock/phandle", "\0\0\0\x02"),
            ("sys/firmware/devicetree/base/clock/#clock-cells", "\0\0\0\x01"),
            ("sys/kernel/debug/clk/ecspi1_root_clk/clk_rate", "80000000"),
            ("sys/kernel/debug/clk/ecspi1_root_clk/clk_enable_count", "0"),
        ] {
            machine.file(path, text.as_bytes());
        }
        // The clock that the controller needs.
        machine.cells("reg", &[0x3082_0000, 0x1_0000]).cells("clocks", &[2, 0x10]);
        machine.node("compatible", b"generic-uio\0barewire,ecspi\0").cells("num-cs", &[4]);
        machine.node("flash@0/compatible", b"jedec,spi-nor\0").cells("flash@0/reg", &[0]);
        machine.link("/sys/firmware/devicetree/base", "proc/device-tree");
        machine.link(&format!("/{NODE}"), &format!("{device}/of_node"));
        machine.link("/sys/bus/platform/drivers/uio_pdrv_genirq", &format!("{device}/driver"));
        machine.link("/sys/parent/30820000.spi", "sys/class/uio/uio0/device");
        machine.file("sys/bus/platform/drivers/uio_pdrv_genirq/bind", b"");
        machine.program();
        Some(machine)
    }

    fn file(&self, path: &str, bytes: &[u8]) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("below")).expect("directories");
        fs::write(path, bytes).expect("written");
    }

    fn node(&self, property: &str, bytes: &[u8]) -> &Self {
        self.file(&format!("{NODE}/{property}"), bytes);
        self
    }

    fn cells(&self, property: &str, cells: &[u32]) -> &Self {
        let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
        self.node(property, &bytes)
    }

    fn link(&self, target: &str, path: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("below")).expect("directories");
        symlink(target, path).expect("linked");
    }

    /// The command and the libraries that it is linked with.
    fn program(&self) {
        let built = program(env!("CARGO_BIN_EXE_barewire"));
        let libraries = Command::new("ldd").arg(&built).output().expect("ldd is there");
        let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
        for path in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
            // A copy keeps the permission to execute, which the loader needs.
            self.file(path.trim_start_matches('/'), b"");
            fs::copy(path, self.0.path().join(path.trim_start_matches('/'))).expect("a library");
        }
        fs::copy(built, self.0.path().join("barewire")).expect("copied");
    }

    fn command(root: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "chroot"]).arg(root).arg("/barewire");
        command.args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Self::command(self.0.path(), arguments).output().expect("it runs").into()
    }
}

#[test]
fn a_wrong_device_tree_is_refused_in_text_json_and_list() {
    let ready = "uio:uio0,reference-hz=80M,cs=native0";
    let faults: [(&str, &[u8], &str); 5] = [
        ("flash@0/reg", &[0, 0, 0, 0x24], "reg = <0x24> is beyond the controller's 4 chip selects"),
        ("flash@0/reg", &[0, 0, 0, 0, 0, 0, 0, 1], "reg = <0x0 0x1> names several chip selects"),
        ("cs-gpios", &[0, 0, 0, 0x99, 0, 0, 0, 9], "no node has its phandle 0x99"),
        ("cs-gpios", &[0, 0, 0, 0, 0, 0], "the property ends within it"),
        ("spi-slave", &[], "another host drives this bus"),
    ];
    for (property, bytes, why) in faults {
        let Some(machine) = Machine::new() else { return };
        let good = machine.run(&["doctor", ready]).ok().text();
        assert!(good.contains(&format!("Ready now:         --bus {ready}")), "{good}");
        machine.node(property, bytes);
        let text = machine.run(&["doctor"]).ok().text();
        assert!(text.contains("! refused ") && text.contains(why), "{why} in {text}");
        assert!(!text.contains("Ready now") && !text.contains("cs=native"), "{text}");
        assert!(text.lines().count() < 30, "{text}");
        machine.run(&["doctor", ready]).fails(1, "is not ready");
        let json = machine.run(&["doctor", "--json"]).ok().json();
        assert!(json["ready"].as_array().is_some_and(Vec::is_empty), "{json}");
        assert!(json["controllers"][0]["findings"].to_string().contains(why), "{json}");
        let list = machine.run(&["list"]).ok().text();
        assert!(!list.contains("ready: --bus"), "{list}");
    }
}

/// The second of two overlays that named one node has replaced its clocks.
#[test]
fn a_bus_that_keeps_another_clock_makes_no_bus_ready_and_runs_nothing() {
    let bus = "uio:uio0,reference-hz=80M,cs=native0";
    let Some(machine) = Machine::new() else { return };
    machine.cells("clocks", &[2, 0x11]);
    let text = machine.run(&["doctor"]).ok().text();
    assert!(!text.contains("Ready now") && !text.contains("on while the UIO device"), "{text}");
    assert!(text.contains("nothing keeps its clock on"), "{text}");
    machine.run(&["doctor", bus]).fails(1, "is not ready");
    // A user who cannot read debugfs has the device tree alone.
    fs::remove_dir_all(machine.0.path().join("sys/kernel/debug")).expect("hidden");
    let text = machine.run(&["doctor"]).ok().text();
    assert!(text.contains("keeps other clocks on than those of the controller's node"), "{text}");
    machine.run(&["xfer", "--bus", bus, "9f"]).fails(1, "keeps other clocks on");
}
