//! The suppliers that a device waits for before the kernel gives it to a driver: clocks, regulators, GPIO
//! chips, interrupt controllers and others that its node names, and that have no driver yet.
//!
//! Read first: the kernel's `Documentation/driver-api/device_link.rst`, and in `Documentation/ABI/testing`
//! `sysfs-devices-waiting_for_supplier`, `sysfs-devices-supplier` and `sysfs-class-devlink`.
//!
//! # How it works
//! A supplier that is a device has a link to each of its consumers, with the link's state. If a supplier is no
//! device yet, the consumer has only `waiting_for_supplier`; its name is in debugfs, for root. Until all are there,
//! each attempt to bind a driver ends with `EPROBE_DEFER`, which a write to `bind` reports as "Resource temporarily
//! unavailable".

use crate::root::Root;

/// The suppliers that the device `name` in `directory` waits for; none for one that has a driver.
pub(super) fn awaited(root: &Root, directory: &str, name: &str) -> Vec<String> {
    if root.link_name(format!("{directory}/driver")).is_some() {
        return Vec::new();
    }
    let text = |path: String| root.text(path).unwrap_or_default();
    let links = root.names(directory).into_iter();
    let mut awaited: Vec<String> = links
        .filter(|link| {
            let state = text(format!("{directory}/{link}/status"));
            // A link of this kind holds back the supplier's clean-up and not the consumer's driver.
            let of_state = text(format!("{directory}/{link}/sync_state_only"));
            matches!(state.trim(), "dormant" | "supplier unbinding") && of_state.trim() != "1"
        })
        .filter_map(|link| Some(link.strip_prefix("supplier:")?.split_once(':')?.1.to_owned()))
        .collect();
    if text(format!("{directory}/waiting_for_supplier")).trim() == "1" {
        let deferred = text("/sys/kernel/debug/devices_deferred".into());
        let mut reasons = deferred.lines().filter_map(|line| line.split_once('\t'));
        let reason = reasons.find(|(device, _)| *device == name).map(|(_, reason)| reason);
        let supplier = reason.and_then(|reason| reason.split_once("wait for supplier "));
        awaited.push(supplier.map_or_else(
            || "a device that its node names and that is not there yet".into(),
            |(_, supplier)| supplier.trim().to_owned(),
        ));
    }
    awaited
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_supplier_without_a_driver_is_awaited() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let root = Root::at(dir.path());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            fs::create_dir_all(path.parent().expect("below")).expect("made");
            fs::write(path, text).expect("written");
        };
        const DEVICE: &str = "/sys/bus/spi/devices/spi0.0";
        let links = [("gpio", "dormant"), ("clock", "available"), ("power", "not tracked")];
        for (name, state) in links {
            write(&format!("{DEVICE}/supplier:platform:{name}/status"), &format!("{state}\n"));
        }
        let awaited = || awaited(&root, DEVICE, "spi0.0");
        assert_eq!(awaited(), ["gpio"]);
        write(&format!("{DEVICE}/supplier:platform:gpio/sync_state_only"), "1\n");
        write(&format!("{DEVICE}/waiting_for_supplier"), "0\n");
        assert!(awaited().is_empty());
        write(&format!("{DEVICE}/waiting_for_supplier"), "1\n");
        assert!(awaited()[0].contains("its node names"));
        let deferred = "spi1.0\tspi: wait for supplier /one\nspi0.0\tspi: wait for supplier /two\n";
        write("/sys/kernel/debug/devices_deferred", deferred);
        assert_eq!(awaited(), ["/two"]);
        symlink("../../drivers/spi-nor", root.path(format!("{DEVICE}/driver"))).expect("linked");
        assert!(awaited().is_empty(), "it has all it needs");
    }
}
