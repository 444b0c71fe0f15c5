//! Buses on mapped registers as text, for a command line: what follows `uio:` and `mem:`.
//!
//! **Experimental until it has run under a kernel**, as the buses are.
//!
//! ```text
//! uio:uio0,reference-hz=80000000,cs=gpio@0x30240000.9,poll-limit-us=50
//! mem:0x30820000,reference-hz=80M,cs=native0+gpio@0x30240000.9
//! ```
//!
//! | part | means |
//! |---|---|
//! | `uioN`, `/dev/uioN` | the UIO device; its first block is the controller |
//! | `0xADDRESS` | where the controller's registers begin |
//! | `reference-hz=HZ` | the controller's reference clock; `k` and `M` count by 1,000 |
//! | `cs=LINE[+LINE…]` | up to four chip selects, numbered from 0 as they stand |
//! | `nativeN` | the controller's own line N, 0 to 3 |
//! | `gpio@0xBANK.PIN` | pin 0 to 31 of the GPIO bank at that address |
//! | `ignore-clock` | go on where the controller's clock gate reads closed |
//! | `poll-limit-us=N` | transfers longer than N µs on the wire wait by UIO's interrupt; without, all are polled |
//! | `shared`, `shared=/PATH` | other processes use it too: the lock between them, see [`SharedAt`] |
//!
//! Both functions are pure: nothing is opened.

use std::fmt;

use crate::map::{CsPin, EcspiSpec, SharedAt, SpecError, Via};

/// How a bus through UIO is written.
pub const UIO_SYNTAX: &str =
    "uio:uioN,reference-hz=HZ,cs=LINE[+LINE…][,ignore-clock][,poll-limit-us=N][,shared[=PATH]]";
/// How a bus through `/dev/mem` is written.
pub const MEM_SYNTAX: &str =
    "mem:0xADDRESS,reference-hz=HZ,cs=LINE[+LINE…][,ignore-clock][,shared[=PATH]]";

const REFERENCE_HZ: &str = "reference-hz";
const CS: &str = "cs";
const IGNORE_CLOCK: &str = "ignore-clock";
const POLL_LIMIT_US: &str = "poll-limit-us";
const SHARED: &str = "shared";
const OPTIONS: [&str; 5] = [REFERENCE_HZ, CS, IGNORE_CLOCK, POLL_LIMIT_US, SHARED];

/// What is wrong with a bus's text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusTextError {
    /// What stands first is no device or address.
    Device {
        /// What stands there.
        text: String,
        /// What should.
        expected: &'static str,
    },
    /// There is no such option.
    UnknownOption {
        /// What was given.
        option: String,
        /// What was probably meant.
        near: Option<&'static str>,
    },
    /// An option is given twice.
    Twice {
        /// Which.
        option: &'static str,
    },
    /// An option that must be given is not.
    Missing {
        /// Which.
        option: &'static str,
        /// How it looks.
        example: &'static str,
    },
    /// An option's value cannot be read.
    Value {
        /// Which option.
        option: &'static str,
        /// What was given.
        value: String,
        /// What should be.
        expected: &'static str,
    },
    /// More chip selects than the controller's table holds.
    TooManyLines {
        /// How many.
        count: usize,
    },
    /// It can be read, and makes no sense.
    Spec(SpecError),
}

impl fmt::Display for BusTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { text, expected } => write!(f, "{text:?} is not {expected}"),
            Self::UnknownOption { option, near } => {
                write!(f, "there is no option {option:?}: ")?;
                if let Some(near) = near {
                    write!(f, "did you mean {near:?}? ")?;
                }
                write!(f, "(known: {})", OPTIONS.join(", "))
            }
            Self::Twice { option } => write!(f, "option {option} is given twice"),
            Self::Missing { option, example } => {
                write!(f, "option {option} is missing: add {example}")
            }
            Self::Value { option, value, expected } => {
                write!(f, "option {option}: {value:?} is not {expected}")
            }
            Self::TooManyLines { count } => {
                write!(f, "option {CS}: {count} chip selects are more than the 4 there can be")
            }
            Self::Spec(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BusTextError {}

/// Reads what follows `uio:`.
///
/// # Errors
/// Every variant of [`BusTextError`].
pub fn parse_uio(rest: &str) -> Result<EcspiSpec, BusTextError> {
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
pub fn parse_mem(rest: &str) -> Result<EcspiSpec, BusTextError> {
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

fn parse_options(via: Via, options: Option<&str>) -> Result<EcspiSpec, BusTextError> {
    let (mut reference_hz, mut chip_selects) = (None, None);
    let (mut ignore_clock, mut poll_limit_us, mut shared) = (None, None, None);
    for part in options.into_iter().flat_map(|options| options.split(',')) {
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (part, None),
        };
        let twice = match key {
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
                    near: near(key),
                });
            }
        };
        if twice {
            let option = OPTIONS.into_iter().find(|option| *option == key).unwrap_or_default();
            return Err(BusTextError::Twice { option });
        }
    }
    let missing = |option, example| BusTextError::Missing { option, example };
    let spec = EcspiSpec {
        via,
        reference_hz: reference_hz
            .ok_or_else(|| missing(REFERENCE_HZ, "the block's clock, as reference-hz=80M"))?,
        chip_selects: chip_selects
            .ok_or_else(|| missing(CS, "a chip select, as cs=native0 or cs=gpio@0x30240000.9"))?,
        ignore_clock: ignore_clock.is_some(),
        poll_limit_us,
        shared,
    };
    spec.check().map_err(BusTextError::Spec)?;
    Ok(spec)
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

