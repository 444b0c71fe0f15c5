//! Flash chips that misbehave, are asked wrongly, or lose power: typed errors, a chip that is
//! unselected and write-disabled, and nothing passed off as done.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use barewire::bus::{Bus, Device};
use barewire::chip::spi_nor::{NorError, SpiNor, Storage, no_observer};
use barewire::spi::Settings;
use barewire_sim::bring_up::{AnyController, Charged, bus};
use barewire_sim::model::nor::{Nor, NorFaults};
use barewire_sim::{Board, SimTimer};
use embedded_storage::nor_flash::{NorFlash, ReadNorFlash};

type BoardNor<'b> = SpiNor<Device<'b, Charged<AnyController>>, SimTimer>;

struct Bench {
    board: Board,
    flash: Rc<RefCell<Nor>>,
    bus: Bus<Charged<AnyController>>,
}

impl Bench {
    fn new(name: &str, faults: NorFaults) -> Self {
        let board = crate::board(name);
        let flash = board.attach_flash(None).expect("the part's size");
        flash.borrow_mut().set_faults(faults);
        let bus = bus(&board);
        Self { board, flash, bus }
    }

    fn at(&self, settings: &Settings) -> Result<BoardNor<'_>, NorError> {
        SpiNor::new(self.bus.device(settings).expect("opens"), self.board.timer())
    }

    fn chip(&self) -> BoardNor<'_> {
        self.at(&Settings::new(0, 20_000_000)).expect("identifies")
    }

    fn assert_settled(&self) {
        assert!(self.board.violations().is_empty(), "{:#?}", self.board.violations());
        let flash = self.flash.borrow();
        assert!(!flash.selected() && !flash.write_enabled(), "status {:#04x}", flash.status());
    }
}

fn write(chip: &mut BoardNor<'_>, offset: u64, data: &[u8]) -> Result<(), NorError> {
    chip.write(offset, data, &mut [0; 4096], &mut no_observer).map(|_| ())
}

#[test]
fn no_chip_and_a_stuck_line_are_told_apart() {
    let absent = Bench::new("imx8mp", NorFaults { absent: true, ..NorFaults::default() });
    assert_eq!(absent.at(&Settings::new(0, 20_000_000)).err(), Some(NorError::NoChip));
    let low = Bench::new("imx8mp", NorFaults { miso_stuck_low: true, ..NorFaults::default() });
    assert_eq!(low.at(&Settings::new(0, 20_000_000)).err(), Some(NorError::StuckLow));
    absent.assert_settled();
}

#[test]
fn a_clock_above_the_chip_s_limit_is_refused() {
    // The SST25VF016B takes 50 MHz; the block could give 60.
    let bench = Bench::new("sabrelite", NorFaults::default());
    let error = bench.at(&Settings::new(0, 60_000_000)).err();
    assert_eq!(error, Some(NorError::TooFast { speed_hz: 60_000_000, max_hz: 50_000_000 }));
}

#[test]
fn above_read_s_limit_fast_read_is_used() {
    let bench = Bench::new("imx8mp", NorFaults::default());
    let mut chip = bench.at(&Settings::new(0, 80_000_000)).expect("identifies");
    assert!(chip.uses_fast_read());
    write(&mut chip, 7, b"fast").expect("writes");
    let mut back = [0; 4];
    chip.read(7, &mut back).expect("reads");
    assert_eq!(&back, b"fast");
    drop(chip);
    bench.assert_settled();
}

#[test]
fn what_is_out_of_range_or_misaligned_changes_nothing() {
    let bench = Bench::new("imx8mp", NorFaults::default());
    bench.flash.borrow_mut().keep_with(|at, _| panic!("{at:#x} changed"));
    let mut chip = bench.chip();
    let size = chip.size();
    let beyond = |offset, len| NorError::OutOfRange { offset, len, size };
    assert_eq!(chip.read(size, &mut [0]).err(), Some(beyond(size, 1)));
    assert_eq!(chip.read(u64::MAX, &mut [0; 2]).err(), Some(beyond(u64::MAX, 2)));
    assert_eq!(write(&mut chip, size - 1, &[0; 2]).err(), Some(beyond(size - 1, 2)));
    let misaligned = |address| Some(NorError::Misaligned { address, granularity: 4096 });
    assert_eq!(chip.erase(1..4096, &mut no_observer).err(), misaligned(1));
    assert_eq!(chip.erase(0..4097, &mut no_observer).err(), misaligned(4097));
    let error = chip.write(0, &[0], &mut [0; 100], &mut no_observer).err();
    assert_eq!(error, Some(NorError::ScratchTooSmall { len: 100, needed: 4096 }));
    drop(chip);
    bench.assert_settled();
}

