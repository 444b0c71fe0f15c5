//! Doctor on directory trees that look as boards do.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A tree, removed when dropped.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(compatible: &str, release: &str) -> Self {
        let tree = Self(tempfile::tempdir().expect("a directory"));
        tree.file("proc/device-tree/compatible", compatible)
            .file("proc/device-tree/model", "A board\0")
            .file("proc/sys/kernel/osrelease", release)
            .file("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n")
            .file("dev/mem", "")
            .file("sys/kernel/debug/clk/vpu/clk_rate", "400000000")
            .directory("sys/bus/spi/drivers/spidev")
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("below")).expect("directories");
        path
    }

    fn file(self, path: &str, text: &str) -> Self {
        fs::write(self.path(path), text).expect("written");
        self
    }

    fn cells(self, path: &str, cells: &[u32]) -> Self {
        let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
        fs::write(self.path(path), bytes).expect("written");
        self
    }

    fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.path(path)).expect("linked");
        self
    }

    fn directory(self, path: &str) -> Self {
        fs::create_dir_all(self.path(path)).expect("made");
        self
    }

    fn survey(&self) -> Survey {
        Survey::of(&self.root())
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn report(&self) -> Report {
        Report::of(&self.survey(), None)
    }

    /// A device, and its node of the device tree at `node`, to which it has a link.
    fn device(self, name: &str, node: &str) -> Self {
        let of_node = format!("../../../../firmware/devicetree/base{node}");
        self.directory(&format!("sys/firmware/devicetree/base{node}"))
            .link(&format!("sys/bus/platform/devices/{name}/of_node"), &of_node)
    }
}

mod door;
mod others;
mod refused;

const TREE: &str = "sys/firmware/devicetree/base";

/// An i.MX 8M Plus with a flash on ECSPI1, as Linux 6.1 shows it.
fn imx8mp(release: &str) -> Tree {
    let node = "/soc@0/bus@30800000/spi@30820000";
    let spi = format!("{TREE}{node}");
    let gpio = "/soc@0/bus@30000000/gpio@30240000";
    Tree::new("fsl,imx8mp-evk\0fsl,imx8mp\0", release)
        .device("30820000.spi", node)
        .device("30240000.gpio", gpio)
        .directory("sys/bus/platform/devices/30240000.gpio/gpiochip4")
        .file("dev/gpiochip4", "")
        .cells(&format!("{TREE}{gpio}/phandle"), &[0x56])
        .cells(&format!("{TREE}{gpio}/#gpio-cells"), &[2])
        .cells(&format!("proc/device-tree{gpio}/phandle"), &[0x56])
        .cells(&format!("proc/device-tree{gpio}/#gpio-cells"), &[2])
        .file(&format!("{spi}/compatible"), "fsl,imx8mp-ecspi\0fsl,imx6ul-ecspi\0")
        .cells(&format!("{spi}/cs-gpios"), &[0x56, 9, 1])
        .cells(&format!("{spi}/interrupts"), &[0, 31, 4])
        .cells(&format!("{spi}/flash@0/reg"), &[0])
        .file(&format!("{spi}/flash@0/compatible"), "jedec,spi-nor\0")
        .file("sys/kernel/debug/clk/ecspi1_root_clk/clk_rate", "80000000")
        .file("sys/kernel/debug/clk/ecspi1_root_clk/clk_enable_count", "0")
}

/// With its kernel driver, and a driver on the flash.
fn bound(tree: Tree, driver: &str) -> Tree {
    tree.link("sys/bus/platform/devices/30820000.spi/driver", "../../drivers/spi_imx")
        .directory("sys/bus/platform/devices/30820000.spi/spi_master/spi0")
        .link("sys/bus/spi/devices/spi0.0/driver", &format!("../../drivers/{driver}"))
        .file("sys/bus/spi/devices/spi0.0/driver_override", "\n")
        .directory("sys/class/mtd/mtd0")
        .file("sys/class/mtd/mtd0/name", "spi0.0")
        .directory("sys/class/net")
}

fn with_flash_driver(release: &str) -> Tree {
    bound(imx8mp(release), "spi-nor").directory("sys/bus/spi/devices/spi0.0/mtd/mtd0")
}

