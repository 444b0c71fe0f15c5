//! The ARM PrimeCell GPIO PL061: 8 pins, whose data register has a mask in its address.
//!
//! *Read first*: ARM DDI 0190, chapter 3, Programmers Model.
//!
//! # How it works
//! GPIODATA is at 0x000 to 0x3fc. Bits 9 to 2 of the address are a mask of the bits that an access
//! affects: of a read the others are 0, and a write leaves the others unchanged. So an edge on one
//! pin takes one write, even if other code uses the block. GPIODATA reads the written value for
//! outputs and the pad for inputs.
//!
//! It is unclear whether GPIODATA keeps the value written for an input. The manual says that values
//! written are transferred to pins that are outputs. Linux's gpio-pl061 driver sets a pin's level
//! again after its direction, because the first write is lost. [`InputLevel`] selects the reading.
//! If the value is lost, a pin made an output drives the level it last drove as an output, at first
//! the 0 of reset. An active-low chip select is then selected for a moment, whatever the driver
//! does.
//!
//! # Not supported
//! - Interrupts: GPIOIS, GPIOIBE, GPIOIEV, GPIOIE, GPIORIS, GPIOMIS and GPIOIC do not exist here.
//! - A pin under hardware control (GPIOAFSEL) has the level of its surroundings.

use super::{GpioBlock, GpioKind, NoRegister};

/// ARM PrimeCell GPIO PL061. Its option is [`InputLevel`].
pub const KIND: GpioKind = GpioKind {
    name: "PL061",
    bytes: 0x1000,
    // GPIODATA through the masks of one pin and of all.
    registers: &[
        (0x004, "GPIODATA"),
        (0x008, "GPIODATA"),
        (0x010, "GPIODATA"),
        (0x020, "GPIODATA"),
        (0x040, "GPIODATA"),
        (0x080, "GPIODATA"),
        (0x100, "GPIODATA"),
        (0x200, "GPIODATA"),
        (0x3fc, "GPIODATA"),
        (0x400, "GPIODIR"),
        (0x420, "GPIOAFSEL"),
    ],
    model: |options| Box::new(Pl061::new().with_input_level(options.get())),
    drive: |write, pins, high| {
        write(0x400, pins);
        write(pins << 2, high);
    },
};

/// The first address after GPIODATA.
const GPIODATA_END: u32 = 0x400;
const GPIODIR: u32 = 0x400;
const GPIOAFSEL: u32 = 0x420;
const GPIO_PERIPH_ID0: u32 = 0xfe0;
const GPIO_PCELL_ID3: u32 = 0xffc;

/// GPIOPeriphID0 to 3, GPIOPCellID0 to 3.
const IDS: [u32; 8] = [0x61, 0x10, 0x04, 0x00, 0x0d, 0xf0, 0x05, 0xb1];

/// What happens to a level that is written to GPIODATA for an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputLevel {
    /// The write is lost.
    #[default]
    Lost,
    /// The pin drives it when it becomes an output.
    Kept,
}

/// One PL061.
#[derive(Clone, Debug)]
pub struct Pl061 {
    input_level: InputLevel,
    data: u8,
    dir: u8,
    afsel: u8,
    outside: u8,
}

impl Pl061 {
    /// The block at reset: all pins inputs, pulled up.
    #[must_use]
    pub fn new() -> Self {
        Self { input_level: InputLevel::Lost, data: 0, dir: 0, afsel: 0, outside: u8::MAX }
    }

    /// Selects another reading of levels written for inputs.
    #[must_use]
    pub fn with_input_level(self, input_level: InputLevel) -> Self {
        Self { input_level, ..self }
    }

    fn levels(&self) -> u8 {
        let driven = self.dir & !self.afsel;
        self.data & driven | self.outside & !driven
    }
}

/// Bits 9 to 2 of an address of GPIODATA.
fn mask(offset: u32) -> u8 {
    (offset >> 2) as u8
}

impl GpioBlock for Pl061 {
    fn read(&self, offset: u32) -> Result<u32, NoRegister> {
        if !offset.is_multiple_of(4) {
            return Err(NoRegister);
        }
        Ok(match offset {
            0..GPIODATA_END => {
                let data = self.data & self.dir | self.levels() & !self.dir;
                (data & mask(offset)).into()
            }
            GPIODIR => self.dir.into(),
            GPIOAFSEL => self.afsel.into(),
            GPIO_PERIPH_ID0..=GPIO_PCELL_ID3 => IDS[((offset - GPIO_PERIPH_ID0) / 4) as usize],
            _ => return Err(NoRegister),
        })
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), NoRegister> {
        if !offset.is_multiple_of(4) {
            return Err(NoRegister);
        }
        match offset {
            0..GPIODATA_END => {
                let kept = match self.input_level {
                    InputLevel::Lost => self.dir,
                    InputLevel::Kept => u8::MAX,
                };
                let mask = mask(offset) & kept;
                self.data = self.data & !mask | value as u8 & mask;
            }
            GPIODIR => self.dir = value as u8,
            GPIOAFSEL => self.afsel = value as u8,
            // Read-only.
            GPIO_PERIPH_ID0..=GPIO_PCELL_ID3 => {}
            _ => return Err(NoRegister),
        }
        Ok(())
    }

