//! `docs/accesses.md` lists the register accesses of the shortest message on each controller: they are those that the
//! simulated board sees.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::atmel::{Atmel, AtmelConfig, PeripheralSelect, Pipe};
use barewire::controller::bcm2835::{Bcm2835, Bcm2835Config};
use barewire::controller::dw_ssi::{DwSsi, DwSsiConfig};
use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{
    AtmelPio, Bcm2835Gpio, ImxGpio, Ownership, Pl061, Rp1Gpio, SiFiveGpio,
};
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::controller::sifive::{SiFive, SiFiveConfig};
use barewire::controller::{ALWAYS_POLL, Controller, CsLine};
use barewire::reg::Registers;
use barewire::spi::Settings;
use barewire_sim::board::spec::kinds_without;
use barewire_sim::model::echo::Echo;
use barewire_sim::wire::Driver;
use barewire_sim::{Board, BoardOptions, BoardSpec, SimRegisters};

/// An access: the register by its name in the manual, and whether it was written.
type Accesses = Rc<RefCell<Vec<(String, &'static str)>>>;
/// Registers of a block that a message touches, by the manual's offset.
type Names = &'static [(u32, &'static str)];

/// A block whose accesses are recorded.
struct RecordedBlock {
    regs: SimRegisters,
    names: Names,
    accesses: Accesses,
}

impl RecordedBlock {
    fn record(&self, offset: u32, how: &'static str) {
        let found = self.names.iter().find(|(at, _)| *at == offset);
        let name = found.map_or_else(|| format!("{offset:#x}"), |(_, name)| (*name).to_owned());
        self.accesses.borrow_mut().push((name, how));
    }
}

impl Registers for RecordedBlock {
    fn read(&mut self, offset: u32) -> u32 {
        self.record(offset, "read");
        self.regs.read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.record(offset, "write");
        self.regs.write(offset, value);
    }

    fn barrier(&mut self) {
        self.regs.barrier();
    }
}

/// A board whose registers are recorded.
struct Bench {
    board: Board,
    accesses: Accesses,
}

impl Bench {
    fn new(name: &str) -> Self {
        let board = Board::new(BoardSpec::find(name).expect("a board"), BoardOptions::default());
        assert!(board.attach(0, Rc::new(RefCell::new(Echo::default()))));
        Self { board, accesses: Accesses::default() }
    }

    fn controller(&self, names: Names) -> RecordedBlock {
        RecordedBlock { regs: self.board.controller(), names, accesses: self.accesses.clone() }
    }

    fn gpio(&self, names: Names) -> RecordedBlock {
        let regs = self.board.gpio(0).expect("a bank selects the chip");
        RecordedBlock { regs, names, accesses: self.accesses.clone() }
    }

    fn reference_hz(&self) -> u32 {
        u32::try_from(self.board.profile().reference_hz.value).expect("it fits")
    }

    /// The table of chip selects with the board's first alone.
    fn lines(&self) -> [CsLine; 4] {
        let first = self.board.spec().cs[0];
        let Driver::Gpio { block: 0, bit } = first.driver else { panic!("a GPIO selects it") };
        let first = CsLine::Gpio { bit, active_high: first.active_high };
        [first, CsLine::Absent, CsLine::Absent, CsLine::Absent]
    }

    /// The accesses of a device's second message; reads that were repeated are one.
    fn accesses(&self, controller: impl Controller) -> Vec<(String, &'static str)> {
        let bus = Bus::new(controller);
        let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
        let mut message = device.prepare([0x5a]).expect("prepares");
        message.run().expect("runs");
        self.accesses.borrow_mut().clear();
        message.run().expect("runs");
        assert!(self.board.violations().is_empty(), "{:#?}", self.board.violations());
        let mut accesses = self.accesses.take();
        accesses.dedup_by(|next, before| next == before && next.1 == "read");
        accesses
    }
}

/// The rows of a section of the page.
fn rows(page: &str, section: &str) -> Vec<(String, String)> {
    let begin = format!("\n## {section}\n");
    let (_, text) = page.split_once(&begin).unwrap_or_else(|| panic!("no section {section}"));
    let text = text.split("\n## ").next().unwrap_or_default();
    let lines = text.lines().filter(|line| line.contains("| `"));
    let row = |(index, line): (usize, &str)| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(cells[1], (index + 1).to_string(), "{section}: rows are numbered: {line}");
        (cells[2].trim_matches('`').to_owned(), cells[3].to_owned())
    };
    lines.enumerate().map(row).collect()
}

