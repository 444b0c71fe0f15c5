//! Lines between a chip's pins and a board's pads, and what a chip may call while it is called.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use barewire::spi::{Settings, Transfer};
use barewire_sim::board::boards;
use barewire_sim::board::{ChipLines, LineError};
use barewire_sim::chip::{Chip, Clocking, NO_LIMITS, OutputPin, Pin, Ps, WireLimits};
use barewire_sim::engine::Thread;
use barewire_sim::wire::{Driver, Run, Wire};
use barewire_sim::{Board, Pad, Rule, bring_up};
use embedded_hal::digital::{InputPin, OutputPin as _};

/// Notes the level of D/C for each run of bits, and every edge; asserts INT at the end of a selection.
#[derive(Default)]
struct Noting {
    dc: Option<bool>,
    edges: Vec<(&'static str, bool, Ps)>,
    runs: Vec<(u32, bool)>,
    int: Rc<OutputPin>,
}

impl Chip for Noting {
    fn name(&self) -> &'static str {
        "noting"
    }

    fn limits(&self) -> WireLimits {
        NO_LIMITS
    }

    fn pins(&self) -> Vec<Pin> {
        vec![
            Pin::Input("D/C"),
            Pin::Input("RESET"),
            Pin::ActiveLow("INT", self.int.clone()),
            Pin::ActiveHigh("BUSY", self.int.clone()),
        ]
    }

    fn set_pin(&mut self, pin: &'static str, level: bool, at: Ps) {
        self.edges.push((pin, level, at));
        if pin == "D/C" {
            self.dc = Some(level);
        }
    }

    fn select(&mut self, _at: Ps) {}

    fn deselect(&mut self, at: Ps) {
        self.int.set_at(true, at + 3_000_000);
        self.int.set_at(false, at + 90_000_000);
    }

    fn exchange(&mut self, _clocking: Clocking, _mosi: u32, bits: u32) -> u32 {
        self.runs.push((bits, self.dc.expect("connected")));
        0
    }
}

/// The first pads of the board's first block that are no chip selects.
fn free_pads<const N: usize>(board: &Board) -> [Pad; N] {
    let taken = |bit| {
        let driver = Driver::Gpio { block: 0, bit };
        board.spec().cs.iter().any(|cs| cs.driver == driver)
    };
    let mut free = (0..8).filter(|&bit| !taken(bit)).map(|bit| Pad { block: 0, bit });
    std::array::from_fn(|_| free.next().expect("enough pads"))
}

#[test]
fn every_board_drives_and_reads_a_chips_pins_at_its_own_cost() {
    for spec in boards() {
        let settings = Settings::new(0, 1_000_000);
        let [dc, int, busy] = free_pads(&crate::board(spec.name));
        let lines = [("d/c", dc), ("INT", int), ("busy", busy)];
        let bench =
            bring_up::bench(spec.name, &settings, Noting::default(), &lines).expect("lines");
        let mut pin = bench.output(dc, false);
        let (mut int, mut busy) = (bench.input(int), bench.input(busy));
        let engine = bench.board.engine().clone();
        let device = bench.device();
        let write = |byte| device.device().sync(&mut [Transfer::write(&[byte])]).expect("sends");

        assert!(int.is_high().unwrap() && busy.is_low().unwrap(), "{}", spec.name);
        let before_ps = engine.now_ps();
        pin.set_low().unwrap();
        assert!(engine.now_ps() > before_ps, "{}: an edge costs", spec.name);
        write(1);
        pin.set_high().unwrap();
        let risen_at = engine.now_ps();
        write(2);
        let sent_at = engine.now_ps();
        let before_ps = engine.now_ps();
        let _ = busy.is_high();
        assert!(engine.now_ps() > before_ps, "{}: a look costs", spec.name);
        while busy.is_low().unwrap() {}
        assert!(int.is_low().unwrap(), "{}: INT is active low", spec.name);
        while busy.is_high().unwrap() {}
        assert!(int.is_high().unwrap() && engine.now_ps() > sent_at, "{}", spec.name);

        let chip = bench.chip.borrow();
        assert_eq!(chip.runs, [(8, false), (8, true)], "{}", spec.name);
        let (last, at) = chip.edges.last().map(|&(_, level, at)| (level, at)).expect("edges");
        assert!(last && at > 0 && at <= risen_at, "{}: {at} {risen_at}", spec.name);
        drop(chip);
        bench.assert_clean();
    }
}

