//! The flash driver on every part of the model: what a part says and what it does are two things, and the driver's
//! result is judged by the second.

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use barewire::bus::{Bus, Device};
use barewire::chip::spi_nor::{Assume, Layout, NorError, Note, SpiNor, no_observer};
use barewire::spi::Settings;
use barewire_sim::bring_up::{AnyController, Charged, bus};
use barewire_sim::model::nor::{Left, Nor, NorFaults, Part};
use barewire_sim::{Board, SimTimer};

type BoardNor<'b> = SpiNor<Device<'b, Charged<AnyController>>, SimTimer>;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

struct Bench {
    board: Board,
    flash: Rc<RefCell<Nor>>,
    bus: Bus<Charged<AnyController>>,
    /// The expected content of the array.
    expected: Vec<u8>,
    assume: Assume,
}

/// Each 64 KiB differ from their neighbours and from the erased state.
fn content(size: usize) -> Vec<u8> {
    let mut content = vec![0; size];
    for (index, block) in content.chunks_mut(64 << 10).enumerate() {
        block.fill((index % 251) as u8);
    }
    content
}

impl Bench {
    fn new(name: &str) -> Self {
        let part = Part::named(name).unwrap_or_else(|| panic!("{name} is no part"));
        let board = crate::board("imx8mp");
        let expected = content(part.size);
        let flash = board.attach_flash_part(part, Some(expected.clone())).expect("the part's size");
        // This part powers up protected: start as after `--unprotect`.
        if name == "sst25vf016b" {
            flash.borrow_mut().set_status(0);
        }
        let bus = bus(&board);
        Self { board, flash, bus, expected, assume: given(name) }
    }

    fn assuming(&self, assume: &Assume) -> Result<BoardNor<'_>, NorError> {
        let device = self.bus.device(&Settings::new(0, 20_000_000)).expect("opens");
        SpiNor::assuming(device, self.board.timer(), assume)
    }

    fn chip(&self) -> BoardNor<'_> {
        self.assuming(&self.assume).expect("identifies")
    }

    /// Asserts that the array has the expected content.
    #[track_caller]
    fn assert_holds(&self, what: &str) {
        let flash = self.flash.borrow();
        if flash.content() != self.expected {
            let differs = flash.content().iter().zip(&self.expected).position(|(a, b)| a != b);
            panic!("{what}: {:#x?} is not what it should be", differs.expect("they differ"));
        }
    }

    /// A boot ROM finds the chip as it powers up.
    #[track_caller]
    fn assert_rests(&self, what: &str) {
        let flash = self.flash.borrow();
        let fresh = Nor::new(flash.part().clone(), vec![0; flash.part().size]).expect("its size");
        assert_eq!(flash.four_byte_mode(), fresh.four_byte_mode(), "{what}: 4-byte mode");
        assert_eq!(flash.extended_address(), 0, "{what}: extended address");
        assert!(!flash.write_enabled() && !flash.selected(), "{what}: {:#04x}", flash.status());
        let violations = self.board.violations();
        assert!(violations.is_empty(), "{what}: {:#?}", &violations[..violations.len().min(5)]);
    }

    fn range(&self, range: Range<u64>) -> Range<usize> {
        range.start as usize..range.end as usize
    }
}

/// The assumptions needed for a part whose table contradicts itself.
fn given(name: &str) -> Assume {
    let mut assume = Assume::default();
    match name {
        "zd25q128c" => assume.size = Some(16 * MIB),
        "s25fs256t" => assume.erase_size = Some(128 << 10),
        _ => {}
    }
    assume
}

fn names() -> Vec<String> {
    Part::all().map(|part| part.option_name()).collect()
}

/// First, middle and last place.
fn places(range: &Range<u64>) -> [u64; 3] {
    [range.start, (range.start + range.end) / 2, range.end - 1]
}

#[test]
fn each_size_of_each_region_is_erased_and_nothing_beside_it() {
    for name in names() {
        let mut bench = Bench::new(&name);
        let mut chip = bench.chip();
        let geometry = *chip.geometry();
        assert_eq!(geometry.size, bench.expected.len() as u64, "{name}");
        assert_eq!(geometry.reach, geometry.size, "{name}");
        let mut erased = Vec::new();
        for region in geometry.regions() {
            for place in places(&(region.start..region.end)) {
                for block in geometry.blocks_at(place) {
                    let range = block.start..block.end();
                    chip.erase(range.clone(), &mut no_observer)
                        .unwrap_or_else(|error| panic!("{name} {range:#x?}: {error}"));
                    erased.push(range);
                }
            }
        }
        assert!(!erased.is_empty(), "{name}");
        drop(chip);
        for range in erased {
            let range = bench.range(range);
            bench.expected[range].fill(0xff);
        }
        bench.assert_holds(&name);
        bench.assert_rests(&name);
    }
}

