//! A flash that is hammered and a touch screen, at once: Jander's test of the sync path.
//!
//! One processor. A thread of low priority reads a NOR flash in chunks, and now and then programs a
//! page and reads it back; a thread of high priority is woken by PENIRQ and samples the pen through an
//! urgent device. The flash data and the pen positions are both checked. The time from PENIRQ's fall
//! to the sample is a reviewed table: with no thread at the flash, with both on one bus, with a bus
//! for each.
//!
//! On one bus a sample waits only for the message that is on the wire when the sample is requested: an
//! urgent device gets the bus next. So the worst case is the idle one's and the longest flash message,
//! which is the chunk's clocks, and what the hand-over costs.
//!
//! Set `BAREWIRE_BLESS=1` to write the table anew, then review the difference.

use std::cell::Cell;
use std::fmt::Write as _;

use barewire::chip::spi_nor::SpiNor;
use barewire::spi::Settings;
use barewire_sim::BoardOptions;
use barewire_sim::engine::Thread;

use super::*;

const FLASH_HZ: u32 = 20_000_000;
const STROKES: u32 = 40;
/// The bytes that are read, again and again.
const READ_BYTES: usize = 64 << 10;
/// Erased, and programmed page by page.
const PROGRAM_AT: usize = 1 << 20;
const PAGE: usize = 256;
/// Reads to one program.
const READS_PER_PROGRAM: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Idle,
    OneBus { chunk: usize },
    TwoBuses { chunk: usize },
}

impl Load {
    fn chunk(self) -> Option<usize> {
        match self {
            Self::Idle => None,
            Self::OneBus { chunk } | Self::TwoBuses { chunk } => Some(chunk),
        }
    }
}

/// The result of a load.
struct Measurement {
    /// From PENIRQ's fall to the sample, in order of size.
    latency_ps: Vec<Ps>,
    /// The longest flash call that is a single message, measured alone.
    message_ps: Ps,
    flash_bytes: u64,
    programs: u64,
    ps: Ps,
}

impl Measurement {
    fn p50_ps(&self) -> Ps {
        self.latency_ps[(self.latency_ps.len() - 1) / 2]
    }

    fn max_ps(&self) -> Ps {
        self.latency_ps[self.latency_ps.len() - 1]
    }
}

fn pattern(index: usize) -> u8 {
    (index * 7 + index / 251) as u8
}

/// Pens that land at arbitrary moments, move a little, and leave.
fn strokes(from_ps: Ps) -> Vec<Stroke> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % end
    };
    let mut at = from_ps;
    (0..STROKES)
        .map(|_| {
            let down_ps = at + 4 * MS + below(MS);
            at = down_ps + 3 * MS;
            let from = [0; 2].map(|_| 16_384 + below(32_768) as u16);
            let to = from.map(|from| from + below(8_192) as u16);
            Stroke { down_ps, up_ps: at, from, to, ohms: 200 + below(800) as u32 }
        })
        .collect()
}

/// The touch is where the pen was during the sample that ended `now`.
fn check(touch: &Touch, stroke: &Stroke, now: Ps) {
    let begun = stroke.at(now.saturating_sub(450 * US));
    for (axis, code) in [touch.x, touch.y].into_iter().enumerate() {
        let (low, high) = (begun[axis] / 16 - 4, stroke.at(now)[axis] / 16 + 4);
        assert!((low..=high).contains(&code), "{touch:?} {stroke:?}: {low} to {high}");
    }
    // If the pen leaves while its pressure is sampled, the position is right, and any pressure may
    // come.
    let whole = now < stroke.up_ps;
    assert!(
        !whole || touch.ohms.abs_diff(stroke.ohms) <= 10 + stroke.ohms / 50,
        "{touch:?} {stroke:?}"
    );
}

