//! candump's formats: its log, written and read, and its lines for people.
//!
//! *Read first*: the manual page of can-utils' `candump` (`-L`, `-t`), and `canplayer`'s, which reads the
//! log.
//!
//! # The log
//! | line | is |
//! |---|---|
//! | `(1436509052.249713) can0 123#DEADBEEF` | a data frame: three digits are an identifier of 11 bits |
//! | `… can0 00000123#` | eight digits are one of 29; no data |
//! | `… can0 123#R4` | a remote frame that asks for 4 bytes; without a digit for none |
//! | `… can0 123#0011223344556677_9` | 8 bytes under a DLC above 8 |
//! | `… can0 123##1AABB` | CAN FD; the digit is flags: 1 bit rate switch, 2 error state, 4 always allowed |
//! | `… can0 20000040#0000000000000000` | an error, by its class |
//!
//! # Not supported
//! CAN XL. A direction (`R`, `T`) behind the frame is read and not kept.

use std::fmt;

use super::frame::{
    CLASSIC_MAX, CanFrame, ERROR_FLAG, ErrorFrame, FD_LENGTHS_TEXT, Kind, LogLine, id_of,
};
const US_PER_S: u64 = 1_000_000;

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CandumpLine {
    pub(super) at_us: u64,
    pub(super) interface: String,
    pub(super) what: LogLine,
}

impl fmt::Display for CanFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_extended() {
            true => write!(f, "{:08X}#", self.raw_id())?,
            false => write!(f, "{:03X}#", self.raw_id())?,
        }
        match self.kind {
            Kind::Data => {}
            Kind::Remote => match self.dlc() {
                0 => f.write_str("R")?,
                dlc => write!(f, "R{}", dlc.min(CLASSIC_MAX as u8))?,
            },
            Kind::Fd { brs, esi } => write!(f, "#{}", u8::from(brs) | u8::from(esi) << 1)?,
        }
        self.data().iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
        match self.dlc() {
            dlc if !self.is_fd() && usize::from(dlc) > CLASSIC_MAX => write!(f, "_{dlc:X}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for CanFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ErrorFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}#", ERROR_FLAG | self.class)?;
        self.data.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(frame) => frame.fmt(f),
            Self::Error(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for CandumpLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, us) = (self.at_us / US_PER_S, self.at_us % US_PER_S);
        write!(f, "({s:010}.{us:06}) {} {}", self.interface, self.what)
    }
}

/// Which time stands before a line for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Stamp {
    /// Absolute
    #[value(name = "a")]
    Absolute,
    /// Since the frame before
    #[value(name = "d")]
    Delta,
    /// Since the first frame
    #[value(name = "z")]
    Zero,
}

impl Stamp {
    /// A line for people about a frame at `at_us`. The other times are those of the previous frame and of
    /// the first one.
    pub(super) fn console(
        stamp: Option<Self>,
        line: &CandumpLine,
        before_us: Option<u64>,
        first_us: u64,
    ) -> String {
        let seconds = |us: u64, digits| {
            let (s, us) = (us / US_PER_S, us % US_PER_S);
            format!(" ({s:0digits$}.{us:06}) ")
        };
        let at_us = line.at_us;
        let time = match stamp {
            None => " ".into(),
            Some(Self::Absolute) => seconds(at_us, 10),
            Some(Self::Delta) => seconds(at_us.saturating_sub(before_us.unwrap_or(at_us)), 3),
            Some(Self::Zero) => seconds(at_us.saturating_sub(first_us), 3),
        };
        format!("{time} {}  {}", line.interface, bytes_for_people(&line.what))
    }
}

/// Identifier, length and bytes in columns.
fn bytes_for_people(what: &LogLine) -> String {
    let (id, length, bytes, end) = match what {
        LogLine::Error(error) => {
            let id = format!("{:08X}", ERROR_FLAG | error.class);
            (id, "   [8] ".into(), &error.data[..], "   ERRORFRAME")
        }
        LogLine::Frame(frame) => {
            let id = match frame.is_extended() {
                true => format!("{:08X}", frame.raw_id()),
                false => format!("{:03X}", frame.raw_id()),
            };
            let (length, end) = match frame.kind {
                Kind::Data => (format!("   [{}] ", frame.data().len()), ""),
                Kind::Remote => {
                    (format!("   [{}] ", frame.dlc().min(CLASSIC_MAX as u8)), " remote request")
                }
                Kind::Fd { .. } => (format!("  [{:02}] ", frame.data().len()), ""),
            };
            (id, length, frame.data(), end)
        }
    };
    let mut text = id + &length;
    bytes.iter().for_each(|byte| text += &format!(" {byte:02X}"));
    text + end
}

