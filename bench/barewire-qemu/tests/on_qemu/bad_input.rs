//! A QEMU that is missing, wrong, silent or dying, and files that do not fit: a clear error, and
//! nothing left running.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use barewire::chip::spi_nor::SpiNor;
use barewire::spi::{Settings, Transfer};
use barewire_qemu::{BoardError, QemuBoard, QemuError, QemuOptions, Version};

use crate::support::{SIZE, ends, exists, on_file, open, signal};

/// One of the programs that pretend to be QEMU. They are the same for every machine.
fn fake(name: &str) -> Option<PathBuf> {
    let qtest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../iommu/barewire-qtest");
    Some(qtest.join("tests/fake").join(name))
}

fn refused(options: &QemuOptions) -> BoardError {
    QemuBoard::open("sabrelite", options).expect_err("this cannot work")
}

/// The error as QEMU's.
#[track_caller]
fn qemu_error(error: BoardError) -> QemuError {
    match error {
        BoardError::Qemu(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn an_unknown_board_is_refused_with_a_hint() {
    let error = QemuBoard::open("sabrelit", &QemuOptions::default()).expect_err("no such board");
    assert!(error.to_string().contains("did you mean `sabrelite`?"), "{error}");
}

#[test]
fn a_missing_qemu_is_named_with_its_package() {
    let program = Some("/nonexistent/qemu-system-arm".into());
    let error = refused(&QemuOptions { program, ..QemuOptions::default() });
    let text = error.to_string();
    let error = qemu_error(error);
    assert!(matches!(error, QemuError::Missing { package: "qemu-system-arm", .. }), "{text}");
    assert!(text.contains("/nonexistent/qemu-system-arm") && text.contains("apt-get"), "{text}");
}

#[test]
fn a_qemu_that_is_too_old_is_told_both_versions() {
    let error = refused(&QemuOptions { program: fake("too_old.sh"), ..QemuOptions::default() });
    let (found, needed) = (Version { major: 6, minor: 2 }, Version { major: 7, minor: 2 });
    let remedy = "Debian 12 (bookworm) has 7.2 (sudo apt-get install qemu-system-arm)".into();
    let program = fake("too_old.sh").expect("a path");
    assert_eq!(error, QemuError::TooOld { program, found, needed, remedy }.into());
    assert!(error.to_string().contains("is QEMU 6.2, the board needs 7.2"), "{error}");
    let options = QemuOptions { program: fake("too_old.sh"), ..QemuOptions::default() };
    let text = QemuBoard::open("raspi3b", &options).expect_err("too old").to_string();
    assert!(
        text.contains("is QEMU 6.2, the board needs 10.0")
            && text.contains("apt-get install -t bookworm-backports qemu-system-arm"),
        "{text}"
    );
}

#[test]
fn a_program_that_is_no_qemu_is_refused() {
    let program = fake("something_else.sh");
    let error = refused(&QemuOptions { program, ..QemuOptions::default() });
    assert!(error.to_string().contains("GNU something"), "{error}");
}

#[test]
fn a_qemu_that_never_connects_is_given_up_and_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("flash.bin");
    let options = QemuOptions {
        program: fake("never_connects.sh"),
        connect_timeout: Duration::from_millis(500),
        ..on_file(&path)
    };
    let error = qemu_error(refused(&options));
    // Not the default's ten seconds.
    assert!(matches!(error, QemuError::NoConnection { waited_ms: 500..10_000, .. }), "{error:?}");
    assert!(error.to_string().contains("waiting for nobody"), "{error}");
    let pid = std::fs::read_to_string(dir.path().join("flash.bin.pid")).expect("its number");
    assert!(!exists(pid.trim().parse().expect("a number")), "left running, or not reaped");
    assert!(!path.exists(), "a flash file was left behind");
    assert_eq!(QemuOptions::default().connect_timeout, Duration::from_secs(10));
}

#[test]
fn a_qemu_that_ends_at_once_is_quoted() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("flash.bin");
    let program = fake("dies_at_once.sh");
    // The error differs from that of a program that never connects.
    let error = refused(&QemuOptions { program, ..on_file(&path) });
    assert_eq!(
        error,
        QemuError::Died {
            status: "exit status: 3".into(),
            stderr: "first line | no machine today".into()
        }
        .into()
    );
    assert!(!path.exists(), "a flash file was left behind");
}

#[test]
fn a_flash_file_that_does_not_fit_is_refused_untouched() {
    let dir = tempfile::tempdir().expect("a directory");
    for len in [0, 1, SIZE - 1, SIZE + 1] {
        let path = dir.path().join(format!("{len}.bin"));
        std::fs::write(&path, vec![7; len]).expect("writes");
        match QemuBoard::open("sabrelite", &on_file(&path)) {
            Err(BoardError::Qemu(QemuError::Missing { .. })) => {
                println!("SKIPPED: no qemu-system-arm");
                return;
            }
            Err(error @ BoardError::FlashSize { .. }) => {
                let text = error.to_string();
                assert!(
                    text.contains(&format!(" {len} bytes")) && text.contains("2097152"),
                    "{text}"
                );
            }
            other => panic!("{len}: {other:?}"),
        }
        assert_eq!(std::fs::read(&path).expect("reads").len(), len);
    }
    let error = refused(&on_file(dir.path()));
    assert!(matches!(error, BoardError::FlashKind { .. }), "{error}");
    let error = qemu_error(refused(&on_file(&dir.path().join("no/such/directory"))));
    assert!(matches!(error, QemuError::File { doing: "create", .. }), "{error}");
}

#[test]
fn a_flash_file_in_use_is_refused_until_it_is_free() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("flash.bin");
    let Some(board) = open(&on_file(&path)) else { return };
    let error = refused(&on_file(&path));
    assert!(matches!(error, BoardError::FlashInUse { .. }), "{error}");
    assert!(path.exists(), "the other's file");
    board.close().expect("ends well");
    open(&on_file(&path)).expect("was here before").close().expect("ends well");
}

