//! The procedure on a simulated board: what it predicts for a real one, and what it measures of a simulated one.

use std::path::PathBuf;

use barewire::bus::Bus;
use barewire_linux::map::Block;
use barewire_open::name::{FileUse, SimOptions};
use barewire_open::{Fitting, LocalBus, OpenOptions};
use barewire_sim::bring_up::{self, SimInterrupt};
use barewire_sim::engine::Thread;
use barewire_sim::model::can::BitTimes;
use barewire_sim::profile::{CostLevel, Profile};
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};

use super::messages::{self, Answers, Asked, LENGTHS};
use super::registers;
use super::rounds::{Collected, Effort};
use super::threads;
use crate::shared::failure::Failure;

/// The parts of the procedure; a figure's cost needs its own part alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Registers,
    Threads,
    Interrupt,
    Messages,
}

impl Part {
    /// All of them.
    pub(super) const ALL: [Self; 4] =
        [Self::Registers, Self::Threads, Self::Interrupt, Self::Messages];
}

/// A simulated board, and how it is asked.
#[derive(Clone, Debug)]
pub(super) struct Simulated {
    pub(super) options: SimOptions,
    pub(super) answers: Answers,
    pub(super) chip_select: u8,
    pub(super) speed_hz: u32,
    /// Whether GPIO registers are timed too.
    pub(super) has_bank: bool,
}

/// The block of a board's controller.
pub(super) fn block(spec: &BoardSpec) -> Option<Block> {
    Some(match spec.kind.name {
        "ECSPI" => Block::Ecspi,
        "BCM2835 SPI0" => Block::Bcm2835,
        "PL022" => Block::Pl022,
        "Atmel SPI" => Block::Atmel,
        "DW_apb_ssi" => Block::DwSsi,
        "SiFive SPI" => Block::SiFive,
        "McSPI" => Block::Mcspi,
        "Cadence SPI" => Block::Cadence,
        _ => return None,
    })
}

impl Simulated {
    /// The same board at other costs. Its flash chip's file is not used, and its chips are the usual ones.
    pub(super) fn with(&self, profile: Profile) -> Self {
        let options = SimOptions {
            cost_file: Some((PathBuf::new(), Box::new(profile))),
            costs: CostLevel::Used,
            file_use: FileUse::Unused,
            ..self.options.clone()
        };
        Self { options, ..self.clone() }
    }

    /// The same board without jitter and faults: what is predicted.
    pub(super) fn predicting(&self) -> Self {
        let options = SimOptions { jitter_ns: 0, ..self.options.clone() };
        Self { options, ..self.clone() }
    }

    fn board(&self) -> Board {
        Board::new(self.options.board, self.board_options())
    }

    fn board_options(&self) -> BoardOptions {
        self.options.board_options()
    }

    /// Runs parts of the procedure.
    pub(super) fn run(&self, parts: &[Part], effort: Effort) -> Result<Collected, Failure> {
        let mut collected = Collected::default();
        for part in parts {
            match part {
                Part::Registers => self.registers(effort, &mut collected)?,
                Part::Threads => threads::simulated(&|| self.board(), effort, &mut collected)?,
                Part::Interrupt => self.interrupt(effort, &mut collected)?,
                Part::Messages => self.messages(effort, &mut collected)?,
            }
        }
        Ok(collected)
    }

    fn registers(&self, effort: Effort, collected: &mut Collected) -> Result<(), Failure> {
        let board = self.board();
        let now = || board.engine().now_ps();
        let Some(block) = block(board.spec()) else {
            collected.miss("register-read", "no driver is listed for this block");
            return Ok(());
        };
        let [controller, bank] = block.harmless();
        let with = (&now as &dyn Fn() -> u64, effort);
        registers::time(
            &mut board.controller(),
            controller,
            &registers::CONTROLLER,
            with,
            collected,
        )?;
        if let (true, Some(mut gpio)) = (self.has_bank, board.gpio(0)) {
            registers::time(&mut gpio, bank, &registers::BANK, with, collected)?;
        }
        let mut timer = board.timer();
        collected.time("timer-read", &now, (effort.rounds, effort.accesses), || {
            std::hint::black_box(barewire::time::Timer::now_ticks(&mut timer));
            Ok(())
        })
    }

    /// A message that sleeps beside one that polls, both in a thread.
    fn interrupt(&self, effort: Effort, collected: &mut Collected) -> Result<(), Failure> {
        let run = |sleeps: bool| {
            let board = self.board();
            let now = || board.engine().now_ps();
            let mut rounds = Ok(Vec::new());
            let thread = Thread::new("caller", || {
                let controller = match sleeps {
                    true => bring_up::any_interrupt(&board, 0, SimInterrupt::new(&board)),
                    false => bring_up::any(&board),
                };
                let controller = bring_up::Charged::new(controller, board.clone());
                let bus = Bus::with_platform(controller, &SimPlatform);
                rounds = messages::long(&bus, self.chip_select, &now, effort.waits);
            });
            board.engine().run(vec![thread.on(0, 1)]);
            rounds
        };
        let (polled, slept) = (run(false)?, run(true)?);
        collected.add("irq-wake", messages::asleep(polled, &slept));
        Ok(())
    }

    fn messages(&self, effort: Effort, collected: &mut Collected) -> Result<(), Failure> {
        let fitted = match self.answers {
            Answers::Flash => Fitting::Chips(BitTimes::from_rates(500_000, 2_000_000)),
            Answers::Loopback => Fitting::Jumpers,
            Answers::Nobody => Fitting::Nothing,
        };
        let options = OpenOptions { fitted, ..OpenOptions::default() };
        let name = barewire_open::name::BusName::Sim(self.options.clone());
        let bus = LocalBus::open_with(&name, options, &mut |_| ())?;
        let Some(simulated) = bus.board() else { unreachable!("a simulated bus has its board") };
        let now = || simulated.board.engine().now_ps();
        let Self { answers, chip_select, speed_hz, .. } = *self;
        let asked = Asked { bus: &bus, answers, chip_select, speed_hz };
        asked.time_prepared((&now, effort), collected)?;
        asked.time(&LENGTHS, (&now, effort), collected)?;
        asked.time_slow((&now, effort), collected)
    }
}
