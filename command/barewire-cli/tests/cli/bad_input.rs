//! Every bad input ends in a clear error, a non-zero exit, and nothing changed.

use std::fs::{self, File};

use super::command::{Bench, IMX8MP_SIZE, noise, run, text};

#[test]
fn unknown_names_come_with_the_near_one() {
    for (bus, near) in [
        ("sim:imx8m", "did you mean \"imx8mp\"?"),
        ("sim:sabrelight", "did you mean \"sabrelite\"?"),
        ("imx8mp", "did you mean \"sim:imx8mp\"?"),
        ("sym:imx8mp", "did you mean \"sim\"?"),
        ("/dev/null", "sim:zynq, qemu:sabrelite, qemu:"),
        ("sim:imx8mp,flsh=x", "did you mean \"flash\"?"),
        ("sim:imx8mp,fault=stuck-buzy", "did you mean \"stuck-busy\"?"),
    ] {
        run(&["flash", "id", "--bus", bus]).fails(2, near);
    }
    let ran = run(&["flash", "verfy"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'verify'"), "{ran:?}");
    assert_eq!(run(&["flash", "id", "--bus", "sim:imx8mp", "--speed", "1"]).code, Some(2));
    assert_eq!(run(&["stress"]).code, Some(2), "a program of its own");
    assert_eq!(run(&[]).code, Some(2));
}

#[test]
fn the_page_tables_verbs_are_said_to_be_another_command() {
    for arguments in [
        &[][..],
        &["bench", "--json"],
        &["replay", "--example", "camera"],
        &["walk", "--dump", "x@0", "--root", "0", "0x1234"],
        &["--help"],
        &["help"],
        &["-V"],
        &["nonsense", "--", "-x"],
    ] {
        let ran = run(&[&["iommu"], arguments].concat());
        assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 1), "{ran:?}");
        let parts = ["barewire-iommu", "cd iommu && cargo build --release"];
        assert!(parts.iter().all(|part| ran.stderr.contains(part)), "{ran:?}");
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
    assert!(!run(&["--help"]).ok().text().contains("iommu"));
}

#[test]
fn no_chip_and_a_stuck_line_are_told_apart() {
    let bench = Bench::new("imx8mp");
    let out = text(&bench.path("out"));
    bench.flash("read", ",fault=no-chip", &[&out]).fails(1, "ff ff ff");
    bench.flash("read", ",fault=stuck-low", &[&out]).fails(1, "00 00 00");
    assert_eq!(bench.names(), ["chip.bin"], "neither output nor a part of it");
}

#[test]
fn a_file_that_does_not_fit_is_refused() {
    let bench = Bench::new("imx8mp");
    let big = text(&bench.path("big"));
    File::create(&big).and_then(|file| file.set_len(IMX8MP_SIZE as u64 + 1)).expect("a big file");
    bench.flash("write", "", &[&big]).fails(1, "33554433 bytes, the chip holds 33554432");
    bench.flash("verify", "", &[&big]).fails(1, "33554433 bytes, the chip holds 33554432");
    let two = bench.file("two", &[0, 0]);
    bench.flash("write", "", &["--offset", "33554431", &two]).fails(1, "room for 1 at 0x1ffffff");
    bench.flash("write", "", &["--offset", "1G", &two]).fails(1, "room for 0");
    bench.flash("write", "", &["/dev/zero"]).fails(1, "more than 33554432 bytes");
    bench.flash("write", "", &["/nonexistent"]).fails(1, "cannot read /nonexistent");
    bench.flash("write", "", &["/"]).fails(1, "directory");
    let out = text(&bench.path("out"));
    bench.flash("read", "", &["--offset", "33M", &out]).fails(1, "beyond the chip's end");
    bench.flash("read", "", &["--length", "32769K", &out]).fails(1, "beyond the chip's end");
    assert!(bench.content().iter().all(|&byte| byte == 0xff), "nothing was changed");
    assert!(!bench.path("out").exists());
}

#[test]
fn a_misaligned_erase_names_the_granularity() {
    let bench = Bench::new("imx8mp");
    bench.flash("write", "", &[&bench.file("in", &noise(8192, 1))]).ok();
    let before = bench.content();
    for (offset, length) in [("1", "4K"), ("0", "4097"), ("4K", "1")] {
        bench
            .flash("erase", "", &["--offset", offset, "--length", length])
            .fails(1, "no multiple of 4096 bytes");
    }
    bench.flash("erase", "", &["--offset", "32M", "--length", "4K"]).fails(1, "beyond");
    bench.flash("erase", "", &[]).misused("--all");
    assert_eq!(bench.flash("erase", "", &["--all", "--length", "4K"]).code, Some(2));
    assert!(bench.content() == before);
}

#[test]
fn protected_blocks_stay_as_they_are() {
    let bench = Bench::new("imx8mp");
    let input = bench.file("in", &noise(300, 1));
    for protect in [",protect=all", ",protect=0x3c"] {
        bench.flash("write", protect, &[&input]).fails(1, "(--unprotect)");
        bench.flash("erase", protect, &["--all"]).fails(1, "(--unprotect)");
    }
    assert!(bench.content().iter().all(|&byte| byte == 0xff));
}

#[test]
fn speeds_and_modes_the_chip_cannot_take_are_refused() {
    run(&["flash", "id", "--bus", "sim:imx8mp", "--speed-hz", "0"]).misused("0 Hz is no clock");
    run(&["flash", "id", "--bus", "sim:imx8mp", "--speed-hz", "1"]).fails(1, "slowest clock");
    // For this clock the controller would run at 80 MHz, or at 60 MHz.
    run(&["flash", "id", "--bus", "sim:imx8mp", "--speed-hz", "134M"])
        .fails(1, "the chip's limit of 133000000 Hz");
    let ran = run(&["flash", "id", "--bus", "sim:sabrelite", "--speed-hz", "51M"]);
    let ran = ran.fails(1, "the chip's limit of 50000000 Hz");
    assert!(!ran.stderr.to_lowercase().contains("broken"), "the wire stayed in the limit: {ran:?}");
    for mode in ["1", "2", "4", "x"] {
        run(&["flash", "id", "--bus", "sim:imx8mp", "--mode", mode]).misused("modes 0 and 3 only");
    }
    run(&["flash", "id", "--bus", "sim:imx8mp", "--cs", "7"]).fails(1, "no chip select 7");
}

#[test]
fn what_xfer_cannot_send_is_refused() {
    for (arguments, part) in [
        (&["--bits", "12", "9f00"][..], "does not support words of 12 bits"),
        (&["--bits", "16", "9f"], "multiple of 2"),
        (&["--cs", "4", "9f"], "no chip select 4"),
    ] {
        let ran = run(&[&["xfer", "--bus", "sim:imx8mp"], arguments].concat()).fails(1, part);
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
    for (arguments, part) in [
        (&["9f0"][..], "\"9f0\": an odd number of hex digits"),
        (&["9f", "0g"], "\"0g\": 'g' at position 2"),
        (&[""], "no bytes"),
        (&["--speed-hz", "0", "9f"], "0 Hz is no clock"),
    ] {
        run(&[&["xfer", "--bus", "sim:imx8mp"], arguments].concat()).misused(part);
    }
    // A short write and its read are one burst of the controller's own line; a longer one is not.
    let long = "00".repeat(64);
    run(&["xfer", "--bus", "sim:imx8mp", "--cs", "1", "9f", &long]).fails(1, "would pulse");
    assert_eq!(run(&["xfer", "--bus", "sim:imx8mp", "--cs", "1", "9f", "00"]).code, Some(0));
    assert_eq!(run(&["xfer", "--bus", "sim:imx8mp", "--mode", "4", "9f"]).code, Some(2));
    assert_eq!(run(&["xfer"]).code, Some(2));
}

#[test]
fn a_rule_of_the_chip_broken_is_told_and_fails() {
    let ran = run(&["xfer", "--bus", "sim:imx8mp", "--mode", "1", "9f000000"])
        .fails(1, "rules were broken once");
    assert!(ran.stderr.contains("RULES OF THE WIRE BROKEN: 1"), "{ran:?}");
    run(&["xfer", "--bus", "sim:sabrelite", "--speed-hz", "60M", "9f000000"])
        .fails(1, "rules were broken");
}

#[test]
fn a_chip_that_stays_busy_is_given_up() {
    let bench = Bench::new("imx8mp");
    let input = bench.file("in", &noise(600, 1));
    bench.flash("write", ",fault=stuck-busy", &[&input]).fails(1, "still busy after");
    bench.flash("erase", ",fault=stuck-busy", &["--all"]).fails(1, "still busy after");
}

#[test]
fn power_loss_names_the_address_and_keeps_what_is_left() {
    let bench = Bench::new("imx8mp");
    let data = noise(1024, 1);
    let input = bench.file("in", &data);
    bench.flash("write", ",fault=power-loss-program:2", &[&input]).fails(1, "while 0x200 was");
    let content = bench.content();
    assert!(content[..0x280] == data[..0x280], "two and a half pages are programmed");
    assert!(content[0x280..].iter().all(|&byte| byte == 0xff));
    bench.flash("erase", ",fault=power-loss-erase", &["--length", "4K"]).fails(1, "while 0x0 was");
    assert!(bench.content()[..2048].iter().all(|&byte| byte == 0xff));
    bench.flash("write", "", &[&input]).ok();
    bench.flash("verify", "", &[&input]).ok();
}

#[test]
fn worn_cells_are_seen_by_reading_back() {
    let bench = Bench::new("imx8mp");
    let input = bench.file("in", &[0x5a; 16]);
    bench.flash("write", ",fault=ignore-program", &[&input]).fails(1, "at 0x0 the chip holds ff");
    bench.flash("verify", "", &[&input]).fails(1, "at 0x0 the chip holds ff, not 5a");
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_read() {
    let bench = Bench::new("imx8mp");
    for out in ["/nonexistent/out", "/", "."] {
        let ran = bench.flash("read", "", &[out]).fails(1, "cannot write");
        assert!(!ran.stderr.contains("simulated"), "the chip was not touched: {ran:?}");
    }
    bench.flash("read", "", &["--length", "16", "/dev/full"]).fails(1, "No space left");
    run(&["xfer", "--bus", "sim:imx8mp", "--vcd", "/nonexistent/x.vcd", "9f"])
        .fails(1, "cannot write");
    run(&["flash", "read", "--bus", "sim:imx8mp", "--json", "-"]).fails(2, "--json and OUT -");
}

#[test]
fn a_chip_file_of_another_size_is_refused_and_left_alone() {
    let bench = Bench::new("imx8mp");
    fs::write(&bench.chip, [1; 1000]).expect("a file");
    bench.flash("erase", "", &["--all"]).fails(1, "has 1000 bytes, the W25Q256JV has 33554432");
    assert_eq!(bench.content(), [1; 1000]);
    run(&["flash", "erase", "--all", "--bus", "sim:imx8mp,flash=/nonexistent/x"])
        .fails(1, "cannot create");
    run(&["flash", "id", "--bus", "sim:imx8mp,flash=/"]).fails(1, "flash file /");
}

#[test]
fn a_chip_file_in_use_is_refused() {
    let bench = Bench::new("sabrelite");
    bench.flash("id", "", &[]).ok();
    let held = File::open(&bench.chip).expect("the chip file is there");
    held.lock().expect("nobody else holds it");
    bench.flash("id", "", &[]).fails(1, "in use by another process");
    drop(held);
    bench.flash("id", "", &[]).ok();
}

#[test]
fn the_help_of_buses_fits_a_terminal_of_80_columns() {
    let help = run(&["--help"]).ok().text();
    let (_, buses) = help.split_once("Buses (--bus):\n").expect("a table of buses");
    let (buses, _) = buses.split_once("\nExamples:").expect("examples behind it");
    for line in buses.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
