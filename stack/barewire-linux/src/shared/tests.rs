//! The file: made once, checked, refused with reasons. The controller: its last user and dead
//! owners.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, mpsc};
use std::thread;

use barewire::bus::Bus;
use barewire::controller::null::Null;
use barewire::controller::{Controller, Limits, Preset, Unfinished};
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};
use rustix::io::Errno;

use super::lock::{FILE_BYTES, ORIGIN_AT, layout};
use super::*;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().expect("a directory") };
        File::create(place.device()).expect("made");
        place.device_mode(0o660);
        place
    }

    fn device(&self) -> PathBuf {
        self.directory.path().join("uio0")
    }

    fn device_mode(&self, mode: u32) {
        fs::set_permissions(self.device(), PermissionsExt::from_mode(mode)).expect("ours");
    }

    fn lock(&self) -> PathBuf {
        self.directory.path().join("lock")
    }

    fn open(&self) -> Result<SharedLock, SharedError> {
        SharedLock::open(&self.lock(), &self.device())
    }
}

#[test]
fn a_lock_is_made_with_the_devices_rights_and_found_again() {
    let place = Place::new();
    let lock = place.open().expect("made");
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
    assert_eq!((mode(lock.path()), mode(&place.device())), (0o660, 0o660));
    place.open().expect("found");
    let names: Vec<_> = fs::read_dir(place.directory.path())
        .expect("there")
        .map(|entry| entry.expect("read").file_name())
        .collect();
    assert_eq!(names.len(), 2, "nothing temporary is left: {names:?}");

    let only_owner = Place::new();
    only_owner.device_mode(0o600);
    let lock = only_owner.open().expect("made");
    assert_eq!(mode(lock.path()), 0o600);
}

#[test]
fn the_owner_follows_the_device() {
    let place = Place::new();
    if std::os::unix::fs::chown(place.device(), Some(12_345), Some(23_456)).is_err() {
        println!("SKIPPED: only root gives files away");
        return;
    }
    place.open().expect("made");
    let lock = fs::metadata(place.lock()).expect("there");
    assert_eq!((lock.uid(), lock.gid()), (12_345, 23_456));
    place.open().expect("found, and trusted");
}

#[test]
fn of_several_makers_one_wins_and_all_have_the_same() {
    let place = Place::new();
    thread::scope(|scope| {
        let open = || place.open().expect("made or found").new_user();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        let mut users: Vec<u32> =
            threads.into_iter().map(|thread| thread.join().expect("runs")).collect();
        users.sort_unstable();
        assert_eq!(users, (1..=8).collect::<Vec<_>>(), "all count in one file");
    });
}

#[test]
fn what_is_no_lock_of_ours_is_refused_with_a_remedy() {
    fn spoilt(at: u64, bytes: &[u8]) -> SharedError {
        let place = Place::new();
        drop(place.open().expect("made"));
        let file = File::options().write(true).open(place.lock()).expect("ours");
        file.write_all_at(bytes, at).expect("written");
        place.open().expect_err("spoilt")
    }
    assert!(matches!(spoilt(0, b"#"), SharedError::NotALock { .. }));
    let version = spoilt(14, b"7");
    assert!(matches!(&version, SharedError::Version { found, .. } if found == "7"), "{version}");
    let text = version.to_string();
    assert!(text.contains("version 7") && text.contains("version 3"), "{text}");
    let other = spoilt(16, b"pdp-11");
    let text = other.to_string();
    assert!(matches!(other, SharedError::Layout { .. }), "{text}");
    assert!(text.contains("pdp-11") && text.contains(&layout()), "{text}");

    for (bytes, expected) in
        [(0, "not a lock"), (100, "100 bytes"), (FILE_BYTES + 1, "65537 bytes")]
    {
        let place = Place::new();
        drop(place.open().expect("made"));
        let file = File::options().write(true).open(place.lock()).expect("ours");
        file.set_len(bytes).expect("cut");
        let text = place.open().expect_err("cut").to_string();
        assert!(text.contains(expected), "{bytes}: {text}");
    }

    let place = Place::new();
    fs::create_dir(place.lock()).expect("made");
    assert!(matches!(place.open(), Err(SharedError::NotALock { .. })));
    let place = Place::new();
    std::os::unix::fs::symlink("/dev/null", place.lock()).expect("made");
    assert!(matches!(place.open(), Err(SharedError::NotALock { .. })));
}