/// Reads a whole log. If a line is bad, the error names the line and no frame is returned.
pub(super) fn read_log(text: &str) -> Result<Vec<(usize, CandumpLine)>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| match parse_line(line) {
            Ok(line) => Ok((number, line)),
            Err(error) => Err(format!("line {number}: {error}")),
        })
        .collect()
}

/// Reads `(seconds.micros) interface frame`.
pub(super) fn parse_line(line: &str) -> Result<CandumpLine, String> {
    let mut fields = line.split_ascii_whitespace();
    let (Some(time), Some(interface), Some(frame)) = (fields.next(), fields.next(), fields.next())
    else {
        return Err(format!("{line:?} is no `(seconds.micros) interface frame`"));
    };
    match (fields.next(), fields.next()) {
        (None | Some("R" | "T"), None) => {}
        (more, _) => {
            return Err(format!("{:?} stands behind the frame", more.unwrap_or_default()));
        }
    }
    Ok(CandumpLine {
        at_us: parse_time(time)?,
        interface: interface.into(),
        what: parse_frame(frame)?,
    })
}

fn parse_time(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is no time as in (1436509052.249713)");
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let (s, us) = inner.and_then(|text| text.split_once('.')).ok_or_else(bad)?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(s) || !digits(us) || us.len() != 6 {
        return Err(bad());
    }
    let s: u64 = s.parse().map_err(|_| bad())?;
    let us: u64 = us.parse().map_err(|_| bad())?;
    s.checked_mul(US_PER_S).and_then(|all| all.checked_add(us)).ok_or_else(bad)
}

/// Reads `123#DEADBEEF` and its kin.
pub(super) fn parse_frame(text: &str) -> Result<LogLine, String> {
    let (id, rest) =
        text.split_once('#').ok_or_else(|| format!("{text:?} has no # behind its identifier"))?;
    let all_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let raw = u32::from_str_radix(id, 16).ok().filter(|_| all_hex && [3, 8].contains(&id.len()));
    let raw =
        raw.ok_or_else(|| format!("{id:?} is no identifier: 3 hex digits are 11 bits, 8 are 29"))?;
    let extended = id.len() == 8;
    if extended && raw & ERROR_FLAG != 0 {
        return parse_error(raw, rest);
    }
    let bits = if extended { 29 } else { 11 };
    let id = id_of(raw, extended).ok_or_else(|| format!("{id} has more than {bits} bits"))?;
    let frame = match rest.strip_prefix('#') {
        Some(rest) => {
            let mut chars = rest.chars();
            let flags =
                chars.next().and_then(|digit| digit.to_digit(16)).filter(|flags| flags & 8 == 0);
            let flags = flags.ok_or_else(|| format!("{text:?} has no flags (0 to 7) behind ##"))?;
            let data = bytes(chars.as_str(), text)?;
            let kind = Kind::Fd { brs: flags & 1 != 0, esi: flags & 2 != 0 };
            CanFrame::new(id, kind, &data).ok_or_else(|| {
                format!("{} bytes: a frame of CAN FD has {FD_LENGTHS_TEXT}", data.len())
            })?
        }
        None => classic(id, rest, text)?,
    };
    Ok(LogLine::Frame(frame))
}

