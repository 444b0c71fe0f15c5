//! A flash read by `dd` while a touch screen on a bus of its own is sampled.
//!
//! *Read first*: David Jander's message of 17 June 2022 in "Optimize spi_sync path": "Hammering the NOR flash and the
//! touchscreen simultaneously works as expected", with no figure; Linux's imx6dl-plym2m.dts for the touch screen;
//! [`super::dd`].
//!
//! # How it works
//! Two controllers, two pumps, one kernel. The screen is sampled every 10 ms, by a thread above `dd` that the timer's
//! interrupt wakes; a sample is one transfer at 1 MHz. Each way is run alone and beside the other. All data is checked:
//! the flash's content, and where the pen is.
//!
//! # Assumed
//! The interrupts, `dd` and the sampling thread have processor 0, the pumps processor 1. A scheduler that moved `dd` to
//! processor 1 would lose less of it to a sample that is polled for 3.4 ms.

use std::cell::{Cell, RefCell};
use std::fmt;

use barewire_sim::BoardOptions;
use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::model::tsc2046::Stroke;

use super::{content, dd};
use crate::error::LabError;
use crate::kernel::imx::Imx;
use crate::kernel::{Kernel, Path, Xfer};
use crate::machine::Machine;

const MS: Ps = 1_000_000_000;
/// ti-tsc2046's.
const INTERVAL_PS: Ps = 10 * MS;
const SAMPLES: u64 = 4;
/// Reads of a flash that is read alone.
const READS: usize = 16;
/// The board of the simulated touch screen: it has ECSPI too.
const TOUCH_BOARD: &str = "imx8mp";
const TOUCH_HZ: u64 = 1_000_000;
/// Y, Z1, Z2 and X by their A2 to A0.
const CHANNELS: [u8; 4] = [1, 3, 4, 5];
/// A conversion is 24 clocks: 700 us to settle are 30 of them, and 5 are averaged.
const SETTLING: usize = 30;
const CONVERSIONS: usize = SETTLING + 5;
/// The pen, in 65,536ths.
const PEN: [u16; 2] = [20_000, 40_000];

/// The result of one of the two ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// The mean time of a read of 512 bytes; 0 if none was made.
    pub read_us: f64,
    /// The longest time from the moment that a sample is due to its data; 0 if none was taken.
    pub sample_us: f64,
}

/// Alone and together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    /// The flash without the touch screen, and the touch screen without the flash.
    pub alone: Way,
    /// Both at once.
    pub beside: Way,
}

