//! `barewire run`: programs that know nothing of barewire, compiled here from C or found on every machine.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use super::command::{Ran, run, text};

/// The command's file, beside which the library is.
pub(super) const BAREWIRE: &str = env!("CARGO_BIN_EXE_barewire");

/// Builds the library as the command was built. Cargo does not, because no crate can depend on it.
pub(super) fn library() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let beside = Path::new(BAREWIRE).parent().expect("in a folder");
        let folder = beside.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let profile = if folder == "debug" { "dev" } else { folder };
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "-p", "barewire-spidev-preload", "--profile", profile])
            .arg("--target-dir")
            .arg(beside.parent().expect("in a target folder"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(status.expect("cargo runs").success());
    });
}

/// Compiles a client. A C compiler is always there: without one, Rust could not link this test
/// either.
pub(super) fn client(source: &str, flags: &[&str]) -> (tempfile::TempDir, PathBuf) {
    try_client(source, flags).expect("a C compiler")
}

/// A client that goes around the library; none where the C library is only shared.
pub(super) fn static_client(source: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let made = try_client(source, &["-static"]);
    if made.is_none() {
        println!(
            "SKIPPED: a static program: no static C library (Debian: apt-get install libc6-dev)"
        );
    }
    made
}

fn try_client(source: &str, flags: &[&str]) -> Option<(tempfile::TempDir, PathBuf)> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = dir.path().join("client");
    let status = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-pthread", "-o"])
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(source))
        .args(flags)
        .status();
    status.is_ok_and(|status| status.success()).then_some((dir, program))
}

/// `barewire run` with these arguments before `--`, and a command behind it.
pub(super) fn served(arguments: &[&str], command: &[&str]) -> Ran {
    library();
    run(&[&["run"], arguments, &["--"], command].concat())
}

/// The same with a shell's text.
fn shell(map: &str, script: &str) -> Ran {
    served(&["--map", map], &["sh", "-c", script])
}

#[test]
fn spidevs_cases_are_the_kernels() {
    let (_dir, abi) = client("spidev_abi.c", &["-D_FORTIFY_SOURCE=2"]);
    for bus in ["sim:rpi3,cs=1", "sim:imx6dl,cs=0", "sim:rpi5,cs=2"] {
        served(&["--map", &format!("/dev/spidev3.2={bus}")], &[&text(&abi), "/dev/spidev3.2"])
            .prints("161 checks, 0 failed\n");
    }
}

#[test]
fn bad_addresses_are_errors_in_a_sandbox_too() {
    let (_dir, abi) = client("spidev_abi.c", &[]);
    let (_sandbox_dir, sandbox) = client("sandbox.c", &[]);
    let command = [&text(&sandbox), &text(&abi), "/dev/spidev3.2"];
    served(&["--map", "/dev/spidev3.2=sim:rpi3,cs=1"], &command).prints("161 checks, 0 failed\n");
}

#[test]
fn what_programs_look_at_is_there() {
    let ran = shell(
        "/dev/spidev7.1=sim:rpi3",
        "ls -l /dev/spidev7.1 | cut -c1-10; ls /dev | grep spidev7; echo /dev/spidev7.*; \
         find /dev -name 'spidev7*'; cat /sys/module/spidev/parameters/bufsiz; ls /sys/bus/spi/devices | grep 7; \
         cat /sys/class/spidev/spidev7.1/dev; readlink /sys/class/spidev/spidev7.1; \
         cat /sys/class/spidev/spidev7.1/device/modalias; readlink -f /sys/bus/spi/devices/spi7.1/driver; \
         test -c /dev/spidev7.1 && test -w /dev/spidev7.1 && test ! -e /dev/spidev7.0 && echo yes",
    );
    let device = "devices/platform/barewire/spi_master/spi7/spi7.1";
    let expected = format!(
        "crw-rw----\nspidev7.1\n/dev/spidev7.1\n/dev/spidev7.1\n4096\nspi7.1\n153:0\n\
         ../../{device}/spidev/spidev7.1\nspi:spidev\n/sys/bus/spi/drivers/spidev\nyes\n"
    );
    assert_eq!(ran.ok().text(), expected);
    let ran = served(
        &["--map", "/dev/spidev7.1=sim:rpi3", "--bufsiz", "65536"],
        &["cat", "/sys/module/spidev/parameters/bufsiz"],
    );
    assert_eq!(ran.ok().text(), "65536\n");
}

