//! `barewire serve --serprog`: the protocol by bytes, as its specification has them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::command::{Has, run, text};

const ACK: u8 = 0x06;
const NAK: u8 = 0x15;

/// A server, and the address that it printed.
struct Server {
    child: Child,
    told: String,
    errors: BufReader<std::process::ChildStderr>,
}

impl Server {
    fn start(place: &str, others: &[&str]) -> Self {
        Self::start_on("sim:rpi3", place, others)
    }

    fn start_on(bus: &str, place: &str, others: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_barewire"))
            .args(["serve", "-q", "--json", "--serprog", place, "--bus", bus])
            .args(others)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut errors = BufReader::new(child.stderr.take().expect("piped"));
        let mut told = String::new();
        while !told.contains("serprog at") {
            told.clear();
            assert_ne!(errors.read_line(&mut told).expect("readable"), 0, "it ended");
        }
        Self { child, told, errors }
    }

    fn connect(&self) -> TcpStream {
        let address = self.told.trim().rsplit_once("serprog:ip=").expect("an address").1;
        let stream = TcpStream::connect(address).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("settable");
        stream
    }

    fn interrupt(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
    }

    /// Its exit code, its report, and the rest of its output.
    fn end(mut self) -> (Option<i32>, Value, String) {
        let code = self.child.wait().expect("ends").code();
        let (mut out, mut rest) = (String::new(), String::new());
        self.child.stdout.take().expect("piped").read_to_string(&mut out).expect("UTF-8");
        self.errors.read_to_string(&mut rest).expect("UTF-8");
        (code, serde_json::from_str(&out).unwrap_or(Value::Null), rest)
    }
}

/// Sends a command and reads as many bytes as the answer has.
fn ask(stream: &mut TcpStream, command: &[u8], answer_bytes: usize) -> Vec<u8> {
    stream.write_all(command).expect("takes it");
    let mut answer = vec![0; answer_bytes];
    stream.read_exact(&mut answer).expect("answers");
    answer
}

#[test]
fn a_program_reads_the_chips_id() {
    let server = Server::start("127.0.0.1:0", &["--once"]);
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, &[0x10], 2), [NAK, ACK]);
    assert_eq!(ask(&mut stream, &[0x01], 3), [ACK, 1, 0]);
    assert_eq!(ask(&mut stream, &[0x12, 8], 1), [ACK]);
    // 1 GHz asked: not above --speed-hz, which is 20 MHz.
    let speed = ask(&mut stream, &[0x14, 0, 0xca, 0x9a, 0x3b], 5);
    let hz = u32::from_le_bytes([speed[1], speed[2], speed[3], speed[4]]);
    assert!(speed[0] == ACK && hz <= 20_000_000 && hz > 15_000_000, "{hz}");
    assert_eq!(ask(&mut stream, &[0x14, 0, 0, 0, 0], 1), [NAK]);
    let id = [0x13, 1, 0, 0, 3, 0, 0, 0x9f];
    assert_eq!(ask(&mut stream, &id, 4), [ACK, 0xef, 0x40, 0x16]);
    // In two pieces, and two commands at once.
    stream.write_all(&id[..3]).expect("takes it");
    assert_eq!(ask(&mut stream, &[&id[3..], &[0x00]].concat(), 5), [ACK, 0xef, 0x40, 0x16, ACK]);
    assert_eq!(
        ask(&mut stream, &[0x7f, 0x00], 2),
        [NAK, ACK],
        "an unknown opcode is refused, and the next one served"
    );
    // An operation without bytes; a delay, executed.
    assert_eq!(ask(&mut stream, &[0x13, 0, 0, 0, 0, 0, 0], 1), [ACK]);
    assert_eq!(ask(&mut stream, &[0x0e, 0, 0, 0, 1, 0x0f], 2), [ACK, ACK]);
    drop(stream);
    let (code, report, _) = server.end();
    assert_eq!(code, Some(0));
    assert_eq!(report["connections"], 1);
    assert_eq!((&report["operations"], &report["bytes_sent"]), (&3.into(), &2.into()));
    assert_eq!(report["bytes_received"], 6);
    // 16.8 s of the board's time went by at that delay.
    assert!(report["seconds_virtual"].as_f64().is_some_and(|seconds| seconds > 16.0), "{report}");
}

#[test]
fn ctrl_c_ends_it_with_a_report() {
    let server = Server::start("127.0.0.1:0", &[]);
    for _ in 0..2 {
        let mut stream = server.connect();
        assert_eq!(ask(&mut stream, &[0x00], 1), [ACK]);
    }
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
    let (code, report, _) = server.end();
    assert_eq!((code, &report["connections"]), (Some(130), &2.into()));
}

