//! Trees on which the kernel makes no device, or barewire could drive none: doctor refuses, and says why.

use serde_json::Value;

use super::*;

const NODE: &str = "sys/firmware/devicetree/base/soc@0/bus@30800000/spi@30820000";
const GPIO: &str = "soc@0/bus@30000000/gpio@30240000";

impl Tree {
    fn without(self, path: &str) -> Self {
        let path = self.path(path);
        match path.is_dir() {
            true => fs::remove_dir_all(path).expect("removed"),
            false => fs::remove_file(path).expect("removed"),
        }
        self
    }

    fn property(self, name: &str, cells: &[u32]) -> Self {
        self.cells(&format!("{NODE}/{name}"), cells)
    }

    fn bytes(self, name: &str, bytes: &[u8]) -> Self {
        fs::write(self.path(&format!("{NODE}/{name}")), bytes).expect("written");
        self
    }

    fn chip(self, node: &str, reg: &[u32]) -> Self {
        self.property(&format!("{node}/reg"), reg)
            .file(&format!("{NODE}/{node}/compatible"), "jedec,spi-nor\0")
    }
}

/// ECSPI1 by UIO, without chips and without `cs-gpios`. Each test adds the fault that it is about.
fn bare() -> Tree {
    uio("simple-pm-bus\0", &[2, 189])
        .without(&format!("{NODE}/flash@0"))
        .without(&format!("{NODE}/cs-gpios"))
}

/// The bus is not offered, and text and JSON say why in one finding with all of `parts`.
fn is_refused(tree: &Tree, parts: &[&str]) {
    let report = tree.report();
    let text = report.text();
    assert!(report.ready.is_empty() && report.after_steps.is_empty(), "{text}");
    assert!(text.contains("No bus of this machine can be used yet"), "{text}");
    assert!(!text.contains("cs="), "no bus is written: {text}");
    assert!(text.lines().count() < 30, "it is short: {text}");
    let json = serde_json::to_value(&report).expect("JSON");
    let findings = json["controllers"][0]["findings"].as_array().expect("findings");
    let refused: Vec<&Value> = findings.iter().filter(|it| it["about"] == "refused").collect();
    let has_all = |finding: &&&Value| {
        let said = finding["text"].as_str().expect("text");
        parts.iter().all(|part| said.contains(part)) && text.contains(said)
    };
    let found = refused.iter().find(has_all);
    assert_eq!(found.map(|it| it["level"].clone()), Some("problem".into()), "{refused:?}");
    let ways = json["controllers"][0]["ways"].as_array().expect("ways");
    assert!(!ways.is_empty() && ways.iter().all(|way| way["bus"] == Value::Null), "{ways:?}");
}

#[test]
fn the_tree_of_these_tests_is_ready_if_nothing_is_wrong_with_it() {
    let ready = |tree: Tree| tree.report().ready;
    assert_eq!(ready(bare()), ["uio:uio0,reference-hz=80M,cs=native0"]);
    let both = "uio:uio0,reference-hz=80M,cs=native0+native1";
    assert_eq!(ready(bare().chip("flash@1", &[1])), [both]);
    let disabled = bare().chip("flash@36", &[36]);
    let disabled = disabled.file(&format!("{NODE}/flash@36/status"), "disabled\0");
    assert_eq!(ready(disabled), ["uio:uio0,reference-hz=80M,cs=native0"]);
    let mixed = bare().property("cs-gpios", &[0, 0x56, 9, 1]).chip("flash@1", &[1]);
    assert_eq!(ready(mixed), ["uio:uio0,reference-hz=80M,cs=native0+gpio@0x30240000:9"]);
}

#[test]
fn a_chip_beyond_the_chip_selects_is_refused() {
    let four = bare().property("num-cs", &[4]).chip("flash@24", &[0x24]);
    is_refused(&four, &["flash@24 (jedec,spi-nor)", "reg = <0x24>", "correct reg"]);
    is_refused(&four, &["flash@24", "4 chip selects"]);
    // Linux's driver has three without num-cs, and cs-gpios cannot make it fewer.
    let three = bare().property("cs-gpios", &[0x56, 9, 1]).chip("flash@3", &[3]);
    is_refused(&three, &["reg = <0x3>", "3 chip selects"]);
    is_refused(&bare().chip("flash@100", &[0x100]), &["reg = <0x100>"]);
    assert_eq!(bare().property("num-cs", &[4]).chip("flash@3", &[3]).report().ready.len(), 1);
}

