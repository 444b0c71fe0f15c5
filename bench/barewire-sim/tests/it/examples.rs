//! The examples do what they say: they are run, not only built.

#[path = "../../examples/async_two_devices.rs"]
mod async_two_devices;
#[path = "../../examples/hal_driver.rs"]
mod hal_driver;

#[test]
fn a_driver_for_embedded_hal_reads_an_adc() {
    hal_driver::main().expect("runs");
}

#[test]
fn two_devices_share_a_bus_as_futures() {
    async_two_devices::main().expect("runs");
}
