//! A QEMU that is missing, wrong, too old, silent or dying: a clear error, and nothing left running.

use std::path::{Path, PathBuf};
use std::time::Duration;

use barewire_qtest::{Launch, PrivateDir, Qemu, QemuError, QemuProgram, Version};

/// What the oldest of the machines needs.
const NEEDED: Version = Version { major: 7, minor: 2 };

/// One of the programs that pretend to be QEMU.
fn fake(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake").join(name)
}

/// Starts a machine of the QEMU `program`, with a drive in the file `drive`.
fn start(program: &Path, drive: Option<&Path>) -> Result<Qemu, QemuError> {
    let dir = PrivateDir::new()?;
    let program = QemuProgram::AARCH64.find(Some(program), NEEDED, &dir)?;
    let launch = Launch {
        program: &program,
        machine: "virt",
        memory: "64M",
        drive: drive.map(|file| ("mtd", file)),
        trace: None,
        stopped: true,
        more: &[],
        connect_timeout: Duration::from_millis(500),
    };
    Qemu::start(&launch, dir)
}

fn refused(program: &Path) -> QemuError {
    start(program, None).expect_err("this cannot work")
}

#[test]
fn a_missing_qemu_is_named_with_its_package() {
    let error = refused(Path::new("/nonexistent/qemu-system-aarch64"));
    assert!(matches!(error, QemuError::Missing { package: "qemu-system-arm", .. }), "{error}");
    let text = error.to_string();
    let parts = ["/nonexistent/qemu-system-aarch64", "sudo apt-get install qemu-system-arm"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn a_qemu_that_is_too_old_is_told_both_versions() {
    let program = fake("too_old.sh");
    let remedy = "Debian 12 (bookworm) has 7.2 (sudo apt-get install qemu-system-arm)".into();
    let found = Version { major: 6, minor: 2 };
    let error = refused(&program);
    assert_eq!(error, QemuError::TooOld { program, found, needed: NEEDED, remedy });
    assert!(error.to_string().contains("is QEMU 6.2, the board needs 7.2"), "{error}");
}

#[test]
fn a_program_that_is_no_qemu_is_refused() {
    let error = refused(&fake("something_else.sh"));
    assert!(error.to_string().contains("GNU something"), "{error}");
}

#[test]
fn a_qemu_that_ends_at_once_is_quoted() {
    let stderr = "first line | no machine today".into();
    let died = QemuError::Died { status: "exit status: 3".into(), stderr };
    assert_eq!(refused(&fake("dies_at_once.sh")), died);
}

#[test]
fn a_qemu_that_never_connects_is_given_up_and_ended() {
    let dir = PrivateDir::new().expect("a directory");
    let drive = dir.join("drive");
    let error = start(&fake("never_connects.sh"), Some(&drive)).expect_err("it never connects");
    assert!(matches!(error, QemuError::NoConnection { waited_ms: 500.., .. }), "{error:?}");
    assert!(error.to_string().contains("waiting for nobody"), "{error}");
    let pid = std::fs::read_to_string(dir.join("drive.pid")).expect("its number");
    let left = Path::new("/proc").join(pid.trim());
    assert!(!left.exists(), "left running, or not reaped");
}