/// The option that `word` is a slip of, if it is like any.
fn near(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    // Half an option is one, too: `reference`, `clock`.
    let part = |option: &str| word.len() >= 3 && option.contains(&word);
    let like = |option: &str| edits(&word, option) <= 1 + option.len() / 4;
    let mut near: Vec<_> =
        OPTIONS.into_iter().filter(|option| part(option) || like(option)).collect();
    near.sort_by_key(|option| edits(&word, option));
    // One letter is as near to "cs" as any other word is.
    near.into_iter().next().filter(|_| word.chars().count() > 1)
}

/// How many letters must be added, dropped or changed to make one word the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, &wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != wanted);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpio(bit: u8) -> Option<CsPin> {
        Some(CsPin::Gpio { address: 0x3024_0000, bit })
    }

    #[test]
    fn the_documented_texts_are_read() {
        let text = "uio0,reference-hz=80000000,cs=gpio@0x30240000.9,poll-limit-us=50";
        let spec = parse_uio(text).expect("reads");
        let expected = EcspiSpec {
            via: Via::Uio { device: "uio0".into() },
            reference_hz: 80_000_000,
            chip_selects: [gpio(9), None, None, None],
            ignore_clock: false,
            poll_limit_us: Some(50),
            shared: None,
        };
        assert_eq!(spec, expected);
        assert_eq!(spec.to_string(), "uio:uio0");

        let text = "0x30820000,reference-hz=80000000,cs=native0+gpio@0x30240000.9";
        let spec = parse_mem(text).expect("reads");
        let native = Some(CsPin::Native { channel: 0 });
        let expected = EcspiSpec {
            via: Via::DevMem { address: 0x3082_0000 },
            chip_selects: [native, gpio(9), None, None],
            poll_limit_us: None,
            ..expected
        };
        assert_eq!(spec, expected);
        assert_eq!(spec.to_string(), "mem:0x30820000");
    }

    #[test]
    fn options_come_in_any_order_and_numbers_as_people_write_them() {
        let text = "/dev/uio12,ignore-clock,cs=gpio@0X3024_0000.0+gpio@0x30240000.31+native3+native1,reference-hz=66_500k";
        let spec = parse_uio(text).expect("reads");
        assert_eq!(spec.via, Via::Uio { device: "uio12".into() });
        assert_eq!(spec.reference_hz, 66_500_000);
        let native = |channel| Some(CsPin::Native { channel });
        assert_eq!(spec.chip_selects, [gpio(0), gpio(31), native(3), native(1)]);
        assert!(spec.ignore_clock);
        assert_eq!(spec.shared, None);
        let shared = |option: &str| {
            parse_uio(&format!("uio0,{option},reference-hz=80M,cs=native0")).map(|spec| spec.shared)
        };
        assert_eq!(shared("shared"), Ok(Some(SharedAt::Default)));
        assert_eq!(shared("shared=/a/b"), Ok(Some(SharedAt::File("/a/b".into()))));
        let hertz = |value: &str| {
            parse_mem(&format!("0x0,cs=native0,reference-hz={value}")).map(|spec| spec.reference_hz)
        };
        assert_eq!(hertz("80M"), Ok(80_000_000));
        assert_eq!(hertz("1"), Ok(1));
        assert_eq!(hertz("4294967295"), Ok(u32::MAX));
        assert!(hertz("4294967296").is_err());
    }

    #[test]
    fn what_cannot_be_read_is_told_with_what_could() {
        let good = "reference-hz=80M,cs=native0";
        for (text, part) in [
            ("", "write uio0 or /dev/uio0"),
            ("uio", "write uio0"),
            ("uio0x", "write uio0"),
            ("../mem", "write uio0"),
            ("/dev/mem", "write uio0"),
            ("uio0", "option reference-hz is missing"),
            (
                "uio0,",
                "no option \"\": (known: reference-hz, cs, ignore-clock, poll-limit-us, shared)",
            ),
            ("uio0,poll-limit=5", "did you mean \"poll-limit-us\"?"),
            ("uio0,poll-limit-us", "\"\" is not a time in microseconds"),
            ("uio0,poll-limit-us=5us", "write 50"),
            ("uio0,poll-limit-us=-1", "write 50"),
            ("uio0,poll-limit-us=4294967296", "write 50"),
            ("uio0,poll-limit-us=1,poll-limit-us=2", "poll-limit-us is given twice"),
            ("uio0,reference-hz=1,cs=native0,poll-limit-us=4294968", "at most 4294967 µs"),
            ("uio0,cs=native0", "reference-hz=80M"),
            ("uio0,reference-hz=80M", "cs=native0 or cs=gpio@0x30240000.9"),
            ("uio0,reference=80M", "did you mean \"reference-hz\"?"),
            ("uio0,refernce-hz=80M", "did you mean \"reference-hz\"?"),
            ("uio0,Reference_Hz=80M", "did you mean \"reference-hz\"?"),
            ("uio0,css=native0", "did you mean \"cs\"?"),
            ("uio0,clock", "did you mean \"ignore-clock\"?"),
            ("uio0,zzz=1", "no option \"zzz\": (known"),
            ("uio0,x=1", "no option \"x\": (known"),
            ("uio0,cs=native0,cs=native0", "cs is given twice"),
            ("uio0,ignore-clock,ignore-clock", "ignore-clock is given twice"),
            ("uio0,ignore-clock=yes", "takes no value"),
            ("uio0,shared,shared=/x", "shared is given twice"),
            ("uio0,shared=", "\"\" is not a path from the root"),
            ("uio0,shared=spi.lock", "shared=/run/lock/spi.lock, or shared alone"),
            ("uio0,share", "did you mean \"shared\"?"),
            ("uio0,reference-hz", "80000000 or 80M"),
            ("uio0,reference-hz=fast", "80000000 or 80M"),
            ("uio0,reference-hz=-1", "80000000 or 80M"),
            ("uio0,reference-hz=18446744073709551615M", "80000000 or 80M"),
            ("uio0,reference-hz=0,cs=native0", "0 Hz"),
            ("uio0,cs=", "\"\" is not a chip select"),
            ("uio0,cs=native", "native0"),
            ("uio0,cs=native0+", "\"\" is not a chip select"),
            ("uio0,cs=gpio@30240000.9", "gpio@0x30240000.9"),
            ("uio0,cs=gpio@0x30240000", "pin 9"),
            ("uio0,cs=gpio@0x30240000.256", "pin 9"),
            ("uio0,cs=gpio9", "pin 9"),
            ("uio0,cs=native0+native1+native2+native3+native0", "5 chip selects"),
            ("uio0,reference-hz=1,cs=native4", "no line 4 of its own: they are 0 to 3"),
            ("uio0,reference-hz=1,cs=gpio@0x1000.32", "no pin 32: they are 0 to 31"),
            ("uio0,reference-hz=1,cs=gpio@0x1000.1+gpio@0x2000.1", "at 0x1000 and at 0x2000"),
        ] {
            let error = parse_uio(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for text in ["", "30820000", "0x", "0xg", "uio0", "0x1_0000_0000_0000_0000", "0x+1"] {
            let error = parse_mem(&format!("{text},{good}")).expect_err(text).to_string();
            assert!(error.contains("as 0x30820000"), "{text}: {error}");
        }
        assert!(parse_mem(&format!("0x3082_0000,{good}")).is_ok());
        let error = parse_mem(&format!("0x0,{good},poll-limit-us=5")).expect_err("no interrupt");
        assert!(error.to_string().contains("map the controller through UIO"), "{error}");
        let limit = |us| parse_uio(&format!("uio0,{good},poll-limit-us={us}"));
        assert_eq!(limit(0).map(|spec| spec.poll_limit_us), Ok(Some(0)));
        assert_eq!(limit(50).map(|spec| spec.poll_limit_us), Ok(Some(50)));
    }

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in
            [("", "", 0), ("", "cs", 2), ("cs", "", 2), ("cs", "sc", 2), ("kitten", "sitting", 3)]
        {
            assert_eq!(edits(one, other), count, "{one:?} {other:?}");
        }
    }

    proptest::proptest! {
        /// Whatever is typed is read or refused, and what is read makes sense.
        #[test]
        fn no_text_makes_it_panic(
            pieces in proptest::collection::vec(
                proptest::sample::select(vec![
                    "uio", "0", "0x", "3082", ",", "=", "+", ".", "@", "_", "-", "reference-hz",
                    "cs", "ignore-clock", "poll-limit-us", "native", "gpio", "gpio@0x1000.", "M", "k", "é", "\0",
                    "18446744073709551616", "uio0,reference-hz=1,cs=",
                ]),
                0..12,
            ),
        ) {
            let text = pieces.concat();
            for read in [parse_uio(&text), parse_mem(&text)] {
                match read {
                    Ok(spec) => proptest::prop_assert_eq!(spec.check(), Ok(())),
                    Err(error) => proptest::prop_assert!(!error.to_string().is_empty()),
                }
            }
        }
    }
}
