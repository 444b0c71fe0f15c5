//! Finding and opening: existing devices, and the errors for missing ones.

use barewire_linux::discover::{Found, discover};
use barewire_linux::map::Block;
use barewire_linux::map::bound::PlatformDevice;
use barewire_linux::spidev::{Spidev, SpidevError, bufsiz};

use crate::fake::Tree;

#[test]
fn bufsiz_is_the_modules_parameter() {
    let parameter = "/sys/module/spidev/parameters/bufsiz";
    assert_eq!(bufsiz(&Tree::new().root()), 4096);
    assert_eq!(bufsiz(&Tree::new().file(parameter, "65536\n").root()), 65536);
    assert_eq!(bufsiz(&Tree::new().file(parameter, "").root()), 4096);
}

#[test]
fn a_missing_node_is_told_with_those_there_are() {
    let tree = Tree::new().file("/dev/spidev10.0", "").file("/dev/spidev1.0", "");
    let error = Spidev::open_at(&tree.root(), "/dev/spidev0.0").expect_err("missing");
    let present = vec!["/dev/spidev1.0".into(), "/dev/spidev10.0".into()];
    assert_eq!(error, SpidevError::NoSuchDevice { path: "/dev/spidev0.0".into(), present });

    let error = Spidev::open_at(&Tree::new().root(), "/dev/spidev0.0").expect_err("missing");
    assert!(error.to_string().contains("no spidev node on this machine"), "{error}");
}

#[test]
fn what_is_no_spidev_node_is_not_driven() {
    let tree = Tree::new().file("/dev/text", "hello").fifo("/dev/fifo").directory("/dev/directory");
    for name in ["/dev/text", "/dev/fifo", "/dev/directory"] {
        let error = Spidev::open_at(&tree.root(), name).expect_err("no spidev");
        assert_eq!(error, SpidevError::NotSpidev { path: name.into() });
    }
    let error = Spidev::open("/dev/null").expect_err("another device");
    assert_eq!(error, SpidevError::NotSpidev { path: "/dev/null".into() });
}

#[test]
fn discovery_finds_all_three_kinds() {
    assert_eq!(discover(&Tree::new().root()), []);

    let tree = Tree::new()
        .file("/dev/spidev2.0", "")
        .file("/dev/null", "")
        .file("/sys/class/uio/uio0/name", "spi\n")
        .uio_map("uio0", 0, ["0x0000000030820000\n", "0x10000\n", "0x0\n"])
        .platform("30820000.spi", None)
        .platform("30830000.spi", Some("spi_imx"))
        .directory("/sys/bus/platform/devices/30830000.spi/spi_master/spi2")
        .compatible("platform", "30830000.spi", "fsl,imx8mp-ecspi\0fsl,imx6ul-ecspi\0")
        .platform("30a20000.i2c", Some("imx-i2c"))
        .platform("regulatory.0", None);
    let found = discover(&tree.root());
    let [spidev, uio, free, bound] = &found[..] else { panic!("{found:?}") };
    let path = "/dev/spidev2.0".to_owned();
    assert_eq!(*spidev, Found::Spidev { path, accessible: true });
    let Found::Uio { path, name, maps, accessible: false } = uio else { panic!("{uio:?}") };
    assert_eq!((path.as_str(), name.as_str(), maps.len()), ("/dev/uio0", "spi", 1));
    let device = PlatformDevice {
        name: "30820000.spi".into(),
        bus: "platform",
        address: 0x3082_0000,
        driver: None,
        block: None,
        ranges: Vec::new(),
    };
    assert_eq!(*free, Found::Controller { device, bus: None });
    let driver = Some("spi_imx".into());
    let device = PlatformDevice {
        name: "30830000.spi".into(),
        bus: "platform",
        address: 0x3083_0000,
        driver,
        block: Some(Block::Ecspi),
        ranges: Vec::new(),
    };
    assert_eq!(*bound, Found::Controller { device, bus: Some(2) });
}

#[test]
fn a_primecell_is_found_on_its_own_bus() {
    let tree = Tree::new()
        .amba("fff00000.spi", Some("ssp-pl022"))
        .directory("/sys/bus/amba/devices/fff00000.spi/spi_master/spi0")
        .compatible("amba", "fff00000.spi", "arm,pl022\0arm,primecell\0")
        .amba("fff30000.gpio", Some("pl061_gpio"));
    let device = PlatformDevice {
        name: "fff00000.spi".into(),
        bus: "amba",
        address: 0xfff0_0000,
        driver: Some("ssp-pl022".into()),
        block: Some(Block::Pl022),
        ranges: Vec::new(),
    };
    assert_eq!(discover(&tree.root()), [Found::Controller { device, bus: Some(0) }]);
}
