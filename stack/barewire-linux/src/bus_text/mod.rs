//! Buses on mapped registers as text, for a command line: the part after `barewire:`, `uio:` or `mem:`.
//!
//! **Experimental until it has run on a board**, like the buses themselves.
//!
//! ```text
//! barewire:0
//! barewire:0,cs=line1,shared,poll-limit-us=50
//! uio:uio0,reference-hz=80000000,cs=gpio@0x30240000.9,poll-limit-us=50
//! mem:0x30820000,reference-hz=80M,cs=native0+gpio@0x30240000.9
//! mem:0x3f204000,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8
//! mem:0x30820000,reference-hz=80M,cs=gpio@0x30240000:9+gpio@pca9535:3:high
//! ```
//!
//! | part | means |
//! |---|---|
//! | `N`, `/dev/barewireN` | a controller that the kernel module's driver `barewire-user` has. The kernel says which block and clock it has, and, without `cs`, its chip selects; it is exclusive unless told `shared` |
//! | `lineN` | `barewire:` only: the chip select with that number in the device tree, native or a GPIO |
//! | `uioN`, `/dev/uioN` | the UIO device; its first block is the controller |
//! | `0xADDRESS` | the address of the controller's first register |
//! | `controller=NAME` | the block, by its [`name`](Block::name); the default is [`Block::DEFAULT`] |
//! | `reference-hz=HZ` | the controller's reference clock; the suffixes `k` and `M` mean 1,000 and 1,000,000 |
//! | `cs=LINE[+LINE…]` | up to four chip selects, numbered from 0 in this order |
//! | `nativeN` | the controller's native line N, from 0 to the block's last |
//! | `gpio@0xBANK.PIN` | a GPIO through the registers of the bank at that address: a pin from 0 to the bank's last |
//! | `gpio@0xBANK:PIN` | a GPIO through the kernel: line PIN of the GPIO chip whose registers are at that address |
//! | `gpio@LABEL:PIN` | as the line above, of the GPIO chip with that label. Chips' numbers are not accepted: they change from kernel to kernel |
//! | `LINE:high` | the chip select is active high; the default is low |
//! | `pipe=NAME` | how many words a block without a FIFO (Atmel's) has in flight: `wait-data-read` (the default), `one-word`, `two-words`, see [`Pipe`] |
//! | `ignore-clock` | continue even if the controller's clock is off or unknown, or has another rate |
//! | `poll-limit-us=N` | transfers longer than N µs on the wire wait for UIO's interrupt; by default all are polled |
//! | `shared=/PATH` | the file of the lock between the processes that use the controller, see [`LockAt`]; `shared` alone means the default |
//! | `exclusive`, `exclusive=/PATH` | no other process may use the controller while the bus is open: no message needs the lock |
//! | `unsafe-shared` | write GPIO banks' registers even if others use the bank, see [`gpio`](crate::gpio) |
//! | `node=NAME[+NAME…]` | use registers that the device tree gives to that node, or with `none` to no node, see [`MapSpec::nodes`] |
//!
//! All functions are pure: they open nothing.

mod error;
#[cfg(test)]
mod tests;

pub use crate::map::text::text;
pub use error::BusTextError;

use barewire::controller::atmel::Pipe;
use strsim::levenshtein;

use crate::gpio::{GpioChip, GpioLine, Sense};
use crate::map::text::{
    CONTROLLER, CS, EXCLUSIVE, IGNORE_CLOCK, NODE, OPTIONS, PIPE, PIPES, POLL_LIMIT_US,
    REFERENCE_HZ, SHARED, UNSAFE_SHARED,
};
use crate::map::{Block, CsLineAt, CsPin, LockAt, MapSpec, Via};

/// The options that `barewire:` has not.
const KNOWN_BY_KERNEL: [&str; 4] = [CONTROLLER, REFERENCE_HZ, IGNORE_CLOCK, NODE];

/// The most digits of a chip's number.
const CHIP_DIGITS_MAX: usize = 4;

/// Parses the text after `uio:`.
///
/// # Errors
/// Every variant of [`BusTextError`].
pub fn parse_uio(rest: &str) -> Result<MapSpec, BusTextError> {
    let (device, options) = split(rest);
    let name = device.strip_prefix("/dev/").unwrap_or(device);
    let number = name.strip_prefix("uio").unwrap_or_default();
    if number.is_empty() || !number.bytes().all(|digit| digit.is_ascii_digit()) {
        let expected = "a UIO device: write uio0 or /dev/uio0";
        return Err(BusTextError::Device { text: device.to_owned(), expected });
    }
    parse_options(Via::Uio { device: name.to_owned() }, options)
}

