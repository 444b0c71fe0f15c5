//! Boards as a driver sees them: what accesses cost and what reaches the chips.

use barewire::reg::Registers;
use barewire::time::Timer;

use super::*;
use crate::engine::Thread;
use crate::model::echo::Echo;
use crate::model::nor::{Nor, Part};
use crate::model::{bcm2835, pl022};

fn board(name: &str, options: BoardOptions) -> Board {
    Board::new(BoardSpec::find(name).unwrap(), options)
}

/// Gives `level` to the GPIO chip select 0 of `board`.
fn drive(board: &Board, level: bool) {
    let Driver::Gpio { block, bit } = board.spec().cs[0].driver else { panic!("no GPIO line") };
    let mut gpio = board.gpio(block).unwrap();
    let pin = 1_u32 << bit;
    let data = if level { pin } else { 0 };
    let kind = board.spec().gpio[usize::from(block)].kind;
    (kind.drive)(&mut |offset, value| gpio.write(offset, value), pin, data);
}

impl crate::model::ByHand for SimRegisters {
    fn read(&mut self, offset: u32) -> u32 {
        Registers::read(self, offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        Registers::write(self, offset, value);
    }
}

/// Exchanges one word of `bits` under the GPIO chip select 0 of `board`; beyond 16 bits, where the
/// controller has no longer words, as words of 16.
fn exchange(board: &Board, bits: u32, word: u32) -> u32 {
    let mut spi = board.controller();
    drive(board, true);
    let exchange = board.spec().kind.exchange;
    let answer = exchange(&mut spi, bits, word, &mut || drive(board, false));
    drive(board, true);
    answer
}

#[test]
fn every_access_costs_its_time_and_is_counted() {
    let board = board("imx8mp", BoardOptions::default());
    let profile = board.profile().clone();
    let around = 4 * 625;
    let mut ecspi = board.controller();
    let mut gpio = board.gpio(0).unwrap();
    assert!(board.gpio(1).is_none());
    let mut spent = 0;
    let mut step = |ps: Ps| {
        spent += ps;
        assert_eq!(board.engine().now_ps(), spent);
    };
    ecspi.read(0x18);
    step(profile.register_read_ps.value + around);
    ecspi.write(0x08, 1);
    step(profile.register_write_ps.value + around);
    gpio.read(0x08);
    step(profile.gpio_read_ps.value + around);
    gpio.write(0x00, 1);
    step(profile.gpio_write_ps.value + around);
    board.cpu_work(16);
    step(10_000);
    // Two reads of 446 ns and two writes of 279 ns among it, at 8 MHz.
    assert_eq!(board.timer().now_ticks(), 11);
    step(profile.timer_read_ps.value);
    let one_each = AccessCounts { reads: 1, writes: 1, barriers: 0 };
    assert_eq!(board.access_counts(), [one_each, one_each]);
    assert_eq!(board.elapsed_ps(), spent);
    board.reset_marks();
    assert_eq!(board.access_counts(), [AccessCounts::default(); 2]);
    assert_eq!((board.elapsed_ps(), board.wire_use()), (0, WireUse::default()));
}

#[test]
fn waits_are_never_shorter_than_asked() {
    for spec in boards() {
        let board = Board::new(spec, BoardOptions::default());
        let mut timer = board.timer();
        let tick_ps = 1_000_000_000_000 / u64::from(timer.frequency_hz());
        for offset in [0, 1, 777, 125_000, 333_334] {
            for ticks in [1, 2, 1000] {
                board.engine().spend_ps(offset);
                let begun = board.engine().now_ps();
                timer.wait_ticks(ticks);
                let waited = board.engine().now_ps() - begun;
                assert!(waited >= ticks * tick_ps, "{waited}");
                assert!(waited <= (ticks + 2) * tick_ps + 2 * timer.read_ps, "{waited}");
            }
        }
        let begun = board.engine().now_ps();
        timer.wait_ticks(0);
        timer.sleep_ns(1_000_000_000);
        assert_eq!(board.engine().now_ps() - begun, 1_000_000_000_000);
    }
}

#[test]
fn a_jump_waits_as_spinning_does() {
    /// The trait's own spinning wait.
    struct Spin(SimTimer);
    impl Timer for Spin {
        fn frequency_hz(&self) -> u32 {
            self.0.frequency_hz()
        }
        fn now_ticks(&mut self) -> u64 {
            self.0.now_ticks()
        }
    }
    let (one, other) =
        (board("imx8mp", BoardOptions::default()), board("imx8mp", BoardOptions::default()));
    one.timer().wait_ticks(10);
    Spin(other.timer()).wait_ticks(10);
    let difference = one.engine().now_ps().abs_diff(other.engine().now_ps());
    assert!(difference <= one.profile().timer_read_ps.value, "{difference}");
}

#[test]
fn a_word_under_a_gpio_chip_select() {
    for spec in boards() {
        let board = Board::new(spec, BoardOptions::default());
        let echo = Rc::new(RefCell::new(Echo::default()));
        assert!(board.attach(0, echo.clone()));
        assert!(!board.attach(9, echo.clone()));
        exchange(&board, 8, 0x5a);
        assert_eq!(exchange(&board, 16, 0x1234) & 0xffff, 0x5a12);
        assert_eq!(echo.borrow().received(), [0x5a, 0x12, 0x34]);
        assert_eq!(board.violations(), []);
        let used = board.wire_use();
        assert_eq!(used.bits, 24);
        assert!(used.span_ps >= used.clock_ps && used.selected_ps > used.span_ps);
        // BCM2835's block rests for a clock after each byte, here between two of them.
        let expected = if *spec.kind == bcm2835::KIND { 24.0 / 25.0 } else { 1.0 };
        assert!((used.bus_use_in_transfers() - expected).abs() < 0.0001, "{used:?}");
        assert!(used.bus_use(board.elapsed_ps()) < 0.9);
    }
}

#[test]
fn the_flashes_tell_their_identity() {
    for spec in boards() {
        let (name, part) = (spec.name, (spec.flash().part)());
        let id = part.jedec_id.iter().fold(0, |id, &byte| id << 8 | u32::from(byte));
        let board = board(name, BoardOptions::default());
        board.attach_flash(None).unwrap();
        // The others' flash is behind a line that the controller itself drives.
        if spec.flash().cs == 0 {
            assert_eq!(exchange(&board, 32, 0x9f00_0000) & 0xff_ffff, id, "{name}");
        }
        assert_eq!(board.violations(), []);
        assert!(board.attach_flash(Some(vec![0; 7])).is_err());
    }
}

#[test]
fn a_flash_behind_a_native_line_tells_its_identity() {
    let board = board("rpi3", BoardOptions::default());
    let part = board.attach_flash(None).unwrap().borrow().part().clone();
    let Driver::Native(line) = board.spec().cs[usize::from(board.spec().flash().cs)].driver else {
        panic!("no native line")
    };
    let mut spi = board.controller();
    spi.write(0x08, 20);
    spi.write(0x00, 1 << 7 | 1 << 5 | 1 << 4 | u32::from(line));
    for byte in [0x9f, 0, 0, 0] {
        spi.write(0x04, byte);
    }
    while spi.read(0x00) & 1 << 16 == 0 {}
    spi.write(0x00, 0);
    let answer: Vec<u8> = (0..4).map(|_| spi.read(0x04) as u8).collect();
    assert_eq!(answer[1..], part.jedec_id[..]);
    assert_eq!(board.violations(), []);
}

#[test]
fn no_chip_reads_ones() {
    let board = board("imx8mp", BoardOptions::default());
    assert_eq!(exchange(&board, 32, 0x9f00_0000), u32::MAX);
    assert_eq!(board.violations(), []);
}

#[test]
fn a_chip_select_released_with_the_last_word_is_seen() {
    let board = board("imx8mp", BoardOptions::default());
    board.attach_flash(None).unwrap();
    let (mut ecspi, mut gpio) = (board.controller(), board.gpio(0).unwrap());
    gpio.write(0x00, 1 << 9);
    gpio.write(0x04, 1 << 9);
    // 156 kHz: half a period is longer than any access.
    let conreg = 0xf1 | 9 << 8 | 31 << 20;
    ecspi.write(0x08, conreg);
    gpio.write(0x00, 0);
    ecspi.write(0x04, 0x9f00_0000);
    ecspi.write(0x08, conreg | 1 << 2);
    while ecspi.read(0x18) & 1 << 3 == 0 {}
    gpio.write(0x00, 1 << 9);
    let rules: Vec<Rule> = board.violations().iter().map(|violation| violation.rule).collect();
    assert!(rules.contains(&Rule::SckIdle) && rules.contains(&Rule::CsHold), "{rules:?}");
    let total = board.violations_total();
    assert_eq!(total, rules.len() as u64);
    board.clear_violations();
    assert_eq!(board.violations_total(), 0);
}

#[test]
fn accesses_to_no_gpio_register() {
    let board = board("imx8mp", BoardOptions::default());
    let mut gpio = board.gpio(0).unwrap();
    assert_eq!(gpio.read(0x84), 0);
    gpio.write(0x88, 1);
    let rules: Vec<Rule> = board.violations().iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::BadAccess; 2]);
}