#[test]
fn a_thread_waits_for_a_chips_pin() {
    let board = crate::board("imx8mp");
    let [int] = free_pads(&board);
    let chip = Rc::new(RefCell::new(Noting::default()));
    let lines = board.attach_with_lines(0, chip.clone(), &[("INT", int)]).expect("connects");
    assert!(lines.interrupt("BUSY").is_none(), "not connected");
    let line = lines.interrupt("int").expect("connected").clone();
    let pin = chip.borrow().int.clone();
    let came_at = Rc::new(Cell::new(None));
    let (noted, waiting) = (came_at.clone(), board.clone());
    let handler = Thread::new("handler", move || {
        if line.wait(None) {
            noted.set(Some((line.risen_at(), waiting.engine().now_ps())));
        }
    });
    // Only this thread's call can reach the handler, because nothing is due on the wire or in the
    // chip.
    let acting = board.clone();
    let test = Thread::new("test", move || {
        acting.engine().spend_ps(5_000_000);
        pin.set_at(true, 8_000_000);
        acting.engine().spend_ps(100_000_000);
    });
    board.engine().run(vec![handler.interrupt(0), test]);
    let latency_ps = board.profile().interrupt_latency_ps.value;
    assert_eq!(came_at.get(), Some((Some(8_000_000), 8_000_000 + latency_ps)));
}

#[test]
fn bits_before_an_edge_are_exchanged_under_the_old_level() {
    let mut wire = Wire::new(Default::default());
    let cs = wire.add_line(Driver::Native(0), false);
    let dc = Driver::Gpio { block: 0, bit: 3 };
    assert!(!wire.connect(cs, "D/C", dc, false, 0), "there is no chip yet");
    let chip = Rc::new(RefCell::new(Noting::default()));
    wire.attach(cs, chip.clone());
    assert!(wire.connect(cs, "D/C", dc, false, 0));
    wire.set_line(cs, false, 0);
    let clocking = Clocking { at: 1_000, period: 100 };
    wire.begin_run(Run { clocking, mode: 0, bits: 8, mosi: 0, loopback: false });
    // The third bit is sampled at 1,250.
    wire.drive(dc, true, 1_260);
    wire.drive(dc, true, 1_300);
    wire.end_run();
    assert_eq!(chip.borrow().runs, [(3, false), (5, true)]);
    assert_eq!(chip.borrow().edges, [("D/C", false, 0), ("D/C", true, 1_260)]);
}

#[test]
fn an_edge_is_in_the_recording_and_in_the_hash() {
    let hash = |edge: bool| {
        let settings = Settings::new(0, 1_000_000);
        let pad = Pad { block: 0, bit: 24 };
        let lines = [("RESET", pad)];
        let bench = bring_up::bench("rpi3", &settings, Noting::default(), &lines).expect("lines");
        let mut reset = bench.output(pad, false);
        let _ = bench.finish();
        let before = bench.board.trace_hash();
        if edge {
            reset.set_high().unwrap();
        }
        let vcd = String::from_utf8(bench.finish().capture.vcd).expect("text");
        let code = vcd.lines().find_map(|line| line.strip_suffix(" cs0_reset $end"));
        let code = code.and_then(|line| line.chars().last()).expect("declared");
        assert_eq!(vcd.lines().any(|line| line == format!("1{code}")), edge, "{vcd}");
        bench.board.trace_hash() != before
    };
    assert_eq!([hash(false), hash(true)], [false, true]);
}

#[test]
fn lines_that_cannot_be_connected() {
    let board = crate::board("imx8mp");
    let [free, other, third] = free_pads(&board);
    let attach = |cs, lines: &[(&str, Pad)]| -> Result<ChipLines, LineError> {
        board.attach_with_lines(cs, Rc::new(RefCell::new(Noting::default())), lines)
    };
    let refused = |cs, lines: &[(&str, Pad)]| attach(cs, lines).expect_err("refused");
    let absent = Pad { block: 9, bit: 0 };
    let beyond = Pad { block: 0, bit: 32 };
    let Some(Driver::Gpio { block, bit }) = board
        .spec()
        .cs
        .iter()
        .map(|cs| cs.driver)
        .find(|driver| matches!(driver, Driver::Gpio { .. }))
    else {
        panic!("a chip select by GPIO")
    };
    let cs = Pad { block, bit };
    assert_eq!(refused(30, &[]), LineError::NoChipSelect(30));
    assert_eq!(refused(0, &[("INT", free), ("BUSSY", other)]), LineError::NoPin(1));
    assert_eq!(refused(0, &[("INT", free), ("int", other)]), LineError::Twice(1));
    assert_eq!(refused(0, &[("INT", absent)]), LineError::NoPad(absent));
    assert_eq!(refused(0, &[("INT", beyond)]), LineError::NoPad(beyond));
    assert_eq!(refused(0, &[("D/C", cs)]), LineError::ChipSelect(cs));
    assert_eq!(refused(0, &[("INT", free), ("BUSY", free)]), LineError::Driven(free));
    assert_eq!(refused(0, &[("INT", free), ("D/C", free)]), LineError::Driven(free));
    assert!(!board.has_chip(0), "nothing was attached");

    attach(0, &[("INT", free), ("D/C", other), ("RESET", other)]).expect("inputs may share a pad");
    assert_eq!(refused(1, &[("RESET", free)]), LineError::Driven(free));
    assert_eq!(refused(1, &[("INT", other)]), LineError::Driven(other));
    for _ in 0..15 {
        attach(1, &[("D/C", third), ("RESET", third)]).expect("room");
    }
    assert_eq!(refused(1, &[("D/C", third)]), LineError::TooMany);
}

