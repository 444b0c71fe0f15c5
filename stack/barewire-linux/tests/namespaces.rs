//! The lock between processes of two PID namespaces: the second one is refused, and what a namespace leaves
//! behind excludes no later opener.
//!
//! How it works: unshare(1) runs this program again in a namespace of its own, where it opens the lock that this
//! process has open, or had. Where no namespace can be made, the tests say so and pass.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use barewire::bus::Bus;
use barewire::controller::null::Null;
use barewire::spi::{Settings, Transfer};
use barewire_linux::shared::{ProcessShared, SharedError, SharedLock};

/// The directory of the lock, for [`child`], and what it does there.
const PLACE: &str = "BAREWIRE_TEST_NAMESPACE_PLACE";
const KILLED: &str = "BAREWIRE_TEST_NAMESPACE_KILLED";

fn open(place: &Path) -> Result<SharedLock, SharedError> {
    SharedLock::open(&place.join("lock"), place)
}

fn runs_a_message(lock: SharedLock) {
    let bus = Bus::new(ProcessShared::new(lock, Null::new()));
    let device = bus.device(&Settings::new(0, 1_000)).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::write(&[1])]), Ok(1));
}

/// No test by itself: the program of the other namespace.
#[test]
fn child() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let lock = match open(Path::new(&place)) {
        Ok(lock) => lock,
        Err(error) => return println!("REFUSED {error}"),
    };
    if std::env::var_os(KILLED).is_some() {
        // Within a message, as thread 1 or 2 of its namespace.
        let _ = ProcessShared::bring_up(lock, || -> Null { std::process::abort() });
        return;
    }
    runs_a_message(lock);
    println!("RAN");
}

/// The output of [`child`] in a namespace of its own; `None` if no namespace can be made.
fn in_another_namespace(place: &Path, killed: bool) -> Option<String> {
    let unshare = |arguments: &[&str]| -> Option<Output> {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]).args(arguments).env(PLACE, place);
        if killed {
            command.env(KILLED, "1");
        }
        command.stdin(Stdio::null()).output().ok()
    };
    if !unshare(&["true"]).is_some_and(|made| made.status.success()) {
        println!("SKIPPED: unshare(1) makes no PID namespace here (it wants root)");
        return None;
    }
    let program = std::env::current_exe().expect("this program");
    let ran = unshare(&[program.to_str().expect("UTF-8"), "--exact", "child", "--nocapture"]);
    Some(String::from_utf8_lossy(&ran.expect("as above").stdout).into_owned())
}

#[test]
fn the_second_namespace_is_refused_and_the_first_goes_on() {
    let place = tempfile::tempdir().expect("a directory");
    let lock = open(place.path()).expect("made");
    let Some(told) = in_another_namespace(place.path(), false) else { return };
    assert!(told.contains("REFUSED") && told.contains("PID namespace"), "{told}");
    runs_a_message(lock);
    let told = in_another_namespace(place.path(), false).expect("as before");
    assert!(told.contains("RAN"), "nobody has it any more: {told}");
    runs_a_message(open(place.path()).expect("nor has the other"));
}

#[test]
fn a_namespace_that_ends_within_a_message_keeps_nobody_out() {
    let place = tempfile::tempdir().expect("a directory");
    let Some(told) = in_another_namespace(place.path(), true) else { return };
    assert!(!told.contains("REFUSED") && !told.contains("RAN"), "{told}");
    runs_a_message(open(place.path()).expect("nobody has it"));
}