#[test]
fn protected_blocks_are_reported_and_cleared_only_when_asked() {
    let bench = Bench::new("imx8mp", NorFaults::default());
    // BP3..BP0 = 1: the uppermost 64 KiB.
    bench.flash.borrow_mut().set_status(1 << 2);
    let mut chip = bench.chip();
    let (start, end) = ((32 << 20) - (64 << 10), 32 << 20);
    write(&mut chip, 0, &[1]).expect("nothing else is protected");
    let error = write(&mut chip, start - 1, &[1, 2]).err();
    assert_eq!(error, Some(NorError::Protected { start, end, status: 1 << 2 }));
    let error = chip.erase(0..end, &mut no_observer).err();
    assert_eq!(error, Some(NorError::Protected { start, end, status: 1 << 2 }));
    assert_eq!(bench.flash.borrow().content()[0], 1, "nothing was erased");
    chip.unprotect().expect("the protection bits are not locked");
    assert!(chip.protection().expect("reads").is_none());
    write(&mut chip, start - 1, &[1, 2]).expect("is free now");
    drop(chip);
    bench.assert_settled();
}

#[test]
fn a_part_that_powers_up_protected_says_so() {
    let bench = Bench::new("sabrelite", NorFaults::default());
    let mut chip = bench.chip();
    let error = write(&mut chip, 0, &[1]).err();
    assert!(
        matches!(error, Some(NorError::Protected { start: 0, end: 0x20_0000, .. })),
        "{error:?}"
    );
    chip.unprotect().expect("the protection bits are not locked");
    write(&mut chip, 0, &[1]).expect("is free now");
    drop(chip);
    bench.assert_settled();
}

#[test]
fn a_chip_that_stays_busy_is_given_up_at_its_datasheet_s_limit() {
    for board in ["imx8mp", "sabrelite"] {
        let bench = Bench::new(board, NorFaults { stuck_busy: true, ..NorFaults::default() });
        let mut chip = bench.chip();
        let limit_ns = match board {
            "imx8mp" => chip.geometry().program_max_ns,
            // Unprotecting already writes: its time is the one that runs out.
            _ => chip.geometry().program_max_ns.min(10_000),
        };
        let begun = bench.board.engine().now_ps();
        let error = match board {
            "imx8mp" => write(&mut chip, 0, &[1]),
            _ => chip.unprotect().and_then(|()| write(&mut chip, 0, &[1])),
        };
        let Err(NorError::StaysBusy { limit_ns: reported_ns, .. }) = error else {
            panic!("{board}: {error:?}")
        };
        assert_eq!(reported_ns, limit_ns, "{board}");
        let waited_ns = (bench.board.engine().now_ps() - begun) / 1_000;
        assert!((limit_ns..2 * limit_ns + 200_000).contains(&waited_ns), "{board}: {waited_ns} ns");
        drop(chip);
        assert!(!bench.flash.borrow().selected());
        // No command was sent to a chip that hears none.
        assert!(bench.board.violations().is_empty(), "{:#?}", bench.board.violations());
    }
}

#[test]
fn power_lost_in_a_program_is_an_error_that_names_the_address() {
    let faults = NorFaults { power_loss_in_program: Some(2), ..NorFaults::default() };
    let bench = Bench::new("imx8mp", faults);
    let mut chip = bench.chip();
    let data: Vec<u8> = (0..1024).map(|i| i as u8).collect();
    assert_eq!(write(&mut chip, 0, &data), Err(NorError::Gone { address: 512 }));
    drop(chip);
    bench.flash.borrow_mut().power_cycle();
    let content = bench.flash.borrow().content()[..1024].to_vec();
    assert_eq!(content[..512], data[..512], "what was programmed before is there");
    assert_ne!(content[512..768], data[512..768], "the page that was cut is not whole");
    assert!(content[768..].iter().all(|&byte| byte == 0xff));
    bench.flash.borrow_mut().set_faults(NorFaults::default());
    let mut chip = bench.chip();
    write(&mut chip, 0, &data).expect("a second attempt finishes the work");
    drop(chip);
    bench.assert_settled();
}

