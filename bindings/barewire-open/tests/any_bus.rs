//! Buses by name, used and closed from several threads.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake};
use std::thread;
use std::time::Duration;

use barewire::chip::spi_nor::SpiNor;
use barewire::middleware::{Fault, When};
use barewire::spi::{Error, Mode, Settings, Transfer};
use barewire::time::Timer;
use barewire::trace::Event;
use barewire_open::{AnyBus, AnyDevice, Layers, LocalBus, OpenError, OpenOptions, name};

const ID: [u8; 4] = [0x9f, 0, 0, 0];

fn try_open(text: &str, tell: &mut dyn FnMut(&str)) -> Result<AnyBus, OpenError> {
    let name = name::parse(text).map_err(OpenError::Name)?;
    AnyBus::open_with(&name, OpenOptions::default(), tell)
}

fn open(name: &str) -> AnyBus {
    try_open(name, &mut |note| panic!("{note}")).expect(name)
}

fn flash(bus: &AnyBus) -> AnyDevice {
    bus.device(&Settings::new(0, 20_000_000)).expect("a device")
}

fn id(device: &AnyDevice) -> Result<[u8; 4], Error> {
    let mut id = [0; 4];
    let ran = device.device().sync(&mut [Transfer::exchange(&ID, &mut id)]);
    ran.map(|_| id).map_err(|error| error.error)
}

#[test]
fn threads_share_a_simulated_board() {
    let bus = open("sim:imx8mp");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let device = flash(&bus);
            thread::spawn(move || {
                for _ in 0..100 {
                    assert_eq!(id(&device), Ok([0xff, 0xef, 0x40, 0x19]));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let figures = bus.simulated().expect("it is simulated");
    assert_eq!((figures.bits, figures.violations), (400 * 32, 0));
}

#[test]
fn a_chip_driver_uses_the_boards_time() {
    let bus = open("sim:imx8mp");
    let device = flash(&bus);
    let before = bus.simulated().expect("simulated").virtual_ns;
    let mut flash = SpiNor::new(device.device(), bus.timer()).expect("a flash chip");
    let mut block = [0; 4096];
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    flash.write(0, &[1, 2, 3], &mut block, go_on).expect("written");
    let mut read = [0; 3];
    flash.read(0, &mut read).expect("read");
    assert_eq!(read, [1, 2, 3]);
    let took = bus.simulated().expect("simulated").virtual_ns - before;
    assert!(
        took > 100_000,
        "programming takes a part of a millisecond of the board's time, not {took} ns"
    );
}

#[test]
fn a_pause_of_the_program_is_the_boards_too_unless_it_is_short() {
    let bus = open("sim:imx8mp");
    let device = flash(&bus);
    id(&device).expect("an id");
    let now = || bus.simulated().expect("simulated").virtual_ns;
    let (before, pause) = (now(), Duration::from_millis(30));
    thread::sleep(pause);
    id(&device).expect("an id");
    let passed = now() - before;
    assert!(passed >= 30_000_000, "{passed}");
}

#[test]
fn a_steady_board_does_not_hear_of_a_pause() {
    let bus = open("sim:imx8mp");
    let device = flash(&bus);
    let figures = || bus.simulated().expect("simulated").virtual_ns;
    let timed = |pause| {
        let before = figures();
        thread::sleep(pause);
        id(&device).expect("an id");
        figures() - before
    };
    id(&device).expect("an id");
    let steady = bus.steady();
    let both = bus.steady();
    let plain = timed(Duration::ZERO);
    // The board counts in picoseconds, so that a rounded difference may differ by one.
    let is_plain = |ns: u64| ns.abs_diff(plain) <= 1;
    assert!(is_plain(timed(Duration::from_millis(30))));
    drop(both);
    assert!(is_plain(timed(Duration::from_millis(30))));
    drop(steady);
    assert!(timed(Duration::from_millis(30)) >= 30_000_000, "it hears of them again");
}

#[test]
fn calls_one_after_the_other_take_the_same_time_in_each_run() {
    let run = || {
        let bus = open("sim:rpi3");
        let mut timer = bus.timer();
        timer.wait_ticks(1_000);
        bus.simulated().expect("simulated").virtual_ns
    };
    // On a busy machine the program itself may pause for a millisecond, which the board hears of.
    let mut runs: Vec<_> = (0..20).map(|_| run()).collect();
    runs.sort_unstable();
    assert_eq!(runs[0], runs[1], "{runs:?}");
}

#[test]
fn a_closed_bus_fails_and_releases_its_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("chip.bin");
    let name = format!("sim:imx8mp,flash={}", file.display());
    let mut notes = Vec::new();
    let bus = try_open(&name, &mut |note| notes.push(note.to_owned())).expect("opened");
    assert!(notes[0].contains("did not exist"), "{notes:?}");
    let device = flash(&bus);
    id(&device).expect("an id");
    let in_use = AnyBus::open(&name).expect_err("one owner at a time");
    assert!(in_use.to_string().contains("in use by another process"), "{in_use}");
    bus.close().expect("closed");
    bus.close().expect("the second call does nothing");
    assert!(bus.is_closed());
    let closed = Error::Os { errno: libc::ESHUTDOWN };
    assert_eq!(id(&device), Err(closed));
    assert_eq!(bus.device(&Settings::new(0, 1_000_000)).map(drop), Err(closed));
    try_open(&name, &mut |note| panic!("{note}")).expect("it is free, with devices still there");
}

/// A device with such settings once closed the bus.
#[test]
fn settings_that_no_chip_of_a_board_has_are_served_as_any() {
    for board in barewire_sim::board::boards() {
        let bus = open(&format!("sim:{}", board.name));
        let settings = Settings::new(u8::MAX, 1_000_000).with_mode(Mode::NO_CS);
        let device = bus.device(&settings).expect("a device");
        let mut rx = [0; 4];
        let ran = device.device().sync(&mut [Transfer::exchange(&[1, 2, 3, 4], &mut rx)]);
        assert_eq!((board.name, ran), (board.name, Ok(4)));
        assert_eq!(bus.simulated().expect("simulated").bits, 32, "{}", board.name);
    }
}

#[test]
fn a_bus_is_closed_while_others_use_it() {
    for name in ["null:", "sim:rpi3"] {
        let bus = open(name);
        let ran = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (device, ran) = (flash(&bus), Arc::clone(&ran));
                thread::spawn(move || {
                    loop {
                        match id(&device) {
                            Ok(_) => drop(ran.fetch_add(1, Ordering::Relaxed)),
                            Err(error) => return error,
                        }
                    }
                })
            })
            .collect();
        while ran.load(Ordering::Relaxed) < 100 {
            thread::yield_now();
        }
        bus.close().expect("closed");
        for thread in threads {
            let ended = thread.join().expect("no panic");
            assert_eq!(ended, Error::Os { errno: libc::ESHUTDOWN }, "{name}");
        }
    }
}