#[test]
fn places_and_files_that_will_not_do_are_told() {
    let place = Place::new();
    let missing = place.directory.path().join("gone/lock");
    let error = SharedLock::open(&missing, &place.device()).expect_err("nowhere");
    assert_eq!(error, SharedError::NoDirectory { path: missing });
    let error = SharedLock::open(&place.lock(), Path::new("/nonexistent")).expect_err("no device");
    assert!(matches!(error, SharedError::Like { errno: Errno::NOENT, .. }), "{error}");

    drop(place.open().expect("made"));
    fs::set_permissions(place.lock(), PermissionsExt::from_mode(0o666)).expect("ours");
    let error = place.open().expect_err("open to all").to_string();
    assert!(error.contains("may be written by anybody") && error.contains("remove it"), "{error}");
    place.device_mode(0o666);
    place.open().expect("the lock is as open as the device");
}

/// Counts its calls, and panics within a message if the test asks for that.
#[derive(Default)]
struct Probe {
    null: Null,
    reclaims: u32,
    panics: bool,
}

static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Controller for Probe {
    fn limits(&self) -> Limits {
        self.null.limits()
    }
    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        self.null.configure(settings)
    }
    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.null.plan(preset, message)
    }
    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        self.null.run(preset, message)
    }
    fn reclaim(&mut self) {
        self.reclaims += 1;
        assert!(!std::mem::take(&mut self.panics), "on purpose");
    }
}

/// A thread ends with the lock: to the kernel it is like a process that does.
fn dies_with(lock: &SharedLock) {
    let end = || std::mem::forget(lock.mutex().acquire().expect("free"));
    // To its very end, which a scope alone does not wait for.
    thread::scope(|scope| scope.spawn(end).join().expect("it ends"));
}

/// Another thread holds the lock until `release` is called, or dropped, in `meanwhile`.
fn held_meanwhile(lock: &SharedLock, meanwhile: impl FnOnce(mpsc::Sender<()>)) {
    thread::scope(|scope| {
        let ((acquired, acquiring), (release, released)) = (mpsc::channel(), mpsc::channel());
        scope.spawn(move || {
            let held = lock.mutex().acquire().expect("free");
            acquired.send(()).expect("the test waits");
            let _ = released.recv();
            drop(held);
        });
        acquiring.recv().expect("acquired");
        meanwhile(release);
    });
}

fn one_message<C: Controller>(bus: &Bus<C>) {
    let device = bus.device(&Settings::new(0, 1_000)).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::write(&[1, 2])]), Ok(2));
}

#[test]
fn the_block_is_reclaimed_when_another_used_it_and_only_then() {
    let place = Place::new();
    let open = || place.open().expect("opens");
    let mut one = Bus::new(ProcessShared::new(open(), Probe::default()));
    let mut other = Bus::new(ProcessShared::bring_up(open(), Probe::default).expect("brought up"));
    one_message(&other);
    assert_eq!(reclaims(&mut other), 0, "it brought the controller up itself");
    one_message(&one);
    one_message(&one);
    assert_eq!(reclaims(&mut one), 1, "the first time only");
    one_message(&other);
    one_message(&one);
    one_message(&one);
    assert_eq!((reclaims(&mut one), reclaims(&mut other)), (2, 1));
}

fn reclaims(bus: &mut Bus<ProcessShared<Probe>>) -> u32 {
    bus.get_mut().inner().reclaims
}

#[test]
fn an_owner_that_died_is_told_once_and_counted_by_all() {
    let place = Place::new();
    let open = || place.open().expect("opens");
    let shared = ProcessShared::new(open(), Probe::default())
        .on_recovered(|recovered| LOG.lock().expect("whole").push(recovered.to_string()));
    let (recoveries, bus) = (shared.recoveries(), Bus::new(shared));
    one_message(&bus);
    dies_with(&open());
    one_message(&bus);
    one_message(&bus);
    assert_eq!((recoveries.times(), recoveries.total()), (1, 1));
    assert_eq!(*LOG.lock().expect("whole"), ["the bus was recovered 1 times, 1 times in all"]);
    // One for the first message, one for the dead owner.
    assert_eq!(bus.into_inner().inner().reclaims, 2);
    let later = ProcessShared::new(open(), Null::new()).recoveries();
    assert_eq!((later.times(), later.total()), (0, 1));
}