#[test]
fn each_driver_of_linux_counts_its_chip_selects_in_its_own_way() {
    for (block, num_cs, reg, says) in [
        // These two do not read num-cs.
        ("bcm2835", 8, 3, "3 chip selects"),
        ("atmel", 8, 4, "4 chip selects"),
        ("bcm2835", 8, 2, "has 2 of its own"),
        ("pl022", 2, 1, "has 1 of its own"),
        ("ecspi", 1, 1, "1 chip select,"),
        ("dw-ssi", 2, 2, "2 chip selects"),
        ("sifive", 1, 32, "32 chip selects"),
        ("mcspi", 1, 4, "4 chip selects"),
        ("cadence", 2, 2, "2 chip selects"),
    ] {
        let compatible = format!("generic-uio\0barewire,{block}\0");
        let tree = bare().file(&format!("{NODE}/compatible"), &compatible);
        is_refused(&tree.property("num-cs", &[num_cs]).chip("adc@0", &[reg]), &["adc@0", says]);
    }
}

#[test]
fn the_kernel_serves_its_other_chips_beside_one_that_it_refuses() {
    let beside = with_spidev(imx8mp("6.12.0").chip("flash@24", &[0x24]));
    let report = beside.report();
    assert_eq!(report.ready, ["spidev:/dev/spidev0.0"], "{}", report.text());
    says(&report, &["! refused       flash@24 (jedec,spi-nor): reg = <0x24>"]);
    // barewire on its registers could not keep it deselected.
    says(&report, &["mem: not now:\n    - refused: barewire could not keep flash@24"]);
    is_refused(&bare().chip("flash@0", &[0]).chip("flash@24", &[0x24]), &["reg = <0x24>"]);
}

#[test]
fn a_chip_that_the_kernel_has_made_is_within_its_chip_selects() {
    let made = with_spidev(imx8mp("6.12.0").chip("flash@0", &[0]).chip("flash@3", &[3]))
        .directory("sys/bus/spi/devices/spi0.3")
        .file("dev/spidev0.3", "");
    assert_eq!(made.report().ready, ["spidev:/dev/spidev0.0", "spidev:/dev/spidev0.3"]);
}

#[test]
fn stacked_memories_are_refused_whatever_the_kernel_makes_of_them() {
    let says = ["reg = <0x0 0x1>", "several chip selects", "leave it to the kernel's driver"];
    let stacked = |tree: Tree| tree.property("num-cs", &[4]).chip("flash@0", &[0, 1]);
    is_refused(&stacked(bare()), &says);
    let made = with_spidev(stacked(imx8mp("6.12.0"))).without(&format!("{NODE}/cs-gpios"));
    is_refused(&made, &says);
    let report = Report::of_bus(&made.survey(), None, "spidev:/dev/spidev0.0").expect("its bus");
    assert!(report.ready.is_empty() && report.text().contains(says[0]), "{}", report.text());
    assert_eq!(ready_and_refused(&made.root()).1, ["/dev/spidev0.0"]);
}

#[test]
fn cs_gpios_that_cannot_be_followed_refuse_the_controller() {
    let with = |cells: &[u32]| bare().chip("flash@0", &[0]).property("cs-gpios", cells);
    is_refused(&with(&[0x99, 9, 1]), &["cs-gpios", "entry 0", "phandle 0x99", "name a GPIO chip"]);
    is_refused(&with(&[0, 0x56, 9, 1, 0x99, 9, 1]), &["entry 2", "phandle 0x99"]);
    let cut = with(&[0x56, 9, 1, 0x56, 9]);
    is_refused(&cut, &["entry 1", "ends within it", "write all its cells"]);
    is_refused(&bare().bytes("cs-gpios", &[0, 0, 0, 0, 0, 0]), &["entry 1", "ends within it"]);
    let no_chip = with(&[0x56, 9, 1]).without(&format!("proc/device-tree/{GPIO}/#gpio-cells"));
    is_refused(&no_chip, &["gpio@30240000 has no #gpio-cells"]);
    let disabled =
        with(&[0x56, 9, 1]).file(&format!("proc/device-tree/{GPIO}/status"), "disabled\0");
    is_refused(&disabled, &["gpio@30240000 is disabled", "status"]);
    // The kernel took the native line in its place, or waits: neither reaches the chip.
    let made = with_spidev(imx8mp("6.12.0")).property("cs-gpios", &[0x99, 9, 1]);
    is_refused(&made, &["phandle 0x99"]);
    assert_eq!(ready_and_refused(&made.root()).1, ["/dev/spidev0.0"]);
    assert!(overlay_of(&made).is_err_and(|error| error.contains("phandle 0x99")));
}