/// Erases one block per run. If all were erased in one, a block that also erases its neighbour
/// would not be noticed.
#[test]
fn the_smallest_block_at_each_end_of_a_region_is_erased_alone() {
    for name in ["sst26vf064b", "s25fs512s", "s25fs128s", "w25q256fv"] {
        let mut bench = Bench::new(name);
        let regions: Vec<_> = bench.chip().geometry().regions().collect();
        for place in regions.iter().flat_map(|region| [region.start, region.end - 1]) {
            let mut chip = bench.chip();
            let block = chip.geometry().blocks_at(place).next().expect("it can be erased");
            chip.erase(block.start..block.end(), &mut no_observer).expect("erases");
            let truth = bench.flash.borrow().block_at(place as usize);
            drop(chip);
            let range = bench.range(block.start..block.end());
            assert_eq!(range, truth, "{name} {place:#x}");
            bench.expected[range].fill(0xff);
            bench.assert_holds(&format!("{name} {place:#x}"));
        }
    }
}

#[test]
fn what_is_written_across_regions_is_there_and_its_neighbours_are_as_before() {
    for name in names() {
        let mut bench = Bench::new(&name);
        let mut chip = bench.chip();
        let geometry = *chip.geometry();
        let mut scratch = vec![0; geometry.scratch_size() as usize];
        let inner = geometry.regions().map(|region| region.end).filter(|end| *end < geometry.size);
        let above = Some(16 * MIB).filter(|at| *at < geometry.size);
        let mut data_of = Vec::new();
        for (seed, at) in inner.chain(above).chain([geometry.size / 2]).enumerate() {
            let data: Vec<u8> = (0..700_u32).map(|n| (n * 7 + seed as u32) as u8 | 1).collect();
            chip.write(at - 300, &data, &mut scratch, &mut no_observer)
                .unwrap_or_else(|error| panic!("{name} {at:#x}: {error}"));
            let mut read = vec![0; data.len()];
            chip.read(at - 300, &mut read).expect("reads");
            assert!(read == data, "{name} {at:#x}");
            data_of.push((at - 300, data));
        }
        drop(chip);
        for (at, data) in data_of {
            bench.expected[at as usize..][..data.len()].copy_from_slice(&data);
        }
        bench.assert_holds(&name);
        bench.assert_rests(&name);
    }
}

/// The second registers that a protection test leaves: QE of most parts, and QE with CMP.
const SECONDS: [u8; 2] = [0x02, 0x42];

#[test]
fn what_any_bit_protects_is_refused_until_it_is_unprotected_and_no_other_bit_changes() {
    for name in names() {
        let mut protected = 0;
        let mut bench = Bench::new(&name);
        for (bit, second) in (2..8).flat_map(|bit| SECONDS.map(|second| (bit, second))) {
            // Bit 7 is the registers' lock, which the pin holds off.
            let first = if bit < 7 { 1 << bit } else { 0 };
            let left = Left { status: [Some(first), Some(second), None], ..Left::default() };
            bench.flash.borrow_mut().leave(&left);
            let before = bench.flash.borrow().status_registers();
            let range = bench.flash.borrow().protected();
            let what = format!("{name} {before:02x?}");
            let mut chip = bench.chip();
            if range.is_empty() {
                // Where datasheets differ the driver counts a bit that may protect.
                let sure = chip.geometry().protection != Layout::Bp4;
                let protection = chip.protection().expect("reads");
                assert!(protection.is_none() || protection.power_up || !sure, "{what}");
                continue;
            }
            protected += 1;
            let at = range.start as u64;
            let block = chip.geometry().blocks_at(at).next().expect("it can be erased");
            let mut scratch = vec![0; chip.geometry().scratch_size() as usize];
            let refused = chip.erase(block.start..block.end(), &mut no_observer);
            assert!(matches!(refused, Err(NorError::Protected { .. })), "{what}: {refused:?}");
            let refused = chip.write(at, &[0xf0], &mut scratch, &mut no_observer);
            assert!(matches!(refused, Err(NorError::Protected { .. })), "{what}: {refused:?}");
            bench.assert_holds(&what);
            let untouched = bench.flash.borrow().status_registers();
            assert_eq!(untouched[..2], before[..2], "{what}: untouched");
            chip.unprotect().unwrap_or_else(|error| panic!("{what}: {error}"));
            let after = bench.flash.borrow().status_registers();
            assert!(bench.flash.borrow().protected().is_empty(), "{what}: {after:02x?}");
            let cmp = if chip.geometry().protection.has_cmp() { 0x40 } else { 0 };
            assert_eq!(after[1], before[1] & !cmp, "{what}: register 2");
            let bits = chip.geometry().protection.bits();
            assert_eq!(after[0], before[0] & !bits, "{what}: register 1");
            chip.erase(block.start..block.end(), &mut no_observer)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            drop(chip);
            let erased = bench.range(block.start..block.end());
            bench.expected[erased].fill(0xff);
            bench.assert_holds(&what);
            bench.assert_rests(&what);
        }
        let none = ["sst26vf064b", "atxp032"];
        assert!(protected > 0 || none.contains(&&*name), "{name} has protection bits");
    }
}