#[test]
fn a_panic_while_reclaiming_makes_the_next_reclaim_again() {
    let place = Place::new();
    let open = || place.open().expect("opens");
    let mut other = Bus::new(ProcessShared::new(open(), Probe::default()));
    one_message(&other);
    dies_with(&open());
    let one = Bus::new(ProcessShared::new(open(), Probe { panics: true, ..Probe::default() }));
    let panicked = thread::scope(|scope| scope.spawn(|| one_message(&one)).join());
    assert!(panicked.is_err());
    one_message(&other);
    assert_eq!(other.get_mut().inner().reclaims, 2);
    one_message(&one);
}

#[test]
fn a_lock_in_disorder_is_an_error_and_clocks_nothing() {
    let place = Place::new();
    let open = || place.open().expect("opens");
    let lock = open();
    // Held by a thread that does not exist: it ended without the kernel's knowing.
    words(&lock)[0].store(0x3fff_fff0, Relaxed);
    let bus = Bus::new(ProcessShared::new(open(), Null::new()));
    let device = bus.device(&Settings::new(0, 1_000)).expect("opens without the lock");
    let error = device.sync(&mut [Transfer::write(&[1])]).expect_err("no lock");
    assert_eq!(error.error, Error::Os { errno: libc::ESRCH });
    let error = ProcessShared::bring_up(open(), || unreachable!("without the lock"))
        .map(|shared: ProcessShared<Null>| drop(shared))
        .expect_err("no lock");
    assert!(matches!(&error, SharedError::Mutex { errno: Errno::SRCH, .. }), "{error}");
    assert!(error.to_string().contains("end all processes"), "{error}");
    // No process has it open, so the next opener repairs it.
    drop(lock);
    assert_eq!(bus.into_inner().inner().bytes(), 0);
    one_message(&Bus::new(ProcessShared::new(open(), Null::new())));
}

#[test]
fn bringing_up_waits_as_its_opener_says() {
    let place = Place::new();
    let open = || place.open().expect("opens");
    held_meanwhile(&open(), |release| {
        let stop = &mut |holder: Holder| {
            assert_ne!(holder.thread, 0);
            ControlFlow::Break(())
        };
        let stopped = ProcessShared::bring_up_while(open(), stop, || unreachable!("in use"));
        let error = stopped.map(|shared: ProcessShared<Null>| drop(shared)).expect_err("stopped");
        assert!(matches!(&error, SharedError::Mutex { errno: Errno::INTR, .. }), "{error}");
        let mut release = Some(release);
        let go_on = &mut |_: Holder| {
            drop(release.take());
            ControlFlow::Continue(())
        };
        one_message(&Bus::new(
            ProcessShared::bring_up_while(open(), go_on, Null::new).expect("released"),
        ));
    });
}

#[test]
fn try_calls_do_not_wait_for_another_process_and_count_nothing() {
    let place = Place::new();
    let open = || place.open().expect("opens");
    let asked = AtomicU32::new(0);
    let asked: &'static _ = Box::leak(Box::new(asked));
    let patient = open().on_wait(|_| {
        asked.fetch_add(1, Relaxed);
        ControlFlow::Continue(())
    });
    let bus = Bus::new(ProcessShared::new(patient, Null::new()));
    bus.set_counting(true);
    let device = bus.device(&Settings::new(0, 1_000)).expect("opens");
    let mut prepared = device.prepare([1]).expect("planned");
    let lock = open();
    held_meanwhile(&lock, |release| {
        let busy = Err(MessageError { error: Error::Busy, transfer_index: 0, actual_length: 0 });
        assert_eq!(device.try_sync(&mut [Transfer::write(&[1])]), busy);
        assert_eq!(prepared.try_run().map(drop), busy.map(drop));
        assert_eq!(bus.statistics(), Default::default(), "nothing was on the wire");
        assert_eq!(asked.load(Relaxed), 0, "nothing waited");
        // The next call that may wait waits, and calls the function that it was given.
        let releases = thread::spawn(move || {
            while asked.load(Relaxed) == 0 {
                thread::yield_now();
            }
            release.send(()).expect("it waits");
        });
        assert_eq!(device.sync(&mut [Transfer::write(&[1])]), Ok(1));
        releases.join().expect("it ends");
    });
    assert_eq!(device.try_sync(&mut [Transfer::write(&[1])]), Ok(1));
    // If that holder has ended too, there is no process to wait for.
    dies_with(&lock);
    assert_eq!(prepared.try_run().map(|_| ()), Ok(()));
    assert_eq!((bus.statistics().messages, lock.deaths().load(Relaxed)), (3, 1));
}