#[test]
fn six_chip_selects_are_six_lines_or_refused() {
    let chips = |tree: Tree| {
        (0..6).fold(tree, |tree, number| tree.chip(&format!("adc@{number}"), &[number]))
    };
    // Two have no line: ECSPI has four.
    let native = chips(bare().property("num-cs", &[6]));
    is_refused(&native, &["adc@4", "reg = <0x4>", "has 4 of its own", "add one there"]);
    is_refused(&native, &["adc@5"]);
    assert!(native.report().text().contains("could not keep adc@4 and adc@5 deselected"));
    // Linux's driver has three without num-cs.
    is_refused(&chips(bare()), &["adc@3", "3 chip selects"]);
    let alone = bare().property("num-cs", &[6]).chip("adc@5", &[5]);
    is_refused(&alone, &["reg = <0x5>", "has 4 of its own", "cs-gpios"]);
    // Six GPIO lines are the kernel's to use, and more than a bus of barewire has.
    let lines: Vec<u32> = (10..16).flat_map(|line| [0x56, line, 1]).collect();
    let gpio = chips(bare().property("cs-gpios", &lines)).report();
    assert!(gpio.ready.is_empty(), "{}", gpio.text());
    says(&gpio, &["at most 4 chip selects, and reg and cs-gpios make 6 here"]);
    says(&gpio, &["--cs 5        line 15 of the GPIO chip"]);
}

#[test]
fn a_bus_that_another_host_drives_is_refused() {
    let target = bare().file(&format!("{NODE}/spi-slave"), "").directory(&format!("{NODE}/slave"));
    is_refused(&target, &["spi-slave", "another host drives this bus", "delete spi-slave"]);
    let made = imx8mp("6.12.0")
        .file(&format!("{NODE}/spi-slave"), "")
        .link("sys/bus/platform/devices/30820000.spi/driver", "../../drivers/spi_imx")
        .directory("sys/bus/platform/devices/30820000.spi/spi_slave/spi0")
        .file("dev/spidev0.0", "");
    is_refused(&made, &["spi-slave"]);
    let bus = "spidev:/dev/spidev0.0";
    let report = Report::of_bus(&made.survey(), None, bus).expect("its bus");
    assert!(report.ready.is_empty() && report.text().contains("another host drives this bus"));
    assert_eq!(ready_and_refused(&made.root()).1, ["/dev/spidev0.0"]);
}

#[test]
fn a_chip_select_belongs_to_one_chip() {
    let twice = bare().chip("adc@0", &[0]).chip("flash@0", &[0]);
    is_refused(&twice, &["flash@0", "chip select of adc@0", "give it one of its own"]);
    // The kernel took the other one.
    let made = twice.link("sys/bus/spi/devices/spi0.0/of_node", "../../flash@0");
    let made = made.directory("sys/bus/platform/devices/30820000.spi/spi_master/spi0");
    says(&made.report(), &["adc@0 (jedec,spi-nor): reg = <0x0> is the chip select of flash@0"]);
    // A line of stacked memories is no other chip's either.
    is_refused(&bare().chip("flash@0", &[0, 1]).chip("flash@1", &[1]), &["chip select of flash@0"]);
}

#[test]
fn a_reg_that_is_no_number_is_refused() {
    let empty = bare().chip("flash@0", &[]);
    is_refused(&empty, &["flash@0", "no reg", "reg = <0>"]);
    is_refused(&empty.without(&format!("{NODE}/flash@0/reg")), &["no reg"]);
    for bytes in [&[0, 0][..], &[0, 0, 0, 0, 0, 0]] {
        let cut = bare().chip("flash@0", &[0]).bytes("flash@0/reg", bytes);
        is_refused(&cut, &[&format!("reg has {} bytes", bytes.len()), "reg = <0>"]);
    }
}

#[test]
fn old_kernels_ask_for_the_frequency() {
    let old = || bare().chip("flash@0", &[0]).file("proc/sys/kernel/osrelease", "5.6.19\n");
    is_refused(&old(), &["spi-max-frequency", "before 5.7", "add it"]);
    let refused = |tree: Tree| tree.survey().controllers[0].refused.len();
    assert_eq!(refused(old().property("flash@0/spi-max-frequency", &[1_000_000])), 0);
    assert_eq!(refused(old().file("proc/sys/kernel/osrelease", "5.7.0\n")), 0);
}

/// `spi-cs-high` decides, whatever the flag in `cs-gpios` says, as in Linux's GPIO library.
#[test]
fn the_level_of_a_chip_select_is_the_chips() {
    let high = |flag| bare().property("cs-gpios", &[0x56, 9, flag]).chip("flash@0", &[0]);
    for flag in [0, 1] {
        assert_eq!(high(flag).report().ready, ["uio:uio0,reference-hz=80M,cs=gpio@0x30240000:9"]);
        let high = high(flag).file(&format!("{NODE}/flash@0/spi-cs-high"), "");
        assert!(high.survey().controllers[0].selects[0].active_high);
    }
}
