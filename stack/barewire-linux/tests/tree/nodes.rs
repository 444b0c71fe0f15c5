//! Addresses judged by the device tree, on trees with the shapes of real boards'.

use barewire_linux::bus_text::parse_mem;
use barewire_linux::map::{MapError, Mapped, WrongNode};

use crate::fake::Tree;

/// A Raspberry Pi 3, as Debian's tree has it; memory ends below the GPU's.
fn pi3() -> Tree {
    Tree::new()
        .sparse("/dev/mem", 0x4100_0000)
        .bus("", [1, 1], None)
        .node("/memory@0", "", &[0, 0x3b40_0000])
        .bus(
            "/soc",
            [1, 1],
            Some(&[0x7e00_0000, 0x3f00_0000, 0x100_0000, 0x4000_0000, 0x4000_0000, 0x1000]),
        )
        .node("/soc/gpio@7e200000", "brcm,bcm2835-gpio\0", &[0x7e20_0000, 0xb4])
        .node("/soc/i2s@7e203000", "brcm,bcm2835-i2s\0", &[0x7e20_3000, 0x24])
        .file("/proc/device-tree/soc/i2s@7e203000/status", "disabled\0")
        .node("/soc/spi@7e204000", "brcm,bcm2835-spi\0", &[0x7e20_4000, 0x200])
        .node("/soc/spi@7e215080", "brcm,bcm2835-aux-spi\0", &[0x7e21_5080, 0x40])
        .node("/soc/local_intc@40000000", "brcm,bcm2836-l1-intc\0", &[0x4000_0000, 0x100])
        .platform("3f204000.spi", None)
        .compatible("platform", "3f204000.spi", "brcm,bcm2835-spi\0")
        .platform("3f215080.spi", None)
        .platform("3f200000.gpio", Some("pinctrl-bcm2835"))
}

/// Opens a BCM2835 at `address` of the machine, with the bank at `bank`.
fn open(tree: &Tree, address: &str, bank: &str, more: &str) -> Result<Mapped, MapError> {
    let text = format!(
        "{address},controller=bcm2835,reference-hz=400M,cs=gpio@{bank}.8,ignore-clock{more}"
    );
    Mapped::open(&tree.root(), &parse_mem(&text).expect("reads"))
}

const SPI0: &str = "0x3f204000";
const GPIO: &str = "0x3f200000";

