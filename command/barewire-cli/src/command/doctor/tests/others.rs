//! Controllers without registers, lines that two controllers name, and suppliers that are not there.

use super::*;

/// A board with a second controller whose chip select is on the same line; `driver` has the first.
fn one_line(driver: bool) -> Tree {
    let node = "/soc@0/bus@30800000/spi@30830000";
    let tree = if driver { with_spidev(imx8mp("6.12.0")) } else { imx8mp("6.12.0") };
    tree.device("30830000.spi", node)
        .file(&format!("{TREE}{node}/compatible"), "fsl,imx8mp-ecspi\0fsl,imx6ul-ecspi\0")
        .cells(&format!("{TREE}{node}/cs-gpios"), &[0, 0x56, 9, 1])
        .file("lib/modules/6.12.0/modules.dep", "kernel/uio_pdrv_genirq.ko:")
}

#[test]
fn a_line_of_two_controllers_is_told_with_its_other_user() {
    let report = one_line(true).report();
    let text = report.text();
    let line = "line 9 of the GPIO chip at 0x30240000 (/dev/gpiochip4)";
    says(&report, &[&format!("! --cs 0        {line} is also chip select 1 of 30830000.spi: ")]);
    let held = format!(
        "{line} is also chip select 0 of 30820000.spi, whose driver spi_imx holds it: a line has one user, so name another line in cs-gpios of one of them"
    );
    says(&report, &[&format!("! driver        none has it, and none can: {held}")]);
    let second = report.controllers.last().expect("two");
    assert_eq!(second.name, "30830000.spi");
    assert!(second.findings.iter().all(|finding| finding.steps.is_empty()), "{text}");
    for way in &second.ways {
        assert_eq!(way.obstacles, [held.as_str()], "{}", way.kind);
    }
    assert_eq!(report.ready, ["spidev:/dev/spidev0.0"], "the first has the line");
}

#[test]
fn a_line_that_no_driver_holds_is_told_and_its_ways_stay() {
    let report = one_line(false).report();
    let text = report.text();
    assert_eq!(text.matches("a line has one user").count(), 2, "{text}");
    assert_eq!(text.matches("barewire restore\n").count(), 2, "{text}");
}

#[test]
fn a_controller_of_gpio_lines_is_ready_by_spidev() {
    let tree = raspberry_pi()
        .link("sys/class/spi_master/spi0/device", "../../../bus/platform/devices/3f204000.spi")
        .device("soc:spi-gpio", "/soc/spi-gpio")
        .file(&format!("{TREE}/soc/spi-gpio/compatible"), "spi-gpio\0")
        .link("sys/bus/platform/devices/soc:spi-gpio/driver", "../../drivers/spi_gpio")
        .directory("sys/bus/platform/devices/soc:spi-gpio/spi_master/spi3")
        .link("sys/class/spi_master/spi3/device", "../../../bus/platform/devices/soc:spi-gpio")
        .link("sys/bus/spi/devices/spi3.0/driver", "../../drivers/spidev")
        // Another's registers at address 0, which are not its own.
        .file("proc/iomem", "00000000-3b3fffff : System RAM\n")
        .file("proc/77/maps", "ffff9000-ffffa000 rw-s 00000000 00:05 87 /dev/mem\n")
        .file("dev/spidev3.0", "");
    let report = Report::of_bus(&tree.survey(), None, "spidev:/dev/spidev3.0").expect("found");
    assert_eq!(report.ready, ["spidev:/dev/spidev3.0"]);
    let text = report.text();
    assert!(text.contains("\nsoc:spi-gpio: kernel driver spi_gpio, bus 3\n"), "{text}");
    for wrong in ["0x0", "claimed", "in use", "interrupt"] {
        assert!(!text.contains(wrong), "{wrong} in {text}");
    }
    assert_eq!(tree.report().controllers.len(), 2, "one with registers is not told twice");
}

#[test]
fn a_chip_that_waits_for_a_supplier_gets_no_step() {
    let waits = |tree: Tree| {
        tree.file("sys/bus/spi/devices/spi0.0/waiting_for_supplier", "1\n").file(
            "sys/kernel/debug/devices_deferred",
            "spi0.0\tspi: wait for supplier /regulator-flash\n",
        )
    };
    let tree = imx8mp("6.12.0")
        .link("sys/bus/platform/devices/30820000.spi/driver", "../../drivers/spi_imx")
        .directory("sys/bus/platform/devices/30820000.spi/spi_master/spi0")
        .file("sys/bus/spi/devices/spi0.0/driver_override", "(null)\n");
    let report = waits(tree).report();
    let [obstacle] = &way(&report, "spidev").obstacles[..] else { panic!("{}", report.text()) };
    for part in ["it waits for /regulator-flash", "load that driver, or correct the node"] {
        assert!(obstacle.contains(part), "{obstacle}");
    }
    assert!(commands(&report).is_empty());
    let bound = waits(with_flash_driver("6.12.0")).report();
    assert!(way(&bound, "spidev").is_reachable(), "what has a driver waits for nothing");
}

#[test]
fn a_controller_that_waits_for_a_supplier_is_not_offered() {
    let supplier = "sys/bus/platform/devices/30820000.spi/supplier:platform:30380000.clock";
    let report = imx8mp("6.12.0").file(&format!("{supplier}/status"), "dormant\n").report();
    let text = report.text();
    let told = "! driver        none has it, and none can: it waits for 30380000.clock, ";
    assert!(text.contains(told) && !text.contains("barewire restore"), "{text}");
}
