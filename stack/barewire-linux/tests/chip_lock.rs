//! A chip's lock between processes: one has the chip at a time, a killed one does not keep it, and a
//! process that runs operation after operation lets the others in.
//!
//! How it works: the chip is a page of words that both processes map. A child, which is this same program
//! told so by its environment, runs operations until it is killed.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use barewire_linux::SharedWords;
use barewire_linux::shared::{ChipLock, ChipLocks};
use rustix::io::Errno;

const KILLS: u32 = 100;
/// Where the files are, for a child.
const PLACE: &str = "BAREWIRE_CHIP_PLACE";
/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

const PARENT: u32 = 1;
const CHILD: u32 = 2;

/// The chip, reduced to a shared word that names its user.
struct FlashWord {
    words: SharedWords,
    lock: ChipLock,
}

impl FlashWord {
    fn at(place: &Path) -> Self {
        let file = File::options().read(true).write(true).open(place.join("chip")).expect("there");
        let locks = ChipLocks::Beside { lock: place.join("lock"), like: place.join("chip") };
        let words = SharedWords::map(&file, 4).expect("maps");
        Self { words, lock: locks.open(3).expect("opens") }
    }

    /// The user whose operation is running, or who died in one.
    fn user(&self) -> &AtomicU32 {
        &self.words.words()[0]
    }

    /// The operations a user has begun.
    fn begun(&self, user: u32) -> &AtomicU32 {
        &self.words.words()[user as usize]
    }

    /// Runs an operation for `length` and checks that no other user runs one meanwhile.
    fn operate(&mut self, user: u32, length: Duration) {
        self.lock.acquire().expect("nobody stops the wait");
        self.begun(user).fetch_add(1, Ordering::Relaxed);
        self.user().store(user, Ordering::SeqCst);
        let begun = Instant::now();
        while begun.elapsed() < length {
            assert_eq!(self.user().load(Ordering::SeqCst), user, "alone");
            std::hint::spin_loop();
        }
        self.user().store(0, Ordering::SeqCst);
        self.lock.release();
    }
}

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    File::create(place.path().join("chip")).and_then(|file| file.set_len(16)).expect("made");
    place
}

/// Runs as the child. Does nothing if the environment names no place.
#[test]
fn child() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let mut chip = FlashWord::at(&place);
    let parent = std::os::unix::process::parent_id();
    // It does not outlive the test, should that fail.
    while std::os::unix::process::parent_id() == parent {
        chip.operate(CHILD, Duration::from_micros(300));
    }
}

/// A child, killed when dropped: also where the test fails meanwhile.
struct ChildGuard(Child);

impl ChildGuard {
    fn spawn(place: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "child", "--test-threads", "1"]).env(PLACE, place);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("this program runs again"))
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.0.kill().expect("a child of ours");
        self.0.wait().expect("a child of ours");
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "it does not: {what}");
        thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn one_process_has_the_chip_and_a_killed_one_does_not_keep_it() {
    let place = place();
    let mut chip = FlashWord::at(place.path());
    let mut died_inside = 0;
    for kill in 0..KILLS {
        let child = ChildGuard::spawn(place.path());
        let before = chip.begun(CHILD).load(Ordering::Relaxed);
        until("the child begins", || chip.begun(CHILD).load(Ordering::Relaxed) > before);
        for _ in 0..kill % 4 {
            chip.operate(PARENT, Duration::from_micros(200));
        }
        thread::sleep(Duration::from_micros(u64::from(kill * 37 % 600)));
        drop(child);
        died_inside += u32::from(chip.user().swap(0, Ordering::SeqCst) == CHILD);
        let begun = Instant::now();
        chip.operate(PARENT, Duration::from_micros(200));
        assert!(begun.elapsed() < PATIENCE);
    }
    assert!(died_inside > 0, "some of {KILLS} are killed in an operation");
}

#[test]
fn a_process_that_never_rests_lets_others_in() {
    let place = place();
    let (mut chip, other) = (FlashWord::at(place.path()), FlashWord::at(place.path()));
    let _child = ChildGuard::spawn(place.path());
    until("the child begins", || chip.begun(CHILD).load(Ordering::Relaxed) > 0);
    let begun = || other.begun(CHILD).load(Ordering::Relaxed);
    let mut others: Vec<u32> = (0..30)
        .map(|_| {
            let last = begun();
            until("the child goes on", || begun() > last);
            let before = begun();
            chip.operate(PARENT, Duration::from_micros(50));
            begun() - before
        })
        .collect();
    others.sort_unstable();
    // Normally 0, but hundreds if the child does not release the lock in between. A busy machine may keep the
    // parent off the processor in some turns.
    assert!(others[others.len() / 2] < 20, "{others:?}: operations of the child in each turn");
}

#[test]
fn two_drivers_of_one_process_have_locks_of_their_own() {
    let place = place();
    let (mut one, mut other) = (FlashWord::at(place.path()), FlashWord::at(place.path()));
    one.lock.acquire().expect("free");
    assert_eq!(other.lock.try_acquire(), Ok(false));
    let mut told = 0;
    let stopped =
        ChipLocks::Beside { lock: place.path().join("lock"), like: place.path().join("chip") };
    let mut stopped = stopped.open(3).expect("opens").on_wait(move |_| {
        told += 1;
        if told < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!(stopped.acquire(), Err(Errno::INTR));
    one.lock.release();
    assert_eq!(other.lock.try_acquire(), Ok(true), "the waiter that gave up is not in the way");
    drop(other);
    one.lock.acquire().expect("a dropped lock is given back");
}

#[test]
fn a_node_is_its_own_lock_and_chip_selects_have_each_their_own() {
    let place = place();
    let node = ChipLocks::Node(place.path().join("chip"));
    let mut one = node.open(0).expect("opens");
    one.acquire().expect("free");
    assert_eq!(node.open(0).expect("opens").try_acquire(), Ok(false));
    let beside =
        ChipLocks::Beside { lock: place.path().join("lock"), like: place.path().join("chip") };
    let [mut cs0, mut cs1] = [0, 1].map(|cs| beside.open(cs).expect("opens"));
    assert!(cs1.path().ends_with("lock.cs1"));
    cs0.acquire().expect("free");
    assert_eq!(cs1.try_acquire(), Ok(true));
}