fn wrong(opened: Result<Mapped, MapError>) -> (WrongNode, String) {
    let error = opened.expect_err("refused");
    let text = error.to_string();
    match error {
        MapError::OtherNode { wrong, .. } => (wrong, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_address_of_another_node_or_of_none_is_refused_and_the_node_named() {
    let tree = pi3();
    assert!(open(&tree, SPI0, GPIO, "").is_ok());
    for (address, node, name) in [
        ("0x3f203000", "/soc/i2s@7e203000 (brcm,bcm2835-i2s)", "i2s@7e203000"),
        ("0x3f215080", "/soc/spi@7e215080 (brcm,bcm2835-aux-spi)", "spi@7e215080"),
        ("0x40000040", "/soc/local_intc@40000000 (brcm,bcm2836-l1-intc)", "local_intc@40000000"),
        ("0x00100000", "/memory@0, which", "memory@0"),
        ("0x3f214000", "no device", "none"),
        ("0x7e214000", "no device", "none"),
        ("0x3c000000", "no device", "none"),
    ] {
        for (spi, bank, is) in
            [(address, GPIO, "is no bcm2835 controller"), (SPI0, address, "is no GPIO bank")]
        {
            let (wrong, text) = wrong(open(&tree, spi, bank, ""));
            assert!(text.contains(node), "{address}: {text}");
            assert_eq!(text.contains(is), wrong != WrongNode::None, "{text}");
            let waiver = format!("ignore-clock,node={name}");
            assert!(text.ends_with(&waiver), "{text}");
            assert!(open(&tree, spi, bank, &format!(",node={name}")).is_ok(), "{address}");
            assert!(open(&tree, spi, bank, ",node=uart@7e201000").is_err(), "another's name");
        }
    }
    // Each is waived by its own name, also where memory is said to be everywhere.
    let memory = pi3().node("/memory@0", "", &[0, 0x4000_0000]);
    assert!(open(&memory, SPI0, GPIO, "").is_ok());
    assert!(open(&memory, "0x3f203000", GPIO, ",node=memory@0").is_err());
    assert!(open(&memory, "0x3f214000", GPIO, ",node=memory@0").is_ok());
    assert!(open(&tree, "0x3f214000", "0x3f203000", ",node=none").is_err());
    assert!(open(&tree, "0x3f214000", "0x3f203000", ",node=none+i2s@7e203000").is_ok());
}

#[test]
fn a_node_that_cannot_be_used_is_refused_with_the_remedy() {
    let with =
        |property: &str, value: &str| pi3().file(&format!("/proc/device-tree{property}"), value);
    for (property, value, what, remedy) in [
        ("/soc/spi@7e204000/status", "disabled\0", "disabled", "dtparam=spi=on"),
        ("/soc/spi@7e204000/status", "fail\0", "disabled", "overlay"),
        ("/soc/status", "disabled\0", "disabled", "overlay"),
        ("/soc/spi@7e204000/spi-slave", "", "a target (spi-slave)", "remove the property"),
        ("/soc/gpio@7e200000/status", "disabled\0", "disabled", "overlay"),
    ] {
        let (_, text) = wrong(open(&with(property, value), SPI0, GPIO, ""));
        assert!(text.contains(what) && text.contains(remedy), "{property}: {text}");
    }
    let disabled = with("/soc/spi@7e204000/status", "disabled\0");
    assert!(open(&disabled, SPI0, GPIO, ",node=spi@7e204000").is_ok());
    // An overlay's node for UIO that names the block stands for the one that it disables.
    let overlaid = disabled.node(
        "/soc/barewire@7e204000",
        "generic-uio\0barewire,bcm2835\0",
        &[0x7e20_4000, 0x200],
    );
    assert!(open(&overlaid, SPI0, GPIO, "").is_ok());
    for (uio, usable) in [("generic-uio\0", true), ("generic-uio\0barewire,pl022\0", false)] {
        let given = pi3().node("/soc/spi@7e204600", uio, &[0x7e20_4600, 0x200]);
        let opened = open(&given, "0x3f204600", GPIO, "");
        assert_eq!(opened.is_ok(), usable, "{uio}: {opened:?}");
    }
}

#[test]
fn an_address_inside_a_disabled_controller_is_told_its_beginning() {
    let tree = Tree::new()
        .sparse("/dev/mem", 0x4000_0000)
        .bus("", [1, 1], None)
        .node("/spi@3f204000", "brcm,bcm2835-spi\0", &[0x3f20_4000, 0x200])
        .file("/proc/device-tree/spi@3f204000/status", "disabled\0");
    let (wrong, text) = wrong(open(&tree, "0x3f204004", GPIO, ""));
    assert_eq!(wrong, WrongNode::Within { path: "/spi@3f204000".into(), first: 0x3f20_4000 });
    assert!(text.contains("begin at 0x3f204000"), "{text}");
}

#[test]
fn a_comma_in_a_name_is_written_as_an_underscore() {
    let tree = pi3().node("/soc/vendor,thing@7e300000", "vendor,thing\0", &[0x7e30_0000, 0x100]);
    let (_, text) = wrong(open(&tree, "0x3f300000", GPIO, ""));
    assert!(text.ends_with(",node=vendor_thing@7e300000"), "{text}");
    assert!(open(&tree, "0x3f300000", GPIO, ",node=vendor_thing@7e300000").is_ok());
}

#[test]
fn without_a_tree_that_describes_registers_the_kernel_s_devices_decide() {
    let acpi = Tree::new()
        .sparse("/dev/mem", 0x4100_0000)
        .file("/proc/device-tree/chosen/bootargs", "quiet\0")
        .platform("3f203000.i2s", None);
    assert!(open(&acpi, SPI0, GPIO, "").is_ok());
    let error = open(&acpi, "0x3f203000", GPIO, "").expect_err("the kernel's");
    assert!(matches!(error, MapError::OtherDevice { .. }), "{error:?}");
}

/// The nodes of boards that barewire drives, as their trees have them; `soc` has the buses, from the root
/// down.
#[test]
fn the_addresses_of_documented_boards_are_their_nodes() {
    type Buses = &'static [(&'static str, [u32; 2], &'static [u32])];
    type Node = (&'static str, &'static str, &'static [u32]);
    let cases: [(Buses, Node, Node, &str); 5] = [
        (
            &[
                ("", [2, 2], &[]),
                (
                    "/soc@0",
                    [1, 1],
                    &[0, 0, 0, 0x3e00_0000, 0x2800_0000, 0, 0x2800_0000, 0x1000_0000],
                ),
                ("/soc@0/bus@30800000", [1, 1], &[]),
            ],
            (
                "/soc@0/bus@30800000/spi@30820000",
                "fsl,imx8mp-ecspi\0fsl,imx6ul-ecspi\0",
                &[0x3082_0000, 0x1_0000],
            ),
            ("/soc@0/gpio@30240000", "fsl,imx8mp-gpio\0fsl,imx35-gpio\0", &[0x3024_0000, 0x1_0000]),
            "0x30820000,reference-hz=80M,cs=gpio@0x30240000.9,unsafe-shared",
        ),
        (
            &[("", [1, 1], &[]), ("/soc", [1, 1], &[0, 0, 0xffff_ffff])],
            ("/soc/ssp@fff39000", "arm,pl022\0arm,primecell\0", &[0xfff3_9000, 0x1000]),
            ("/soc/gpio@fff30000", "arm,pl061\0arm,primecell\0", &[0xfff3_0000, 0x1000]),
            "0xfff39000,controller=pl022,reference-hz=150M,cs=gpio@0xfff30000.0",
        ),
        (
            &[("", [1, 1], &[]), ("/soc", [2, 2], &[0, 0, 0, 0xffff_ffff, 0xffff_ffff])],
            (
                "/soc/spi@10040000",
                "sifive,fu540-c000-spi\0sifive,spi0\0",
                &[0, 0x1004_0000, 0, 0x1000],
            ),
            (
                "/soc/gpio@10060000",
                "sifive,fu540-c000-gpio\0sifive,gpio0\0",
                &[0, 0x1006_0000, 0, 0x1000],
            ),
            "0x10040000,controller=sifive,reference-hz=500M,cs=gpio@0x10060000.11",
        ),
        (
            &[("", [1, 1], &[]), ("/ocp", [1, 1], &[])],
            ("/ocp/spi@48030000", "ti,omap4-mcspi\0", &[0x4803_0000, 0x400]),
            ("/ocp/gpio@4804c000", "ti,omap4-gpio\0", &[0x4804_c000, 0x1000]),
            "0x48030000,controller=mcspi,reference-hz=48M,cs=gpio@0x4804c000.28",
        ),
        (
            &[("", [1, 1], &[]), ("/ahb", [1, 1], &[]), ("/ahb/apb", [1, 1], &[])],
            ("/ahb/apb/spi@f0004000", "atmel,at91rm9200-spi\0", &[0xf000_4000, 0x100]),
            (
                "/ahb/apb/gpio@fffff200",
                "atmel,at91sam9x5-gpio\0atmel,at91rm9200-gpio\0",
                &[0xffff_f200, 0x100],
            ),
            "0xf0004000,controller=atmel,reference-hz=66M,cs=gpio@0xfffff200.1",
        ),
    ];
    for (buses, spi, bank, text) in cases {
        let mut tree = Tree::new().sparse("/dev/mem", 1 << 32);
        for (path, cells, ranges) in buses {
            tree = tree.bus(path, *cells, Some(ranges));
        }
        let tree = tree.node(spi.0, spi.1, spi.2).node(bank.0, bank.1, bank.2);
        let open = |text: &str| {
            Mapped::open(&tree.root(), &parse_mem(&format!("{text},ignore-clock")).expect("reads"))
        };
        assert!(open(text).is_ok(), "{text}: {:?}", open(text).err().map(|it| it.to_string()));
        // The two exchanged are each the other's.
        let [first, other] = [spi.2, bank.2]
            .map(|reg| format!("{:#x}", reg.iter().max_by_key(|&&it| it).expect("one")));
        let exchanged = text.replace(&first, "A").replace(&other, &first).replace('A', &other);
        let error = open(&exchanged).expect_err("exchanged");
        assert!(matches!(error, MapError::OtherNode { .. }), "{exchanged}: {error}");
    }
}
