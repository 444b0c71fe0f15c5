//! The kernel module and its devices.

use super::*;

fn installed() -> Tree {
    with_spidev(imx8mp("6.1.0"))
        .file("lib/modules/6.1.0/modules.dep", "updates/dkms/barewire.ko.xz:")
}

#[test]
fn the_module_is_proposed_first_where_it_is_there() {
    let report = installed().report();
    let first = &report.controllers[0].ways[0];
    assert_eq!((first.kind, first.bus.as_deref()), ("barewire", Some("barewire:0")));
    assert_eq!(report.after_steps[0], "barewire:0");
    let commands: Vec<_> = first.steps.iter().flat_map(|step| &step.commands).collect();
    assert_eq!(
        commands,
        [
            "modprobe barewire",
            "echo 30820000.spi > /sys/bus/platform/drivers/spi_imx/unbind",
            "echo barewire-user > /sys/bus/platform/devices/30820000.spi/driver_override",
            "echo 30820000.spi > /sys/bus/platform/drivers/barewire-user/bind",
        ]
    );
    let undo: Vec<_> = first.steps.last().into_iter().flat_map(|step| &step.undo).collect();
    assert_eq!(
        undo,
        [
            "echo 30820000.spi > /sys/bus/platform/drivers/barewire-user/unbind",
            "echo > /sys/bus/platform/devices/30820000.spi/driver_override",
            "echo 30820000.spi > /sys/bus/platform/drivers/spi_imx/bind",
        ]
    );
    assert_eq!(first.tries, ["barewire flash id --bus barewire:0"]);
    let loaded =
        installed().directory("sys/module/barewire").directory("sys/class/barewire/barewire0");
    let report = loaded.report();
    let first = &report.controllers[0].ways[0];
    assert_eq!(first.bus.as_deref(), Some("barewire:1"), "0 is another controller's");
    assert!(!first.steps[0].commands[0].contains("modprobe"));
}

#[test]
fn where_it_is_not_there_doctor_says_how_to_install_it() {
    let report = with_spidev(imx8mp("6.1.0")).report();
    assert!(report.controllers[0].ways.iter().all(|way| way.kind != "barewire"));
    let finding = report.findings.iter().find(|finding| finding.about == "kernel module");
    let finding = finding.expect("told");
    assert!(finding.steps[0].commands[0].starts_with("apt install ./barewire-dkms_"));
}

#[test]
fn a_chip_with_a_driver_of_its_own_is_not_taken() {
    let tree = with_flash_driver("6.1.0").directory("sys/module/barewire");
    let report = tree.report();
    assert!(way(&report, "barewire").obstacles[0].contains("spi-nor has spi0.0"));
}

fn given() -> Tree {
    imx8mp("6.1.0")
        .directory("sys/module/barewire")
        .link("sys/bus/platform/devices/30820000.spi/driver", "../../drivers/barewire-user")
        .link("sys/class/barewire/barewire0/device", "../../../bus/platform/devices/30820000.spi")
}

#[test]
fn a_controller_that_the_module_gives_is_ready() {
    let tree = given().file("dev/barewire0", "");
    let report = tree.report();
    assert_eq!(report.ready, ["barewire:0"]);
    let kinds: Vec<_> = report.controllers[0].ways.iter().map(|way| way.kind).collect();
    assert_eq!(kinds, ["barewire"], "no way leads past the module");
    says(&report, &["on while a program has it open", "barewire gives /dev/barewire0 to programs"]);
    let one = |bus| Report::of_bus(&tree.survey(), None, bus).map(|report| report.ready);
    assert_eq!(one("barewire:/dev/barewire0,shared").expect("found"), ["barewire:0"]);
    let error = one("barewire:1").expect_err("none").to_string();
    assert!(error.contains("no controller of this machine has barewire:1"), "{error}");
}

#[test]
fn a_node_that_this_user_may_not_open_comes_with_its_rule() {
    // It does not exist, so it cannot be opened.
    let report = given().report();
    let way = way(&report, "barewire");
    assert!(!way.ready);
    assert!(way.steps[0].commands[1].contains("SUBSYSTEM==\"barewire\", GROUP=\"spi\""));
}

#[test]
fn a_page_with_another_blocks_registers_is_given_to_no_program() {
    let tree = given()
        .file("dev/barewire0", "")
        .directory("sys/bus/platform/devices/30820800.timer/of_node");
    let report = tree.report();
    let obstacles = &way(&report, "barewire").obstacles;
    let held = "30820800.timer, so the module gives it to no program";
    assert!(obstacles[0].contains(held), "{obstacles:?}");
}
