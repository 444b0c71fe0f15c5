//! Ctrl-C in the middle of the work: exit 130, files consistent, nothing half done passed off.

use super::command::{Bench, IMX8MP_SIZE, Ran, barewire, noise, text};

/// Starts a command on the bench, and interrupts it once it is at work: behind the chip file's set-up.
fn interrupted(bench: &Bench, verb: &str, arguments: &[&str]) -> Ran {
    let all = [&["flash", verb, "--bus", &bench.bus], arguments].concat();
    super::command::interrupted(barewire(&all), 700)
}

#[test]
fn an_interrupted_write_leaves_whole_sectors() {
    let bench = Bench::made("imx8mp");
    let data = noise(IMX8MP_SIZE, 1);
    let input = bench.file("in", &data);
    let ran = interrupted(&bench, "write", &[&input]).fails(130, "stopped as asked after");
    assert!(!ran.stderr.contains("LEFT"), "{ran:?}");
    let content = bench.content();
    assert_eq!(content.len(), IMX8MP_SIZE);
    let equal = content.iter().zip(&data).take_while(|(one, other)| one == other).count();
    let done = equal / 4096 * 4096;
    assert!(done < IMX8MP_SIZE && content[..done] == data[..done]);
    assert!(content[done..].iter().all(|&byte| byte == 0xff), "a write began behind {done}");
    // Nothing holds the file any more.
    bench.flash("id", "", &[]).ok();
}

#[test]
fn an_interrupted_read_leaves_no_output() {
    let bench = Bench::made("imx8mp");
    let out = text(&bench.path("out"));
    // Slow enough for any machine: the simulator takes its time by register accesses, and these
    // are polls while the wire is slow.
    let ran = interrupted(&bench, "read", &["--speed-hz", "2M", &out]);
    ran.fails(130, "stopped as asked");
    assert_eq!(bench.names(), ["chip.bin"]);
}