#[test]
fn taking_it_twice_in_one_thread_is_an_error_not_a_wait_for_ever() {
    let place = Place::new();
    let open = || place.open().expect("opens");
    let lock = open();
    let _held = lock.mutex().acquire().expect("free");
    let bus = Bus::new(ProcessShared::new(open(), Null::new()));
    let device = bus.device(&Settings::new(0, 1_000)).expect("opens");
    let error = device.sync(&mut [Transfer::write(&[1])]).expect_err("held by this thread");
    assert_eq!(error.error, Error::Os { errno: libc::EDEADLK });
}

#[test]
fn a_chips_claim_is_set_during_an_operation_and_not_after() {
    let place = Place::new();
    drop(place.open().expect("made"));
    let locks = ChipLocks::Beside { lock: place.lock(), like: place.device() };
    let open = || locks.open(1).expect("opens");
    let (mut chip, mut other) = (open(), open());
    let claim = open().into_claim().expect("a file has one");
    let of_another = locks.open(2).expect("opens").into_claim().expect("a file has one");
    assert!(!claim.is_set());
    for _ in 0..2 {
        chip.acquire().expect("free");
        assert!(claim.is_set() && !of_another.is_set());
        assert_eq!(other.try_acquire(), Ok(false));
        assert!(claim.is_set(), "a thread that does not get it changes nothing");
        chip.release();
        assert!(!claim.is_set());
    }
    // The kernel releases the lock of a holder that ends; the word stays until the next one has been.
    chip.acquire().expect("free");
    drop(chip);
    assert!(claim.is_set());
    other.acquire().expect("free");
    other.release();
    assert!(!claim.is_set());
    let node = ChipLocks::Node(place.device()).open(0).expect("opens");
    assert!(node.into_claim().is_none());
}

#[test]
fn one_that_is_alone_is_seen_by_all_and_sees_all() {
    let place = Place::new();
    let alone = || SharedLock::open_exclusive(&place.lock(), &place.device());
    let me = std::process::id();
    let (one, other) = (place.open().expect("made"), place.open().expect("found"));
    drop(one);
    let error = alone().expect_err("another is there");
    let SharedError::InUse { users, .. } = &error else { panic!("{error:?}") };
    assert_eq!(users.iter().map(|user| user.process).collect::<Vec<_>>(), [me], "{error}");
    assert!(!users[0].name.is_empty() && error.to_string().contains(&users[0].name), "{error}");
    drop(other);
    let lock = alone().expect("nobody is there");
    for error in [alone().expect_err("one is alone"), place.open().expect_err("one is alone")] {
        let text = error.to_string();
        assert!(text.contains(&format!("process {me} (")) && text.contains("exclusive"), "{text}");
    }
    drop(lock);
    place.open().expect("nobody is alone");
}

/// The kernel's word of a lock, and the number of the namespace.
fn words(lock: &SharedLock) -> [&AtomicU32; 2] {
    let words = lock.mutex().words().words();
    [&words[lock.mutex().word_index()], &words[ORIGIN_AT]]
}

#[test]
fn another_namespace_or_boot_is_refused_while_it_is_there_and_leaves_nothing() {
    let refused = |at: usize| {
        let place = Place::new();
        let theirs = place.open().expect("made");
        let origin = &theirs.mutex().words().words()[ORIGIN_AT..][..6];
        let ours = origin[at].load(Relaxed);
        origin[at].store(ours ^ 1, Relaxed);
        // The lock's word names thread 1, which belonged to the other boot: no thread will release
        // it.
        words(&theirs)[0].store(0x8000_0001, Relaxed);
        let error = place.open().expect_err("the ids are of another boot or namespace");
        drop(theirs);
        let lock = place.open().expect("they are gone");
        let taken = lock.mutex().acquire_while(&mut |_| std::ops::ControlFlow::Break(()));
        assert_eq!(taken.map(|(_, found)| found), Ok(crate::sys::robust::MutexState::OwnerDied));
        assert_eq!(lock.mutex().words().words()[ORIGIN_AT + at].load(Relaxed), ours);
        error
    };
    let us = rustix::process::geteuid().as_raw();
    let error = refused(0);
    assert!(matches!(error, SharedError::Namespace { user, .. } if user == us), "{error:?}");
    assert!(error.to_string().contains("container"), "{error}");
    for part in 1..5 {
        let error = refused(part);
        assert!(matches!(error, SharedError::Boot { user, .. } if user == us), "{error:?}");
        assert!(error.to_string().contains("another boot"), "{error}");
    }
}