fn with_spidev(tree: Tree) -> Tree {
    bound(tree, "spidev").file("dev/spidev0.0", "")
}

/// A Raspberry Pi 3 whose chips all are spidev's.
fn raspberry_pi() -> Tree {
    let node = "/soc/spi@7e204000";
    let spi = format!("{TREE}{node}");
    Tree::new("raspberrypi,3-model-b\0brcm,bcm2837\0", "6.12.9")
        .device("3f204000.spi", node)
        .cells(&format!("{TREE}/soc/#address-cells"), &[1])
        .cells(&format!("{TREE}/soc/#size-cells"), &[1])
        .file(&format!("{spi}/compatible"), "brcm,bcm2835-spi\0")
        .cells(&format!("{spi}/reg"), &[0x7e20_4000, 0x200])
        .link("sys/bus/platform/devices/3f204000.spi/driver", "../../drivers/spi-bcm2835")
        .directory("sys/bus/platform/devices/3f204000.spi/spi_master/spi0")
        .link("sys/bus/spi/devices/spi0.0/driver", "../../drivers/spidev")
        .file("dev/spidev0.0", "")
}

fn commands(report: &Report) -> Vec<&str> {
    let ways = report.controllers.iter().flat_map(|controller| &controller.ways);
    let reachable = ways.filter(|way| way.is_reachable());
    let steps = reachable.flat_map(|way| &way.steps);
    steps.flat_map(|step| step.commands.iter().map(String::as_str)).collect()
}

/// Asserts that the report's text has all of `parts`.
#[track_caller]
fn says(report: &Report, parts: &[&str]) {
    let text = report.text();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

/// The overlay for the first controller of a tree.
fn overlay_of(tree: &Tree) -> Result<String, String> {
    let survey = tree.survey();
    overlay::text(&tree.root(), &survey.machine, &survey.controllers[0])
        .map_err(|error| error.to_string())
}

fn way<'r>(report: &'r Report, kind: &str) -> &'r Way {
    let mut ways = report.controllers.iter().flat_map(|controller| &controller.ways);
    ways.find(|way| way.kind == kind).expect("the way is told")
}

#[test]
fn a_flash_that_nothing_uses_is_lent_to_spidev() {
    let report = with_flash_driver("6.1.0-50-arm64").report();
    assert_eq!(report.after_steps, ["spidev:/dev/spidev0.0"]);
    assert_eq!(
        commands(&report),
        [
            "echo spi0.0 > /sys/bus/spi/drivers/spi-nor/unbind",
            "echo spidev > /sys/bus/spi/devices/spi0.0/driver_override",
            "echo spi0.0 > /sys/bus/spi/drivers/spidev/bind"
        ]
    );
    let spidev = way(&report, "spidev");
    let undo = spidev.steps[0].undo.last().expect("a way back");
    assert_eq!(undo, "echo spi0.0 > /sys/bus/spi/drivers/spi-nor/bind");
    assert_eq!(spidev.tries, ["barewire flash id --bus spidev:/dev/spidev0.0"]);
    says(&report, &["80 MHz (ecspi1_root_clk); switched off by its driver while it is idle"]);
    says(
        &report,
        &[
            "line 9 of the GPIO chip at 0x30240000 (/dev/gpiochip4): jedec,spi-nor (spi0.0), driver spi-nor, mtd0",
        ],
    );
}

#[test]
fn what_others_use_is_left_alone() {
    let mounted = [
        ("/dev/mtdblock0 /data jffs2 rw 0 0", "mounted at /data"),
        ("mtd:spi0.0 /boot jffs2 rw 0 0", "mounted at /boot"),
    ];
    for (mount, told) in mounted {
        let report = with_flash_driver("6.1.0").file("proc/mounts", mount).report();
        assert!(commands(&report).is_empty(), "{mount}: {:?}", commands(&report));
        assert!(way(&report, "spidev").obstacles[0].contains(told), "{mount}");
    }
    let ubi = with_flash_driver("6.1.0").file("sys/class/ubi/ubi0/mtd_num", "0\n").report();
    assert!(way(&ubi, "spidev").obstacles[0].contains("ubi0 is attached to it"));
    let can = bound(imx8mp("6.1.0"), "mcp251xfd").directory("sys/bus/spi/devices/spi0.0/net/can0");
    let report = can.report();
    assert!(commands(&report).is_empty());
    assert!(way(&report, "spidev").obstacles[0].contains("net can0"));
}

