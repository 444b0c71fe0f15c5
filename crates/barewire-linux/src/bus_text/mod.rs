//! Buses on mapped registers as text, for a command line: what follows `uio:` and `mem:`.
//!
//! **Experimental until it has run under a kernel**, as the buses are.
//!
//! ```text
//! uio:uio0,reference-hz=80000000,cs=gpio@0x30240000.9,poll-limit-us=50
//! mem:0x30820000,reference-hz=80M,cs=native0+gpio@0x30240000.9
//! mem:0x3f204000,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8
//! ```
//!
//! | part | means |
//! |---|---|
//! | `uioN`, `/dev/uioN` | the UIO device; its first block is the controller |
//! | `0xADDRESS` | where the controller's registers begin |
//! | `controller=NAME` | which block it is: `ecspi` (unless told), `bcm2835`, `pl022`, `atmel` |
//! | `reference-hz=HZ` | the controller's reference clock; `k` and `M` count by 1,000 |
//! | `cs=LINE[+LINE…]` | up to four chip selects, numbered from 0 as they stand |
//! | `nativeN` | the controller's own line N: 0 to 3, of bcm2835 0 and 1, of pl022 0 alone |
//! | `gpio@0xBANK.PIN` | pin 0 to 31, of pl022's PL061 0 to 7, of the GPIO bank at that address |
//! | `pipe=NAME` | atmel's words on the way: `wait-data-read` (unless told), `one-word`, `two-words`, see [`Pipe`] |
//! | `ignore-clock` | go on where the controller's clock gate reads closed |
//! | `poll-limit-us=N` | transfers longer than N µs on the wire wait by UIO's interrupt; without, all are polled |
//! | `shared`, `shared=/PATH` | other processes use it too: the lock between them, see [`SharedAt`] |
//!
//! Both functions are pure: nothing is opened.

mod error;
#[cfg(test)]
mod tests;
mod words;

pub use error::BusTextError;

use barewire::controller::atmel::Pipe;

use crate::map::{Block, CsPin, MapSpec, SharedAt, Via};
use words::near;

/// How a bus through UIO is written.
pub const UIO_SYNTAX: &str = "uio:uioN[,controller=NAME],reference-hz=HZ,cs=LINE[+LINE…][,pipe=NAME][,ignore-clock][,poll-limit-us=N][,shared[=PATH]]";
/// How a bus through `/dev/mem` is written.
pub const MEM_SYNTAX: &str = "mem:0xADDRESS[,controller=NAME],reference-hz=HZ,cs=LINE[+LINE…][,pipe=NAME][,ignore-clock][,shared[=PATH]]";

const CONTROLLER: &str = "controller";
const REFERENCE_HZ: &str = "reference-hz";
const CS: &str = "cs";
const PIPE: &str = "pipe";
const IGNORE_CLOCK: &str = "ignore-clock";
const POLL_LIMIT_US: &str = "poll-limit-us";
const SHARED: &str = "shared";
const OPTIONS: [&str; 7] =
    [CONTROLLER, REFERENCE_HZ, CS, PIPE, IGNORE_CLOCK, POLL_LIMIT_US, SHARED];

/// Atmel's pipes by their names.
const PIPES: [(&str, Pipe); 3] = [
    ("wait-data-read", Pipe::WaitDataRead),
    ("one-word", Pipe::OneWord),
    ("two-words", Pipe::TwoWords),
];

/// Reads what follows `uio:`.
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

/// Reads what follows `mem:`.
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

/// What stands before the first comma, and what after.
fn split(rest: &str) -> (&str, Option<&str>) {
    match rest.split_once(',') {
        Some((first, options)) => (first, Some(options)),
        None => (rest, None),
    }
}