/// Parses the text after `barewire:`.
///
/// # Errors
/// Every variant of [`BusTextError`].
pub fn parse_door(rest: &str) -> Result<MapSpec, BusTextError> {
    let (device, options) = split(rest);
    let name = device.strip_prefix("/dev/").unwrap_or(device);
    let number = name.strip_prefix("barewire").unwrap_or(name);
    if number.is_empty() || !number.bytes().all(|digit| digit.is_ascii_digit()) {
        let expected = "a controller of the kernel module: write 0 or /dev/barewire0";
        return Err(BusTextError::Device { text: device.to_owned(), expected });
    }
    parse_options(Via::Door { device: format!("barewire{number}") }, options)
}

/// Parses the text after `mem:`.
///
/// # Errors
/// Every variant of [`BusTextError`].
pub fn parse_mem(rest: &str) -> Result<MapSpec, BusTextError> {
    let (text, options) = split(rest);
    let Some(address) = hexadecimal(text) else {
        let expected = "an address: write where the controller's registers begin, as 0x30820000";
        return Err(BusTextError::Device { text: text.to_owned(), expected });
    };
    parse_options(Via::DevMem { address }, options)
}

/// Splits at the first comma.
fn split(rest: &str) -> (&str, Option<&str>) {
    match rest.split_once(',') {
        Some((first, options)) => (first, Some(options)),
        None => (rest, None),
    }
}

fn parse_options(via: Via, options: Option<&str>) -> Result<MapSpec, BusTextError> {
    let (mut block, mut pipe, mut reference_hz, mut chip_selects) = (None, None, None, None);
    let (mut ignore_clock, mut poll_limit_us, mut shared) = (None, None, None);
    let (mut exclusive, mut unsafe_shared, mut nodes) = (None, None, None);
    for part in options.into_iter().flat_map(|options| options.split(',')) {
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (part, None),
        };
        if let (Via::Door { .. }, Some(option)) =
            (&via, KNOWN_BY_KERNEL.into_iter().find(|&option| option == key))
        {
            return Err(BusTextError::KnownByKernel { option });
        }
        let twice = match key {
            CONTROLLER => block.replace(parse_block(value.unwrap_or(""))?).is_some(),
            PIPE => pipe.replace(parse_pipe(value.unwrap_or(""))?).is_some(),
            REFERENCE_HZ => reference_hz.replace(parse_hertz(value.unwrap_or(""))?).is_some(),
            POLL_LIMIT_US => poll_limit_us.replace(parse_limit(value.unwrap_or(""))?).is_some(),
            CS => chip_selects.replace(parse_lines(value.unwrap_or(""))?).is_some(),
            IGNORE_CLOCK => ignore_clock.replace(parse_flag(IGNORE_CLOCK, value)?).is_some(),
            UNSAFE_SHARED => unsafe_shared.replace(parse_flag(UNSAFE_SHARED, value)?).is_some(),
            NODE => nodes.replace(parse_nodes(value.unwrap_or(""))?).is_some(),
            SHARED => shared.replace(parse_lock(SHARED, value)?).is_some(),
            EXCLUSIVE => exclusive.replace(parse_lock(EXCLUSIVE, value)?).is_some(),
            _ => {
                return Err(BusTextError::UnknownOption {
                    option: key.to_owned(),
                    near: near(key, &OPTIONS),
                });
            }
        };
        if twice {
            let option = OPTIONS.into_iter().find(|option| *option == key).unwrap_or_default();
            return Err(BusTextError::Duplicate { option });
        }
    }
    if shared.is_some() && exclusive.is_some() {
        return Err(BusTextError::SharedOrExclusive);
    }
    let is_door = matches!(via, Via::Door { .. });
    let missing = |option, example| BusTextError::Missing { option, example };
    let spec = MapSpec {
        // The default is the block that was supported first: texts without the option mean it.
        block: block.unwrap_or(Block::DEFAULT),
        via,
        reference_hz: reference_hz
            .or(is_door.then_some(0))
            .ok_or_else(|| missing(REFERENCE_HZ, "the block's clock, as reference-hz=80M"))?,
        chip_selects: chip_selects
            .or(is_door.then_some([const { None }; 4]))
            .ok_or_else(|| missing(CS, "a chip select, as cs=native0 or cs=gpio@0x30240000:9"))?,
        pipe,
        ignore_clock: ignore_clock.is_some(),
        poll_limit_us,
        exclusive: exclusive.is_some() || is_door && shared.is_none(),
        lock: shared.or(exclusive).unwrap_or_default(),
        unsafe_shared: unsafe_shared.is_some(),
        nodes: nodes.unwrap_or_default(),
    };
    spec.check().map_err(BusTextError::Spec)?;
    Ok(spec)
}

