//! A node on simulated boards: any message leaves the chip as usable as it was.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::Mode;
use barewire_sim::bring_up;
use barewire_sim::{Board, BoardOptions, BoardSpec};
use barewire_spidev_abi::{AbiError, BUFSIZ, Chip, Errno, IocTransfer, Setting, Setup};
use proptest::collection::vec;
use proptest::prelude::*;

/// A node on a board's flash chip, and the chip's id.
struct Bench {
    board: Board,
    bus: Box<Bus<dyn Controller>>,
    chip: Chip,
    id: [u8; 3],
}

impl Bench {
    fn new(name: &str) -> Self {
        let board = Board::new(BoardSpec::find(name).expect("a board"), BoardOptions::default());
        board.attach_flash(None).expect("the part's size");
        let bus: Box<Bus<dyn Controller>> = Box::new(Bus::new(bring_up::any(&board)));
        let setup = Setup {
            chip_select: board.spec().flash().cs,
            mode: Mode::default(),
            speed_hz: 1_000_000,
            cs_change_delay_ns: 1_000,
            bufsiz: BUFSIZ,
        };
        let chip = Chip::new(&bus, setup).expect("opens");
        let mut bench = Self { board, bus, chip, id: [0; 3] };
        bench.chip.open();
        bench.id = bench.read_id().expect("answers");
        bench
    }

    fn read_id(&mut self) -> Result<[u8; 3], AbiError> {
        let mut rx = [0; 4];
        let both = IocTransfer { tx_buf: 1, rx_buf: 1, len: 4, ..IocTransfer::default() };
        assert_eq!(self.chip.run(&self.bus, &[both], &[0x9f, 0, 0, 0], &mut rx)?, 4);
        Ok([rx[1], rx[2], rx[3]])
    }

    fn run(&mut self, transfers: &[IocTransfer], first: u8) -> Result<u32, Errno> {
        let sent = transfers.iter().map(IocTransfer::tx_bytes).sum();
        let received = transfers.iter().map(IocTransfer::rx_bytes).sum();
        // No command of the chip's but the first byte's.
        let mut tx = vec![0; sent];
        if let Some(byte) = tx.first_mut() {
            *byte = first;
        }
        let ran = self.chip.run(&self.bus, transfers, &tx, &mut vec![0xaa; received]);
        ran.map_err(|failed| failed.errno)
    }
}