#[test]
fn a_qemu_that_dies_in_a_transfer_fails_it_and_says_so() {
    // At 20 MHz a command goes by SMC, whose wait is for a bit that is set; at 1 and 50 MHz all
    // waits are for a bit that clears, which registers that read 0 satisfy.
    for speed_hz in [1_000_000, 20_000_000, 50_000_000] {
        let Some(board) = open(&QemuOptions::default()) else { return };
        let pid = board.pid();
        let bus = board.bus();
        let device = bus.device(&Settings::new(0, speed_hz)).expect("opens");
        let mut chip = SpiNor::new(device, board.timer()).expect("identifies");
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            signal(pid, "KILL");
        });
        let begun = Instant::now();
        let mut into = vec![0; 256 << 10];
        let failed = loop {
            if let Err(error) = chip.read(0, &mut into) {
                break error;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "reads from a dead QEMU");
        };
        let lost = board.lost().expect("a reason");
        killer.join().expect("killed");
        assert!(
            matches!(&lost, QemuError::Died { status, .. } if status.contains("signal: 9")),
            "{failed}: {lost:?}"
        );
        // It stays lost.
        device.sync(&mut [Transfer::write(&[0x06])]).expect_err("no more messages");
        assert_eq!(board.lost(), Some(lost.clone()));
        assert!(matches!(board.trace(), Ok(commands) if commands.is_empty()));
        assert_eq!(board.close(), Err(lost));
        assert!(!exists(pid), "not reaped");
    }
}

#[test]
fn a_board_that_is_dropped_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("flash.bin");
    let Some(board) = open(&on_file(&path)) else { return };
    let pid = board.pid();
    let bus = board.bus();
    let mut chip = {
        let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
        SpiNor::new(device, board.timer()).expect("identifies")
    };
    chip.program_only(0x1234, b"kept").expect("programs");
    assert!(exists(pid));
    let private = std::fs::read_link(format!("/proc/{pid}/cwd")).expect("its directory");
    let mode = std::fs::metadata(&private).expect("exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(chip);
    drop(board);
    assert!(!exists(pid), "left running, or not reaped");
    assert!(!private.exists(), "{} is left", private.display());
    let content = std::fs::read(&path).expect("reads");
    assert_eq!(&content[0x1234..0x1238], b"kept", "dropping ends QEMU in an orderly way too");
}

/// The environment variable that makes this test program, run again, do something else than test.
const ROLE: &str = "BAREWIRE_QEMU_TEST_ROLE";

/// This test program again, running the one test `name` in its other role.
fn again(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    let name = format!("bad_input::{name}");
    command.args(["--exact", &name, "--nocapture", "--test-threads=1"]).env(ROLE, "1");
    command
}

#[test]
fn the_environment_names_the_program() {
    if std::env::var_os(ROLE).is_some() {
        println!("said: {}", refused(&QemuOptions::default()));
        return;
    }
    let output = again("the_environment_names_the_program")
        .env("BAREWIRE_QEMU_ARM", "/nonexistent/from-the-environment")
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("said: cannot run /nonexistent/from-the-environment"), "{text}");
}

#[test]
fn qemu_ends_with_a_process_that_is_killed() {
    if std::env::var_os(ROLE).is_some() {
        let Some(board) = open(&QemuOptions::default()) else { return };
        println!("\npid {}", board.pid());
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let setpriv = Command::new("setpriv").args(["--pdeathsig", "TERM", "true"]).status();
    if !setpriv.is_ok_and(|status| status.success()) {
        println!("SKIPPED: no setpriv (util-linux): a killed process leaves its QEMU");
        return;
    }
    // What the killed process cannot remove goes with this directory.
    let dir = tempfile::tempdir().expect("a directory");
    let mut child = again("qemu_ends_with_a_process_that_is_killed")
        .env("TMPDIR", dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let stdout = std::io::BufReader::new(child.stdout.take().expect("piped"));
    let mut pid = None;
    for line in std::io::BufRead::lines(stdout).map_while(Result::ok) {
        if line.starts_with("SKIPPED:") {
            println!("{line}");
            break;
        }
        if let Some(number) = line.strip_prefix("pid ") {
            pid = Some(number.parse().expect("a number"));
            break;
        }
    }
    child.kill().expect("kills");
    child.wait().expect("reaps");
    if let Some(pid) = pid {
        assert!(ends(pid, Duration::from_secs(50)), "QEMU outlived us");
    }
}

#[test]
fn a_file_for_a_board_without_a_chip_is_refused_untouched() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("flash.bin");
    match QemuBoard::open("highbank", &on_file(&path)) {
        Err(BoardError::Qemu(QemuError::Missing { .. })) => println!("SKIPPED: no qemu-system-arm"),
        Err(BoardError::NoStorage { board: "highbank" }) => {}
        other => panic!("{other:?}"),
    }
    assert!(!path.exists());
}
