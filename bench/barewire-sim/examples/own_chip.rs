//! A whole chip model of one's own, on a simulated board: the example of `docs/chip-models.md`.
//!
//! `cargo run -p barewire-sim --example own_chip`. A test compares the page's code with this file.

use std::error::Error;
use std::rc::Rc;

use barewire::spi::{Settings, Transfer};
use barewire_sim::chip::bytewise::selection;
use barewire_sim::chip::{
    Bytewise, Chip, Clocking, Complaints, OutputPin, Partial, Pin, Ps, WireLimits,
};
use barewire_sim::{Pad, bring_up};
use embedded_hal::digital::{InputPin, OutputPin as _};

/// Eight relays behind a shift register. CLR# clears it; BUSY is high while the relays move.
#[derive(Debug)]
struct Relays {
    partial: Partial,
    shift: u8,
    relays: u8,
    cleared: bool,
    busy: Rc<OutputPin>,
    busy_until: Ps,
    complaints: Complaints<16>,
}

/// The relays move for 2 µs.
const MOVE_PS: Ps = 2_000_000;

impl Relays {
    fn new() -> Self {
        Self {
            partial: Partial::NONE,
            shift: 0,
            relays: 0,
            cleared: false,
            busy: OutputPin::new(),
            busy_until: 0,
            complaints: Complaints::default(),
        }
    }
}

impl Bytewise for Relays {
    fn partial(&mut self) -> &mut Partial {
        &mut self.partial
    }

    // The byte on MISO is the one that was shifted in before.
    fn begin_byte(&mut self, _at: Ps) -> u8 {
        self.shift
    }

    fn end_byte(&mut self, byte: u8, _at: Ps) {
        self.shift = if self.cleared { 0 } else { byte };
    }
}

impl Chip for Relays {
    fn name(&self) -> &'static str {
        "8 relays"
    }

    fn limits(&self) -> WireLimits {
        WireLimits {
            modes: 1 << 0 | 1 << 3, // MODE_0 and MODE_3
            cs_setup_ns: 20,
            cs_hold_ns: 20,
            cs_inactive_ns: 50,
            max_clock_hz: 20_000_000,
        }
    }

    fn pins(&self) -> Vec<Pin> {
        vec![Pin::Input("CLR#"), Pin::ActiveHigh("BUSY", self.busy.clone())]
    }

    fn set_pin(&mut self, _pin: &'static str, level: bool, _at: Ps) {
        self.cleared = !level;
        if self.cleared {
            self.shift = 0;
        }
    }

    fn select(&mut self, _at: Ps) {
        self.partial = Partial::NONE;
    }

    // The relays take the register over when CS rises.
    fn deselect(&mut self, at: Ps) {
        let bits = self.partial.bits();
        if bits != 0 {
            self.complaints.add(|| format!("the last byte has {bits} bits"));
        }
        if at < self.busy_until {
            self.complaints.add(|| "moved again while BUSY".into());
        }
        self.relays = self.shift;
        self.busy_until = at + MOVE_PS;
        self.busy.set_at(true, at);
        self.busy.set_at(false, self.busy_until);
    }

    fn exchange(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        self.exchange_bits(clocking, mosi, bits)
    }

    fn take_complaint(&mut self) -> Option<String> {
        self.complaints.take()
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // The model by itself, without a wire.
    let (mut chip, mut at) = (Relays::new(), 0);
    chip.set_pin("CLR#", true, at);
    assert_eq!(selection(&mut chip, &mut at, &[0x12, 0x34], 100_000, 50_000), [0, 0x12]);
    assert_eq!(chip.relays, 0x34);

    // The model on a board, under the shipped driver.
    let (clear, busy) = (Pad { block: 0, bit: 24 }, Pad { block: 0, bit: 23 });
    let settings = Settings { cs_setup_ns: 20, cs_hold_ns: 20, ..Settings::new(0, 10_000_000) };
    let lines = [("CLR#", clear), ("BUSY", busy)];
    let bench = bring_up::bench("rpi3", &settings, Relays::new(), &lines)?;
    let (mut clear, mut busy) = (bench.output(clear, true), bench.input(busy));
    let device = bench.device();

    device.device().sync(&mut [Transfer::write(&[0xa5])])?;
    assert_eq!(bench.chip.borrow().relays, 0xa5);
    assert!(busy.is_high()?, "the relays move");
    while busy.is_high()? {}
    clear.set_low()?;
    device.device().sync(&mut [Transfer::write(&[0xff])])?;
    assert_eq!(bench.chip.borrow().relays, 0, "cleared");
    bench.assert_clean();

    // A driver's mistake: it does not wait for BUSY.
    device.device().sync(&mut [Transfer::write(&[0x01])])?;
    let outcome = bench.finish();
    let [violation] = &outcome.violations[..] else { panic!("{:?}", outcome.violations) };
    println!("{violation}");
    assert!(violation.detail.ends_with("moved again while BUSY"));
    println!("{} bytes of VCD, {} ps", outcome.capture.vcd.len(), outcome.elapsed_ps);
    Ok(())
}
