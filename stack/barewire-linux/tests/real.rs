//! On a real spidev node, where there is one.
//!
//! By itself the test opens the first node it may open, applies settings and runs a transfer of
//! no bytes: CS goes active and inactive once, nothing is clocked, so no chip takes harm. With
//! `BAREWIRE_SPIDEV=/dev/spidevB.C` it uses that node and clocks zeros, too: name one whose chip
//! ignores them.

use barewire::bus::Bus;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::Root;
use barewire_linux::spidev::{Spidev, SpidevError, bufsiz, nodes};

#[test]
fn a_real_node_runs_messages() {
    let named = std::env::var("BAREWIRE_SPIDEV").ok();
    let root = Root::system();
    let Some(path) = named.clone().or_else(|| nodes(&root).into_iter().next()) else {
        println!("SKIPPED: no /dev/spidev* on this machine");
        return;
    };
    let spidev = match Spidev::open(&path) {
        Ok(spidev) => spidev,
        Err(error @ SpidevError::NoPermission { .. }) if named.is_none() => {
            println!("SKIPPED: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let last_error = spidev.last_error();
    let told = || last_error.take().map(|error| error.to_string());
    let bus = Bus::new(spidev);
    let device = bus.device(&Settings::new(0, 500_000)).expect("plain settings");
    assert_eq!(device.sync(&mut [Transfer::write(&[])]), Ok(0), "{:?}", told());

    if named.is_some() {
        let (tx, mut rx) = ([0; 16], [0xff; 4]);
        let message = &mut [Transfer::write(&tx).with_cs_change(), Transfer::read(&mut rx)];
        assert_eq!(device.sync(message), Ok(20), "{:?}", told());
        let full = vec![0; bufsiz(&root)];
        assert_eq!(device.sync(&mut [Transfer::write(&full)]), Ok(full.len()), "{:?}", told());
        let long = vec![0; full.len() + 1];
        let refused = device.sync(&mut [Transfer::write(&long)]).expect_err("too long");
        assert!(matches!(refused.error, Error::MessageTooLong { .. }), "{refused}");
        assert!(matches!(last_error.take(), Some(SpidevError::TooLong { .. })));
    }
}
