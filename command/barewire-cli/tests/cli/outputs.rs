//! Names of outputs: only a regular file is replaced, links stay links, and stdout has the data alone.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::command::{Bench, Ran, barewire, interrupted, run, text};

/// The recording of a wire.
const VCD: &[u8] = b"$enddefinitions";

/// A bench with links to what each of its processes has as stdout and stderr.
fn bench() -> Bench {
    let bench = Bench::made("imx8mp");
    symlink("/proc/self/fd/1", bench.path("stdout")).expect("a link");
    symlink("/dev/fd/2", bench.path("behind")).expect("a link");
    symlink("behind", bench.path("stderr")).expect("a link");
    bench
}

#[track_caller]
fn assert_links(bench: &Bench) {
    for name in ["stdout", "stderr", "behind"] {
        let found = fs::symlink_metadata(bench.path(name)).expect("it is there");
        assert!(found.is_symlink(), "{name} was replaced");
    }
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn command(bench: &Bench, arguments: &[&str]) -> Command {
    barewire(&[&["flash", "read", "--bus", &bench.bus, "--length", "16"], arguments].concat())
}

fn read(bench: &Bench, arguments: &[&str]) -> Ran {
    command(bench, arguments).output().expect("it starts").into()
}

#[test]
fn stdout_has_the_data_alone_by_each_of_its_names() {
    let bench = bench();
    let link = text(&bench.path("stdout"));
    for out in [&*link, "/dev/stdout", "/proc/self/fd/1", "-"] {
        let ran = read(&bench, &[out]).ok();
        assert_eq!(ran.stdout, [0xff; 16], "{out}");
        assert!(out == "-" || ran.stderr.contains("read 16 bytes at 0x0 into"), "{ran:?}");
        read(&bench, &["--json", out]).misused("would mix on stdout: name a file");
        read(&bench, &["--vcd", out, "-"]).misused("would");
    }
    assert_links(&bench);
}

#[test]
fn a_recording_on_stderr_or_stdout_leaves_the_link() {
    let bench = bench();
    let xfer = ["xfer", "--bus", &bench.bus, "9f000000", "--vcd"];
    let ran = run(&[&xfer[..], &[&text(&bench.path("stderr"))]].concat()).ok();
    assert!(has(ran.stderr.as_bytes(), VCD) && ran.text().contains("ef 40 19"), "{ran:?}");
    for vcd in ["/dev/stdout", "-", &text(&bench.path("stdout"))] {
        let ran = run(&[&xfer[..], &[vcd]].concat()).ok();
        assert!(has(&ran.stdout, VCD) && ran.stdout.starts_with(b"$"), "{ran:?}");
        assert!(ran.stderr.contains("ef 40 19") && !has(&ran.stdout, b"ef 40 19"), "{ran:?}");
    }
    assert_links(&bench);
}

/// Commands that write files, with its output on stdout by a link.
#[test]
fn each_output_leaves_the_link_and_has_stdout_alone() {
    let bench = bench();
    let link = text(&bench.path("stdout"));
    let sweep = ["lab", "sweep", "--path", "spidev-4.4", "--board", "rpi3", "--delay", "0..1us"];
    let cases: [(&[&str], &[u8], &[u8]); 4] = [
        (&["can", "dump", "--bus", "sim:imx8mp", "-n", "2", "--log", "--out", &link], b"(", b"\n"),
        (&["lab", "explain", "jander-rfc-cs2clk-A", "--svg", &link], b"<svg", b"</svg>\n"),
        (&[&sweep[..], &["--svg", &link]].concat(), b"<svg", b"</svg>\n"),
        (&[&sweep[..], &["--csv", &link]].concat(), b"delay_ns", b"\n"),
    ];
    for (arguments, first, last) in cases {
        let ran = run(arguments).ok();
        let stdout = String::from_utf8_lossy(&ran.stdout);
        assert!(
            ran.stdout.starts_with(first) && ran.stdout.ends_with(last),
            "{arguments:?} {stdout}"
        );
        assert_links(&bench);
    }
}

/// Written by the bus, not by the command.
#[test]
fn a_picture_leaves_the_link_and_has_stdout_alone() {
    let bench = bench();
    let bus = format!("sim:rpi5,oled=0:23:24:{}", text(&bench.path("stdout")));
    // The display was not reset; the command says so.
    let ran = run(&["xfer", "--speed-hz", "10M", "--bus", &bus, "a5"]);
    assert_eq!((ran.stdout.len(), ran.stdout.starts_with(b"P4\n")), (10 + 1024, true), "{ran:?}");
    assert!(ran.stderr.contains("ff\n"), "{ran:?}");
    run(&["xfer", "--json", "--bus", &bus, "a5"]).misused("--json and oled=");
    assert_links(&bench);
}

#[test]
fn a_file_that_is_stdout_is_added_to_and_not_replaced() {
    let bench = bench();
    let path = bench.path("log");
    for out in ["/dev/stdout", &text(&bench.path("stdout")), &text(&path)] {
        fs::write(&path, "before").expect("a file");
        let inode = fs::metadata(&path).expect("it is there").ino();
        let log = File::options().append(true).open(&path).expect("opened");
        let status = command(&bench, &[out]).stdout(log).stderr(Stdio::null()).status();
        assert!(status.expect("it starts").success());
        assert_eq!(
            fs::read(&path).expect("it stays"),
            [b"before", &[0xff; 16][..]].concat(),
            "{out}"
        );
        assert_eq!(fs::metadata(&path).expect("it is there").ino(), inode, "{out}");
    }
}

/// By a descriptor that is neither stdout nor stderr, and whose file has no name any more.
#[test]
fn a_file_that_is_open_is_added_to_by_its_descriptor() {
    let bench = bench();
    let path = bench.path("gone");
    let script = "exec 5<>\"$1\"; rm \"$1\"; shift; \"$@\" /dev/fd/5 >&2; cat /dev/fd/5";
    let read = command(&bench, &[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", &text(&path)]).arg(read.get_program()).args(read.get_args());
    let ran = Ran::from(shell.output().expect("a shell")).ok();
    assert_eq!(ran.stdout, [0xff; 16]);
    assert!(!bench.names().iter().any(|name| name.contains("gone")), "{:?}", bench.names());
}

#[test]
fn a_link_to_nothing_stays_and_its_target_is_made() {
    let bench = Bench::made("imx8mp");
    fs::create_dir(bench.path("sub")).expect("made");
    for (link, target) in [("sub/one", "../two"), ("two", "sub/new"), ("lost", "none/new")] {
        symlink(target, bench.path(link)).expect("a link");
    }
    symlink("round", bench.path("round")).expect("a link");
    let [one, lost, round] = ["sub/one", "lost", "round"].map(|name| text(&bench.path(name)));
    read(&bench, &["--vcd", &text(&bench.path("two")), &one]).misused("would overwrite");
    let refused = read(&bench, &[&lost]).fails(1, "(a link to none/new): No such file");
    assert!(!refused.stderr.contains("simulated"), "the chip was not touched: {refused:?}");
    read(&bench, &[&round]).fails(1, "Too many levels of symbolic links");
    for _ in 0..2 {
        read(&bench, &[&one]).ok();
        assert_eq!(fs::read(bench.path("sub/new")).expect("made"), [0xff; 16]);
    }
    for link in ["sub/one", "two", "lost", "round"] {
        assert!(
            fs::symlink_metadata(bench.path(link)).expect("it is there").is_symlink(),
            "{link}"
        );
    }
    assert_eq!(bench.names(), ["chip.bin", "lost", "round", "sub", "two"]);
    let names: Vec<_> = fs::read_dir(bench.path("sub")).expect("there").collect();
    assert_eq!(names.len(), 2, "no partial file stays: {names:?}");
}

#[test]
fn a_flash_file_by_a_link_to_nothing_is_made_at_its_target() {
    let bench = Bench::new("sabrelite");
    symlink("real.bin", &bench.chip).expect("a link");
    bench.flash("id", "", &[]).ok();
    assert!(fs::symlink_metadata(&bench.chip).expect("it is there").is_symlink());
    assert_eq!(bench.names(), ["chip.bin", "real.bin"]);
}

#[test]
fn what_is_no_regular_file_is_written_or_refused_and_stays() {
    let bench = Bench::made("imx8mp");
    let (fifo, socket) = (bench.path("fifo"), bench.path("socket"));
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).expect("read")
    });
    let ran = read(&bench, &[&text(&fifo)]).ok();
    assert!(ran.text().contains("read 16 bytes"), "the text may go to stdout: {ran:?}");
    assert_eq!(reader.join().expect("no panic"), [0xff; 16]);
    let _listening = UnixListener::bind(&socket).expect("a socket");
    read(&bench, &[&text(&socket)]).fails(1, "it is a socket");
    let kind = |path: &Path| fs::symlink_metadata(path).expect("it is there").file_type();
    assert!(kind(&fifo).is_fifo() && kind(&socket).is_socket());
    for (name, device) in [("null", "/dev/null"), ("full", "/dev/full")] {
        symlink(device, bench.path(name)).expect("a link");
    }
    read(&bench, &[&text(&bench.path("null"))]).ok();
    read(&bench, &[&text(&bench.path("full"))]).fails(1, "No space left");
    assert!(kind(Path::new("/dev/null")).is_char_device());
    assert_eq!(bench.names(), ["chip.bin", "fifo", "full", "null", "socket"]);
}