#[test]
fn no_command_takes_a_controller_from_under_a_driver() {
    let report = with_flash_driver("6.12.0")
        .file("lib/modules/6.12.0/modules.dep", "kernel/uio_pdrv_genirq.ko:")
        .report();
    for kind in ["uio", "mem"] {
        assert!(way(&report, kind).obstacles[0].contains("spi-nor has spi0.0"), "{kind}");
    }
}

#[test]
fn a_clock_that_its_driver_stops_forbids_dev_mem() {
    let report = with_spidev(imx8mp("6.12.0")).report();
    let mem = way(&report, "mem");
    assert!(mem.obstacles.iter().any(|why| why.contains("stops its clock")), "{:?}", mem.obstacles);
    assert!(!commands(&report).iter().any(|command| command.contains("unbind")));
}

#[test]
fn kernels_without_uio_or_that_stop_its_clock_say_so() {
    let obstacle = |tree: Tree| way(&tree.report(), "uio").obstacles.join("; ");
    let module = |tree: Tree, release: &str| {
        tree.file(&format!("lib/modules/{release}/modules.dep"), "kernel/uio_pdrv_genirq.ko.xz:\n")
    };
    assert!(obstacle(with_spidev(imx8mp("6.12.0"))).contains("no uio_pdrv_genirq"));
    assert!(obstacle(module(with_spidev(imx8mp("6.1.0")), "6.1.0")).contains("6.3 and later"));
    let report = module(with_spidev(imx8mp("6.12.0")), "6.12.0").report();
    assert!(way(&report, "uio").is_reachable());
    let overlay = "barewire doctor --overlay 30820000.spi > barewire-uio-30820000.dtso";
    assert!(commands(&report).contains(&overlay));
}

/// The tree that the shipped overlay makes, except that the controller's node names the clock it
/// needs. `kept` lists the clocks of the bus.
fn uio(pm_bus: &str, kept: &[u32]) -> Tree {
    let node = "/soc@0/bus@30800000/barewire-uio-30820000/spi@30820000";
    let buses = ["", "/soc@0", "/soc@0/bus@30800000"];
    let tree = buses.iter().fold(imx8mp("6.12.0"), |tree, bus| {
        tree.cells(&format!("{TREE}{bus}/#address-cells"), &[1])
            .cells(&format!("{TREE}{bus}/#size-cells"), &[1])
            .file(&format!("{TREE}{bus}/ranges"), "")
    });
    tree.cells(&format!("{TREE}/soc@0/bus@30800000/spi@30820000/reg"), &[0x3082_0000, 0x1_0000])
        .cells(&format!("{TREE}/soc@0/bus@30800000/spi@30820000/clocks"), &[2, 189])
        .cells(&format!("{TREE}/clock-controller/phandle"), &[2])
        .cells(&format!("{TREE}/clock-controller/#clock-cells"), &[1])
        .file("sys/bus/platform/drivers/uio_pdrv_genirq/bind", "")
        .file(
            &format!("{TREE}/soc@0/bus@30800000/spi@30820000/compatible"),
            "generic-uio\0barewire,ecspi\0",
        )
        .link("sys/bus/platform/devices/30820000.spi/driver", "../../drivers/uio_pdrv_genirq")
        .file("sys/class/uio/uio0/maps/map0/addr", "0x30820000")
        .file("sys/class/uio/uio0/maps/map0/size", "0x10000")
        .file("sys/class/uio/uio0/maps/map0/offset", "0x0")
        .file("sys/class/uio/uio0/event", "0")
        .link("sys/class/uio/uio0/device", "../../../../parent/30820000.spi")
        .directory("parent/30820000.spi")
        .file("parent/of_node/compatible", pm_bus)
        .cells("parent/of_node/clocks", kept)
        .file("dev/uio0", node)
}