#[test]
fn power_lost_in_an_erase_is_an_error() {
    let faults = NorFaults { power_loss_in_erase: Some(0), ..NorFaults::default() };
    let bench = Bench::new("imx8mp", faults);
    let mut chip = bench.chip();
    let error = chip.erase(4096..8192, &mut no_observer).err();
    assert_eq!(error, Some(NorError::Gone { address: 4096 }));
}

#[test]
fn a_worn_cell_is_caught_by_reading_back() {
    let bench = Bench::new("imx8mp", NorFaults { ignore_program: true, ..NorFaults::default() });
    let mut chip = bench.chip();
    let error = write(&mut chip, 10, &[0x12, 0x34]).err();
    let expected = NorError::Verify { address: 10, expected: 0x12, actual: 0xff };
    assert_eq!(error, Some(expected));
    drop(chip);
    bench.assert_settled();
}

#[test]
fn an_observer_stops_a_write_between_sectors() {
    let bench = Bench::new("imx8mp", NorFaults::default());
    let mut chip = bench.chip();
    let mut stop_after_two = |done: u64| {
        if done >= 8192 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let error = chip.write(0, &[0; 20_000], &mut [0; 4096], &mut stop_after_two).err();
    assert_eq!(error, Some(NorError::Interrupted { done: 8192 }));
    // The same across a block border: `done` counts from the beginning of the write, not of the
    // block.
    let begin = (128 << 10) - 4096;
    let error = chip.write(begin, &[0; 20_000], &mut [0; 4096], &mut stop_after_two).err();
    assert_eq!(error, Some(NorError::Interrupted { done: 8192 }));
    drop(chip);
    let flash = bench.flash.borrow().content().to_vec();
    assert!(flash[8192..20_000].iter().all(|&byte| byte == 0xff));
    assert!(flash[begin as usize + 8192..][..10_000].iter().all(|&byte| byte == 0xff));
    bench.assert_settled();
}

#[test]
fn only_what_differs_is_changed() {
    let bench = Bench::new("imx8mp", NorFaults::default());
    let mut chip = bench.chip();
    let mut scratch = [0; 4096];
    let mut data = vec![0xa5; 128 << 10];
    let mut write =
        |data: &[u8]| chip.write(0, data, &mut scratch, &mut no_observer).expect("writes");
    let first = write(&data);
    assert_eq!((first.erases, first.programs), (0, 512), "an erased chip needs no erase");
    let again = write(&data);
    assert_eq!((again.erases, again.programs, again.unchanged_bytes), (0, 0, 128 << 10));
    data[5000] &= 0x0f;
    let cleared = write(&data);
    assert_eq!((cleared.erases, cleared.programs, cleared.programmed_bytes), (0, 1, 1));
    data[5000] = 0xff;
    let set = write(&data);
    assert_eq!((set.erases, set.erased_bytes, set.programs), (1, 4096, 16), "one sector");
    let other = vec![0x5a; 128 << 10];
    let all = write(&other);
    assert_eq!((all.erases, all.erased_bytes), (2, 128 << 10), "two blocks, not 32 sectors");
    drop(chip);
    bench.assert_settled();
}

#[test]
fn embedded_storage_reads_erases_and_programs() {
    let bench = Bench::new("imx8mp", NorFaults::default());
    let mut storage: Storage<_, _> = Storage::new(bench.chip()).expect("4 KiB blocks");
    assert_eq!(storage.capacity(), 32 << 20);
    storage.write(4090, b"0123456789").expect("programs");
    let mut back = [0; 10];
    storage.read(4090, &mut back).expect("reads");
    assert_eq!(&back, b"0123456789");
    storage.erase(4096, 8192).expect("erases");
    storage.read(4090, &mut back).expect("reads");
    assert_eq!(&back, b"012345\xff\xff\xff\xff");
    assert!(storage.erase(1, 4096).is_err());
    drop(storage.release());
    bench.assert_settled();
    assert!(Storage::<_, _, 512>::new(bench.chip()).is_err(), "no blocks of 512 bytes");
}