/// A socket is stdout under inetd and in some containers; it cannot be opened by a name.
#[test]
fn stdout_may_be_a_socket() {
    let bench = bench();
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let out = text(&bench.path("stdout"));
    let stdout = OwnedFd::from(theirs);
    let mut child = command(&bench, &[&out]).stdout(stdout).stderr(Stdio::null()).spawn();
    let mut got = Vec::new();
    ours.read_to_end(&mut got).expect("read");
    assert!(child.as_mut().expect("it starts").wait().expect("it ends").success());
    assert_eq!(got, [0xff; 16]);
}

#[test]
fn a_partial_file_that_was_left_is_not_followed() {
    let bench = Bench::made("imx8mp");
    let other = bench.file("other", b"kept");
    // The shell's own process id becomes the command's.
    let script = "ln -s \"$1\" \"$2/.out.partial-$$\"; shift 2; exec \"$@\"";
    let out = text(&bench.path("out"));
    let read = command(&bench, &[&out]);
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", &other, &text(bench.dir.path())]);
    shell.arg(read.get_program()).args(read.get_args());
    Ran::from(shell.output().expect("a shell")).ok();
    assert_eq!(fs::read(&other).expect("there"), b"kept");
    assert_eq!(bench.names(), ["chip.bin", "other", "out"]);
}

#[test]
fn nothing_comes_before_the_whole() {
    let bench = bench();
    let link = text(&bench.path("stdout"));
    let no_chip = bench.flash("read", ",fault=no-chip", &["--length", "16", &link]);
    assert!(no_chip.fails(1, "no chip answers").stdout.is_empty());
    let mut slow = barewire(&["flash", "read", "--bus", &bench.bus, "--speed-hz", "2M", &link]);
    slow.stdin(Stdio::null());
    assert!(interrupted(slow, 700).fails(130, "stopped as asked").stdout.is_empty());
    assert_links(&bench);
}