/// Asks its board for the violations whenever it is called, and complains of every call.
struct Curious {
    board: Board,
    asked: Cell<u32>,
    complaints: u32,
}

impl Curious {
    fn ask(&self) {
        let violations = self.board.violations();
        assert_eq!(self.board.violations_total(), violations.len() as u64);
        assert_eq!(self.board.harms_total(), violations.len() as u64);
        self.asked.set(self.asked.get() + 1);
    }
}

impl Chip for Curious {
    fn name(&self) -> &'static str {
        self.ask();
        "curious"
    }

    fn limits(&self) -> WireLimits {
        self.ask();
        NO_LIMITS
    }

    fn pins(&self) -> Vec<Pin> {
        self.ask();
        vec![Pin::Input("RESET")]
    }

    fn set_pin(&mut self, _pin: &'static str, _level: bool, _at: Ps) {
        self.ask();
    }

    fn select(&mut self, _at: Ps) {
        self.ask();
        self.complaints += 1;
    }

    fn deselect(&mut self, _at: Ps) {
        self.ask();
    }

    fn exchange(&mut self, _clocking: Clocking, _mosi: u32, _bits: u32) -> u32 {
        self.ask();
        0
    }

    fn take_complaint(&mut self) -> Option<String> {
        self.ask();
        self.complaints = self.complaints.checked_sub(1)?;
        Some("selected".into())
    }
}

#[test]
fn violations_may_be_asked_for_at_the_worst_moment() {
    let board = crate::board("rpi3");
    let curious = Curious { board: board.clone(), asked: Cell::new(0), complaints: 0 };
    let chip = Rc::new(RefCell::new(curious));
    let reset = Pad { block: 0, bit: 24 };
    // 1. Inside every call of a chip.
    board.attach_with_lines(0, chip.clone(), &[("RESET", reset)]).expect("connects");
    bring_up::output(&board, reset, false).set_high().unwrap();
    let bus = bring_up::bus(&board);
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("opens");
    device.sync(&mut [Transfer::write(&[1, 2])]).expect("sends");
    assert!(chip.borrow().asked.get() >= 8, "{}", chip.borrow().asked.get());
    // 2. The answer is held across a message.
    let held = board.violations();
    device.sync(&mut [Transfer::write(&[3])]).expect("sends");
    assert_eq!([held.len(), board.violations().len()], [1, 2]);
    // 3. While the test has borrowed the chip. The chip keeps the complaint for later.
    {
        let mut borrowed = chip.borrow_mut();
        borrowed.complaints += 1;
        assert_eq!(board.violations().len(), 2);
        board.clear_violations();
        assert_eq!(board.violations_total(), 0);
    }
    let rules: Vec<Rule> = board.violations().iter().map(|one| one.rule).collect();
    assert_eq!(rules, [Rule::Chip], "the rule is reported once the borrow has ended");
    // 4. While another thread's message runs.
    let (asking, seen) = (board.clone(), Rc::new(Cell::new(0)));
    let noted = seen.clone();
    let sending = board.clone();
    board.engine().run(vec![
        Thread::new("sends", move || {
            let bus = bring_up::bus(&sending);
            let device = bus.device(&Settings::new(0, 1_000_000)).expect("opens");
            device.sync(&mut [Transfer::write(&[0; 64])]).expect("sends");
        }),
        Thread::new("asks", move || {
            for _ in 0..100 {
                asking.engine().spend_ps(5_000_000);
                noted.set(noted.get() + asking.violations().len());
            }
        }),
    ]);
    assert!(
        seen.get() > 100,
        "the second complaint was seen while the message ran: {}",
        seen.get()
    );
}

#[test]
#[should_panic(expected = "the chip on cs0 is borrowed while the wire calls it")]
fn a_chip_that_is_borrowed_while_it_is_called_is_named() {
    let settings = Settings::new(0, 1_000_000);
    let bench = bring_up::bench("rpi3", &settings, Noting::default(), &[]).expect("sets up");
    let _borrowed = bench.chip.borrow();
    let _ = bench.device().device().sync(&mut [Transfer::write(&[1])]);
}

#[test]
#[should_panic(expected = "1 violations:")]
fn a_complaint_fails_a_test() {
    let board = crate::board("rpi3");
    let curious = Curious { board, asked: Cell::new(0), complaints: 0 };
    let bench =
        bring_up::bench("rpi3", &Settings::new(0, 1_000_000), curious, &[]).expect("sets up");
    let _ = bench.device().device().sync(&mut [Transfer::write(&[1])]);
    bench.assert_clean();
}