#[test]
fn a_path_is_a_terminal_while_it_serves() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let link = dir.path().join("chip");
    let server = Server::start(&text(&link), &[]);
    let mut line = std::fs::File::options().read(true).write(true).open(&link).expect("opens");
    // What a terminal would change, or take for a key: end of line, end of file, interrupt.
    line.write_all(&[0x10, 0x0d, 0x00, 0x13, 4, 0, 0, 3, 0, 0, 0x9f, 0x0a, 0x04, 0x03])
        .expect("takes it");
    let mut answer = [0; 8];
    line.read_exact(&mut answer).expect("answers");
    // SYNCNOP; 0d is no command; NOP; and the id behind three bytes that the chip does not look at.
    assert_eq!(answer[..4], [NAK, ACK, NAK, ACK]);
    assert_eq!(answer[4], ACK);
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
    assert_eq!(server.end().0, Some(130));
    assert!(link.symlink_metadata().is_err(), "the link is gone");
    // An existing file is not replaced.
    std::fs::write(&link, "mine").expect("written");
    let place = text(&link);
    run(&["serve", "--serprog", &place, "--bus", "sim:rpi3"]).fails(1, "make a terminal at");
    assert_eq!(std::fs::read_to_string(&link).expect("there"), "mine");
}

/// Reads the chip's id.
const ID: [u8; 8] = [0x13, 1, 0, 0, 3, 0, 0, 0x9f];

#[test]
fn a_program_that_does_nothing_is_disconnected() {
    let server = Server::start("127.0.0.1:0", &["--idle-limit", "1"]);
    // Sends nothing; sends nothing more; leaves a command unfinished.
    for first in [&[][..], &ID, &ID[..5]] {
        let mut silent = server.connect();
        silent.write_all(first).expect("takes it");
        let mut answers = Vec::new();
        silent.read_to_end(&mut answers).expect("ends");
        assert_eq!(answers.len(), if first.len() == ID.len() { 4 } else { 0 });
    }
    // Reads no answer: ten of 64 KiB fill the socket.
    let mut deaf = server.connect();
    deaf.write_all(&[0x13, 4, 0, 0, 0, 0, 1, 0x03, 0, 0, 0].repeat(200)).expect("takes it");
    assert_eq!(ask(&mut server.connect(), &ID, 4), [ACK, 0xef, 0x40, 0x16]);
    drop(deaf);
    server.interrupt();
    let (code, _, told) = server.end();
    assert_eq!(code, Some(130));
    told.has(&["asked for nothing", "sent nothing", "left a command unfinished", "did not read"]);
}

#[test]
fn a_delay_is_bounded_and_ends_with_its_program() {
    // No simulated board, whose time costs nothing.
    let server = Server::start_on("null:", "127.0.0.1:0", &[]);
    let begun = Instant::now();
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, &[0x0e, 0xff, 0xff, 0xff, 0xff], 1), [NAK], "71 minutes");
    // 59 s, and the program leaves; then it is asked to end.
    let delay = [0x0e, 0xc0, 0x46, 0x84, 0x03, 0x0f];
    assert_eq!(ask(&mut stream, &delay, 1), [ACK]);
    drop(stream);
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, &[0x00], 1), [ACK]);
    assert_eq!(ask(&mut stream, &delay, 1), [ACK]);
    server.interrupt();
    assert_eq!(server.end().0, Some(130));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    // On a board too, whatever was sent ahead.
    let server = Server::start("127.0.0.1:0", &[]);
    let mut stream = server.connect();
    stream.write_all(&delay.repeat(4_000)).expect("takes it");
    server.interrupt();
    assert_eq!(server.end().0, Some(130));
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn what_a_program_sent_in_part_goes_with_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let link = dir.path().join("chip");
    let server = Server::start(&text(&link), &[]);
    let open = || std::fs::File::options().read(true).write(true).open(&link).expect("opens");
    let mut first = open();
    first.write_all(&ID).expect("takes it");
    let mut answer = [0; 4];
    first.read_exact(&mut answer).expect("answers");
    // A page program of 260 bytes, of which 100 come.
    first.write_all(&[&[0x13, 4, 1, 0, 0, 0, 0, 0x02], &[0; 99][..]].concat()).expect("takes it");
    drop(first);
    std::thread::sleep(Duration::from_millis(500));
    let mut second = open();
    second.write_all(&[0; 300]).expect("takes it");
    let mut answers = [0; 300];
    second.read_exact(&mut answers).expect("answers to each");
    assert_eq!(answers, [ACK; 300]);
    drop(second);
    server.interrupt();
    assert_eq!(server.end().1["operations"], 1, "the id alone");
}