#[test]
fn a_recording_of_the_identity() {
    let board = board("sabrelite", BoardOptions::default());
    board.attach_flash(None).unwrap();
    assert_eq!(board.take_vcd(), None);
    let silent = board.trace_hash();
    board.start_vcd();
    exchange(&board, 32, 0x9f00_0000);
    let capture = board.take_vcd().unwrap();
    assert_eq!(capture.lost_events, 0);
    assert!(capture.vcd.len() > 500);
    assert_ne!(board.trace_hash(), silent);
    board.start_vcd_limited(1);
    exchange(&board, 32, 0x9f00_0000);
    assert!(board.take_vcd().unwrap().lost_events > 0);
}

/// Two threads take turns at the wire under a lock that spins.
fn turns(seed: u64, jitter_ps: Ps) -> (u64, Ps) {
    let options = BoardOptions { jitter_ps, seed, ..BoardOptions::default() };
    let board = board("imx8mp", options);
    let echo = Rc::new(RefCell::new(Echo::default()));
    board.attach(0, echo.clone());
    let taken = Cell::new(false);
    let thread = |name: &str, word: u32| {
        let (board, taken) = (board.clone(), &taken);
        Thread::new(name, move || {
            for _ in 0..20 {
                while taken.replace(true) {
                    crate::engine::relax_current();
                }
                exchange(&board, 8, word);
                taken.set(false);
                board.cpu_work(300);
            }
        })
    };
    board.engine().run(vec![thread("one", 0x11), thread("two", 0x22)]);
    assert_eq!(echo.borrow().received().len(), 40);
    assert_eq!(board.violations(), []);
    (board.trace_hash(), board.engine().now_ps())
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    assert_eq!(turns(0, 0), turns(1, 0), "without jitter the seed is not used");
    assert_eq!(turns(7, 50_000), turns(7, 50_000));
    assert_ne!(turns(7, 50_000).0, turns(8, 50_000).0);
    assert_ne!(turns(7, 50_000).0, turns(7, 0).0);
}

