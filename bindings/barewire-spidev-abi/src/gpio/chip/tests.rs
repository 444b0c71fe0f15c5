//! A chip over pins in memory, asked as the library asks it.

use super::flag::{
    ACTIVE_LOW, EDGE_FALLING, EDGE_RISING, EDGES, INPUT, OPEN_DRAIN, OPEN_SOURCE, OUTPUT, PULL_UP,
    REALTIME, USED,
};
use super::*;
use crate::gpio::Look;
use crate::gpio::layout::{self, FilledStruct};
use crate::protocol::FileKind;

/// Eight pins: the driven levels, and each pin's level when it is not driven.
#[derive(Debug, Default)]
struct Memory {
    outputs: u64,
    driven: u64,
    outside: u64,
}

impl Pins for Memory {
    fn lines(&self) -> u32 {
        8
    }

    fn level(&mut self, line: u32) -> bool {
        (self.driven & self.outputs | self.outside & !self.outputs) >> line & 1 != 0
    }

    fn output(&mut self, line: u32, high: bool) {
        self.outputs |= 1 << line;
        self.drive(1 << line, u64::from(high) << line);
    }

    fn drive(&mut self, mask: u64, levels: u64) {
        assert_eq!(mask & !self.outputs, 0, "outputs alone are driven");
        self.driven = self.driven & !mask | levels & mask;
    }

    fn input(&mut self, line: u32) {
        self.outputs &= !(1 << line);
    }

    fn pull(&mut self, line: u32, up: bool) {
        self.outside = self.outside & !(1 << line) | u64::from(up) << line;
    }

    fn look(&mut self, line: u32) -> Look {
        Look { level: self.level(line), asserted: None }
    }
}

struct Bench {
    chip: GpioChip<Memory>,
    now: Now,
    file: OpenId,
    next: u32,
}

const GET_LINE: u32 = 0xc250_b407;
const GET_VALUES: u32 = 0xc010_b40e;
const SET_VALUES: u32 = 0xc010_b40f;
const SET_CONFIG: u32 = 0xc110_b40d;
const HANDLE: u32 = 0xc16c_b403;
const EVENT: u32 = 0xc030_b404;

impl Bench {
    fn new() -> Self {
        let spec = |name: &str, used_as: Option<&str>| LineSpec {
            name: name.into(),
            used_as: used_as.map(str::to_owned),
        };
        let specs = vec![spec("FIRST", None), spec("", Some("spi0 CS0"))];
        let chip = GpioChip::new(ChipName(3), "a label", specs, Memory::default());
        let now = Now { monotonic_ns: 1_000, realtime_ns: 50_000 };
        Self { chip, now, file: OpenId::new(9, 2).of_kind(FileKind::Chip), next: 100 }
    }

    fn ask(&mut self, file: OpenId, number: u32, body: &[u8]) -> Result<Vec<u8>, Errno> {
        self.chip.ioctl(file, number, body, &self.now).map_err(|failed| failed.errno)
    }

    fn made(&mut self, number: u32, body: FilledStruct) -> Result<OpenId, Errno> {
        self.next += 1;
        let made = OpenId::new(self.next, 0);
        let body = [body.0, made.0.to_ne_bytes().to_vec()].concat();
        self.ask(self.file, number, &body).map(|_| made)
    }

    /// Requests lines with version 2, all with these flags.
    fn lines(&mut self, lines: &[u32], flags: u64, values: u64) -> Result<OpenId, Errno> {
        let count = u32::try_from(lines.len()).expect("few");
        let mut body = FilledStruct::new(layout::LINE_REQUEST).name(256, b"test").u32(560, count);
        for (index, line) in lines.iter().enumerate().take(64) {
            body = body.u32(4 * index, *line);
        }
        body = body.bytes(288, &config(flags, &[(2, values)]).0);
        self.made(GET_LINE, body)
    }

    fn set(&mut self, file: OpenId, bits: u64, mask: u64) -> Result<(), Errno> {
        let values = FilledStruct::new(16).u64(0, bits).u64(8, mask);
        self.ask(file, SET_VALUES, &values.0).map(|answer| assert!(answer.is_empty()))
    }