    fn pins(&self) -> u8 {
        8
    }

    fn pads(&self) -> u64 {
        self.levels().into()
    }

    fn set_outside(&mut self, bit: u8, level: bool) {
        let pin = 1_u8.checked_shl(bit.into()).unwrap_or(0);
        self.outside = if level { self.outside | pin } else { self.outside & !pin };
    }
}

super::default_is_new!(Pl061);

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = 0x3fc;

    #[test]
    fn reset_values() {
        let gpio = Pl061::new();
        assert_eq!((gpio.read(GPIODIR), gpio.read(GPIOAFSEL)), (Ok(0), Ok(0)));
        assert_eq!(gpio.read(ALL), Ok(0xff), "an input reads its pad: pulled up");
        let ids: Vec<u32> = (0..8).map(|index| gpio.read(0xfe0 + 4 * index).unwrap()).collect();
        assert_eq!(ids, [0x61, 0x10, 0x04, 0x00, 0x0d, 0xf0, 0x05, 0xb1]);
        for offset in [0x404, 0x41c, 0x424, 0x1000, 0x2, 0xfe1] {
            assert_eq!(gpio.read(offset), Err(NoRegister), "{offset:#x}");
            assert_eq!(gpio.clone().write(offset, 0), Err(NoRegister), "{offset:#x}");
        }
    }

    #[test]
    fn the_address_masks_reads_and_writes() {
        let mut gpio = Pl061::new();
        gpio.write(GPIODIR, 0xff).unwrap();
        assert_eq!(gpio.pads(), 0, "what was never written is 0");
        for mask in 0..=0xff_u32 {
            gpio.write(ALL, 0xa5).unwrap();
            gpio.write(mask << 2, 0x5a).unwrap();
            let expected = 0xa5 & !mask | 0x5a & mask;
            assert_eq!(gpio.pads(), u64::from(expected), "{mask:#x}");
            assert_eq!(gpio.read(ALL), Ok(expected));
            assert_eq!(gpio.read(mask << 2), Ok(expected & mask));
        }
        assert_eq!(gpio.read(0), Ok(0), "no bit asked for");
        gpio.write(0xfe0, 0).unwrap();
        assert_eq!(gpio.read(0xfe0), Ok(0x61));
    }

    #[test]
    fn a_pin_drives_when_its_gpiodir_bit_is_set() {
        let mut gpio = Pl061::new();
        gpio.write(ALL, 0xff).unwrap();
        gpio.write(GPIODIR, 0x03).unwrap();
        assert_eq!(gpio.pads(), 0xfc, "what was written to an input is not kept");
        gpio.write(0x01 << 2, 0xff).unwrap();
        assert_eq!(gpio.pads(), 0xfd);
        gpio.set_outside(0, false);
        gpio.set_outside(7, false);
        gpio.set_outside(200, false);
        assert_eq!((gpio.pads(), gpio.read(ALL)), (0x7d, Ok(0x7d)), "outside moves inputs only");
        // An input again, then an output again: the level is the old one.
        gpio.write(GPIODIR, 0).unwrap();
        assert_eq!(gpio.read(0x01 << 2), Ok(0));
        gpio.write(GPIODIR, 0x01).unwrap();
        assert_eq!(gpio.read(0x01 << 2), Ok(1));
        // Hardware control takes the pad, and GPIODATA reads what was written.
        gpio.write(GPIOAFSEL, 0x01).unwrap();
        assert_eq!((gpio.pads() & 1, gpio.read(0x01 << 2)), (0, Ok(1)));
    }

    #[test]
    fn an_input_keeps_its_level_where_it_is_read_so() {
        let mut gpio = Pl061::new().with_input_level(InputLevel::Kept);
        gpio.write(0x01 << 2, 0xff).unwrap();
        gpio.set_outside(0, false);
        assert_eq!(gpio.read(0x01 << 2), Ok(0), "an input reads its pad");
        gpio.write(GPIODIR, 0x03).unwrap();
        assert_eq!((gpio.pads(), gpio.read(ALL)), (0xfd, Ok(0xfd)));
    }
}