fn parse_block(name: &str) -> Result<Block, BusTextError> {
    let known = Block::ALL.map(Block::name);
    Block::named(name).ok_or_else(|| unknown_name(CONTROLLER, name, &known))
}

fn parse_pipe(name: &str) -> Result<Pipe, BusTextError> {
    let found = PIPES.into_iter().find(|&(known, _)| known == name);
    found
        .map(|(_, pipe)| pipe)
        .ok_or_else(|| unknown_name(PIPE, name, &PIPES.map(|(known, _)| known)))
}

fn unknown_name(option: &'static str, name: &str, known: &[&'static str]) -> BusTextError {
    let (near, known) = (near(name, known), known.to_vec());
    BusTextError::UnknownName { option, name: name.to_owned(), near, known }
}

/// Parses hertz, with an optional suffix `k` or `M`.
fn parse_hertz(value: &str) -> Result<u32, BusTextError> {
    let (digits, factor) = if let Some(digits) = value.strip_suffix(['k', 'K']) {
        (digits, 1_000)
    } else if let Some(digits) = value.strip_suffix(['m', 'M']) {
        (digits, 1_000_000)
    } else {
        (value, 1)
    };
    let hertz = decimal(digits).and_then(|number| number.checked_mul(factor));
    hertz.and_then(|hertz| u32::try_from(hertz).ok()).ok_or_else(|| {
        let expected = "a clock in hertz: write 80000000 or 80M";
        BusTextError::Value { option: REFERENCE_HZ, value: value.to_owned(), expected }
    })
}

/// Parses microseconds; the specification checks the maximum.
fn parse_limit(value: &str) -> Result<u32, BusTextError> {
    decimal(value).and_then(|us| u32::try_from(us).ok()).ok_or_else(|| {
        let expected = "a time in microseconds: write 50, or 0 to poll for nothing";
        BusTextError::Value { option: POLL_LIMIT_US, value: value.to_owned(), expected }
    })
}

fn parse_lock(option: &'static str, value: Option<&str>) -> Result<LockAt, BusTextError> {
    match value {
        None => Ok(LockAt::Default),
        Some(path) if path.starts_with('/') => Ok(LockAt::File(path.into())),
        Some(path) => {
            // The path must be absolute: every process must name the same file, from any directory.
            let expected =
                "a path from the root: write one as /run/lock/spi.lock, or the option alone";
            Err(BusTextError::Value { option, value: path.to_owned(), expected })
        }
    }
}

fn parse_nodes(value: &str) -> Result<Vec<String>, BusTextError> {
    let names: Vec<String> = value.split('+').map(str::to_owned).collect();
    if names.iter().all(|name| !name.is_empty() && !name.contains('/')) {
        return Ok(names);
    }
    let expected = "the name of a device-tree node: write node=spi@7e204000, without its path, or node=none for an address of no node";
    Err(BusTextError::Value { option: NODE, value: value.to_owned(), expected })
}

/// Parses an option without a value.
fn parse_flag(option: &'static str, value: Option<&str>) -> Result<(), BusTextError> {
    let Some(value) = value else { return Ok(()) };
    let (value, expected) = (value.to_owned(), "needed: it takes no value");
    Err(BusTextError::Value { option, value, expected })
}

fn parse_lines(value: &str) -> Result<[Option<CsPin>; 4], BusTextError> {
    let count = value.split('+').count();
    let mut lines = [const { None }; 4];
    if count > lines.len() {
        return Err(BusTextError::TooManyLines { count });
    }
    for (line, text) in lines.iter_mut().zip(value.split('+')) {
        *line = Some(parse_line(text)?);
    }
    Ok(lines)
}

fn parse_line(text: &str) -> Result<CsPin, BusTextError> {
    let (place, active_high) = active_high(text);
    refuse_chip_number(CS, text, place)?;
    let at = native(place).or_else(|| numbered(text)).or_else(|| bank_pin(place));
    let at = at.or_else(|| kernel_line(place).map(CsLineAt::Kernel));
    let expected = "a chip select: write native0, gpio@0x30240000:9 for line 9 of that bank through the kernel, or gpio@0x30240000.9 for its registers; several joined by +";
    let wrong = || BusTextError::Value { option: CS, value: text.to_owned(), expected };
    Ok(CsPin { at: at.ok_or_else(wrong)?, active_high })
}

