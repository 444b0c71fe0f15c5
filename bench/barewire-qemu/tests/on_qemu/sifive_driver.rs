//! The driver of SiFive SPI on QEMU's `sifive_u`, compared with QEMU's own backing file.

use barewire::chip::spi_nor::JedecId;
use barewire_qemu::QemuOptions;

use crate::lands::Flash;
use crate::support::open_board;

const FLASH: Flash = Flash { id: JedecId([0x9d, 0x70, 0x19]), size: 32 << 20 };

#[test]
fn polled_and_by_interrupt_a_write_lands_in_the_file() {
    // Above 16 MiB, where addresses have four bytes.
    FLASH.written_lands_in_the_file("sifive_u", 0x180_0103);
}

#[test]
fn the_board_with_a_card_starts() {
    let Some(board) = open_board("sifive_u_sd", &QemuOptions::default()) else { return };
    drop(board.bus());
    assert_eq!(board.misuse(), Ok(vec![]));
    board.close().expect("ends well");
}