#[test]
fn the_exit_code_is_the_programs() {
    let map = "/dev/spidev7.1=sim:rpi3";
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("nosuchcommand", 127),
    ] {
        assert_eq!(shell(map, script).code, Some(code), "{script}");
    }
    served(&["--map", map], &["nosuchcommand"]).fails(127, "no command \"nosuchcommand\" in PATH");
    served(&["--map", map], &["/nosuch/command"]).fails(1, "/nosuch/command");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("text");
    fs::write(&file, "no program").expect("written");
    served(&["--map", map], &[&text(&file)]).fails(126, "neither a program nor a script");
}

#[test]
fn wrong_maps_are_told() {
    for (map, part) in [
        ("/dev/spidev0.0", "NODE=BUS"),
        ("/dev/null=sim:rpi3", "no spidev node"),
        ("/dev/spidev0.0=rpi3", "did you mean \"sim:rpi3\"?"),
        ("/dev/spidev0.0=sim:rpi3,sc=1", "no option \"sc\""),
    ] {
        let ran = served(&["--map", map], &["true"]);
        assert_eq!(ran.code, Some(2), "{map}: {ran:?}");
        assert!(ran.stderr.contains(part), "{map}: {ran:?}");
    }
    served(&["--map", "/dev/spidev0.9=sim:rpi3"], &["true"]).fails(1, "has no chip select 9");
    served(&["--map", "/dev/spidev0.0=mem:0x1,cs=native0"], &["true"]).fails(2, "reference-hz");
    let twice = ["--map", "/dev/spidev0.0=sim:rpi3", "--map", "/dev/spidev0.0=sim:imx8mp"];
    served(&twice, &["true"]).fails(2, "mapped twice");
    let owners = ["--map", "/dev/spidev0.0=sim:rpi3", "--map", "/dev/spidev1.0=sim:rpi3"];
    served(&owners, &["true"]).fails(2, "is /dev/spidev0.0 already");
    let vcds =
        ["--map", "/dev/spidev0.0=sim:rpi3", "--map", "/dev/spidev1.0=sim:rpi5", "--vcd", "x"];
    served(&vcds, &["true"]).fails(2, "--vcd records one board");
    run(&["run", "--map", "/dev/spidev0.0=sim:rpi3"]).misused("COMMAND");
    run(&["run", "--", "true"]).misused("--map");
    let map = ["--map", "/dev/spidev0.0=sim:rpi3", "--library", "/nosuch.so"];
    served(&map, &["true"]).fails(1, "/nosuch.so");
}

#[test]
fn what_would_go_around_the_library_is_refused() {
    let Some((_dir, fixed)) = static_client("bypass.c") else { return };
    let map = "/dev/spidev7.1=sim:rpi3";
    served(&["--map", map], &[&text(&fixed), "/dev/spidev7.1"]).fails(1, "it is statically linked");
    // Started by another program, it finds no node.
    let ran = shell(map, &format!("{} /dev/spidev7.1", fixed.display()));
    assert_eq!((ran.code, ran.text().as_str()), (Some(3), "open: No such file or directory\n"));
    // One that is given an open node: what it writes is a message on the mapped bus; it can do no more.
    let (_other, opener) = client("bypass.c", &[]);
    let script = format!("{} /dev/spidev7.1 {}", opener.display(), fixed.display());
    let ran = served(&["--stats", "--map", map], &["sh", "-c", &script]);
    let expected =
        "ioctl: Inappropriate ioctl for device\nwrite: 2\nread: Resource temporarily unavailable\n";
    ran.prints(expected);
    for (what, count) in [("messages", "1"), ("bytes_tx", "2")] {
        let line = ran.stderr.lines().find(|line| line.split_whitespace().next() == Some(what));
        assert_eq!(line.and_then(|line| line.split_whitespace().nth(1)), Some(count), "{ran:?}");
    }
}

