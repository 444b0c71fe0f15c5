//! Formats bit by bit, exchanges by their bytes, and the mistakes that maps are checked for.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::bus::Bus;
use crate::controller::null::Null;
use crate::spi::{MessageError, Settings};

/// A part with a memory of bytes, which records the accesses it gets.
#[derive(Debug)]
struct Part<const N: usize> {
    log: Vec<Vec<u8>>,
    answers: Vec<[u8; N]>,
    rx: [u8; N],
    fails: bool,
}

impl<const N: usize> Part<N> {
    fn new(answers: &[[u8; N]]) -> Self {
        Self { log: Vec::new(), answers: answers.to_vec(), rx: [0; N], fails: false }
    }
}

impl<const N: usize> Frames<N> for &mut Part<N> {
    fn exchange(&mut self, tx: [u8; N]) -> Result<&[u8; N], MessageError> {
        self.log.push(tx.to_vec());
        if self.fails {
            return Err(MessageError::refused(crate::spi::Error::Busy, 0));
        }
        self.rx = if self.answers.is_empty() { [0; N] } else { self.answers.remove(0) };
        Ok(&self.rx)
    }

    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let mut bytes = Vec::new();
        for transfer in message {
            match transfer.data().tx() {
                Some(tx) => bytes.extend_from_slice(tx),
                None => {
                    let rx = transfer.data.rx_mut().expect("it reads");
                    bytes.extend(vec![0xee; rx.len()]);
                    for (at, byte) in rx.iter_mut().enumerate() {
                        *byte = at as u8;
                    }
                }
            }
        }
        self.log.push(bytes);
        Ok(())
    }
}

/// MCP2518FD's: a command nibble, 12 bits of address, 4 bytes least significant first.
const CAN: Format = Format {
    read_flag_mask: 0x3000,
    write_flag_mask: 0x2000,
    reg_stride: 4,
    val_format_endian: Endian::Little,
    increments: true,
    ..Format::new(16, 32)
};

const MODE: Field = Field::new("MODE", 24, 3);
static CONTROL: Register =
    Register::new("CONTROL", 0).fields(&[Field::new("DIVISOR", 0, 5), Field::bit("ON", 11), MODE]);
static STATUS: Register = Register::new("STATUS", 4).read_only().volatile();
static KICK: Register = Register::new("KICK", 8).write_only();
static FIFO: Register = Register::new("FIFO", 0x5c).array(31, 12);
const BOX: Register = Register::new("BOX", 0).array(12, 4).numbered_from(1).reset(3);
static BOXES: Map = Map::new("boxes", CAN, &[BOX, Register::new("BOXER", 48)]);
static MAP: Map = Map::new("part", CAN, &[CONTROL, STATUS, KICK, FIFO]);

#[test]
fn a_register_is_one_exchange_of_command_address_and_value() {
    let mut part = Part::new(&[[0xff, 0xff, 0x60, 0x07, 0x98, 0x04], [0; 6]]);
    let mut map = RegMap::<_, 6>::new(&mut part, &MAP);
    assert_eq!(map.read(&CONTROL), Ok(0x0498_0760), "the datasheet's reset value");
    map.write(FIFO.nth(2), 0x1234_5678).unwrap();
    assert_eq!(part.log[0], [0x30, 0x00, 0, 0, 0, 0]);
    assert_eq!(part.log[1], [0x20, 0x74, 0x78, 0x56, 0x34, 0x12]);
}

#[test]
fn odd_formats_are_packed_as_their_parts_want_them() {
    // Seven bits of address and nine of value, as in audio codecs.
    static CODEC: Map = Map::new("codec", Format::new(7, 9), &[Register::new("VOLUME", 0x02)]);
    let mut part = Part::new(&[]);
    RegMap::<_, 2>::new(&mut part, &CODEC).write(&CODEC.registers()[0], 0x17f).unwrap();
    assert_eq!(part.log[0], [0x02 << 1 | 1, 0x7f]);

    // MCP2515's READ: an instruction, an address, one byte.
    const READ: Format =
        Format { read_flag_mask: 0x0300, write_flag_mask: 0x0200, ..Format::new(16, 8) };
    static OLD: Map = Map::new("mcp2515", READ, &[Register::new("CANSTAT", 0x0e)]);
    let mut part = Part::new(&[[0xff, 0xff, 0x80]]);
    let mut map = RegMap::<_, 3>::new(&mut part, &OLD);
    assert_eq!(map.read(&OLD.registers()[0]), Ok(0x80));
    assert_eq!(part.log[0], [0x03, 0x0e, 0x00]);

    // Padding between address and value, and a flag to the right of the address.
    const PADDED: Format =
        Format { pad_bits: 8, reg_shift: 1, read_flag_mask: 1, ..Format::new(8, 16) };
    static PAD: Map = Map::new("pad", PADDED, &[Register::new("A", 0x55)]);
    let mut part = Part::new(&[[0xff, 0xff, 0xab, 0xcd]]);
    let mut map = RegMap::<_, 4>::new(&mut part, &PAD);
    assert_eq!(map.read(&PAD.registers()[0]), Ok(0xabcd));
    assert_eq!(part.log[0], [0xab, 0, 0, 0]);
}