    fn get(&mut self, file: OpenId, mask: u64) -> Result<u64, Errno> {
        let answer = self.ask(file, GET_VALUES, &FilledStruct::new(16).u64(8, mask).0)?;
        assert_eq!(Fields(&answer).u64(8), mask);
        Ok(Fields(&answer).u64(0))
    }

    /// Name, consumer, flags and debounce period of a line.
    fn info(&mut self, line: u32) -> (String, String, u64, u32) {
        let body = FilledStruct::new(layout::LINE_INFO).u32(64, line);
        let answer = self.ask(self.file, 0xc100_b405, &body.0).expect("there is one");
        let fields = Fields(&answer);
        assert_eq!(fields.u32(64), line);
        let [name, consumer] = [0, 32].map(|at| String::from_utf8(fields.name(at)).expect("text"));
        let period = if fields.u32(68) == 1 { fields.u32(88) } else { 0 };
        (name, consumer, fields.u64(72), period)
    }

    /// Outside levels change, and the chip looks.
    fn outside(&mut self, levels: u64) {
        self.chip.pins.outside = levels;
        self.now.monotonic_ns += 100;
        self.now.realtime_ns += 100;
        self.chip.look(&self.now);
    }

    fn packets(&mut self, file: OpenId) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        self.chip.deliver(&mut |to, packet| {
            assert_eq!(to, file);
            found.push(packet.to_vec());
            true
        });
        found
    }
}

/// A configuration with attributes about all lines: ids and values.
fn config(flags: u64, attrs: &[(u32, u64)]) -> FilledStruct {
    let count = u32::try_from(attrs.len()).expect("few");
    let mut config = FilledStruct::new(layout::LINE_CONFIG).u64(0, flags).u32(8, count);
    for (index, (id, value)) in attrs.iter().enumerate() {
        let at = 32 + 24 * index;
        config = config.u32(at, *id).u64(at + 8, *value).u64(at + 16, u64::MAX);
    }
    config
}

#[test]
fn a_chip_tells_of_itself_and_its_lines() {
    let mut bench = Bench::new();
    let info = bench.ask(bench.file, 0x8044_b401, &[]).expect("a chip");
    let fields = Fields(&info);
    assert_eq!((info.len(), fields.name(0)), (68, b"gpiochip3".to_vec()));
    assert_eq!((fields.name(32), fields.u32(64)), (b"a label".to_vec(), 8));
    assert_eq!(bench.info(0), ("FIRST".into(), "".into(), INPUT, 0));
    assert_eq!(bench.info(1), ("".into(), "spi0 CS0".into(), OUTPUT | USED, 0));
    let file = bench.lines(&[0], OUTPUT | ACTIVE_LOW, 0).expect("free");
    assert_eq!(bench.info(0), ("FIRST".into(), "test".into(), OUTPUT | ACTIVE_LOW | USED, 0));
    bench.chip.closed(file, &bench.now);
    assert_eq!(bench.info(0), ("FIRST".into(), "".into(), OUTPUT, 0), "its direction stays");
    let beyond = FilledStruct::new(layout::LINE_INFO).u32(64, 8);
    assert_eq!(bench.ask(bench.file, 0xc100_b405, &beyond.0), Err(Errno::INVAL));
    for at in 240..256 {
        let padded = FilledStruct::new(layout::LINE_INFO).bytes(at, &[1]);
        assert_eq!(bench.ask(bench.file, 0xc100_b405, &padded.0), Err(Errno::INVAL), "{at}");
    }
    assert_eq!(bench.ask(bench.file, GET_VALUES, &[0; 16]), Err(Errno::INVAL), "not of a chip");
    assert_eq!(bench.ask(bench.file, GET_LINE, &[0; 592]), Err(Errno::PROTO), "no file behind it");
}