/// The identity of the flash behind chip select 1 of `board`, which a PL022 or Atmel's SPI drives itself.
fn native_identity(board: &Board, mode: u32) -> Vec<u32> {
    let flash = Nor::new(Part::w25q256jv(), vec![0xff; Part::w25q256jv().size]).unwrap();
    assert!(board.attach(1, Rc::new(RefCell::new(flash))));
    let mut spi = board.controller();
    let words = [0x9f, 0, 0, 0];
    if *board.spec().kind == pl022::KIND {
        spi.write(0x10, 8);
        spi.write(0x00, (mode & 1) << 7 | (mode >> 1) << 6 | 7);
        for word in words {
            spi.write(0x08, word);
        }
        spi.write(0x04, 2);
        while spi.read(0x0c) & 1 << 4 != 0 {}
        words.map(|_| spi.read(0x08)).to_vec()
    } else {
        spi.write(0x04, 0x000d_0011);
        spi.write(0x34, 8 << 8 | 1 << 3 | (!mode & 1) << 1 | mode >> 1);
        spi.write(0x00, 1);
        let answers = words.map(|word| {
            spi.write(0x0c, word);
            while spi.read(0x10) & 1 == 0 {}
            spi.read(0x08) & 0xffff
        });
        while spi.read(0x10) & 1 << 9 == 0 {}
        spi.write(0x00, 1 << 24);
        answers.to_vec()
    }
}