proptest! {
    #[test]
    fn any_format_puts_its_bits_where_a_string_of_bits_would(
        reg_bits in 1u8..=32, val_bits in 1u8..=32, more in any::<bool>(),
        little in any::<bool>(), address in any::<u32>(), value in any::<u32>(),
    ) {
        // The least padding that makes whole bytes, and one byte more if it fits.
        let least = (reg_bits + val_bits).wrapping_neg() % 8;
        let pad_bits = least + if more && reg_bits + val_bits + least < 64 { 8 } else { 0 };
        let little = little && val_bits % 8 == 0;
        let val_format_endian = if little { Endian::Little } else { Endian::Big };
        let format = Format { pad_bits, val_format_endian, ..Format::new(reg_bits, val_bits) };
        format.check();
        let (address, value) = (address & format.address_max(), value & format.value_max());
        let mut text: Vec<bool> = (0..reg_bits).rev().map(|bit| address >> bit & 1 == 1).collect();
        text.extend(vec![false; pad_bits.into()]);
        let digits: Vec<bool> = (0..val_bits).rev().map(|bit| value >> bit & 1 == 1).collect();
        if little {
            digits.chunks(8).rev().for_each(|byte| text.extend(byte));
        } else {
            text.extend(&digits);
        }
        let codec = format.codec();
        let frame = text.iter().fold(0, |frame: u64, &bit| frame << 1 | u64::from(bit));
        prop_assert_eq!(codec.write_frame(address, value), frame);
        // The bits received during the header are noise.
        let noise = u64::MAX.checked_shl(val_bits.into()).unwrap_or(0);
        prop_assert_eq!(codec.value(&(frame | noise).to_be_bytes()), value);
        prop_assert_eq!(format.value_from_bytes(format.value_to_bytes(value)), value);
    }
}

#[test]
fn what_may_not_be_done_is_refused_before_anything_is_clocked() {
    let mut part = Part::new(&[]);
    let mut map = RegMap::<_, 6>::new(&mut part, &MAP);
    assert_eq!(map.read(&KICK), Err(RegmapError::NotReadable { address: 8 }));
    assert_eq!(map.write(&STATUS, 1), Err(RegmapError::NotWritable { address: 4 }));
    assert_eq!(map.write_bulk(&CONTROL, &[1, 2]), Err(RegmapError::NotWritable { address: 4 }));
    assert_eq!(
        map.read_bulk(&CONTROL, &mut [0; 16_385]),
        Err(RegmapError::AddressRange { address: 0, count: 16_385, max: 0xffff })
    );
    static NARROW: Map = Map::new("narrow", Format::new(7, 9), &[Register::new("A", 0)]);
    let mut narrow = Part::new(&[]);
    let mut narrow_map = RegMap::<_, 2>::new(&mut narrow, &NARROW);
    let a = &NARROW.registers()[0];
    let wide = RegmapError::ValueTooWide { address: 0, value: 0x200, val_bits: 9 };
    assert_eq!(narrow_map.write(a, 0x200), Err(wide));
    assert_eq!(narrow_map.read_bulk(a, &mut [0]), Err(RegmapError::NoBulk));
    assert_eq!(narrow_map.write_raw(0, &[0]), Err(RegmapError::NoBulk));
    assert!(part.log.is_empty() && narrow.log.is_empty());
}