#[test]
fn a_uio_device_that_keeps_its_clock_is_ready() {
    let report = uio("simple-pm-bus\0", &[2, 189]).report();
    let bus = "uio:uio0,reference-hz=80M,cs=gpio@0x30240000:9";
    assert_eq!(report.ready, [bus]);
    assert_eq!(way(&report, "uio").tries, [format!("barewire flash id --bus {bus}")]);
    says(&report, &["on while the UIO device is open"]);
    // On another bus, and on one that keeps another controller's clock.
    for gated in [uio("simple-bus\0", &[2, 189]), uio("simple-pm-bus\0", &[2, 190])] {
        let gated = gated.report();
        assert!(gated.ready.is_empty());
        assert!(way(&gated, "uio").obstacles[0].contains("nothing keeps its clock on"));
        assert!(!gated.text().contains("on while the UIO device is open"));
    }
}

#[test]
fn a_user_who_sees_no_counts_is_told_that_the_bus_keeps_another_clock() {
    let tree = uio("simple-pm-bus\0", &[2, 190]);
    fs::remove_file(tree.path("sys/kernel/debug/clk/ecspi1_root_clk/clk_enable_count"))
        .expect("hidden");
    let report = tree.report();
    assert!(report.ready.is_empty());
    says(&report, &["keeps other clocks on than those of the controller's node"]);
    // With this overlay loaded, a second one would be written against a changed tree, so it is
    // refused.
    assert!(overlay_of(&tree).is_err_and(|error| error.contains("start without the overlay")));
}

#[test]
fn a_bus_as_written_is_compared() {
    let tree = uio("simple-pm-bus\0", &[2, 189]);
    let ask = |bus: &str| Report::of_bus(&tree.survey(), None, bus).expect("a bus of this machine");
    assert_eq!(ask("uio:uio0,reference-hz=80M,cs=gpio@0x30240000:9").ready.len(), 1);
    // Another chip select is the user's business.
    assert_eq!(ask("uio:/dev/uio0,reference-hz=80M,cs=native0").ready.len(), 1);
    let wrong = ask("uio:uio0,reference-hz=24M,cs=gpio@0x30240000:9");
    assert!(wrong.ready.is_empty());
    says(&wrong, &["reference-hz is 24000000 Hz, the clock ecspi1_root_clk has 80000000 Hz"]);
    says(&wrong, &["write uio:uio0,reference-hz=80M"]);
    let error =
        |bus: &str| Report::of_bus(&tree.survey(), None, bus).map(|_| ()).expect_err("refused");
    assert!(error("uio:uio7,reference-hz=80M,cs=native0").to_string().contains("no controller"));
    assert_eq!(error("usb:0").code(), 2);
    assert_eq!(ask("sim:rpi3").ready, ["sim:rpi3"]);
}

#[test]
fn a_raspberry_pi_is_taken_with_its_pins_and_given_back() {
    let tree = raspberry_pi();
    let report = tree.report();
    assert_eq!(report.ready, ["spidev:/dev/spidev0.0"]);
    let bus = "mem:0x3f204000,controller=bcm2835,reference-hz=400M,cs=native0";
    assert_eq!(report.after_steps, [bus]);
    let mem = way(&report, "mem");
    let commands: Vec<_> = mem.steps.iter().flat_map(|step| &step.commands).collect();
    assert_eq!(
        commands,
        ["echo 3f204000.spi > /sys/bus/platform/drivers/spi-bcm2835/unbind", "pinctrl set 7-11 a0"]
    );
    assert!(mem.steps.iter().all(|step| !step.undo.is_empty()), "each has its undo");
    let manual = "mem:0x7e204000,controller=bcm2835,reference-hz=400M,cs=native0";
    let report = Report::of_bus(&tree.survey(), None, manual).expect("a bus of this machine");
    let numbers =
        "0x7e204000 is how the manual's bus numbers it; the processor sees it at 0x3f204000";
    says(&report, &[numbers, &format!("write {bus}")]);
}

#[test]
fn claims_of_others_ask_for_iomem_last() {
    let tree = raspberry_pi().file(
        "proc/iomem",
        "3f204000-3f2041ff : 3f204000.spi spi@7e204000\n3f204000-3f2041ff : thief\n",
    );
    let report = tree.report();
    let last = way(&report, "mem").steps.last().expect("steps");
    let why = &last.why;
    assert!(why.contains("iomem=relaxed") && why.contains("whole machine"), "{why}");
    let relaxed = tree.file("proc/cmdline", "quiet iomem=relaxed").report();
    assert!(!way(&relaxed, "mem").steps.iter().any(|step| step.why.contains("iomem")));
}