fn parse_options(via: Via, options: Option<&str>) -> Result<MapSpec, BusTextError> {
    let (mut block, mut pipe, mut reference_hz, mut chip_selects) = (None, None, None, None);
    let (mut ignore_clock, mut poll_limit_us, mut shared) = (None, None, None);
    for part in options.into_iter().flat_map(|options| options.split(',')) {
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (part, None),
        };
        let twice = match key {
            CONTROLLER => block.replace(parse_block(value.unwrap_or(""))?).is_some(),
            PIPE => pipe.replace(parse_pipe(value.unwrap_or(""))?).is_some(),
            REFERENCE_HZ => reference_hz.replace(parse_hertz(value.unwrap_or(""))?).is_some(),
            POLL_LIMIT_US => poll_limit_us.replace(parse_limit(value.unwrap_or(""))?).is_some(),
            CS => chip_selects.replace(parse_lines(value.unwrap_or(""))?).is_some(),
            IGNORE_CLOCK => {
                if let Some(value) = value {
                    let (value, expected) = (value.to_owned(), "needed: it takes no value");
                    return Err(BusTextError::Value { option: IGNORE_CLOCK, value, expected });
                }
                ignore_clock.replace(()).is_some()
            }
            SHARED => shared.replace(parse_shared(value)?).is_some(),
            _ => {
                return Err(BusTextError::UnknownOption {
                    option: key.to_owned(),
                    near: near(key, &OPTIONS),
                });
            }
        };
        if twice {
            let option = OPTIONS.into_iter().find(|option| *option == key).unwrap_or_default();
            return Err(BusTextError::Twice { option });
        }
    }
    let missing = |option, example| BusTextError::Missing { option, example };
    let spec = MapSpec {
        // The first there was, and so the one that names without it mean.
        block: block.unwrap_or(Block::Ecspi),
        via,
        reference_hz: reference_hz
            .ok_or_else(|| missing(REFERENCE_HZ, "the block's clock, as reference-hz=80M"))?,
        chip_selects: chip_selects
            .ok_or_else(|| missing(CS, "a chip select, as cs=native0 or cs=gpio@0x30240000.9"))?,
        pipe,
        ignore_clock: ignore_clock.is_some(),
        poll_limit_us,
        shared,
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

/// Hertz, with a suffix that counts by 1,000.
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

/// Microseconds; whether they are too many the specification says.
fn parse_limit(value: &str) -> Result<u32, BusTextError> {
    decimal(value).and_then(|us| u32::try_from(us).ok()).ok_or_else(|| {
        let expected = "a time in microseconds: write 50, or 0 to poll for nothing";
        BusTextError::Value { option: POLL_LIMIT_US, value: value.to_owned(), expected }
    })
}

fn parse_shared(value: Option<&str>) -> Result<SharedAt, BusTextError> {
    match value {
        None => Ok(SharedAt::Default),
        Some(path) if path.starts_with('/') => Ok(SharedAt::File(path.into())),
        Some(path) => {
            // Every process must name the same file, wherever it was started.
            let expected = "a path from the root: write shared=/run/lock/spi.lock, or shared alone";
            Err(BusTextError::Value { option: SHARED, value: path.to_owned(), expected })
        }
    }
}

fn parse_lines(value: &str) -> Result<[Option<CsPin>; 4], BusTextError> {
    let count = value.split('+').count();
    let mut lines = [None; 4];
    if count > lines.len() {
        return Err(BusTextError::TooManyLines { count });
    }
    for (line, text) in lines.iter_mut().zip(value.split('+')) {
        let pin = parse_line(text).ok_or_else(|| {
            let expected = "a chip select: write native0, or gpio@0x30240000.9 for pin 9 of that bank; several joined by +";
            BusTextError::Value { option: CS, value: text.to_owned(), expected }
        })?;
        *line = Some(pin);
    }
    Ok(lines)
}

fn parse_line(text: &str) -> Option<CsPin> {
    if let Some(channel) = text.strip_prefix("native") {
        let channel = decimal(channel)?.try_into().ok()?;
        return Some(CsPin::Native { channel });
    }
    let (bank, pin) = text.strip_prefix("gpio@")?.split_once('.')?;
    let bit = decimal(pin)?.try_into().ok()?;
    Some(CsPin::Gpio { address: hexadecimal(bank)?, bit })
}

/// A decimal number, with `_` between digits if wanted.
fn decimal(text: &str) -> Option<u64> {
    digits(text, 10)
}

/// A hexadecimal number, only with its prefix: an address without is more likely a slip.
fn hexadecimal(text: &str) -> Option<u64> {
    digits(text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?, 16)
}

fn digits(text: &str, radix: u32) -> Option<u64> {
    let digits: String = text.chars().filter(|&digit| digit != '_').collect();
    // `from_str_radix` takes a sign, which has no meaning here.
    let plain = digits.chars().all(|digit| digit.is_digit(radix));
    plain.then(|| u64::from_str_radix(&digits, radix).ok()).flatten()
}
