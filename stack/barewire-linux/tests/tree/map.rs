//! Mapping: whose registers may be had, and which bytes of the file they are.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use barewire::reg::Registers;
use barewire_linux::map::bound::{devices_at, refuse_if_bound};
use barewire_linux::map::clock::{self, ClockState, Family};
use barewire_linux::map::{DevMem, MapError, Uio};

use crate::fake::Tree;

const ECSPI1: u64 = 0x3082_0000;
const CCGR7: u64 = 0x3038_4070;

/// `/dev/mem` up to the end of ECSPI1.
fn imx8mp() -> Tree {
    Tree::new()
        .sparse("/dev/mem", ECSPI1 + 0x1_0000)
        .file("/proc/device-tree/compatible", "fsl,imx8mp-evk\0fsl,imx8mp\0")
        .file("/proc/iomem", "40000000-ffffffff : System RAM\n")
}

#[test]
fn a_controller_with_a_kernel_driver_is_refused_with_the_command() {
    let tree = imx8mp().platform("30820000.spi", Some("spi_imx"));
    let memory = DevMem::open(&tree.root()).expect("opened");
    let error = memory.map_controller(ECSPI1, 0x40).expect_err("bound");
    let text = error.to_string();
    assert!(
        text.contains("`echo 30820000.spi > /sys/bus/platform/drivers/spi_imx/unbind`"),
        "{text}"
    );
    assert!(matches!(error, MapError::Bound { .. }), "{error:?}");
    assert!(memory.map_shared(ECSPI1, 0x40).is_ok(), "shared is shared");
}

#[test]
fn a_controller_is_found_by_its_address_whatever_its_name() {
    let tree = Tree::new()
        .platform("2008000.ecspi", Some("spi_imx"))
        .platform("200c000.spi", None)
        .platform("2010000.spi", Some("uio_pdrv_genirq"))
        .platform("2008000x.spi", Some("odd"))
        .platform("cpufreq-dt", Some("cpufreq-dt"));
    let root = tree.root();
    assert_eq!(devices_at(&root, 0x0200_8000)[0].name, "2008000.ecspi");
    assert!(refuse_if_bound(&root, 0x0200_8000, 0x40).is_err());
    assert_eq!(refuse_if_bound(&root, 0x0200_c000, 0x40), Ok(()), "no driver");
    assert_eq!(refuse_if_bound(&root, 0x0201_0000, 0x40), Ok(()), "a driver of UIO does not count");
    assert_eq!(refuse_if_bound(&root, 0x0201_4000, 0x40), Ok(()), "no such device");
}

#[test]
fn registers_in_dev_mem_are_where_their_address_says() {
    let tree = imx8mp();
    let memory = DevMem::open(&tree.root()).expect("opened");
    let mut registers = memory.map_controller(ECSPI1, 0x40).expect("mapped");
    assert_eq!(registers.mapped_len(), rustix::param::page_size(), "no page too many");
    registers.write(0x3c, 0x1234_5678);
    let file = File::open(tree.root().path("/dev/mem")).expect("opened");
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, ECSPI1 + 0x3c).expect("read");
    assert_eq!(u32::from_ne_bytes(bytes), 0x1234_5678);
}

#[test]
fn what_is_no_register_block_is_refused() {
    let tree = imx8mp();
    let memory = DevMem::open(&tree.root()).expect("opened");
    for (address, len) in [(ECSPI1 + 2, 4), (ECSPI1, 0), (ECSPI1, 6), (u64::MAX - 3, 4)] {
        let refused = memory.map_shared(address, len);
        assert!(matches!(refused, Err(MapError::Range { .. })), "{address:#x}: {refused:?}");
    }
    let refused = memory.map_controller(0x4000_0000, 0x40);
    assert!(matches!(refused, Err(MapError::Memory { .. })), "{refused:?}");
}

#[test]
fn a_clock_is_looked_at_where_it_can_be() {
    let tree = imx8mp();
    let root = tree.root();
    let gate = Family::detect(&root).and_then(|family| family.gate(ECSPI1)).expect("known");
    assert_eq!(gate.register, CCGR7);
    let memory = DevMem::open(&root).expect("opened");
    assert_eq!(clock::check(&root, ECSPI1, Some(&memory)), ClockState::Gated(gate));
    let file = File::options().write(true).open(root.path("/dev/mem")).expect("opened");
    file.write_all_at(&3_u32.to_ne_bytes(), CCGR7).expect("written");
    let off = clock::check(&root, ECSPI1, Some(&memory));
    assert!(matches!(off, ClockState::RootOff(slice) if slice.register == 0x3038_b280), "{off:?}");
    file.write_all_at(&(1_u32 << 28).to_ne_bytes(), 0x3038_b280).expect("written");
    assert_eq!(clock::check(&root, ECSPI1, Some(&memory)), ClockState::Running(gate));
    assert_eq!(clock::check(&root, ECSPI1, None), ClockState::Unknown, "no rights to look");
    assert_eq!(clock::check(&root, 0x1234_0000, Some(&memory)), ClockState::Unknown);
    let other = Tree::new();
    assert_eq!(clock::check(&other.root(), ECSPI1, Some(&memory)), ClockState::Unknown);
}