fn run(load: Load) -> Measurement {
    let board = crate::board("imx8mp");
    let other = board.beside(board.spec(), BoardOptions::default());
    let flash_board = if matches!(load, Load::TwoBuses { .. }) { &other } else { &board };
    let (chip, line) = board.attach_touch(None).expect("the board has one");
    let mut content = vec![0xff; (board.spec().flash().part)().size];
    content[..READ_BYTES].iter_mut().enumerate().for_each(|(at, byte)| *byte = pattern(at));
    let flash = flash_board.attach_flash(Some(content)).expect("the part's size");
    let (touch_bus, other_bus) = (bus(&board), bus(&other));
    let flash_bus = if matches!(load, Load::TwoBuses { .. }) { &other_bus } else { &touch_bus };
    let engine = board.engine();

    let settings = Settings::new(board.spec().flash().cs, FLASH_HZ);
    let device = flash_bus.device(&settings).expect("opens");
    let mut nor = SpiNor::new(device, flash_board.timer()).expect("identifies");
    let mut buffer = vec![0; load.chunk().unwrap_or(1)];
    nor.read(0, &mut buffer).expect("reads");
    let begun = engine.now_ps();
    nor.read(0, &mut buffer).expect("reads");
    let message_ps = engine.now_ps() - begun;

    let strokes = strokes(engine.now_ps());
    strokes.iter().for_each(|&stroke| chip.borrow().add_stroke(stroke));
    let (latency, over) = (RefCell::new(Vec::new()), Cell::new(false));
    let (flash_bytes, programs) = (Cell::new(0), Cell::new(0));
    let begun = engine.now_ps();
    let flash_thread = Thread::new("flash", || {
        let Some(chunk) = load.chunk() else { return };
        let mut page = [0; PAGE];
        for round in 0.. {
            if over.get() {
                break;
            }
            let at = round * chunk % READ_BYTES;
            nor.read(at as u64, &mut buffer).expect("reads");
            assert!(buffer.iter().zip(at..).all(|(&byte, at)| byte == pattern(at)), "at {at:#x}");
            flash_bytes.set(flash_bytes.get() + chunk as u64);
            if round % READS_PER_PROGRAM == 0 {
                let at = PROGRAM_AT + programs.get() as usize * PAGE;
                let new: [u8; PAGE] = std::array::from_fn(|index| pattern(at + index) ^ 0x5a);
                nor.program_only(at as u64, &new).expect("programs");
                nor.read(at as u64, &mut page).expect("reads");
                assert!(page == new, "at {at:#x}");
                programs.set(programs.get() + 1);
            }
        }
    });
    let touch_thread = Thread::new("touch", || {
        let mut touch = driver(&touch_bus);
        let mut timer = board.timer();
        for stroke in &strokes {
            assert!(line.wait(None));
            let mut first = true;
            let served = touch.service(
                &mut timer,
                || line.is_high(),
                |touch| {
                    let now = engine.now_ps();
                    check(touch, stroke, now);
                    if std::mem::take(&mut first) {
                        latency.borrow_mut().push(now - stroke.down_ps);
                    }
                    ControlFlow::Continue(())
                },
            );
            let served = served.expect("goes through");
            assert!(!first && served.touches >= 1, "{served:?}");
        }
        over.set(true);
    });
    engine.run(vec![flash_thread.on(0, 1), touch_thread.on(0, 9)]);

    // If a polling thread loses its processor in a burst, the SPI clock pauses, which does no harm.
    for board in [&board, &other] {
        let harm: Vec<_> = board.violations();
        let harm: Vec<_> = harm.iter().filter(|one| one.rule.harms()).collect();
        assert!(harm.is_empty(), "{harm:#?}");
    }
    let programmed = programs.get() as usize * PAGE;
    let flash = flash.borrow();
    let programmed = &flash.content()[PROGRAM_AT..PROGRAM_AT + programmed];
    assert!(programmed.iter().zip(PROGRAM_AT..).all(|(&byte, at)| byte == pattern(at) ^ 0x5a));
    let mut latency_ps = latency.into_inner();
    assert_eq!(latency_ps.len(), STROKES as usize, "no pen is missed");
    latency_ps.sort_unstable();
    let ps = engine.now_ps() - begun;
    Measurement {
        latency_ps,
        message_ps,
        flash_bytes: flash_bytes.get(),
        programs: programs.get(),
        ps,
    }
}

/// The clocks of a flash read: opcode, four bytes of address, the chunk.
fn clocks_ps(chunk: usize) -> Ps {
    (5 + chunk as u64) * 8 * (1_000_000_000_000 / u64::from(FLASH_HZ))
}

/// The cost of waiting for the bus instead of finding it idle: to sleep, to be woken, and a switch to
/// the holder and back.
fn hand_over_ps() -> Ps {
    let costs = crate::board("imx8mp").profile().thread_costs();
    costs.futex_call_ps + costs.wake_call_ps + 2 * costs.context_switch_ps
}

fn row(text: &mut String, name: &str, measured: &Measurement, bound_ps: Ps) {
    let us = |ps: Ps| ps as f64 / US as f64;
    let Measurement { message_ps, flash_bytes, programs, ps, .. } = *measured;
    let kib_per_s = flash_bytes as f64 / 1_024.0 / (ps as f64 / 1e12);
    let message = if flash_bytes == 0 { 0.0 } else { us(message_ps) };
    let (p50, max, bound) = (us(measured.p50_ps()), us(measured.max_ps()), us(bound_ps));
    let _ = writeln!(
        text,
        "{name:<24}{p50:>8.1}{max:>9.1}{bound:>9.1}{message:>15.1}{kib_per_s:>9.0}{programs:>10}"
    );
}

#[test]
fn touch_latency_is_bounded_by_one_flash_message() {
    let idle = run(Load::Idle);
    let mut text = format!(
        "\
A touch screen (TSC2046 at 1 MHz, a sample is one transfer of {BYTES} bytes) beside a NOR flash at 20 MHz,
on one processor of imx8mp: the touch thread above the flash thread, its device urgent. simulated, with
the profile's costs. latency: from PENIRQ's fall to the sample, {STROKES} pens; bound: the idle maximum, and on
one bus the longest flash message and a hand-over. Data is checked on both sides of every row.

                          latency, us             longest flash    reads  programs
                             p50      max    bound   message, us    KiB/s   in all
"
    );
    row(&mut text, "flash idle", &idle, idle.max_ps());
    for chunk in [512, 4_096] {
        let one = run(Load::OneBus { chunk });
        let two = run(Load::TwoBuses { chunk });
        // The chunk's clocks, and the little that there is between them, are the message.
        let clocks_ps = clocks_ps(chunk);
        assert!((clocks_ps..=clocks_ps + clocks_ps / 25).contains(&one.message_ps), "{chunk}");
        let bound_ps = idle.max_ps() + one.message_ps + hand_over_ps();
        row(&mut text, &format!("one bus, {chunk} a read"), &one, bound_ps);
        assert!(one.max_ps() <= bound_ps, "{text}");
        assert!(one.max_ps() > idle.max_ps() + one.message_ps / 2, "they met: {text}");
        // The switch is from a thread, where it was from an idle processor before.
        let bound_ps = idle.max_ps() + hand_over_ps();
        row(&mut text, &format!("two buses, {chunk} a read"), &two, bound_ps);
        assert!(two.max_ps() <= bound_ps, "{text}");
        for measured in [&one, &two] {
            assert!(measured.programs > 10 && measured.flash_bytes > 0, "hammered: {text}");
        }
    }
    crate::snapshot::check("touch.txt", &text);
}