fn transfer() -> impl Strategy<Value = IocTransfer> {
    let buffers = (0..4_u64).prop_map(|bits| (bits & 1, bits >> 1));
    let len = prop_oneof![4 => 0..9_u32, 2 => 0..300_u32, 1 => 4_000..4_100_u32];
    let speed_hz = prop_oneof![4 => Just(0_u32), 1 => any::<u32>(), 1 => 100_000..50_000_000_u32];
    let bits = prop_oneof![6 => Just(0_u8), 3 => Just(8), 1 => Just(16), 1 => any::<u8>()];
    let lines = || prop_oneof![8 => Just(0_u8), 2 => Just(1), 1 => any::<u8>()];
    let rest = (0..20_u16, prop_oneof![3 => Just(0_u8), 1 => any::<u8>()], 0..3_u8);
    (buffers, len, speed_hz, bits, lines(), lines(), rest).prop_map(
        |((tx_buf, rx_buf), len, speed_hz, bits_per_word, tx_nbits, rx_nbits, rest)| {
            let (delay_usecs, cs_change, word_delay_usecs) = rest;
            IocTransfer {
                tx_buf,
                rx_buf,
                len,
                speed_hz,
                delay_usecs,
                bits_per_word,
                cs_change,
                tx_nbits,
                rx_nbits,
                word_delay_usecs,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_message_leaves_a_chip_that_answers(
        board in prop_oneof![Just("rpi3"), Just("imx6dl"), Just("highbank"), Just("rpi5")],
        messages in vec((vec(transfer(), 0..6), prop_oneof![Just(0x9f_u8), Just(0x05), Just(0xff)]), 1..6),
        settings in vec((0..5_usize, any::<u32>()), 0..4),
    ) {
        let mut bench = Bench::new(board);
        for (index, value) in settings {
            let all = [
                Setting::Mode, Setting::Mode32, Setting::LsbFirst, Setting::BitsPerWord, Setting::MaxSpeedHz,
            ];
            let setting = all[index];
            let before = all.map(|setting| bench.chip.read(setting));
            // What an ioctl's argument can hold.
            let value = if setting.bytes() == 1 { value & 0xff } else { value };
            match bench.chip.write(&bench.bus, setting, value) {
                Ok(()) => {
                    // SPI_3WIRE, SPI_READY, SPI_CS_WORD and what Linux 6.1 does not know.
                    let mode = matches!(setting, Setting::Mode | Setting::Mode32);
                    prop_assert!(!mode || value & !0x6f6f == 0, "{:#x}", value);
                }
                Err(AbiError { errno, .. }) => {
                    prop_assert_eq!(errno, Errno::INVAL);
                    prop_assert_eq!(all.map(|setting| bench.chip.read(setting)), before);
                }
            }
        }
        for (transfers, first) in messages {
            let total: u64 = transfers.iter().map(|transfer| u64::from(transfer.len)).sum();
            match bench.run(&transfers, first) {
                Ok(length) => prop_assert_eq!(u64::from(length), total),
                Err(errno) => prop_assert!(matches!(errno, Errno::INVAL | Errno::MSGSIZE), "{}", errno),
            }
        }
        // The last opener closes the node: its clock setting is forgotten, and a chip that was left
        // selected is released.
        bench.chip.close(&bench.bus);
        bench.chip.open();
        for (setting, value) in [(Setting::Mode32, 0), (Setting::BitsPerWord, 8)] {
            prop_assert_eq!(bench.chip.write(&bench.bus, setting, value), Ok(()));
        }
        prop_assert_eq!(bench.chip.read(Setting::MaxSpeedHz), 1_000_000);
        let expected = bench.id;
        prop_assert_eq!(bench.read_id(), Ok(expected));
        drop(bench.board);
    }
}

#[test]
fn a_kept_chip_is_released_for_another_and_by_the_last_close() {
    let mut bench = Bench::new("rpi3");
    let command = IocTransfer { tx_buf: 1, len: 1, cs_change: 1, ..IocTransfer::default() };
    let answer = IocTransfer { rx_buf: 1, len: 3, ..IocTransfer::default() };
    let mut rx = [0; 3];
    assert_eq!(bench.run(&[command], 0x9f), Ok(1));
    assert_eq!(bench.chip.run(&bench.bus, &[answer], &[], &mut rx), Ok(3));
    assert_eq!(rx, bench.id, "the next message continues the command");
    for close in [false, true] {
        assert_eq!(bench.run(&[command], 0x9f), Ok(1));
        if close {
            bench.chip.close(&bench.bus);
        } else {
            bench.chip.release(&bench.bus);
        }
        assert_eq!(bench.chip.run(&bench.bus, &[answer], &[], &mut rx), Ok(3));
        assert_ne!(rx, bench.id, "the command was over");
    }
}

#[test]
fn a_setting_that_is_written_deselects_a_kept_chip_as_spi_setup_does() {
    let command = IocTransfer { tx_buf: 1, len: 1, cs_change: 1, ..IocTransfer::default() };
    for board in ["rpi3", "imx6dl"] {
        let mut bench = Bench::new(board);
        for (setting, value) in [
            (Setting::Mode, 0),
            (Setting::Mode32, 0),
            (Setting::BitsPerWord, 8),
            (Setting::LsbFirst, 0),
            (Setting::MaxSpeedHz, 2_000_000),
        ] {
            assert_eq!(bench.run(&[command], 0x9f), Ok(1));
            assert_eq!(bench.chip.write(&bench.bus, setting, value), Ok(()));
            assert!(!bench.chip.is_selected());
            // The next command is one, not the rest of the last.
            let expected = bench.id;
            assert_eq!(bench.read_id(), Ok(expected), "{board}, {setting:?}");
        }
        // What is refused changes nothing: Linux deselects only behind the controller's own check.
        assert_eq!(bench.run(&[command], 0x9f), Ok(1));
        assert!(bench.chip.write(&bench.bus, Setting::MaxSpeedHz, 0).is_err());
        assert!(bench.chip.write(&bench.bus, Setting::BitsPerWord, 99).is_err());
        let answer = IocTransfer { rx_buf: 1, len: 3, ..IocTransfer::default() };
        let mut rx = [0; 3];
        assert_eq!(bench.chip.run(&bench.bus, &[answer], &[], &mut rx), Ok(3));
        assert_eq!(rx, bench.id, "{board}");
    }
}

#[test]
fn a_kept_chip_sees_no_edge_when_the_next_message_has_another_clock() {
    let command = IocTransfer { tx_buf: 1, len: 1, cs_change: 1, ..IocTransfer::default() };
    let answer = IocTransfer { rx_buf: 1, len: 3, ..IocTransfer::default() };
    let other = IocTransfer { speed_hz: 500_000, ..answer };
    for (board, takes_it) in [("rpi3", false), ("imx6dl", true), ("rpi5", true)] {
        let mut bench = Bench::new(board);
        let mut rx = [0; 3];
        assert_eq!(bench.run(&[command], 0x9f), Ok(1), "{board}");
        let ran = bench.chip.run(&bench.bus, &[other], &[], &mut rx);
        if takes_it {
            assert_eq!((ran, rx), (Ok(3), bench.id), "{board}");
            continue;
        }
        // The line is the controller's own, and rises when the clock's divider is written.
        let failed = ran.expect_err("refused, as within one message");
        assert_eq!(failed.errno, Errno::INVAL, "{board}: {failed:?}");
        assert!(bench.chip.is_selected());
        assert_eq!(bench.chip.run(&bench.bus, &[answer], &[], &mut rx), Ok(3));
        assert_eq!(rx, bench.id, "{board}: nothing was clocked, and the command goes on");
    }
}

#[test]
fn sizes_that_do_not_fit_the_transfers_are_the_callers_mistake() {
    let mut bench = Bench::new("rpi3");
    let both = IocTransfer { tx_buf: 1, rx_buf: 1, len: 4, ..IocTransfer::default() };
    for (sent, received) in [(3, 4), (4, 3), (5, 4), (0, 0)] {
        let ran = bench.chip.run(&bench.bus, &[both], &vec![0; sent], &mut vec![0; received]);
        assert_eq!(ran.map_err(|failed| failed.errno), Err(Errno::PROTO));
    }
    assert_eq!(bench.chip.run(&bench.bus, &[], &[], &mut []), Ok(0));
}