/// A UIO device whose second block begins in the middle of its page.
fn uio() -> Tree {
    let page = rustix::param::page_size() as u64;
    Tree::new()
        .sparse("/dev/uio0", 3 * page)
        .file("/sys/class/uio/uio0/name", "spi\n")
        .uio_map("uio0", 0, ["0x30820000\n", "0x1000\n", "0x0\n"])
        .uio_map("uio0", 1, ["0x30830000\n", "0x240\n", "0x200\n"])
}

#[test]
fn a_uio_block_is_found_and_mapped_by_its_number() {
    let tree = uio();
    let root = tree.root();
    assert_eq!(Uio::find(&root, 0x3083_0200).as_deref(), Some("/dev/uio0"));
    assert_eq!(Uio::find(&root, 0x3083_0000), None);
    for name in ["uio0", "/dev/uio0"] {
        assert_eq!(Uio::open(&root, name).expect("opened").maps().len(), 2);
    }
    let uio = Uio::open(&root, "/dev/uio0").expect("opened");
    let mut registers = uio.map(1, 0x40).expect("mapped");
    registers.write(0, 0x0506_0708);
    let file = File::open(root.path("/dev/uio0")).expect("opened");
    let mut bytes = [0; 4];
    let page = rustix::param::page_size() as u64;
    file.read_exact_at(&mut bytes, page + 0x200).expect("read");
    assert_eq!(u32::from_ne_bytes(bytes), 0x0506_0708);
}

#[test]
fn a_uio_block_ends_where_sysfs_says() {
    let tree = uio();
    let uio = Uio::open(&tree.root(), "uio0").expect("opened");
    assert!(uio.map(1, 0x40).is_ok());
    let refused = uio.map(1, 0x44).expect_err("too long");
    assert!(matches!(refused, MapError::Range { available: Some(0x40), .. }), "{refused:?}");
    assert!(matches!(uio.map(1, 3), Err(MapError::Range { available: None, .. })));
    let refused = uio.map(2, 4).expect_err("two blocks");
    assert!(matches!(refused, MapError::NoSuchMap { index: 2, count: 2, .. }), "{refused:?}");
}

#[test]
fn a_uio_block_another_driver_has_is_refused() {
    let tree = uio().platform("30820000.spi", Some("spi_imx"));
    let uio = Uio::open(&tree.root(), "uio0").expect("opened");
    assert!(matches!(uio.map(0, 0x40), Err(MapError::Bound { .. })));
    let tree = self::uio().platform("30820000.spi", Some("uio_pdrv_genirq"));
    assert!(Uio::open(&tree.root(), "uio0").expect("opened").map(0, 0x40).is_ok());
}

#[test]
fn a_missing_or_odd_uio_device_is_told() {
    let tree = uio().uio_map("uio1", 0, ["0x3084zz\n", "0x1000\n", "0x0\n"]).fifo("/dev/uio1");
    let error = Uio::open(&tree.root(), "uio7").expect_err("missing");
    let present = vec!["/dev/uio0".into(), "/dev/uio1".into()];
    assert_eq!(error, MapError::NoSuchDevice { path: "/dev/uio7".into(), present });
    let error = Uio::open(&tree.root(), "uio1").expect_err("odd");
    let path = "/sys/class/uio/uio1/maps/map0/addr".into();
    assert_eq!(error, MapError::Malformed { path });
}

#[test]
fn an_interrupt_is_waited_for_and_no_longer_than_asked() {
    let tree = Tree::new().fifo("/dev/uio0").directory("/sys/class/uio/uio0/maps");
    let uio = Uio::open(&tree.root(), "uio0").expect("opened");
    let begun = Instant::now();
    assert_eq!(uio.wait_interrupt(Duration::from_millis(20)), Ok(None));
    assert!(begun.elapsed() >= Duration::from_millis(20));

    // The FIFO's other end is the kernel.
    let kernel = File::options().read(true).write(true).open(tree.root().path("/dev/uio0"));
    kernel.expect("opened").write_all(&7_u32.to_ne_bytes()).expect("written");
    assert_eq!(uio.wait_interrupt(Duration::MAX), Ok(Some(7)));
}

#[test]
fn an_interrupt_is_unmasked_by_a_one_and_masked_by_a_zero() {
    let tree = uio();
    let uio = Uio::open(&tree.root(), "uio0").expect("opened");
    uio.enable_interrupt().expect("written");
    uio.disable_interrupt().expect("written");
    let file = File::open(tree.root().path("/dev/uio0")).expect("opened");
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 0).expect("read");
    let [on, off] = [1_i32.to_ne_bytes(), 0_i32.to_ne_bytes()];
    assert_eq!(bytes, [on, off].concat()[..]);
}

#[test]
fn a_device_without_interrupt_says_so() {
    // An empty file reads as ended; a UIO device would answer EIO.
    let tree = Tree::new().file("/dev/uio0", "").directory("/sys/class/uio/uio0/maps");
    let uio = Uio::open(&tree.root(), "uio0").expect("opened");
    let error = uio.wait_interrupt(Duration::from_secs(1)).expect_err("none");
    assert!(matches!(error, MapError::NoInterrupt { .. }), "{error:?}");
}