#[test]
fn neighbours_go_in_one_exchange_of_at_most_32() {
    let mut part = Part::new(&[]);
    let mut map = RegMap::<_, 6>::new(&mut part, &MAP);
    let mut values = [0; 33];
    map.read_bulk(FIFO.nth(0), &mut values).unwrap();
    assert_eq!((values[0], values[31], values[32]), (0x0302_0100, 0x7f7e_7d7c, 0x0302_0100));
    map.write_bulk(FIFO.nth(0), &[0x0403_0201, 0x0807_0605]).unwrap();
    map.write_raw(0x400, &[9, 8]).unwrap();
    assert_eq!(part.log[0].len(), 2 + 128);
    assert_eq!(part.log[1][..3], [0x30, 0x5c + 0x80, 0xee]);
    assert_eq!(part.log[2], [0x20, 0x5c, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(part.log[3], [0x24, 0x00, 9, 8]);
}

#[test]
fn the_last_address_there_is_can_be_read_and_no_header_is_wider() {
    static LAST: Register = Register::new("LAST", u32::MAX);
    static WIDE: Map = Map::new("wide", Format { increments: true, ..Format::new(32, 8) }, &[LAST]);
    let mut part = Part::<5>::new(&[]);
    let mut map = RegMap::<_, 5>::new(&mut part, &WIDE);
    map.read_bulk(&LAST, &mut [0]).unwrap();
    map.write_bulk(&LAST, &[7]).unwrap();
    assert_eq!(part.log, [[0xff, 0xff, 0xff, 0xff, 0xee], [0xff, 0xff, 0xff, 0xff, 7]]);

    static NARROW: Map = Map::new("narrow", Format { increments: true, ..Format::new(8, 8) }, &[]);
    let mut part = Part::<2>::new(&[]);
    let mut map = RegMap::<_, 2>::new(&mut part, &NARROW);
    let beyond = Err(RegmapError::AddressRange { address: 0x100, count: 1, max: 0xff });
    assert_eq!(map.read_raw(0x100, &mut [0; 4]), beyond);
    assert_eq!(map.write_raw(0x100, &[0; 4]), beyond);
    map.read_raw(0xff, &mut [0; 4]).unwrap();
    assert_eq!(part.log.len(), 1);
}

#[test]
fn bits_are_updated_by_a_read_and_a_write_only_where_they_differ() {
    let mut part = Part::new(&[[0, 0, 0, 0, 0, 0x04], [0, 0, 0, 0, 0, 0x04]]);
    let mut map = RegMap::<_, 6>::new(&mut part, &MAP);
    assert_eq!(map.update_bits(&CONTROL, MODE.mask(), MODE.put(0, 4)), Ok(false));
    assert_eq!(map.update_bits(&CONTROL, MODE.mask(), MODE.put(0, 6)), Ok(true));
    assert_eq!(part.log.len(), 3);
    assert_eq!(part.log[2], [0x20, 0, 0, 0, 0, 0x06]);
}

#[test]
fn a_cache_remembers_all_but_the_volatile() {
    let mut part = Part::new(&[[0, 0, 1, 0, 0, 0], [0, 0, 2, 0, 0, 0], [0, 0, 3, 0, 0, 0]]);
    let mut slots = [Some(99); 34];
    let mut cached = Cached::new(RegMap::<_, 6>::new(&mut part, &MAP), &mut slots);
    assert_eq!(cached.read(&CONTROL), Ok(1));
    assert_eq!(cached.read(&CONTROL), Ok(1));
    assert_eq!(cached.read(&STATUS), Ok(2));
    assert_eq!(cached.read(&STATUS), Ok(3));
    assert_eq!(
        cached.update_bits(&CONTROL, 0x1f, 1),
        Ok(false),
        "the value is known, so nothing is written"
    );
    assert_eq!(cached.update_bits(&CONTROL, 0x1f, 7), Ok(true));
    cached.write(FIFO.nth(30), 5).unwrap();
    assert_eq!(cached.read(FIFO.nth(30)), Ok(5));
    cached.write(&KICK, 6).unwrap();
    cached.restore().unwrap();
    cached.forget();
    assert_eq!(cached.read(&CONTROL), Ok(0), "read again");
    let written: Vec<_> =
        part.log.iter().filter(|tx| tx[0] >> 4 == 2).map(|tx| tx[1..3].to_vec()).collect();
    let last = (0x5c + 30 * 12) as u8;
    let once = [vec![0, 7], vec![last, 5], vec![8, 6]];
    assert_eq!(written[..3], once);
    assert_eq!(written[3..], [vec![0, 7], vec![8, 6], vec![last, 5]], "in the map's order");
    assert_eq!(part.log.len(), 3 + 6 + 1);
}

#[test]
fn a_write_that_failed_leaves_nothing_remembered() {
    let mut part = Part::new(&[]);
    let mut slots = [None; 34];
    let mut cached = Cached::new(RegMap::<_, 6>::new(&mut part, &MAP), &mut slots);
    cached.write(&CONTROL, 1).unwrap();
    cached.uncached().frames().fails = true;
    assert!(matches!(cached.write(&CONTROL, 2), Err(RegmapError::Message(_))));
    assert!(matches!(cached.read(&CONTROL), Err(RegmapError::Message(_))), "it must look");
}

#[test]
fn registers_are_found_by_name_and_address() {
    assert_eq!(MAP.len(), 34);
    assert_eq!(MAP.locations().count(), 34);
    assert_eq!(MAP.find("control").map(|at| at.address()), Some(0));
    assert_eq!(MAP.find("fifo[30]").map(|at| at.address()), Some(0x5c + 360));
    assert!(
        MAP.find("fifo[31]").is_none() && MAP.find("fifo[x]").is_none() && MAP.find("").is_none()
    );
    for at in MAP.locations() {
        assert_eq!(MAP.at(at.address()), Some(at));
    }
    assert!(MAP.at(0x5d).is_none() && MAP.at(0x0c).is_none() && MAP.at(u32::MAX).is_none());
    assert_eq!(std::format!("{} {}", FIFO.nth(3), MAP.find("STATUS").unwrap()), "FIFO[3] STATUS");
    for (name, address) in [
        ("BOX1", Some(0)),
        ("box", Some(0)),
        ("box12", Some(44)),
        ("box13", None),
        ("box0", None),
        ("box01", None),
        ("box+1", None),
        ("box[1]", None),
        ("bo", None),
        ("boxer", Some(48)),
        ("boxer1", None),
    ] {
        assert_eq!(BOXES.find(name).map(|at| at.address()), address, "{name}");
    }
    assert_eq!(std::format!("{}", BOX.nth(11)), "BOX12");
    assert_eq!(CONTROL.field("mode"), Some(&MODE));
    assert_eq!((MODE.get(0x0500_0000), MODE.put(0xffff_ffff, 0)), (5, 0xf8ff_ffff));
}

#[test]
fn a_map_that_cannot_be_is_refused() {
    const A: Register = Register::new("A", 0);
    const AT_4: Register = Register::new("a", 4);
    const EVEN: Register = Register::new("F", 4).array(3, 8);
    const ON_12: Register = Register::new("B", 12);
    const ON_8: Register = Register::new("B", 8);
    const ON_6: Register = Register::new("B", 6);
    const FAR: Register = Register::new("B", 0x1_0000);
    const WIDE: Register = Register::new("W", 0).fields(&[Field::new("X", 4, 5)]);
    const TWICE: Register = Register::new("T", 0).fields(&[Field::bit("X", 0), Field::bit("X", 1)]);
    const BOX7: Register = Register::new("box7", 48);
    const LATE: Register = Register::new("L", 0).reset(0x100);
    let refused = |format: Format, registers: &'static [Register]| {
        std::panic::catch_unwind(|| Map::new("bad", format, registers)).is_err()
    };
    assert!(!refused(CAN, &[A]));
    assert!(refused(CAN, &[A, AT_4]), "one name");
    assert!(refused(CAN, &[EVEN, ON_12]), "one address");
    assert!(!refused(CAN, &[EVEN, ON_8]), "interleaved");
    assert!(refused(CAN, &[ON_6]), "between two");
    assert!(refused(CAN, &[FAR]), "beyond the header");
    assert!(refused(CAN, &[BOX, BOX7]) && refused(CAN, &[BOX7, BOX]), "an element's name");
    assert!(refused(Format::new(8, 8), &[LATE]), "never its value");
    assert!(refused(Format::new(7, 8), &[]), "15 bits");
    assert!(refused(Format { read_flag_mask: 0x100, ..Format::new(8, 8) }, &[]), "no such flag");
    assert!(refused(Format::new(8, 8), &[WIDE]), "a field of 9 bits");
    assert!(refused(Format::new(8, 8), &[TWICE]), "two fields of one name");
}

#[test]
fn on_a_bus_the_exchange_is_the_prepared_one() {
    let bus = Bus::new(Null::new());
    let device = bus.device(&Settings::new(0, 16_000_000)).unwrap();
    let mut map = RegMap::<_, 6>::new(OnDevice::new(device).unwrap(), &MAP);
    assert_eq!(map.read(&CONTROL), Ok(0));
    map.write(&CONTROL, 0xdead_beef).unwrap();
    let mut values = [7; 3];
    map.read_bulk(FIFO.nth(0), &mut values).unwrap();
}
