//! The driver against a chip that answers arbitrary bytes. The fuzz target of this name runs this
//! module; on stable Rust `any_bytes.rs` does.

use core::cell::RefCell;
use core::ops::ControlFlow;

use super::{
    Aux, Config, Filter, MessageError, Port, SpiError, Timer, TouchError, Transfer, Tsc2046,
    temperature_millikelvin,
};

/// The largest number of messages in one call: while the pen is down a call lasts as long as its
/// handler wants.
const MESSAGES_MAX: u32 = 200;
const TOUCHES_MAX: u32 = 4;

/// The bytes, then zeros.
struct AnyChip<'a> {
    bytes: &'a [u8],
    messages: u32,
    slept_ns: u64,
    /// The codes of one sample's values; most conversions answer these.
    codes: [u16; 4],
}

impl AnyChip<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.next(), self.next(), self.next(), self.next()])
    }

    /// The answer to a conversion of `control`.
    fn answer(&mut self, control: u8, spoils: u8) -> u16 {
        let code = match control >> 4 & 7 {
            0b101 => self.codes[0],
            0b001 => self.codes[1],
            0b011 => self.codes[2],
            _ => self.codes[3],
        };
        match spoils {
            // Noise around the code.
            1..=40 => (code & 0xfff ^ u16::from(self.next())) << 3,
            // Arbitrary bits.
            41..=60 => self.word() as u16,
            _ => (code & 0xfff) << 3,
        }
    }

    fn exchange(&mut self, both: &mut [u8]) {
        assert!(both.len() % 2 == 1 && both.len() >= 3, "{} bytes", both.len());
        if self.next() & 7 == 1 {
            self.codes = [(); 4].map(|()| self.word() as u16);
        }
        let spoils = self.next();
        let mut control = both[0];
        both[0] = 0;
        for pair in both[1..].chunks_exact_mut(2) {
            assert!(control & 0x88 == 0x80, "no control byte of 12 bits: {control:#04x}");
            let word = self.answer(control, spoils);
            control = pair[1];
            pair.copy_from_slice(&word.to_be_bytes());
        }
        assert_eq!(control, 0, "a conversion that is not read");
    }
}

/// The chip and its time, as the driver's port and timer.
struct Shared<'c, 'a>(&'c RefCell<AnyChip<'a>>);

impl Port for Shared<'_, '_> {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let mut chip = self.0.borrow_mut();
        chip.messages += 1;
        assert!(chip.messages < MESSAGES_MAX, "a call that does not end");
        let [transfer] = message else { panic!("one transfer") };
        let mut both = [0; 2 * (3 * 30 + 4 * 8) + 1];
        let both = &mut both[..transfer.data().len()];
        both.copy_from_slice(transfer.data().tx().expect("control bytes"));
        chip.exchange(both);
        transfer.rx_mut().expect("codes").copy_from_slice(both);
        match chip.next() {
            0xff => Err(MessageError::refused(SpiError::Timeout { timeout_us: 1 }, 0)),
            _ => Ok(()),
        }
    }

    fn speed_hz(&self) -> u32 {
        1_000_000
    }
}

impl Timer for Shared<'_, '_> {
    fn frequency_hz(&self) -> u32 {
        1_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        self.0.borrow().slept_ns / 1_000
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.0.borrow_mut().slept_ns += ns;
    }
}

fn panel<const BYTES: usize>(chip: &RefCell<AnyChip<'_>>, config: Config) {
    let mut touch = match Tsc2046::<_, BYTES>::on_port(Shared(chip), config) {
        Ok(touch) => touch,
        Err(error) => {
            assert!(matches!(error, TouchError::Config { settle: 31.., .. }), "{error:?}");
            return;
        }
    };
    let next = || chip.borrow_mut().next();
    while !chip.borrow().bytes.is_empty() {
        chip.borrow_mut().messages = 0;
        match next() % 8 {
            0 | 1 => {
                if let Ok(sample) = touch.sample() {
                    let codes = [sample.x, sample.y, sample.z1, sample.z2];
                    assert!(codes.into_iter().chain(sample.spread).all(|code| code < 4_096));
                    assert!(!sample.is_down(&config) || sample.touch_ohms(&config).is_some());
                }
            }
            2 => {
                if let Ok(at) = touch.read() {
                    assert!(at.x < 4_096 && at.y < 4_096 && at.ohms <= config.touch_max_ohms);
                }
            }
            3 => {
                let inputs = [Aux::Temp0, Aux::Battery, Aux::Auxiliary, Aux::Temp1];
                let codes =
                    [touch.convert(inputs[usize::from(next() % 4)]), touch.convert(Aux::Temp1)];
                if let [Ok(first), Ok(second)] = codes {
                    assert!(first.max(second) < 4_096);
                    assert!(temperature_millikelvin(first, second) < 7_000_000);
                }
            }
            4 => drop(touch.power_down()),
            _ => {
                let mut touches = 0;
                let served = touch.service(
                    &mut Shared(chip),
                    // Mostly low.
                    || next() & 3 != 3,
                    |_| {
                        touches += 1;
                        if touches < TOUCHES_MAX {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        }
                    },
                );
                if let Ok(served) = served {
                    assert_eq!(
                        (served.touches, served.still_down),
                        (touches, touches == TOUCHES_MAX)
                    );
                    assert!(served.samples >= served.touches + served.inconsistent);
                }
            }
        }
    }
}

/// Whatever the chip answers, every call returns a valid result or an error.
pub(super) fn drive(bytes: &[u8]) {
    const SHORT: Config = Config { settle: 0, repeats: 1, ..Config::DEFAULT };
    const LONG: Config = Config { settle: 30, repeats: 8, ..Config::DEFAULT };
    let mut chip = AnyChip { bytes, messages: 0, slept_ns: 0, codes: [2_000, 1_000, 1_000, 2_000] };
    let judged = |config: Config, chip: &mut AnyChip<'_>| Config {
        x_plate_ohms: chip.word(),
        filter: if chip.next() & 1 == 0 { Filter::Median } else { Filter::Mean },
        spread_max: u16::from(chip.next()),
        floor: u16::from(chip.next()),
        touch_max_ohms: chip.word(),
        interval_us: chip.word(),
        recheck_us: chip.word(),
        reference_settle: chip.next() % 33,
        ..config
    };
    match chip.next() % 3 {
        0 => {
            let config = judged(SHORT, &mut chip);
            panel::<{ SHORT.message_bytes() }>(&RefCell::new(chip), config);
        }
        1 => {
            let config = judged(Config::DEFAULT, &mut chip);
            panel::<{ Config::DEFAULT.message_bytes() }>(&RefCell::new(chip), config);
        }
        _ => {
            let config = judged(LONG, &mut chip);
            panel::<{ LONG.message_bytes() }>(&RefCell::new(chip), config);
        }
    }
}