#[test]
fn a_flash_behind_a_native_chip_select() {
    let id = [0xef, 0x40, 0x19];
    for (name, mode, hears) in [
        ("highbank", 3, true),
        // SSPFSSOUT pulses between the words: four commands, none of them whole.
        ("highbank", 0, false),
        ("sama5d36", 0, true),
        ("sama5d36", 3, true),
    ] {
        let board = board(name, BoardOptions::default());
        let answers = native_identity(&board, mode);
        assert_eq!(answers[1..] == id, hears, "{name}, mode {mode}: {answers:x?}");
        assert_eq!(board.violations(), []);
    }
}

#[test]
fn a_board_beside_another_shares_its_time_and_nothing_else() {
    let board = Board::new(BoardSpec::find("imx8mp").unwrap(), BoardOptions::default());
    let other = board.beside(BoardSpec::find("sabrelite").unwrap(), BoardOptions::default());
    assert!(board.attach_touch(None).is_some() && other.attach_touch(None).is_none());
    assert!(board.has_chip(3) && !other.has_chip(0));
    let before = board.engine().now_ps();
    other.controller().read(0x18);
    assert!(board.engine().now_ps() > before);
    assert_eq!(board.access_counts()[0], AccessCounts::default());
    assert_eq!(other.access_counts()[0], AccessCounts { reads: 1, writes: 0, barriers: 0 });
    assert_eq!(other.profile().name, "sabrelite");
}

#[test]
fn an_access_is_put_off_and_what_is_due_comes_before_it() {
    let board = board("imx8mp", BoardOptions::default());
    let line = board.line();
    line.raise_at(40_000_000);
    let handled = Cell::new(0);
    let handler = Thread::new("handler", || {
        while line.wait(None) {
            line.lower();
            handled.set(board.engine().now_ps());
        }
    });
    let app = Thread::new("app", || {
        board.stall_after(1, 100_000_000);
        let mut ecspi = board.controller();
        ecspi.read(0x18);
        assert!(board.is_stall_to_come() && board.engine().now_ps() < 2_000_000);
        ecspi.read(0x18);
        assert!(!board.is_stall_to_come() && handled.get() > 40_000_000);
        assert!((100_000_000..110_000_000).contains(&board.engine().now_ps()));
        ecspi.read(0x18);
        assert!(board.engine().now_ps() < 110_000_000, "one access, no more");
    });
    board.engine().run(vec![app.on(0, 1), handler.interrupt(0)]);
}

#[test]
fn interrupt_lines_are_looked_at_in_no_time() {
    let board = board("imx8mp", BoardOptions::default());
    let mut ecspi = board.controller();
    assert_eq!(board.look_interrupt(), (false, None));
    // 156 kHz, 8 bits, TC enabled.
    ecspi.write(0x08, 0xf1 | 9 << 8 | 7 << 20);
    ecspi.write(0x10, 1 << 7);
    ecspi.write(0x04, 0x9f);
    ecspi.write(0x08, 0xf5 | 9 << 8 | 7 << 20);
    let line = board.line();
    let before = board.engine().now_ps();
    let (level, due) = board.look_interrupt();
    let due = due.unwrap();
    assert!(!level && due > before && line.look() == (false, Some(due)));
    board.engine().spend_ps(due - before);
    for _ in 0..4 {
        if let (false, Some(due)) = board.look_interrupt() {
            board.engine().spend_ps(due.saturating_sub(board.engine().now_ps()));
        }
    }
    assert_eq!(board.look_interrupt(), (true, None));
    line.raise_at(board.engine().now_ps() + 5);
    assert_eq!(line.look(), (false, Some(board.engine().now_ps() + 5)));
    line.raise();
    assert!(line.look().0);
}

#[test]
fn pads_are_named_as_the_chip_selects_on_them() {
    let mut named = 0;
    for spec in boards() {
        for cs in spec.cs {
            let Driver::Gpio { block, bit } = cs.driver else { continue };
            assert_eq!(spec.gpio[usize::from(block)].pad_name(bit), cs.name, "{}", spec.name);
            named += 1;
        }
    }
    assert!(named >= board_names().len());
}
