//! What shows that the machine is no board but an emulator, whose time is no board's.

use barewire_linux::Root;

/// A message whose clocks should take longer than that share of its time was on no wire.
const NO_WIRE: f64 = 0.5;

/// The device tree's, firmware's and processor's own words.
pub(super) fn evidence(root: &Root, compatible: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(name) =
        compatible.iter().find(|name| name.contains("qemu") || name.contains("dummy-virt"))
    {
        found.push(format!("the device tree says compatible {name:?}: a machine of QEMU's"));
    }
    for path in ["/sys/firmware/qemu_fw_cfg", "/proc/device-tree/hypervisor"] {
        if root.path(path).exists() {
            found.push(format!("{path} is there: this is a virtual machine"));
        }
    }
    let text = |path: &str| std::fs::read_to_string(root.path(path)).unwrap_or_default();
    let vendor = text("/sys/class/dmi/id/sys_vendor");
    if vendor.contains("QEMU") {
        found.push("the machine's vendor is QEMU".into());
    }
    let hypervisor = text("/sys/hypervisor/type");
    if !hypervisor.trim().is_empty() {
        found.push(format!("/sys/hypervisor/type says {}", hypervisor.trim()));
    }
    let is_flag = |word: &str| word == "hypervisor";
    if text("/proc/cpuinfo").split_whitespace().any(is_flag) {
        found.push("/proc/cpuinfo has the flag hypervisor".into());
    }
    found
}

/// What a slow message says: `of_clocks` is its shortest time beside that of its clocks.
pub(super) fn no_wire(of_clocks: f64) -> Option<String> {
    (of_clocks < NO_WIRE).then(|| {
        format!(
            "a message took {:.0} % of the time of its own clocks: there is no wire, as in an emulator (or reference-hz is too \
             low by that much)",
            100.0 * of_clocks
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_is_known_by_its_words_and_by_a_wire_that_takes_no_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Root::at(dir.path());
        assert!(evidence(&root, &["fsl,imx8mp-evk".into()]).is_empty());
        assert_eq!(evidence(&root, &["linux,dummy-virt".into()]).len(), 1);
        std::fs::create_dir_all(dir.path().join("sys/firmware/qemu_fw_cfg")).expect("made");
        std::fs::create_dir_all(dir.path().join("proc")).expect("made");
        std::fs::write(dir.path().join("proc/cpuinfo"), "flags : fpu hypervisor\n").expect("made");
        assert_eq!(evidence(&root, &[]).len(), 2);
        assert!(no_wire(1.01).is_none() && no_wire(0.2).is_some_and(|text| text.contains("20 %")));
    }
}
