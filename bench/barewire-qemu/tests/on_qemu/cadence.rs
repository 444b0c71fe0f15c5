//! Cadence SPI on QEMU's `xilinx-zynq-a9`: the model with raw registers, each line of `src/board/zynq.rs`, and the
//! driver, compared with QEMU's own backing file.
//!
//! Registers by their names in UG585, appendix B.30.

use barewire::chip::spi_nor::JedecId;
use barewire::reg::Registers;
use barewire_qemu::{QemuOptions, QemuRegisters};

use crate::lands::Flash;
use crate::support::open_board;

const CONFIG: u32 = 0x00;
const STATUS: u32 = 0x04;
const EN: u32 = 0x14;
const TX_DATA: u32 = 0x1c;
const RX_DATA: u32 = 0x20;
const TX_THRES: u32 = 0x28;
const RX_THRES: u32 = 0x2c;

/// A controller with manual chip select; CS is above it.
const MANUAL: u32 = 0x4009;
const NO_LINE: u32 = 0xf << 10;
/// Read JEDEC ID, and the N25Q128's answer.
const RDID: [u32; 4] = [0x9f, 0, 0, 0];
const ID: [u32; 3] = [0x20, 0xba, 0x18];
const FLASH: Flash = Flash { id: JedecId([0x20, 0xba, 0x18]), size: 16 << 20 };

fn on_block(test: impl FnOnce(&mut QemuRegisters)) {
    let Some(board) = open_board("zynq", &QemuOptions::default()) else { return };
    let mut spi = board.controller();
    test(&mut spi);
    drop(spi);
    assert_eq!((board.misuse(), board.lost()), (Ok(vec![]), None));
    board.close().expect("ends well");
}

/// Exchanges bytes with the chip on the lines of CS, under this configuration.
fn exchange(spi: &mut QemuRegisters, config: u32, bytes: &[u32]) -> Vec<u32> {
    spi.write(CONFIG, config);
    spi.write_n(TX_DATA, bytes);
    let received = bytes.iter().map(|_| spi.read(RX_DATA)).collect();
    spi.write(CONFIG, MANUAL | NO_LINE);
    received
}

#[test]
fn a_byte_takes_no_time_whatever_enables_it_or_clocks_it() {
    on_block(|spi| {
        assert_eq!(spi.read(EN), 0);
        // Mode 3 and every divider; a target; each line, and the fourth.
        for config in [MANUAL, MANUAL | 6, MANUAL | 7 << 3, MANUAL & !1] {
            for cs in [0xe, 0xd, 0xb, 0x7] {
                assert_eq!(exchange(spi, config | cs << 10, &RDID)[1..], ID, "{config:#x} {cs:#x}");
            }
        }
        assert_ne!(exchange(spi, MANUAL | NO_LINE, &RDID)[1..], ID, "no line");
    });
}

#[test]
fn thresholds_say_what_the_fifos_hold() {
    on_block(|spi| {
        for register in [TX_THRES, RX_THRES] {
            assert_eq!(spi.read(register), 1);
            spi.write(register, u32::MAX);
            assert_eq!(spi.read(register), u32::MAX);
            spi.write(register, 1);
        }
        spi.write(CONFIG, MANUAL | NO_LINE);
        assert_eq!(spi.read(STATUS) & 0x14, 0x04);
        spi.write(RX_THRES, 2);
        spi.write(TX_DATA, 1);
        assert_eq!(spi.read(STATUS) & 0x14, 0x04);
        spi.write(TX_DATA, 2);
        assert_eq!(spi.read(STATUS) & 0x14, 0x14);
        assert_eq!(spi.read(STATUS) & 0x14, 0x14, "a look changes nothing");
    });
}

#[test]
fn a_full_receive_fifo_loses_bytes_and_an_empty_one_reads_0() {
    on_block(|spi| {
        spi.write(CONFIG, MANUAL | 0xe << 10);
        assert_eq!(spi.read(RX_DATA), 0);
        spi.write_n(TX_DATA, &RDID);
        spi.write_n(TX_DATA, &[0; 130]);
        let status = spi.read(STATUS);
        assert_eq!(status, 0x135, "full, and an overflow");
        let received: Vec<u32> = (0..128).map(|_| spi.read(RX_DATA)).collect();
        assert_eq!(received[1..4], ID);
        assert_eq!(
            (spi.read(STATUS), spi.read(RX_DATA)),
            (0x104, 0),
            "the first read of STATUS cleared the overflow"
        );
    });
}

#[test]
fn polled_and_by_interrupt_a_write_lands_in_the_file() {
    FLASH.written_lands_in_the_file("zynq", 0xff_0103);
}