#[test]
fn an_overlay_has_the_numbers_of_the_running_tree() {
    let tree = imx8mp("6.12.0");
    let node = "proc/device-tree/soc@0/bus@30800000";
    let tree = tree
        .cells(&format!("{node}/#address-cells"), &[1])
        .cells(&format!("{node}/#size-cells"), &[1])
        .cells(&format!("{node}/spi@30820000/reg"), &[0x3082_0000, 0x10000])
        .cells(&format!("{node}/spi@30820000/clocks"), &[2, 189, 2, 189])
        .cells(&format!("{node}/spi@30820000/interrupts"), &[0, 31, 4])
        .cells(&format!("{node}/spi@30820000/cs-gpios"), &[0x56, 9, 1]);
    let text = overlay_of(&tree).expect("text");
    for line in [
        "target-path = \"/soc@0/bus@30800000/spi@30820000\";",
        "target-path = \"/soc@0/bus@30800000\";",
        "compatible = \"generic-uio\", \"barewire,ecspi\";",
        "clocks = <0x2 0xbd 0x2 0xbd>;",
        "cs-gpios = <0x56 0x9 0x1>;",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(!text.contains("pinctrl"), "the node has no pinctrl");
    let tree = raspberry_pi();
    let text = overlay_of(&tree).expect("text");
    assert!(text.contains("\"generic-uio\", \"barewire,bcm2835\""), "{text}");
    assert!(!text.contains("simple-pm-bus"), "{text}");
    let error = by_name(&tree.survey(), "nothing.spi").map(drop).expect_err("there is none");
    assert!(error.to_string().contains("3f204000.spi"));
}

#[test]
fn delays_of_the_machine_are_told_with_their_undo() {
    let cpu = "sys/devices/system/cpu";
    let report = raspberry_pi()
        .file(&format!("{cpu}/cpufreq/policy0/scaling_governor"), "ondemand\n")
        .file(&format!("{cpu}/cpu0/cpuidle/state1/name"), "cpu-sleep\n")
        .file(&format!("{cpu}/cpu0/cpuidle/state1/latency"), "700\n")
        .file(&format!("{cpu}/cpu0/cpuidle/state1/disable"), "0\n")
        .report();
    says(
        &report,
        &["undo: echo ondemand > /sys/devices/system/cpu/cpufreq/policy0/scaling_governor"],
    );
    says(&report, &["cpu-sleep wakes after up to 700 µs"]);
    let all = report.findings.iter().flat_map(|finding| &finding.steps);
    assert!(all.clone().count() >= 2 && all.into_iter().all(|step| !step.undo.is_empty()));
}

#[test]
fn a_machine_without_controllers_is_told_what_always_works() {
    let dir = tempfile::tempdir().expect("a directory");
    let report = Report::of(&Survey::of(&Root::at(dir.path())), None);
    says(&report, &["No SPI controller is in the device tree", "--bus sim:imx8mp"]);
}

#[test]
fn the_configuration_is_read_compressed_or_not() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().expect("a directory");
    let root = Root::at(dir.path());
    assert_eq!(config::read(&root, "6.12.0"), None);
    fs::create_dir_all(dir.path().join("boot")).expect("made");
    fs::write(dir.path().join("boot/config-6.12.0"), "CONFIG_DEVMEM=y\n").expect("written");
    assert_eq!(config::read(&root, "6.12.0").as_deref(), Some("CONFIG_DEVMEM=y\n"));
    fs::create_dir_all(dir.path().join("proc")).expect("made");
    let file = fs::File::create(dir.path().join("proc/config.gz")).expect("made");
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed.write_all(b"CONFIG_UIO=m\n").expect("packed");
    packed.finish().expect("packed");
    assert_eq!(config::read(&root, "6.12.0").as_deref(), Some("CONFIG_UIO=m\n"));
}

