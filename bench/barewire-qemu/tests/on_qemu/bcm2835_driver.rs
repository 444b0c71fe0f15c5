//! The shipped BCM2835 driver on QEMU's SPI0: registers, FIFOs, interrupts and lengths; nothing is on
//! the bus, and an undriven line reads 0.

use barewire::bus::Bus;
use barewire::controller::bcm2835::{Bcm2835, Bcm2835Config};
use barewire::controller::gpio::Bcm2835Gpio;
use barewire::controller::{ALWAYS_POLL, Controller, CsLine};
use barewire::reg::Registers;
use barewire::spi::{MODE_0, MODE_3, Settings, Transfer};
use barewire_qemu::{QemuBoard, QemuOptions};

use crate::support::open_board;

/// Lengths around the 64 bytes of FIFO, the 48 at which RXR is set, and twice these.
const LENGTHS: [usize; 13] = [0, 1, 3, 47, 48, 63, 64, 65, 112, 128, 129, 1_000, 4_096];

/// The GPIO block's levels, and CE0's.
const GPLEV0: u32 = 0x34;
const CE0: u32 = 1 << 8;

fn exchanges(board: &QemuBoard, controller: impl Controller) {
    let bus = Bus::new(board.watch(controller));
    for (mode, speed_hz) in [(MODE_0, 3_600_000), (MODE_3, 1_000_000)] {
        let settings = Settings::new(0, speed_hz).with_mode(mode);
        let device = bus.device(&settings).expect("opens");
        for len in LENGTHS {
            let tx = vec![0x5a; len];
            let mut rx = vec![0xff; len];
            assert_eq!(device.sync(&mut [Transfer::exchange(&tx, &mut rx)]), Ok(len));
            assert!(rx.iter().all(|&byte| byte == 0), "{settings:?}, {len} bytes");
        }
        let mut rx = [1; 70];
        let mut message = [
            Transfer::write(&[1]).with_cs_change(),
            Transfer::read(&mut rx).with_word_delay_ns(100),
        ];
        assert_eq!(device.sync(&mut message), Ok(71));
        assert_eq!(rx, [0; 70]);
    }
}

fn settle(board: QemuBoard) {
    assert_eq!(board.misuse(), Ok(vec![]));
    assert_eq!(board.lost(), None);
    board.close().expect("ends well");
}

#[test]
fn every_length_is_received() {
    let Some(board) = open_board("raspi3b", &QemuOptions::default()) else { return };
    let mut gpio = board.gpio();
    let controller = board.bring_up();
    assert_eq!(gpio.read(GPLEV0) & CE0, CE0, "inactive");
    exchanges(&board, controller);
    assert_eq!(gpio.read(GPLEV0) & CE0, CE0, "and afterwards again");
    settle(board);
}

#[test]
fn every_length_is_received_by_interrupt() {
    let Some(board) = open_board("raspi3b", &QemuOptions::default()) else { return };
    let line = board.interrupt().expect("the line");
    exchanges(&board, board.bring_up_interrupt(0).expect("the line"));
    assert!(line.raises() > 2 * LENGTHS.len() as u64, "{}", line.raises());
    assert!(!line.is_raised());
    settle(board);
}

/// The header's CE0 as the block's own line, which the model does not have.
#[test]
fn the_block_s_own_line_is_the_same() {
    for poll_limit_ns in [ALWAYS_POLL, 0] {
        let Some(board) = open_board("raspi3b", &QemuOptions::default()) else { return };
        let native = CsLine::Native { channel: 0, active_high: false };
        let config = Bcm2835Config {
            core_hz: 250_000_000,
            chip_selects: [native, CsLine::Absent, CsLine::Absent, CsLine::Absent],
            poll_limit_ns,
        };
        let interrupt = board.interrupt().expect("the line");
        let gpio = Bcm2835Gpio::new(board.gpio());
        let spi = Bcm2835::new(board.controller(), gpio, board.timer(), config);
        exchanges(&board, spi.with_interrupt(interrupt));
        settle(board);
    }
}