#[test]
fn the_page_lists_the_accesses_of_the_shortest_message() {
    let poll_limit_ns = ALWAYS_POLL;
    let mut seen = Vec::new();
    let mut names = Vec::new();
    let mut add = |section, name, accesses: &dyn Fn(&Bench) -> Vec<(String, &'static str)>| {
        names.push(name);
        seen.push((section, accesses(&Bench::new(name))));
    };
    add("ECSPI", "imx8mp", &|bench| {
        let config = EcspiConfig {
            reference_hz: bench.reference_hz(),
            chip_selects: bench.lines(),
            poll_limit_ns,
        };
        let regs = bench.controller(&[
            (0x00, "RXDATA"),
            (0x04, "TXDATA"),
            (0x08, "CONREG"),
            (0x18, "STATREG"),
        ]);
        let gpio = ImxGpio::new(bench.gpio(&[(0x00, "GPIO_DR")]), Ownership::Shared);
        bench.accesses(Ecspi::new(regs, gpio, bench.board.timer(), config))
    });
    add("BCM2835 SPI0", "rpi3", &|bench| {
        let config = Bcm2835Config {
            core_hz: bench.reference_hz(),
            chip_selects: bench.lines(),
            poll_limit_ns,
        };
        let regs = bench.controller(&[(0x00, "CS"), (0x04, "FIFO")]);
        let gpio = Bcm2835Gpio::new(bench.gpio(&[(0x1c, "GPSET0"), (0x28, "GPCLR0")]));
        bench.accesses(Bcm2835::new(regs, gpio, bench.board.timer(), config))
    });
    add("PL022", "highbank", &|bench| {
        let config = Pl022Config {
            reference_hz: bench.reference_hz(),
            chip_selects: bench.lines(),
            poll_limit_ns,
        };
        let regs = bench.controller(&[(0x08, "SSPDR"), (0x0c, "SSPSR"), (0x18, "SSPRIS")]);
        // The address of the data register is a mask of the pins: pin 0.
        let gpio = Pl061::new(bench.gpio(&[(0x04, "GPIODATA")]));
        bench.accesses(Pl022::new(regs, gpio, bench.board.timer(), config))
    });
    add("DW_apb_ssi", "rpi5", &|bench| {
        let config = DwSsiConfig {
            reference_hz: bench.reference_hz(),
            chip_selects: bench.lines(),
            native_lines: 2,
            poll_limit_ns,
        };
        let regs = bench.controller(&[(0x24, "RXFLR"), (0x28, "SR"), (0x60, "DR")]);
        let gpio =
            Rp1Gpio::new(bench.gpio(&[(0x1_2000, "RIO_OUT_SET"), (0x1_3000, "RIO_OUT_CLR")]));
        bench.accesses(DwSsi::new(regs, gpio, bench.board.timer(), config))
    });
    add("Atmel SPI", "sama5d36", &|bench| {
        let config = AtmelConfig {
            reference_hz: bench.reference_hz(),
            chip_selects: bench.lines(),
            pipe: Pipe::WaitDataRead,
            peripheral_select: PeripheralSelect::Fixed,
            poll_limit_ns,
        };
        let regs = bench.controller(&[(0x08, "SPI_RDR"), (0x0c, "SPI_TDR"), (0x10, "SPI_SR")]);
        let gpio = AtmelPio::new(bench.gpio(&[(0x30, "PIO_SODR"), (0x34, "PIO_CODR")]));
        bench.accesses(Atmel::new(regs, gpio, bench.board.timer(), config))
    });
    add("SiFive SPI", "unleashed", &|bench| {
        let config = SiFiveConfig {
            reference_hz: bench.reference_hz(),
            chip_selects: bench.lines(),
            poll_limit_ns,
        };
        let regs = bench.controller(&[(0x48, "txdata"), (0x4c, "rxdata")]);
        let gpio = SiFiveGpio::new(bench.gpio(&[(0x0c, "output_val")]), Ownership::Shared);
        bench.accesses(SiFive::new(regs, gpio, bench.board.timer(), config))
    });
    assert_eq!(kinds_without(&names), [""; 0], "add the controller's accesses to the page");

    let page = include_str!("../../../../docs/accesses.md");
    let owned = |accesses: Vec<(String, &str)>| -> Vec<(String, String)> {
        accesses.into_iter().map(|(name, how)| (name, how.to_owned())).collect()
    };
    let listed: Vec<_> = seen.iter().map(|(section, _)| (*section, rows(page, section))).collect();
    let seen: Vec<_> =
        seen.into_iter().map(|(section, accesses)| (section, owned(accesses))).collect();
    assert_eq!(listed, seen, "docs/accesses.md");
}