/// Parses the line of a chip's INT pin: `gpio@0x30240000:9` or `gpio@LABEL:9`, with `:high` if the
/// pin is high while the chip needs service. `option` is the option's name in error messages.
///
/// # Errors
/// [`BusTextError::ChipNumber`], [`BusTextError::Value`].
pub fn parse_interrupt_line(
    option: &'static str,
    text: &str,
) -> Result<(GpioLine, Sense), BusTextError> {
    let (place, high) = active_high(text);
    refuse_chip_number(option, text, place)?;
    let expected = "a GPIO line of the kernel: write gpio@0x30240000:9 for line 9 of the bank at that address, or gpio@LABEL:9";
    let wrong = || BusTextError::Value { option, value: text.to_owned(), expected };
    let line = kernel_line(place).ok_or_else(wrong)?;
    Ok((line, if high { Sense::High } else { Sense::Low }))
}

/// A line's text without its polarity, and whether it is active high.
fn active_high(text: &str) -> (&str, bool) {
    match text.strip_suffix(":high") {
        Some(place) => (place, true),
        None => (text, false),
    }
}

/// Refuses `/dev/gpiochip4`, `gpiochip4` and a bare 4.
fn refuse_chip_number(option: &'static str, text: &str, place: &str) -> Result<(), BusTextError> {
    let chip = match place.strip_prefix("gpio@") {
        Some(chip) => chip,
        None if place.contains("gpiochip") => place,
        None => return Ok(()),
    };
    let chip = chip.rsplit_once([':', '.']).map_or(chip, |(chip, _)| chip);
    let name = chip.strip_prefix("/dev/").unwrap_or(chip);
    let number = name.strip_prefix("gpiochip").unwrap_or(name);
    // More digits are an address without its prefix.
    let few = (1..=CHIP_DIGITS_MAX).contains(&number.len());
    match few && number.bytes().all(|digit| digit.is_ascii_digit()) {
        true => Err(BusTextError::ChipNumber { option, text: text.to_owned() }),
        false => Ok(()),
    }
}

fn native(text: &str) -> Option<CsLineAt> {
    let channel = decimal(text.strip_prefix("native")?)?.try_into().ok()?;
    Some(CsLineAt::Native { channel })
}

/// A chip select by its number in the device tree, which has its polarity too.
fn numbered(text: &str) -> Option<CsLineAt> {
    let line = decimal(text.strip_prefix("line")?)?.try_into().ok()?;
    Some(CsLineAt::Door { line })
}

fn bank_pin(text: &str) -> Option<CsLineAt> {
    let (bank, pin) = text.strip_prefix("gpio@")?.split_once('.')?;
    let bit = decimal(pin)?.try_into().ok()?;
    Some(CsLineAt::Gpio { address: hexadecimal(bank)?, bit })
}

fn kernel_line(text: &str) -> Option<GpioLine> {
    // Labels contain dots, and may contain colons: `30240000.gpio`.
    let (chip, offset) = text.strip_prefix("gpio@")?.rsplit_once(':')?;
    let offset = decimal(offset)?.try_into().ok()?;
    let chip = match hexadecimal(chip) {
        Some(address) => GpioChip::At(address),
        // A mistyped address is not a label.
        None if chip.starts_with("0x") || chip.bytes().all(|digit| digit.is_ascii_digit()) => {
            return None;
        }
        None => GpioChip::Labelled(chip.to_owned()),
    };
    Some(GpioLine { chip, offset })
}

/// A decimal number, optionally with `_` between digits.
fn decimal(text: &str) -> Option<u64> {
    digits(text, 10)
}

/// A hexadecimal number. The prefix is required: without it the text is more likely a mistake.
fn hexadecimal(text: &str) -> Option<u64> {
    digits(text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?, 16)
}

fn digits(text: &str, radix: u32) -> Option<u64> {
    let digits: String = text.chars().filter(|&digit| digit != '_').collect();
    // `from_str_radix` accepts a sign; this does not.
    let plain = digits.chars().all(|digit| digit.is_digit(radix));
    plain.then(|| u64::from_str_radix(&digits, radix).ok()).flatten()
}

/// The entry of `known` that `word` probably means, if any is similar.
fn near(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let word = word.to_lowercase();
    // Part of a word counts as similar, too: `reference`, `clock`.
    let part = |whole: &str| word.len() >= 3 && whole.contains(&word);
    let like = |whole: &str| levenshtein(&word, whole) <= 1 + whole.len() / 4;
    let near = known.iter().copied().filter(|&whole| part(whole) || like(whole));
    let nearest = near.min_by_key(|whole| levenshtein(&word, whole));
    // A single letter is as close to "cs" as any other word.
    nearest.filter(|_| word.chars().count() > 1)
}