#[test]
fn closing_under_ones_own_lock_says_so_by_what_fails() {
    let bus = open("null:");
    let device = flash(&bus);
    let locked = bus.lock();
    bus.close().expect("closed");
    drop(locked);
    assert_eq!(id(&device), Err(Error::Os { errno: libc::ESHUTDOWN }));
}

#[test]
fn a_closed_board_keeps_its_figures_and_its_time() {
    let bus = open("sim:imx8mp");
    let (device, mut timer) = (flash(&bus), bus.timer());
    id(&device).expect("an id");
    timer.wait_ticks(5_000);
    bus.close().expect("closed");
    let figures = bus.simulated().expect("simulated");
    assert_eq!(figures.bits, 32);
    assert_eq!(timer.now_ticks(), figures.virtual_ns);
    timer.wait_ticks(1);
    assert_eq!(timer.now_ticks(), figures.virtual_ns);
}

#[test]
fn faults_and_a_stop_are_layers_of_any_bus() {
    static STOPPED: AtomicBool = AtomicBool::new(false);
    for text in ["null:", "sim:imx8mp"] {
        STOPPED.store(false, Ordering::Relaxed);
        let layers = Layers {
            fault: Some((Fault::StuckHigh, When::Transfer(1))),
            stop: Some(|| STOPPED.load(Ordering::Relaxed)),
            trace: None,
        };
        let options = OpenOptions { layers, ..OpenOptions::default() };
        let name = name::parse(text).expect(text);
        let bus = AnyBus::open_with(&name, options, &mut |note| panic!("{note}")).expect(text);
        let device = flash(&bus);
        let first = id(&device);
        assert_ne!(first, Ok([0xff; 4]), "{text}");
        assert_eq!(id(&device), Ok([0xff; 4]), "{text}");
        assert_eq!(id(&device), first, "{text}");
        STOPPED.store(true, Ordering::Relaxed);
        assert!(matches!(id(&device), Err(Error::Timeout { .. })), "{text}");
    }
}