#[test]
fn lines_are_requested_by_one_file_or_not_at_all() {
    let mut bench = Bench::new();
    let first = bench.lines(&[2, 3], OUTPUT, 0b01).expect("free");
    assert_eq!((bench.chip.pins.outputs, bench.chip.pins.driven), (0b1100, 0b0100));
    for (lines, errno) in [
        (&[4, 3][..], Errno::BUSY),
        (&[1], Errno::BUSY),
        (&[4, 4], Errno::BUSY),
        (&[4, 8], Errno::INVAL),
        (&[u32::MAX], Errno::INVAL),
        (&[], Errno::INVAL),
        (&[4; 65], Errno::INVAL),
    ] {
        assert_eq!(bench.lines(lines, OUTPUT, 1), Err(errno), "{lines:?}");
        assert_eq!(bench.info(4).2, INPUT, "{lines:?}: nothing was taken");
    }
    let body = FilledStruct::new(layout::LINE_REQUEST).u32(0, 4).u32(560, 1);
    for at in 568..588 {
        let padded = FilledStruct(body.0.clone()).bytes(at, &[1]);
        assert_eq!(bench.made(GET_LINE, padded), Err(Errno::INVAL), "{at}");
    }
    bench.chip.closed(first, &bench.now);
    let unnamed = bench.made(GET_LINE, FilledStruct(body.0.clone()).u32(0, 3)).expect("free again");
    assert_eq!(bench.info(3), ("".into(), "?".into(), OUTPUT | USED, 0), "as it was");
    assert_eq!(bench.get(unnamed, 1), Ok(0));
}

#[test]
fn a_line_without_a_pin_is_listed_and_busy() {
    let spec = |line| LineSpec { name: format!("L{line}"), used_as: None };
    let mut bench = Bench::new();
    bench.chip = GpioChip::new(ChipName(3), "", (0..10).map(spec).collect(), Memory::default());
    assert_eq!(bench.info(9), ("L9".into(), "no pin".into(), INPUT | USED, 0));
    assert_eq!(bench.lines(&[7, 8], OUTPUT, 0), Err(Errno::BUSY));
    assert_eq!(bench.lines(&[10], INPUT, 0), Err(Errno::INVAL));
    assert_eq!(bench.info(7).1, "", "none of the lines was taken");
}

#[test]
fn values_are_set_and_got_by_their_places() {
    let mut bench = Bench::new();
    let file = bench.lines(&[7, 2, 5], OUTPUT, 0b101).expect("free");
    assert_eq!(bench.chip.pins.driven, 1 << 7 | 1 << 5);
    assert_eq!(bench.get(file, 0b111), Ok(0b101));
    assert_eq!(bench.set(file, 0b010, 0b011), Ok(()));
    assert_eq!(bench.chip.pins.driven, 1 << 2 | 1 << 5);
    assert_eq!(bench.get(file, u64::MAX), Ok(0b110));
    for mask in [0, 0b1000, !0b111] {
        assert_eq!(bench.set(file, 0, mask), Err(Errno::INVAL), "{mask:#b}");
        assert_eq!(bench.get(file, mask), Err(Errno::INVAL), "{mask:#b}");
    }
    let input = bench.lines(&[0], INPUT | ACTIVE_LOW | PULL_UP, 0).expect("free");
    assert_eq!(bench.set(input, 1, 1), Err(Errno::PERM));
    assert_eq!(bench.get(input, 1), Ok(0), "pulled up, active low");
    // One is an output, one is not: nothing is set.
    let config =
        FilledStruct(config(OUTPUT, &[]).0).u32(8, 1).u32(32, 1).u64(40, INPUT).u64(48, 0b10);
    assert_eq!(bench.ask(file, SET_CONFIG, &config.0), Ok(Vec::new()));
    assert_eq!(bench.set(file, 0b111, 0b111), Err(Errno::PERM));
    assert_eq!(bench.chip.pins.driven & bench.chip.pins.outputs, 0);
    assert_eq!(bench.set(file, 0b111, 0b101), Ok(()));
    assert_eq!(bench.ask(file, GET_LINE, &[0; 596]), Err(Errno::INVAL), "not of lines");
}