impl Beside {
    /// Its numbers, in microseconds.
    #[must_use]
    pub fn values(&self) -> [(&'static str, f64); 4] {
        [
            ("read_us_alone", self.alone.read_us),
            ("read_us_beside", self.beside.read_us),
            ("sample_us_alone", self.alone.sample_us),
            ("sample_us_beside", self.beside.sample_us),
        ]
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { alone, beside } = self;
        write!(
            f,
            "a read {:.1} us alone and {:.1} beside; a sample {:.1} us alone and at most {:.1} beside",
            alone.read_us, beside.read_us, alone.sample_us, beside.sample_us
        )
    }
}

/// Runs each alone and both together; `machine` makes a new machine for each.
///
/// # Errors
/// If there is no machine.
///
/// # Panics
/// If what was read is wrong, or a rule of a wire is broken.
pub fn run(
    machine: impl Fn() -> Result<Machine, LabError>,
    path: &Path,
    speed_hz: u64,
) -> Result<Beside, LabError> {
    let flash = one(&machine()?, path, speed_hz, (true, false))?;
    let touch = one(&machine()?, path, speed_hz, (false, true))?;
    let beside = one(&machine()?, path, speed_hz, (true, true))?;
    Ok(Beside { alone: Way { read_us: flash.read_us, sample_us: touch.sample_us }, beside })
}

/// A sample's message: the converter stays on until its last conversion.
fn sample() -> Xfer {
    let mut tx: Vec<u8> = CHANNELS
        .iter()
        .flat_map(|channel| [0x80 | channel << 4 | 1, 0, 0].repeat(CONVERSIONS))
        .collect();
    let last = tx.len() - 3;
    tx[last] &= !1;
    Xfer::new(&tx)
}

/// The pen's X and Y in a sample, in 4,096ths. Each is the mean of the conversions after settling.
fn position(rx: &[u8]) -> [u32; 2] {
    let mean = |channel: u8| {
        let group = CHANNELS.iter().position(|one| *one == channel).expect("one of the four");
        let code =
            |atom: usize| u32::from(u16::from_be_bytes([rx[3 * atom + 1], rx[3 * atom + 2]])) >> 3;
        let atoms = group * CONVERSIONS + SETTLING..(group + 1) * CONVERSIONS;
        atoms.clone().map(code).sum::<u32>() / atoms.len() as u32
    };
    [mean(5), mean(1)]
}

fn one(
    machine: &Machine,
    path: &Path,
    speed_hz: u64,
    (with_flash, with_touch): (bool, bool),
) -> Result<Way, LabError> {
    let board = machine.board();
    let other = BoardOptions { profile: Some(board.profile().clone()), ..BoardOptions::default() };
    let other = board.beside(super::board(TOUCH_BOARD)?, other);
    let flash_cs = board.spec().flash().cs;
    let (chip, _pen_irq) = other.attach_touch(None).expect("the board has one");
    let down = Stroke { down_ps: 0, up_ps: 1_000 * MS, from: PEN, to: PEN, ohms: 300 };
    chip.borrow().add_stroke(down);
    let size = (board.spec().flash().part)().size;
    let content = content(size, size);
    board.attach_flash(Some(content.clone())).expect("the part's size");
    let touch_cs = other.spec().touch().expect("the board has one").cs;
    let hosts = [Imx::new(board, flash_cs, speed_hz), Imx::new(&other, touch_cs, TOUCH_HZ)];
    let [flash, touch] = hosts.each_ref().map(|host| Kernel::new(machine, host, path));
    machine.set_cold(false);
    machine.start();
    let (over, read) = (Cell::new(!with_touch), RefCell::new(Vec::new()));
    let (engine, longest) = (board.engine(), Cell::new(0));
    let reader = || {
        for index in 0.. {
            read.borrow_mut().push(engine.now_ps());
            if !with_flash || over.get() && index >= READS {
                break;
            }
            dd::read(machine, &flash, &content, index);
        }
        flash.stop();
    };
    let sampling = || {
        for nth in 1..=if with_touch { SAMPLES } else { 0 } {
            let due = nth * INTERVAL_PS;
            machine.wait("wait for the timer", false, || engine.sleep_until(due));
            let rx = touch.sync(vec![sample()]).remove(0).rx;
            for (code, pen) in position(&rx).into_iter().zip(PEN) {
                assert!(code.abs_diff(u32::from(pen) / 16) <= 4, "the pen is elsewhere: {code}");
            }
            longest.set(longest.get().max(engine.now_ps() - due));
        }
        over.set(true);
        touch.stop();
    };
    let mut threads = vec![
        Thread::new("dd", reader).on(0, 10),
        Thread::new("pump", || flash.pump()).on(1, 50),
        Thread::new("touch", sampling).on(0, 50),
        Thread::new("touch pump", || touch.pump()).on(1, 50),
    ];
    threads.extend(hosts.iter().flat_map(|host| host.threads(machine)));
    engine.run(threads);
    for board in [board, &other] {
        assert_eq!(board.harms_total(), 0, "{:#?}", board.violations());
    }
    let us = |ps: Ps| ps as f64 / 1e6;
    let read = read.take();
    let reads = read.len() - 1;
    let read_us = if reads == 0 { 0.0 } else { us(read[reads] - read[0]) / reads as f64 };
    Ok(Way { read_us, sample_us: us(longest.get()) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::rc::Rc;

    use super::*;
    use crate::cost::Costs;

    fn beside(name: &str) -> Beside {
        let (costs, off) = (Rc::new(Costs::fitted()), Rc::new(BTreeSet::new()));
        let machine = || super::super::machine("imx6dl", &costs, &off);
        run(machine, Path::find(name).expect("a path"), 20_000_000).expect("a board")
    }

    #[test]
    fn interrupts_and_dma_leave_the_processor_to_the_other() {
        let Beside { alone, beside } = beside("linux-5.19-both-irq");
        // 420 bytes at 1 MHz are 3,360 us; a FIFO's words are written and read before and after them, and one handler of
        // the other bus, or a few, may delay them.
        assert!((3_360.0..3_460.0).contains(&alone.sample_us), "{alone:?}");
        // Each of them moves up to 64 words, 0.7 us a word.
        assert!((0.0..200.0).contains(&(beside.sample_us - alone.sample_us)), "{beside:?}");
        assert!((1.0..1.05).contains(&(beside.read_us / alone.read_us)), "{alone:?} {beside:?}");
        // One SDMA serves both.
        let Beside { alone, beside } = self::beside("linux-5.19-both-dma");
        assert!(beside.read_us > 1.2 * alone.read_us, "{}", beside.read_us);
        assert!(beside.sample_us > 1.05 * alone.sample_us, "{}", beside.sample_us);
    }

    #[test]
    fn a_polled_sample_takes_the_processor_from_dd() {
        let Beside { alone, beside } = beside("linux-5.19-both-poll");
        assert!((beside.sample_us - alone.sample_us).abs() < 1.0, "{beside:?}");
        // A third of the time is the samples'.
        let share = alone.sample_us / (INTERVAL_PS as f64 / 1e6);
        let expected = alone.read_us / (1.0 - share);
        assert!((beside.read_us / expected - 1.0).abs() < 0.1, "{beside:?} {expected}");
    }

    #[test]
    fn a_position_is_the_mean_of_what_is_settled() {
        let rx: Vec<u8> = sample()
            .tx
            .chunks(3)
            .enumerate()
            .flat_map(|(atom, _)| {
                let settled = atom % CONVERSIONS >= SETTLING;
                let code = if settled { (atom / CONVERSIONS * 100) as u16 } else { 4_095 };
                let [high, low] = (code << 3).to_be_bytes();
                [0, high, low]
            })
            .collect();
        assert_eq!((rx.len(), position(&rx)), (420, [300, 0]));
    }
}