fn classic(id: barewire::chip::mcp251xfd::Id, rest: &str, text: &str) -> Result<CanFrame, String> {
    let (body, raw_dlc) = match rest.split_once('_') {
        None => (rest, None),
        Some((body, dlc)) => {
            let digit = u8::from_str_radix(dlc, 16).ok().filter(|dlc| (9..=15).contains(dlc));
            let dlc = digit.ok_or_else(|| format!("{text:?}: behind _ is a DLC, 9 to F"))?;
            (body, Some(dlc))
        }
    };
    let (kind, data, dlc) = match body.strip_prefix(['R', 'r']) {
        Some(dlc) => {
            let digit = if dlc.is_empty() { Some(0) } else { dlc.parse::<u8>().ok() };
            let dlc = digit.filter(|&dlc| usize::from(dlc) <= CLASSIC_MAX);
            let dlc =
                dlc.ok_or_else(|| format!("{text:?}: a remote frame asks for 0 to 8 bytes"))?;
            (Kind::Remote, Vec::new(), dlc)
        }
        None => {
            let data = bytes(body, text)?;
            if data.len() > CLASSIC_MAX {
                let len = data.len();
                return Err(format!(
                    "{len} bytes: a classic frame has at most 8; CAN FD is written ##"
                ));
            }
            let dlc = data.len() as u8;
            (Kind::Data, data, dlc)
        }
    };
    if raw_dlc.is_some() && usize::from(dlc) != CLASSIC_MAX {
        return Err(format!("{text:?}: a DLC above 8 stands behind 8 bytes"));
    }
    CanFrame::with_dlc(id, kind, raw_dlc.unwrap_or(dlc), &data)
        .ok_or_else(|| format!("{text:?} is no frame"))
}

fn parse_error(raw: u32, rest: &str) -> Result<LogLine, String> {
    let data = bytes(rest, rest)?;
    let data: [u8; 8] = data
        .try_into()
        .map_err(|data: Vec<u8>| format!("an error frame of {} bytes: it has 8", data.len()))?;
    Ok(LogLine::Error(ErrorFrame { class: raw & !ERROR_FLAG, data }))
}