#[test]
fn open_drains_and_sources_drive_one_level() {
    let mut bench = Bench::new();
    let drain = bench.lines(&[2], OUTPUT | OPEN_DRAIN | PULL_UP, 1).expect("free");
    let source = bench.lines(&[3], OUTPUT | OPEN_SOURCE | ACTIVE_LOW, 1).expect("free");
    assert_eq!((bench.chip.pins.outputs, bench.get(drain, 1)), (0, Ok(1)), "let go, pulled up");
    assert_eq!(bench.get(source, 1), Ok(1), "let go; low is active");
    assert_eq!(bench.set(drain, 0, 1), Ok(()));
    assert_eq!((bench.chip.pins.outputs, bench.get(drain, 1)), (0b0100, Ok(0)));
    assert_eq!(bench.set(source, 0, 1), Ok(()));
    assert_eq!((bench.chip.pins.outputs, bench.chip.pins.driven), (0b1100, 0b1000));
    assert_eq!(bench.set(drain, 1, 1), Ok(()));
    assert_eq!((bench.chip.pins.outputs, bench.get(drain, 1)), (0b1000, Ok(1)));
}

#[test]
fn edges_are_events_in_order() {
    let mut bench = Bench::new();
    let both = bench.lines(&[2, 3], INPUT | EDGES, 0).expect("free");
    assert!(bench.chip.is_watching());
    for levels in [0b0000, 0b0100, 0b1000, 0b1000] {
        bench.outside(levels);
    }
    let events: Vec<_> = bench
        .packets(both)
        .iter()
        .map(|packet| {
            let fields = Fields(packet);
            assert_eq!(packet.len(), 48);
            let [id, line, sequence, of_line] = [8, 12, 16, 20].map(|at| fields.u32(at));
            (fields.u64(0), id, line, sequence, of_line)
        })
        .collect();
    assert_eq!(events, [(1_200, 1, 2, 1, 1), (1_300, 2, 2, 2, 2), (1_300, 1, 3, 3, 1)]);
    // Only the requested edges are reported, with the line's value and the time of the other clock.
    let config = config(INPUT | EDGE_RISING | ACTIVE_LOW | REALTIME, &[]);
    assert_eq!(bench.ask(both, SET_CONFIG, &config.0), Ok(Vec::new()));
    bench.outside(0b1100);
    bench.outside(0b1000);
    let packets = bench.packets(both);
    let found: Vec<_> =
        packets.iter().map(|packet| (Fields(packet).u64(0), Fields(packet).u32(16))).collect();
    assert_eq!(found, [(50_600, 4)], "the sequence goes on");
    bench.chip.closed(both, &bench.now);
    assert!(!bench.chip.is_watching());
}

#[test]
fn the_oldest_event_is_lost() {
    let mut bench = Bench::new();
    let file = bench.lines(&[2], INPUT | EDGES, 0).expect("free");
    for index in 0..20 {
        bench.outside(u64::from(index % 2 == 0) << 2);
    }
    let packets = bench.packets(file);
    let sequence: Vec<_> = packets.iter().map(|packet| Fields(packet).u32(16)).collect();
    assert_eq!(sequence, (5..=20).collect::<Vec<_>>());
    // Events that could not be sent are kept.
    bench.outside(1 << 2);
    bench.chip.deliver(&mut |_, _| false);
    assert!(bench.chip.has_packets());
    assert_eq!(bench.packets(file).len(), 1);
    assert!(!bench.chip.has_packets());
}

#[test]
fn a_debounced_line_has_the_value_that_counts() {
    let mut bench = Bench::new();
    let body = FilledStruct::new(layout::LINE_REQUEST).u32(0, 2).u32(560, 1);
    let body = body.bytes(288, &config(INPUT | EDGE_FALLING | PULL_UP, &[(3, 1)]).0);
    let file = bench.made(GET_LINE, body).expect("free");
    assert_eq!((bench.info(2).3, bench.get(file, 1)), (1, Ok(1)));
    for (levels, value) in [(0, 1), (1 << 2, 1), (0, 1)] {
        bench.outside(levels);
        assert_eq!(bench.get(file, 1), Ok(value));
    }
    (0..9).for_each(|_| bench.outside(0));
    assert_eq!((bench.get(file, 1), bench.packets(file).len()), (Ok(1), 0));
    bench.outside(0);
    assert_eq!(bench.get(file, 1), Ok(0));
    assert_eq!(bench.packets(file).len(), 1);
}