#[test]
fn a_chip_is_left_as_it_was_found_after_a_drop_an_error_and_a_stop() {
    for name in names() {
        let bench = Bench::new(&name);
        let mut chip = bench.chip();
        let high = chip.size() - 4 * KIB;
        let mut scratch = vec![0; chip.geometry().scratch_size() as usize];
        chip.read(high, &mut [0; 16]).expect("reads");
        drop(chip);
        bench.assert_rests(&format!("{name}, dropped"));
        let mut chip = bench.chip();
        let mut stop = |_: u64| ControlFlow::Break(());
        let stopped = chip.write(high, &[0x55; 16], &mut scratch, &mut stop);
        assert!(matches!(stopped, Err(NorError::Interrupted { .. })), "{name}: {stopped:?}");
        drop(chip);
        bench.assert_rests(&format!("{name}, stopped"));
        let faults = NorFaults { ignore_program: true, ..NorFaults::default() };
        bench.flash.borrow_mut().set_faults(faults);
        let mut chip = bench.chip();
        let failed = chip.write(high, &[0x11; 16], &mut scratch, &mut no_observer);
        assert!(matches!(failed, Err(NorError::Verify { .. })), "{name}: {failed:?}");
        drop(chip);
        bench.assert_rests(&format!("{name}, failed"));
    }
}

#[test]
fn a_chip_that_somebody_left_in_4_byte_mode_is_read_right() {
    // The S25FL064L is small, has the mode, and takes four address bytes for its SFDP in it.
    let large = |name: &String| {
        name == "s25fl064l" || Part::named(name).is_some_and(|part| part.size > 16 << 20)
    };
    for name in names().into_iter().filter(large) {
        let bench = Bench::new(&name);
        let left = Left { four_byte_mode: Some(true), ..Left::default() };
        bench.flash.borrow_mut().leave(&left);
        let mut chip = bench.chip();
        for at in [0x2_0000, chip.size() - 64 * KIB] {
            let mut read = [0; 32];
            chip.read(at, &mut read).expect("reads");
            assert!(read.iter().all(|&byte| byte == bench.expected[at as usize]), "{name} {at:#x}");
        }
    }
}

#[test]
fn four_byte_mode_is_noticed_by_a_signature_that_comes_late_and_left() {
    let bench = Bench::new("s25fl064l");
    let left = Left { four_byte_mode: Some(true), ..Left::default() };
    bench.flash.borrow_mut().leave(&left);
    let chip = bench.chip();
    assert!(chip.geometry().notes.iter().any(|note| note == Note::WasInFourByteMode));
    drop(chip);
    bench.assert_rests("s25fl064l");
}

#[test]
fn a_change_that_the_chip_ignores_is_an_error_with_and_without_reading_back() {
    for read_back in [true, false] {
        let bench = Bench::new("sst26vf064b");
        // A lock that the driver is told not to open.
        let mut assume = Assume::default();
        assume.protection = Some(Layout::None);
        let mut chip = bench.assuming(&assume).expect("identifies");
        chip.set_read_back(read_back);
        let erased = chip.erase(0..4096, &mut no_observer);
        assert!(matches!(erased, Err(NorError::Ignored { address: 0, .. })), "{erased:?}");
        let written = chip.write(0x2_0000, &[0; 4], &mut [0; 4096], &mut no_observer);
        assert!(matches!(written, Err(NorError::Ignored { .. })), "{written:?}");
        drop(chip);
        bench.assert_holds("sst26vf064b");
        bench.assert_rests("sst26vf064b");
    }
}