/// As after a power cut: the file says that a thread holds the lock, and by now its number may be any thread's, even one that
/// lives, in this boot as in the next.
#[test]
fn a_held_lock_s_file_that_outlives_its_boot_has_a_dead_holder() {
    let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let holders = [thread, 0x8000_0000 | thread, thread + 1, 1, 0x4000_0000];
    for (boot, holder) in [(false, thread)].into_iter().chain(holders.map(|it| (true, it))) {
        let place = Place::new();
        let lock = place.open().expect("made");
        let later = place.directory.path().join("later");
        // Numbers as of the next opener, so that the holder's number alone does not show that it is
        // dead.
        lock.last_user().store(2, Relaxed);
        lock.new_user();
        words(&lock)[0].store(holder, Relaxed);
        fs::copy(lock.path(), &later).expect("copied");
        if boot {
            let file = File::options().write(true).open(&later).expect("ours");
            let at = (ORIGIN_AT as u64 + 1) * 4;
            file.write_all_at(&[0x5a; 16], at).expect("another boot's number");
        }
        let later = SharedLock::open(&later, &place.device()).expect("opened");
        let shared = ProcessShared::new(later, Probe::default());
        let recoveries = shared.recoveries();
        let mut bus = Bus::new(shared);
        one_message(&bus);
        one_message(&bus);
        let counts = (recoveries.times(), recoveries.total(), reclaims(&mut bus));
        assert_eq!(counts, (1, 1, 1), "{boot} {holder:#x}");
    }
}

#[test]
fn a_child_in_another_namespace_is_refused() {
    let place = Place::new();
    let lock = place.open().expect("made");
    assert_eq!(lock.is_of_this_process(), Ok(()));
    words(&lock)[1].fetch_add(1, Relaxed);
    assert_eq!(lock.is_of_this_process(), Err(Errno::XDEV));
}

/// A copy of an older file over a live one changes nothing but its contents.
#[test]
fn a_file_of_another_boot_over_a_live_one_is_noticed() {
    let place = Place::new();
    let lock = place.open().expect("made");
    let watched = lock.lock_file().expect("read");
    assert_eq!(watched.still_there(), Ok(()));
    let file = File::options().write(true).open(place.lock()).expect("ours");
    file.write_all_at(&[0x5a; 16], (ORIGIN_AT as u64 + 1) * 4).expect("written");
    assert!(matches!(watched.still_there(), Err(SharedError::Replaced { .. })));
}

#[test]
fn a_file_that_was_removed_and_made_anew_is_not_taken_for_the_first() {
    let place = Place::new();
    let first = place.open().expect("made");
    fs::remove_file(place.lock()).expect("ours");
    let second = SharedLock::open_exclusive(&place.lock(), &place.device()).expect("made anew");
    assert!(super::presence::is_at(second.file(), second.path()));
    assert!(!super::presence::is_at(first.file(), first.path()));
}

#[test]
fn the_rights_follow_the_device_once_nobody_has_the_lock() {
    let place = Place::new();
    let mode = || fs::metadata(place.lock()).expect("there").mode() & 0o777;
    drop(place.open().expect("made"));
    place.device_mode(0o666);
    drop(place.open().expect("found"));
    assert_eq!(mode(), 0o666);
}

#[test]
fn the_rights_of_a_chips_lock_follow_the_device_too() {
    let place = Place::new();
    drop(place.open().expect("made"));
    let locks = ChipLocks::Beside { lock: place.lock(), like: place.device() };
    let mode = || {
        let path = place.directory.path().join("lock.cs0");
        fs::metadata(path).expect("there").mode() & 0o777
    };
    drop(locks.open(0).expect("made"));
    let before = mode();
    place.device_mode(0o666);
    drop(locks.open(0).expect("found"));
    assert_eq!((before == 0o666, mode()), (false, 0o666));
}
