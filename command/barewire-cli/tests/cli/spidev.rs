//! `spidev:/dev/spidevB.C`: refusals only, since no machine that tests this has a node.

use super::command::run;

#[test]
fn what_is_no_node_is_refused_with_a_remedy() {
    for (bus, part) in [
        ("spidev:/dev/spidev99.9", "/dev/spidev99.9: "),
        ("spidev:/dev/null", "/dev/null is not a spidev node: name one as /dev/spidevB.C"),
        ("spidev:/dev", "/dev is not a spidev node"),
    ] {
        let ran = run(&["flash", "id", "--bus", bus]).fails(1, part);
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
    for (bus, part) in [
        ("spidev:/dev/spidev0.0,splt", "no option \"splt\": a spidev node has none"),
        ("spidev:0.0", "did you mean \"spidev:/dev/spidev0.0\"?"),
        ("/dev/spidev0.0", "did you mean \"spidev:/dev/spidev0.0\"?"),
    ] {
        let ran = run(&["flash", "id", "--bus", bus]).fails(2, part);
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
}

#[test]
fn a_node_has_one_chip_select_and_no_wire_to_record() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let vcd = dir.path().join("x.vcd");
    let vcd = vcd.to_str().expect("UTF-8");
    let bus = "spidev:/dev/spidev0.0";
    run(&["xfer", "--bus", bus, "--cs", "1", "9f"]).fails(2, "one chip select");
    run(&["xfer", "--bus", bus, "--vcd", vcd, "9f"]).fails(2, "--vcd records the wire of sim");
    assert!(!std::path::Path::new(vcd).exists());
}

#[test]
fn a_mapped_controller_that_is_not_there_is_an_error() {
    // No board here: either there is no such UIO device, or no right to look for it.
    let text = "uio:uio999,reference-hz=80M,cs=native0";
    let refused = run(&["flash", "id", "--bus", text]);
    refused.fails(1, "uio999");
    let text = "uio:uio999,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8";
    run(&["adc", "read", "--bus", text, "--chip", "mcp3008"]).fails(1, "uio999");
    run(&["adc", "read", "--bus", "uio:uio999,controller=bcm2853"]).fails(2, "bcm2835");
    run(&["flash", "id", "--bus", "mem:30820000"]).fails(2, "0x");
}

#[test]
fn a_gpio_chip_is_named_by_what_it_keeps() {
    let mem = "mem:0x30820000,reference-hz=80M";
    let id = |lines: &str| run(&["flash", "id", "--bus", &format!("{mem},{lines}")]);
    for lines in ["cs=gpiochip4:9", "cs=gpio@4:9", "cs=gpio@/dev/gpiochip4:9"] {
        id(lines).fails(2, "write the address of its registers, gpio@0x30240000:9, or its label");
    }
    id("cs=gpio@0x30240000:9,unsafe-shared").fails(2, "there is none: leave it out");
    id("cs=gpio@0x30240000:9,shared,exclusive").fails(2, "leave one of the two out");
}

#[test]
fn an_int_line_is_one_of_the_machine_with_the_chip() {
    let dump =
        |bus: &str, more: &[&str]| run(&[&["can", "dump", "-n", "1", "--bus", bus], more].concat());
    let (sim, spidev) = ("sim:imx8mp", "spidev:/dev/spidev99.9");
    let line = ["--int", "gpio@0x30240000:9"];
    dump(sim, &line).fails(2, "a simulated chip's INT is waited for anyway");
    dump(sim, &[&line[..], &["--no-interrupt"]].concat()).misused("cannot be used with");
    dump(spidev, &line).fails(1, "/dev/spidev99.9");
    dump(spidev, &["--int", "gpiochip0:9"]).fails(1, "option --int");
    dump(spidev, &["--int", "gpio@0x30240000.9"]).fails(1, "option --int");
}