#[test]
fn a_flag_status_that_somebody_left_unread_is_read() {
    let mut bench = Bench::new("mt25qu256a");
    bench.flash.borrow_mut().leave(&Left { flag_status_unread: true, ..Left::default() });
    let mut chip = bench.chip();
    chip.erase(0..4096, &mut no_observer).expect("the chip takes commands again");
    drop(chip);
    bench.expected[..4096].fill(0xff);
    bench.assert_holds("mt25qu256a");
}

#[test]
fn a_chip_that_is_still_busy_is_waited_for() {
    for name in ["w25q256jv", "sst26vf064b", "mt25qu256a", "s25fl512s"] {
        let bench = Bench::new(name);
        let left = Left { busy_for_ps: 50_000_000_000, ..Left::default() };
        bench.flash.borrow_mut().leave(&left);
        let mut chip = bench.chip();
        let mut read = [0; 16];
        chip.read(0x2_0000, &mut read).expect("reads");
        assert!(read.iter().all(|&byte| byte == 2), "{name}: {read:02x?}");
    }
}

#[test]
fn a_whole_chip_is_erased_also_where_its_command_is_ignored() {
    // The stack of dies ignores C7h; 256 MiB in blocks are too many for a test, so its observer stops.
    for name in ["mx25r6435f", "sst26vf064b"] {
        let bench = Bench::new(name);
        let mut chip = bench.chip();
        chip.erase(0..chip.size(), &mut no_observer)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        drop(chip);
        assert!(bench.flash.borrow().content().iter().all(|&byte| byte == 0xff), "{name}");
        bench.assert_rests(name);
    }
    let bench = Bench::new("mt25ql02g");
    let mut chip = bench.chip();
    let mut stop =
        |done| if done < 256 * KIB { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let stopped = chip.erase(0..chip.size(), &mut stop);
    assert_eq!(stopped, Err(NorError::Interrupted { done: 256 * KIB }));
    drop(chip);
    assert!(bench.flash.borrow().content()[..256 << 10].iter().all(|&byte| byte == 0xff));
}

#[test]
fn a_power_up_lock_is_opened_and_told() {
    let bench = Bench::new("sst26vf064b");
    let mut chip = bench.chip();
    let protection = chip.protection().expect("reads");
    assert!(protection.power_up && !protection.is_none(), "{protection:?}");
    assert!(bench.flash.borrow().locked(0), "looking opens nothing");
    chip.erase(0..4096, &mut no_observer).expect("erases");
    assert!(chip.geometry().notes.iter().any(|note| note == Note::LockOpened));
    assert!(chip.protection().expect("reads").is_none());
}

#[test]
fn error_bits_are_read_cleared_and_named() {
    // An earlier user's failed erase keeps the chip busy.
    let bench = Bench::new("s25fl512s");
    bench.flash.borrow_mut().leave(&Left { failed: 0x20, ..Left::default() });
    let mut chip = bench.chip();
    let mut read = [0; 4];
    chip.read(0x2_0000, &mut read).expect("reads");
    assert_eq!(read, [2; 4]);
    // A protection that the driver is told not to see: the chip refuses, and says so.
    drop(chip);
    let left = Left { status: [Some(0x1c), None, None], ..Left::default() };
    bench.flash.borrow_mut().leave(&left);
    let mut assume = Assume::default();
    assume.protection = Some(Layout::None);
    let mut chip = bench.assuming(&assume).expect("identifies");
    let failed = chip.erase(0..256 << 10, &mut no_observer);
    assert!(matches!(failed, Err(NorError::Failed { address: 0, .. })), "{failed:?}");
    chip.read(0x2_0000, &mut read).expect("reads");
    assert_eq!(read, [2; 4], "the chip still reads");
    drop(chip);
    bench.assert_rests("s25fl512s");
}

#[test]
fn what_contradicts_is_told_and_what_is_not_sure_is_refused() {
    let bench = Bench::new("zd25q128c");
    let chip = bench.assuming(&Assume::default()).expect("identifies");
    let notes: Vec<_> = chip.geometry().notes.iter().collect();
    assert_eq!(notes, [Note::Density { sfdp: 2 * MIB, id: 16 * MIB }]);
    drop(chip);
    let bench = Bench::new("s25fs256t");
    let mut chip = bench.assuming(&Assume::default()).expect("identifies");
    let refused = chip.erase(0..128 << 10, &mut no_observer);
    assert_eq!(refused, Err(NorError::NoErase { address: 0 }));
    let mut read = [0; 4];
    chip.read(17 * MIB, &mut read).expect("reads above 16 MiB");
    assert!(read.iter().all(|&byte| byte == bench.expected[17 << 20]));
    bench.assert_holds("s25fs256t");
}
