//! ECSPI's interrupt line on the SABRE Lite: a status bit with its enable, by level.

use barewire::reg::Registers;
use barewire_qemu::QemuOptions;

use crate::support::open;

/// Registers and bits by their names in the i.MX 6 reference manual.
const TXDATA: u32 = 0x04;
const RXDATA: u32 = 0x00;
const CONREG: u32 = 0x08;
const INTREG: u32 = 0x10;
const TE: u32 = 1;
const RR: u32 = 1 << 3;

#[test]
fn the_line_follows_status_and_enable() {
    let Some(board) = open(&QemuOptions::default()) else { return };
    let line = board.interrupt().expect("the line");
    let mut ecspi = board.controller();
    // Enabled, all channels controllers, started by a write (SMC), bursts of a byte.
    ecspi.write(CONREG, 7 << 20 | 0xf9);
    assert!(!line.is_raised());
    ecspi.write(INTREG, TE);
    assert!(line.is_raised(), "the transmit FIFO is empty");
    ecspi.write(INTREG, RR);
    assert!(!line.is_raised());
    ecspi.write(TXDATA, 0x9f);
    assert!(line.is_raised(), "a word was received");
    ecspi.read(RXDATA);
    assert!(!line.is_raised());
    assert_eq!(line.raises(), 2);
    assert_eq!(board.misuse(), Ok(vec![]));
    board.close().expect("ends well");
}