#[test]
fn once_is_for_the_first_program_that_asks_for_something() {
    let server = Server::start("127.0.0.1:0", &["--once"]);
    drop(server.connect());
    for scan in [&b"GET / HTTP/1.0\r\n\r\n"[..], &[0, 0, 0]] {
        let mut stream = server.connect();
        stream.write_all(scan).expect("takes it");
        let mut answers = vec![0; scan.len()];
        stream.read_exact(&mut answers).expect("answers");
    }
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, &ID, 4), [ACK, 0xef, 0x40, 0x16]);
    drop(stream);
    assert_eq!(server.end().0, Some(0));
    // On a terminal, where the program ends the connection by closing it.
    let dir = tempfile::tempdir().expect("a temporary directory");
    let link = dir.path().join("chip");
    let server = Server::start(&text(&link), &["--once"]);
    let mut line = std::fs::File::options().read(true).write(true).open(&link).expect("opens");
    line.write_all(&ID).expect("takes it");
    let mut answer = [0; 4];
    line.read_exact(&mut answer).expect("answers");
    drop(line);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn what_cannot_be_served_is_refused() {
    for (place, part) in [("nowhere", "127.0.0.1:3333"), ("127.0.0.1", "127.0.0.1:3333")] {
        run(&["serve", "--serprog", place, "--bus", "sim:rpi3"]).misused(part);
    }
    run(&["serve", "--serprog", "127.0.0.1:0"]).misused("--bus <BUS>");
    run(&["serve", "--serprog", "127.0.0.1:0", "--bus", "qemu:highbank"])
        .fails(1, "a flash chip is on");
    run(&["serve", "--serprog", "192.0.2.1:0", "--bus", "sim:rpi3"])
        .fails(1, "listen at 192.0.2.1:0");
    run(&["serve", "--serprog", "127.0.0.1:0", "--bus", "sim:rpi3", "--cs", "9"])
        .fails(1, "chip select 9");
}

#[test]
fn a_boards_registers_are_served_to_another_program() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let [socket, tree, trace] = ["board", "board.dts", "trace"].map(|name| dir.path().join(name));
    let mut child = Command::new(env!("CARGO_BIN_EXE_barewire"))
        .args(["serve", "--json", "--once", "--bus", "sim:imx8mp,seed=3", "--chip", "jumper@0"])
        .args(["--mmio", &text(&socket), "--device-tree", &text(&tree)])
        .args(["--trace", &text(&trace)])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut told = String::new();
    BufReader::new(child.stderr.take().expect("piped")).read_line(&mut told).expect("readable");
    assert!(told.contains("registers of sim:imx8mp,seed=3 at"), "{told}");
    let source = std::fs::read_to_string(&tree).expect("the tree is written before the line");
    assert!(source.contains("linux,spi-loopback-test"), "{source}");
    let client = barewire_mmio::Client::connect(&socket).expect("connects");
    assert_eq!(barewire::reg::Registers::read(&mut client.registers(0), 0x18), 3, "STATREG");
    drop(client);
    assert_eq!(child.wait().expect("ends").code(), Some(0));
    let mut out = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut out).expect("UTF-8");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&report["connections"], &report["refused"]), (&1.into(), &0.into()), "{report}");
    assert!(!socket.exists(), "the socket is gone");
    let trace = std::fs::read_to_string(&trace).expect("it was written");
    assert!(trace.ends_with("ECSPI        STATREG     -> 00000003\n"), "{trace}");
    assert_eq!(trace.lines().count(), 1, "{trace}");
}

#[test]
fn options_that_mmio_would_ignore_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let socket = text(&dir.path().join("board"));
    let serve = |others: &[&str]| run(&[&["serve", "--mmio", &socket], others].concat());
    serve(&["--bus", "sim:imx8mp", "--cs", "1"]).misused("cannot be used with");
    serve(&["--bus", "sim:imx8mp", "--stats"]).misused("cannot be used with");
    serve(&["--bus", "sim:imx8mp", "--speed-hz", "1M"]).misused("cannot be used with");
    serve(&["--bus", "sim:imx8mp,flash=chip.bin"]).misused("option flash: with --mmio");
    serve(&["--bus", "sim:imx8mp", "--chip", "eeprom@0"]).misused("no kind of chip is called");
    serve(&["--bus", "sim:imx8mp", "--chip", "flash@7"]).misused("has 4 chip selects");
    serve(&["--bus", "qemu:sabrelite"]).misused("--bus sim:BOARD");
    serve(&["--bus", "sim:highbank", "--device-tree", "-"]).fails(1, "no driver for PL022");
    run(&["serve", "--serprog", "127.0.0.1:0", "--bus", "sim:rpi3", "--chip", "flash@0"])
        .misused("cannot be used with");
    run(&["serve", "--bus", "sim:rpi3"]).misused("--serprog");
    assert!(!dir.path().join("board").exists());
}
