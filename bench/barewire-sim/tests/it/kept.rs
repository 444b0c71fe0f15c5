//! Messages that leave the chip selected, on every board's flash chip: the next message goes on.

use barewire::bus::Bus;
use barewire::spi::{Error, Settings, Transfer};
use barewire_sim::board::boards;
use barewire_sim::bring_up::any;
use barewire_sim::{Board, BoardOptions};

#[test]
fn the_next_message_goes_on_where_the_last_one_ended() {
    let mut kept = 0;
    for spec in boards() {
        let board = Board::new(spec, BoardOptions::default());
        let flash = board.attach_flash(None).expect("the part's size");
        let bus = Bus::new(any(&board));
        let settings =
            Settings { cs_inactive_ns: 100, ..Settings::new(spec.flash().cs, 1_000_000) };
        let device = bus.device(&settings).expect("opens");
        let id = |device: &barewire::bus::Device<'_, _>| {
            let mut id = [0; 3];
            let mut message = [Transfer::write(&[0x9f]), Transfer::read(&mut id)];
            device.sync(&mut message).expect("runs");
            id
        };
        let expected = id(&device);
        let clocked = board.wire_use().bits;
        match device.sync_keeping_cs(&mut [Transfer::write(&[0x9f])]) {
            Err(refused) => {
                assert_eq!(refused.error, Error::CsChangeOnLast, "{}", spec.name);
                assert_eq!(board.wire_use().bits, clocked, "nothing was clocked");
                continue;
            }
            Ok(length) => assert_eq!(length, 1),
        }
        kept += 1;
        assert!(flash.borrow().selected(), "{}", spec.name);
        // Reads one more byte and keeps the chip selected, then reads the rest, which releases it.
        let mut rest = [0; 3];
        let (first, others) = rest.split_at_mut(1);
        device.sync_keeping_cs(&mut [Transfer::read(first)]).expect("runs");
        assert!(flash.borrow().selected(), "{}", spec.name);
        device.sync(&mut [Transfer::read(others)]).expect("runs");
        assert!(!flash.borrow().selected(), "{}", spec.name);
        assert_eq!(rest, expected, "{}", spec.name);
        // A message without bytes ends it too; afterwards all is as before.
        device.sync_keeping_cs(&mut [Transfer::write(&[0x9f])]).expect("runs");
        device.sync(&mut [Transfer::write(&[])]).expect("runs");
        assert!(!flash.borrow().selected(), "{}", spec.name);
        assert_eq!(id(&device), expected, "{}", spec.name);
        assert!(board.violations().is_empty(), "{}: {:?}", spec.name, board.violations());
    }
    assert!(kept >= 5, "only {kept} boards hold the line");
}