#[test]
fn shells_and_streams_write_and_read() {
    // bash writes by the C library's streams, which go around any preloaded library.
    let script = "echo -ne '\\x06' > /dev/spidev0.0; exec 3<>/dev/spidev0.0; \
        echo -ne '\\x9f' >&3; head -c 3 <&3 | od -An -tx1; exec 3>&-; \
        od -An -tx1 -N 4 /dev/spidev0.0; dd if=/dev/spidev0.0 bs=2 count=2 status=none | od -An -tx1";
    let ran =
        served(&["--stats", "--map", "/dev/spidev0.0=sim:rpi3,cs=1"], &["bash", "-c", script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.text(), " ff ff ff\n ff ff ff ff\n ff ff ff ff\n");
}

/// Maps `path`, a file that is made for it, and expects that a program that goes around the library finds no device
/// there, or that `run` refuses. Needs the right to make a file in /dev and a mount namespace: root has it, outside
/// of containers that forbid it.
pub(super) fn hidden_or_refused(path: &Path, option: &str, bus: &str) {
    let Some((_dir, fixed)) = static_client("bypass.c") else { return };
    if fs::write(path, "the real chip").is_err() {
        println!("SKIPPED: a node that exists: no right to make a file in /dev");
        return;
    }
    let map = format!("{}={bus}", path.display());
    let script = format!("test -c {0} && {1} {0}", path.display(), fixed.display());
    let ran = served(&[option, &map], &["sh", "-c", &script]);
    let seen = fs::read_to_string(path);
    fs::remove_file(path).expect("removed");
    assert_eq!(seen.expect("still there for others"), "the real chip");
    if ran.code == Some(1) {
        ran.fails(1, "cannot be hidden from the program");
    } else {
        assert_eq!((ran.code, ran.text().as_str()), (Some(3), "open: No such device or address\n"));
    }
}

#[test]
fn a_node_that_exists_is_hidden_or_refused() {
    // A name of this process alone, since another run of the tests may be under way.
    let node = format!("/dev/spidev31999.{}", std::process::id() % 256);
    hidden_or_refused(Path::new(&node), "--map", "sim:rpi3,cs=1");
}

/// Runs a program that kills its parent, the server, and returns what the program printed. The library must say on
/// stderr, once, that the server has ended.
pub(super) fn kills_its_server(source: &str, node: &str, option: &str) -> String {
    library();
    let (_dir, client) = client(source, &[]);
    let mut child = Command::new(BAREWIRE)
        .args(["run", option, &format!("{node}=sim:rpi3"), "--"])
        .arg(&client)
        .arg(node)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("starts");
    let began = Instant::now();
    assert!(!child.wait().expect("ends").success());
    let output = child.wait_with_output().expect("what it wrote");
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = errors.matches("`barewire run`, which served the mapped nodes, has ended").count();
    assert_eq!(said, 1, "{errors}");
    assert!(began.elapsed() < Duration::from_secs(60), "nothing hung");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The error of a call whose server has ended.
pub(super) const GONE: &str = "-1, Cannot send after transport endpoint shutdown";

#[test]
fn a_server_that_is_killed_is_an_errno_and_a_sentence() {
    let text = kills_its_server("orphan.c", "/dev/spidev7.1", "--map");
    assert_eq!(text, format!("before: 4\nafter: {GONE}\nagain: {GONE}\nopen: {GONE}\n"));
}

#[test]
fn signals_to_the_server_are_the_programs() {
    library();
    // Not INT and HUP: background jobs of a shell, and of nohup, ignore these, and programs inherit it.
    for (signal, code) in [("TERM", 143), ("USR1", 138), ("USR2", 140)] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ready = dir.path().join("ready");
        let script = format!("touch {}; exec sleep 60", ready.display());
        let mut child = Command::new(BAREWIRE)
            .args(["run", "-q", "--map", "/dev/spidev7.1=sim:rpi3", "--", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        while !ready.exists() {
            thread::sleep(Duration::from_millis(10));
        }
        let id = child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &id]).status();
        assert!(sent.expect("kill runs").success());
        assert_eq!(child.wait().expect("ends").code(), Some(code), "{signal}");
    }
}

#[test]
fn verbose_says_why_once() {
    let (_dir, abi) = client("spidev_abi.c", &[]);
    let map = ["--verbose", "--map", "/dev/spidev3.2=sim:rpi3,cs=1"];
    let ran = served(&map, &[&text(&abi), "/dev/spidev3.2"]).ok();
    let why = "barewire: /dev/spidev3.2: a message: Invalid argument (os error 22): 1 Hz is below the controller's slowest clock";
    assert_eq!(ran.stderr.matches(why).count(), 1, "{}", ran.stderr);
}

#[test]
fn what_is_written_stays_in_the_flash_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let chip = dir.path().join("chip.bin");
    let (_other, program) = client("program_page.c", &[]);
    let map = format!("/dev/spidev0.0=sim:rpi3,cs=1,flash={}", chip.display());
    served(&["--map", &map], &[&text(&program), "/dev/spidev0.0"]).ok();
    let content = fs::read(&chip).expect("kept");
    assert_eq!(&content[0x1000..0x1010], b"sixteen bytes of");
    assert!(content[..0x1000].iter().all(|byte| *byte == 0xff));
}