/// Bytes in hex; points between them are allowed, as can-utils allow them.
fn bytes(text: &str, whole: &str) -> Result<Vec<u8>, String> {
    let mut digits = text.chars().filter(|&digit| digit != '.');
    let mut bytes = Vec::new();
    while let Some(high) = digits.next() {
        let byte = high.to_digit(16).zip(digits.next().and_then(|low| low.to_digit(16)));
        let (high, low) = byte.ok_or_else(|| format!("{whole:?}: data is pairs of hex digits"))?;
        bytes.push((high << 4 | low) as u8);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str) -> CandumpLine {
        parse_line(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn lines_come_back_as_they_were() {
        for text in [
            "(1436509052.249713) can0 123#DEADBEEF",
            "(0000000000.000000) can0 12345678#",
            "(0000000000.000001) vcan12 00000123#00",
            "(1436509052.249713) can0 123#R4",
            "(1436509052.249713) can0 123#R",
            "(1436509052.249713) can0 1FFFFFFF#R8_F",
            "(1436509052.249713) can0 123#0011223344556677_9",
            "(1436509052.249713) can0 123##1AABB",
            "(1436509052.249713) can0 7FF##0",
            "(1436509052.249713) can0 7FF##3000000000000000000000000",
            "(1436509052.249713) can0 20000004#0001000000000000",
        ] {
            assert_eq!(line(text).to_string(), text);
        }
    }

    #[test]
    fn what_others_write_is_read_too() {
        let plain = line("(0000000001.000000) can0 123#DEAD");
        for text in [
            "(1.000000) can0 123#dead",
            "(1.000000) can0 123#DE.AD T",
            "(1.000000)\tcan0  123#DEAD R",
        ] {
            assert_eq!(line(text), plain, "{text}");
        }
        assert_eq!(line("(1.000000) c 123##5AA").what.to_string(), "123##1AA");
    }

    #[test]
    fn a_bad_line_is_named_and_nothing_of_the_log_is_used() {
        let log = "(1.000000) can0 123#00\n\n(2.000000) can0 123#0\n";
        let error = read_log(log).expect_err("half a byte");
        assert!(error.starts_with("line 3: "), "{error}");
        assert_eq!(
            read_log("(1.000000) can0 1FF#\n \n(2.000000) can0 123#00").expect("a log").len(),
            2
        );
        for (text, part) in [
            ("", "is no `(seconds"),
            ("(1.000000) can0", "is no `(seconds"),
            ("1.000000 can0 123#", "is no time"),
            ("(1.0) can0 123#", "is no time"),
            ("(-1.000000) can0 123#", "is no time"),
            ("(99999999999999999999.000000) can0 123#", "is no time"),
            ("(1.000000) can0 123", "has no #"),
            ("(1.000000) can0 12#", "3 hex digits"),
            ("(1.000000) can0 +12#", "3 hex digits"),
            ("(1.000000) can0 12G#", "3 hex digits"),
            ("(1.000000) can0 800#", "more than 11 bits"),
            ("(1.000000) can0 80000000#", "more than 29 bits"),
            ("(1.000000) can0 123#001122334455667788", "at most 8"),
            ("(1.000000) can0 123#R9", "0 to 8"),
            ("(1.000000) can0 123#00_9", "behind 8 bytes"),
            ("(1.000000) can0 123#0011223344556677_8", "9 to F"),
            ("(1.000000) can0 123##", "no flags"),
            ("(1.000000) can0 123##8", "no flags"),
            ("(1.000000) can0 123##0112233445566778899", "12, 16"),
            ("(1.000000) can0 20000004#00", "it has 8"),
            ("(1.000000) can0 123#00 X", "behind the frame"),
            ("(1.000000) can0 123#00 T T", "behind the frame"),
        ] {
            let error = parse_line(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn lines_for_people_are_candumps() {
        for (text, people) in [
            ("123#1122", "  can0  123   [2]  11 22"),
            ("00000123#", "  can0  00000123   [0] "),
            ("123#R4", "  can0  123   [4]  remote request"),
            (
                "123##1000102030405060708090A0B",
                "  can0  123  [12]  00 01 02 03 04 05 06 07 08 09 0A 0B",
            ),
            ("123##111", "  can0  123  [01]  11"),
            (
                "20000004#0001000000000000",
                "  can0  20000004   [8]  00 01 00 00 00 00 00 00   ERRORFRAME",
            ),
        ] {
            let line = line(&format!("(1.500000) can0 {text}"));
            assert_eq!(Stamp::console(None, &line, None, 0), people);
        }
        let line = line("(12.000345) can0 123#11");
        let stamped = |stamp, before| Stamp::console(Some(stamp), &line, before, 10_000_000);
        assert_eq!(stamped(Stamp::Absolute, None), " (0000000012.000345)  can0  123   [1]  11");
        assert_eq!(stamped(Stamp::Delta, Some(12_000_000)), " (000.000345)  can0  123   [1]  11");
        assert_eq!(stamped(Stamp::Delta, None), " (000.000000)  can0  123   [1]  11");
        assert_eq!(stamped(Stamp::Zero, None), " (002.000345)  can0  123   [1]  11");
    }

    fn frames() -> impl Strategy<Value = CanFrame> {
        let kinds = prop_oneof![
            Just(Kind::Data),
            Just(Kind::Remote),
            (any::<bool>(), any::<bool>()).prop_map(|(brs, esi)| Kind::Fd { brs, esi }),
        ];
        let bytes = proptest::collection::vec(any::<u8>(), 64);
        (0..1_u32 << 29, any::<bool>(), kinds, 0..16_u8, bytes).prop_map(
            |(raw, extended, kind, dlc, bytes)| {
                let raw = if extended { raw } else { raw & 0x7ff };
                let id = id_of(raw, extended).expect("an identifier");
                let fit = |&len: &usize| CanFrame::with_dlc(id, kind, dlc, &bytes[..len]).is_some();
                let len = (0..=64).find(fit).expect("a length");
                CanFrame::with_dlc(id, kind, dlc, &bytes[..len]).expect("a frame")
            },
        )
    }

    proptest! {
        #[test]
        fn any_frame_comes_back(frame in frames(), at_us in 0..u64::MAX, error in any::<[u8; 8]>(), class in 0..1_u32 << 29) {
            for what in [LogLine::Frame(frame), LogLine::Error(ErrorFrame { class, data: error })] {
                let line = CandumpLine { at_us, interface: "can0".into(), what };
                prop_assert_eq!(parse_line(&line.to_string()), Ok(line));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[(]?[0-9.]{0,12}[)]? ?(can0)? ?[0-9A-Fa-fR#_ ]{0,24}") {
            if let Ok(line) = parse_line(&text) {
                prop_assert_eq!(parse_line(&line.to_string()), Ok(line));
            }
        }
    }
}