#[test]
fn files_that_watch_are_told() {
    let mut bench = Bench::new();
    let watch = |bench: &mut Bench, number: u32, bytes: usize, at: usize, line: u32| {
        let body = FilledStruct::new(bytes).u32(at, line);
        bench.ask(bench.file, number, &body.0).map(|_| ())
    };
    let (watch_2, watch_1, unwatch) = (0xc100_b406, 0xc048_b40b, 0xc004_b40c);
    assert_eq!(watch(&mut bench, watch_2, 256, 64, 2), Ok(()));
    assert_eq!(watch(&mut bench, watch_2, 256, 64, 2), Err(Errno::BUSY));
    assert_eq!(watch(&mut bench, watch_1, 72, 0, 3), Err(Errno::PERM), "another version");
    assert_eq!(watch(&mut bench, unwatch, 4, 0, 3), Err(Errno::BUSY));
    assert_eq!(watch(&mut bench, unwatch, 4, 0, 8), Err(Errno::INVAL));
    let file = bench.lines(&[2, 3], OUTPUT, 0).expect("free");
    assert_eq!(bench.ask(file, SET_CONFIG, &config(INPUT, &[]).0), Ok(Vec::new()));
    bench.chip.closed(file, &bench.now);
    let told: Vec<_> = bench
        .packets(bench.file)
        .iter()
        .map(|packet| {
            let fields = Fields(packet);
            assert_eq!((packet.len(), fields.u32(64), fields.u64(256)), (288, 2, 1_000));
            (fields.u32(264), fields.u64(72), fields.name(32))
        })
        .collect();
    let consumer = b"test".to_vec();
    assert_eq!(
        told,
        [
            (1, OUTPUT | USED, consumer.clone()),
            (2 + 1, INPUT | USED, consumer),
            (2, INPUT, Vec::new())
        ]
    );
    assert_eq!(watch(&mut bench, unwatch, 4, 0, 2), Ok(()));
    bench.lines(&[2], OUTPUT, 0).expect("free");
    assert!(!bench.chip.has_packets());
}

#[test]
fn version_1_has_the_same_lines() {
    let mut bench = Bench::new();
    let body = FilledStruct::new(layout::HANDLE_REQUEST).u32(0, 2).u32(4, 5).u32(356, 2);
    let body = body.u32(256, 0b10).bytes(260, &[0, 9]).name(324, b"old");
    let handle = bench.made(HANDLE, body).expect("free");
    assert_eq!(bench.chip.pins.driven, 1 << 5);
    assert_eq!(bench.info(5).1, "old");
    let (get, set, set_config) = (0xc040_b408, 0xc040_b409, 0xc054_b40a);
    let values = |values: &[u8]| FilledStruct::new(64).bytes(0, values).0;
    assert_eq!(bench.ask(handle, get, &[0; 64]), Ok(values(&[0, 1])));
    assert_eq!(bench.ask(handle, set, &values(&[7, 0])), Ok(Vec::new()));
    assert_eq!(bench.chip.pins.driven, 1 << 2);
    assert_eq!(bench.ask(handle, GET_VALUES, &[0; 16]), Err(Errno::INVAL), "not of version 2");
    let input = FilledStruct::new(layout::HANDLE_CONFIG).u32(0, 0b1);
    assert_eq!(bench.ask(handle, set_config, &input.0), Ok(Vec::new()));
    assert_eq!(bench.ask(handle, set, &[0; 64]), Err(Errno::PERM));
    let event = FilledStruct::new(layout::EVENT_REQUEST).u32(0, 3).u32(4, 1).u32(8, 3);
    let event = bench.made(EVENT, event).expect("free");
    bench.outside(1 << 3);
    bench.outside(0);
    let packets = bench.packets(event);
    let found: Vec<_> = packets
        .iter()
        .map(|packet| (packet.len(), Fields(packet).u64(0), Fields(packet).u32(8)))
        .collect();
    assert_eq!(found, [(16, 1_100, 1), (16, 1_200, 2)]);
    assert_eq!(bench.ask(event, get, &[0; 64]), Ok(values(&[0])));
    assert_eq!(bench.ask(event, set, &[0; 64]), Err(Errno::INVAL));
    for line in [1, 2, 8] {
        let event = FilledStruct::new(layout::EVENT_REQUEST).u32(0, line).u32(4, 1).u32(8, 3);
        let errno = if line == 8 { Errno::INVAL } else { Errno::BUSY };
        assert_eq!(bench.made(EVENT, event), Err(errno), "{line}");
    }
}
