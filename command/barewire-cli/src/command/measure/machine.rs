//! The procedure on this machine: registers in this process, threads, messages, the kernel's spidev.

use std::time::Instant;

use barewire::spi::{Error, Mode, Settings, Transfer};
use barewire::time::Timer as _;
use barewire_conformance::{Clock, Options, run_watched};
use barewire_lab::measured::Selftest;
use barewire_linux::Monotonic;
use barewire_linux::map::{MapSpec, Via};
use barewire_open::name::{BusName, SpidevName};
use barewire_open::{Console, Layers, LocalBus, OpenOptions};

use super::messages::{self, Answers, Asked, LENGTHS, SPIDEV};
use super::registers;
use super::rounds::{Collected, Effort};
use super::threads;
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;

/// This machine's bus, and how it is asked.
pub(super) struct OnThisMachine {
    pub(super) name: BusName,
    pub(super) answers: Answers,
    pub(super) chip_select: u8,
    pub(super) speed_hz: u32,
    pub(super) begun: Instant,
}

/// Opens a bus for its messages. What else it says is for people.
fn open(name: &BusName, hushed: bool) -> Result<LocalBus, Failure> {
    let console = Console { tell: |text| note!("{text}"), flow: interrupt::flow };
    // After Ctrl-C messages fail: the loopback suite has no other way to be stopped.
    let layers = Layers { stop: Some(interrupt::asked), ..Layers::default() };
    let options = OpenOptions { console: Some(console), layers, ..OpenOptions::default() };
    let mut tell = |text: &str| {
        if !hushed {
            note!("{text}");
        }
    };
    Ok(LocalBus::open_with(name, options, &mut tell)?)
}

impl OnThisMachine {
    /// Opens the bus, so that one that cannot be had is an error before anything is measured.
    pub(super) fn check(&self) -> Result<(), Failure> {
        Ok(open(&self.name, false)?.close()?)
    }

    fn now_ps(&self) -> u64 {
        let ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        ns.saturating_mul(1_000)
    }

    /// Registers, of a bus that is mapped. Nothing is started.
    pub(super) fn registers(
        &self,
        spec: &MapSpec,
        effort: Effort,
        collected: &mut Collected,
    ) -> Result<(), Failure> {
        let mut mapped = barewire_open::map(spec, &mut |_| ())?;
        let [controller, bank] = spec.block.harmless();
        let now = || self.now_ps();
        let with = (&now as &dyn Fn() -> u64, effort);
        let (registers, gpio) = mapped.to_time();
        registers::time(registers, controller, &registers::CONTROLLER, with, collected)?;
        match gpio {
            Some(gpio) => registers::time(gpio, bank, &registers::BANK, with, collected),
            None => {
                let why =
                    "no chip select of the bus is a GPIO register of its own (gpio@0xADDRESS.BIT)";
                collected.miss("gpio-read", why);
                Ok(())
            }
        }
    }

    /// The clock that programs read, and threads.
    pub(super) fn threads(&self, effort: Effort, collected: &mut Collected) -> Result<(), Failure> {
        let now = || self.now_ps();
        let mut timer = Monotonic::new();
        collected.time("timer-read", &now, (effort.rounds, effort.accesses), || {
            std::hint::black_box(timer.now_ticks());
            Ok(())
        })?;
        threads::on_this_machine(&now, effort, collected)
    }

    /// Messages on the bus.
    pub(super) fn messages(
        &self,
        effort: Effort,
        collected: &mut Collected,
    ) -> Result<(), Failure> {
        let mut bus = open(&self.name, true)?;
        let now = || self.now_ps();
        let asked = self.asked(&bus);
        let is_spidev = matches!(self.name, BusName::Spidev(_));
        let timed = match is_spidev {
            true => asked.time(&SPIDEV, (&now, effort), collected),
            false => asked
                .time_prepared((&now, effort), collected)
                .and_then(|()| asked.time(&LENGTHS, (&now, effort), collected)),
        };
        let timed = timed.and_then(|()| asked.time_slow((&now, effort), collected));
        // If another driver took the bus, that explains the rest.
        bus.check().map_err(Failure::from).and(timed)?;
        Ok(bus.close()?)
    }

    fn asked<'b>(&self, bus: &'b LocalBus) -> Asked<'b> {
        let Self { answers, chip_select, speed_hz, .. } = *self;
        Asked { bus, answers, chip_select, speed_hz }
    }

    /// A message that sleeps beside one that polls, where UIO has the interrupt.
    pub(super) fn interrupt(
        &self,
        spec: &MapSpec,
        effort: Effort,
        collected: &mut Collected,
    ) -> Result<(), Failure> {
        if !matches!(spec.via, Via::Uio { .. }) {
            collected.miss("irq-wake", "a process has the controller's interrupt through UIO only");
            return Ok(());
        }
        let now = || self.now_ps();
        let run = |poll_limit_us| {
            let name = BusName::Mapped(MapSpec { poll_limit_us, ..spec.clone() });
            let bus = open(&name, true)?;
            messages::long(bus.bus(), self.chip_select, &now, effort.waits)
        };
        let (polled, slept) = (run(None)?, run(Some(0))?);
        collected.add("irq-wake", messages::asleep(polled, &slept));
        Ok(())
    }

    /// The kernel's spidev, for the same messages.
    pub(super) fn spidev(
        &self,
        node: &str,
        effort: Effort,
        collected: &mut Collected,
    ) -> Result<(), Failure> {
        let spidev = BusName::Spidev(SpidevName { path: node.into() });
        let bus = open(&spidev, true)?;
        let asked = Asked { chip_select: 0, ..self.asked(&bus) };
        asked.time(&SPIDEV, (&|| self.now_ps(), effort), collected)
    }

    /// The loopback suite.
    pub(super) fn selftest(&self, effort: Effort) -> Result<Selftest, Failure> {
        let bus = open(&self.name, true)?;
        selftest(&bus, self.answers, self.chip_select, self.speed_hz, effort)
    }
}

/// Whether a controller cannot loop back by itself: then there is no suite without a wire, which is no failure.
pub(super) fn without_loopback(failure: &Failure) -> bool {
    *failure == Failure::from(Error::NoLoopback)
}

/// The loopback suite: over the wire if there is one, else inside the controller, and no chip hears it.
pub(super) fn selftest(
    bus: &LocalBus,
    answers: Answers,
    chip_select: u8,
    speed_hz: u32,
    effort: Effort,
) -> Result<Selftest, Failure> {
    let wired = answers == Answers::Loopback;
    let mode = if wired { bus.mode(chip_select) } else { Mode::LOOP | Mode::NO_CS };
    let device = bus.bus().device(&Settings::new(chip_select, speed_hz).with_mode(mode))?;
    // A controller that cannot loop back refuses this as it would every message.
    device.sync(&mut [Transfer::in_place(&mut [0xa5])])?;
    let options = Options { max_len: effort.max_len, loopback: true, delays: false };
    let ran = run_watched(&device, &options, &mut Clock::None, |_| ());
    interrupt::check()?;
    let (iterations, failed) = (ran.iterations, ran.failed);
    Ok(Selftest { iterations, failed, max_len: effort.max_len, wired })
}