#[test]
fn a_neighbour_on_the_page_is_named() {
    let alone = raspberry_pi();
    assert!(alone.survey().controllers[0].neighbours.is_empty());
    let tree = alone
        .device("3f204800.mmc", "/soc/mmc@7e204800")
        .cells(&format!("{TREE}/soc/mmc@7e204800/reg"), &[0x7e20_4800, 0x100])
        .device("3f205000.i2c", "/soc/i2c@7e205000")
        .cells(&format!("{TREE}/soc/i2c@7e205000/reg"), &[0x7e20_5000, 0x200]);
    assert_eq!(tree.survey().controllers[0].neighbours, ["3f204800.mmc"]);
    assert!(tree.report().text().contains("its page also has the registers of 3f204800.mmc"));
}

#[test]
fn a_controller_without_a_driver_is_told_with_its_way_back() {
    let report = imx8mp("6.1.0").report();
    let parts = [
        "30820000.spi: at 0x30820000 (ecspi), no kernel driver\n",
        "- driver        none has it: nothing keeps its clock on; the GPIO lines of its chip selects are free",
        "$ barewire restore\n",
        "! clock         80 MHz (ecspi1_root_clk); off (clk_enable_count of ecspi1_root_clk is 0)",
    ];
    says(&report, &parts);
    assert!(report.ready.is_empty() && report.after_steps.is_empty(), "{}", report.text());
}

/// Runs a program of the device-tree compiler in a directory; `None` if it is not installed.
fn device_tree_tool(dir: &std::path::Path, words: &str) -> Option<()> {
    let mut words = words.split(' ');
    let program = words.next().expect("a program");
    match std::process::Command::new(program).args(words).current_dir(dir).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("SKIPPED: no {program} (Debian: device-tree-compiler)");
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

/// The base has no symbols, as distributions build their trees. Two overlays for one board do not replace each
/// other's nodes.
#[test]
fn overlays_of_two_controllers_are_merged_by_the_device_tree_compiler() {
    let base = "/dts-v1/; / { soc@0 { bus@30800000 { #address-cells = <1>; #size-cells = <1>; spi@30820000 { status = \"okay\"; }; spi@30830000 { status = \"okay\"; }; }; }; };";
    let node = "proc/device-tree/soc@0/bus@30800000";
    let tree = imx8mp("6.12.0")
        .device("30830000.spi", "/soc@0/bus@30800000/spi@30830000")
        .file(&format!("{TREE}/soc@0/bus@30800000/spi@30830000/compatible"), "fsl,imx8mp-ecspi\0")
        .cells(&format!("{node}/#address-cells"), &[1])
        .cells(&format!("{node}/#size-cells"), &[1])
        .cells(&format!("{node}/spi@30820000/reg"), &[0x3082_0000, 0x10000])
        .cells(&format!("{node}/spi@30820000/clocks"), &[2, 189])
        .cells(&format!("{node}/spi@30830000/reg"), &[0x3083_0000, 0x10000])
        .cells(&format!("{node}/spi@30830000/clocks"), &[2, 190]);
    let survey = tree.survey();
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("base.dts"), base).expect("written");
    for controller in &survey.controllers {
        let text = overlay::text(&tree.root(), &survey.machine, controller).expect("text");
        fs::write(dir.path().join(format!("{}.dtso", overlay::name(controller))), text)
            .expect("written");
    }
    let all = [
        "dtc -q -I dts -O dtb -o base.dtb base.dts",
        "dtc -q -@ -I dts -O dtb -o 1.dtbo barewire-uio-30820000.dtso",
        "dtc -q -@ -I dts -O dtb -o 2.dtbo barewire-uio-30830000.dtso",
        "fdtoverlay -i base.dtb -o merged.dtb 1.dtbo 2.dtbo",
        "dtc -q -I dtb -O dts -o merged.dts merged.dtb",
    ];
    if all.iter().any(|words| device_tree_tool(dir.path(), words).is_none()) {
        return;
    }
    let merged = fs::read_to_string(dir.path().join("merged.dts")).expect("a tree");
    assert_eq!(merged.matches("status = \"disabled\"").count(), 2, "{merged}");
    for (bus, clock) in [("30820000", "0xbd"), ("30830000", "0xbe")] {
        let (_, of_bus) = merged.split_once(&format!("barewire-uio-{bus} {{")).expect("its bus");
        let (of_bus, _) = of_bus.split_once("};").expect("ends");
        assert!(of_bus.contains(&format!("clocks = <0x02 {clock}>")), "{merged}");
        assert!(of_bus.contains(&format!("spi@{bus} {{")), "{merged}");
    }
}