#[test]
fn a_tracer_has_a_boards_time_and_costs_none() {
    let traced = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&traced);
    let trace = Box::new(move |event: &Event<'_>| match *event {
        Event::MessageStart { at_ticks, .. } | Event::MessageDone { at_ticks, .. } => {
            events.lock().expect("no panic").push(at_ticks);
        }
        _ => {}
    });
    let layers = Layers { trace: Some(trace), ..Layers::default() };
    let name = name::parse("sim:imx8mp").expect("a name");
    let options = OpenOptions { layers, ..OpenOptions::default() };
    let mut bus = LocalBus::open_with(&name, options, &mut |note| panic!("{note}")).expect("opens");
    let plain = LocalBus::open_with(&name, OpenOptions::default(), &mut |note| panic!("{note}"));
    let took = [&bus, &plain.expect("opens")].map(|bus| {
        let board = bus.board().expect("simulated");
        let device = bus.bus().device(&Settings::new(0, 20_000_000)).expect("a device");
        device.sync(&mut [Transfer::write(&ID)]).expect("runs");
        board.counted().virtual_ns
    });
    assert_eq!(took[0], took[1]);
    let traced = traced.lock().expect("no panic");
    assert!(matches!(traced[..], [start, done] if start < done && done <= took[0]), "{traced:?}");
    bus.close().expect("closed");
}

#[test]
fn queued_messages_are_run_by_the_worker() {
    let bus = open("sim:imx8mp");
    bus.start_worker().expect("a worker");
    bus.start_worker().expect("the same");
    let device = flash(&bus);
    let device = device.device();
    let mut message = pin!(device.queued(ID).expect("queued"));
    message.as_mut().submit().expect("submitted");
    assert_eq!(message.as_mut().wait(), Some(Ok(4)));
    assert_eq!(message.as_ref().rx(), Ok([0xff, 0xef, 0x40, 0x19]));
    bus.close().expect("the bus closes, and its worker has ended");
}

/// Drops a bus when it is called, and says that it has.
struct DropsBus(Mutex<Option<AnyBus>>, mpsc::Sender<()>);

impl Wake for DropsBus {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().expect("not poisoned").take());
        let _ = self.1.send(());
    }
}

#[test]
fn the_worker_may_drop_the_last_handle_of_its_own_bus() {
    // A message so long that the poll returns before the worker has run it. On a busy machine the
    // worker may still be faster; then the test tries again.
    const BYTES: usize = 65_536;
    for _ in 0..20 {
        let bus = open("sim:rpi3");
        bus.start_worker().expect("a worker");
        let settings = Settings::new(3, 1_000_000).with_mode(Mode::NO_CS);
        let device = bus.device(&settings).expect("a device");
        let device = device.device();
        let tx: &'static [u8] = vec![0; BYTES].leak();
        let message = device.queued_message([Transfer::write(tx)]).expect("queued");
        let mut message = pin!(message);
        let mut running = pin!(message.as_mut().run());
        let (dropped, dropping) = mpsc::channel();
        let waker = Arc::new(DropsBus(Mutex::new(Some(bus)), dropped)).into();
        if running.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            let waited = dropping.recv_timeout(Duration::from_secs(60));
            return waited.expect("the worker came back from the drop");
        }
    }
    panic!("no poll returned before the worker had run the message");
}

#[test]
fn qemu_outlives_the_thread_that_opened_it() {
    let opened = thread::spawn(|| AnyBus::open("qemu:sabrelite"));
    let bus = match opened.join().expect("no panic") {
        Ok(bus) => bus,
        Err(error) if error.to_string().contains("install") => {
            println!("SKIPPED: qemu:sabrelite: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    // A signal at the thread's end would come within this time.
    thread::sleep(Duration::from_millis(100));
    let device = flash(&bus);
    assert_eq!(id(&device).map(|id| id[1..].to_vec()), Ok(vec![0xbf, 0x25, 0x41]));
    bus.close().expect("QEMU ends in order");
    assert_eq!(id(&device), Err(Error::Os { errno: libc::ESHUTDOWN }));
}

#[test]
fn names_that_are_wrong_open_nothing() {
    for (name, part) in [
        ("sim:imx8", "did you mean"),
        ("/dev/spidev0.0", "did you mean \"spidev:/dev/spidev0.0\"?"),
        ("null:x", "the null bus has none"),
        ("", "buses are"),
    ] {
        match AnyBus::open(name) {
            Err(OpenError::Name(text)) => assert!(text.contains(part), "{text}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    match AnyBus::open("spidev:/dev/spidev99.9") {
        Err(OpenError::Os { text, errno: libc::ENOENT }) => {
            assert!(text.contains("/dev/spidev99.9"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}
