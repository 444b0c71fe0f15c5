//! `replay` on the kernel's dma events: a table for each device.

use serde_json::{Value, json};

use super::command::Ran;
use super::walk_and_replay::replay;

/// A line as the kernel's tracer prints it.
fn line(us: u64, event: &str) -> String {
    format!("   irq/57-nic-310  [001] ..s..  10.{us:06}: {event}\n")
}

pub(super) fn trace(events: &[&str]) -> String {
    (0..).zip(events).map(|(n, event)| line(100 * n, event)).collect()
}

/// Three devices: one with single buffers, one with scatter lists, one without an IOMMU.
pub(super) fn several() -> Vec<&'static str> {
    vec![
        "dma_map_page: 0000:01:00.0 dir=FROM_DEVICE dma_addr=fffff040 size=1500 phys_addr=10a3d0040 attrs=SKIP_CPU_SYNC",
        "dma_map_sg: 12340000.mmc dir=TO_DEVICE dma_addrs={0xffe00000,0xffe02000} sizes={0x2000,0x1000} phys_addrs={0x90000000,0x90008000} attrs=",
        "dma_map_page: 30be0000.ethernet dir=TO_DEVICE dma_addr=48001000 size=100 phys_addr=48001000 attrs=",
        "dma_sync_single_for_cpu: 0000:01:00.0 dir=FROM_DEVICE dma_addr=fffff040 size=64",
        "dma_unmap_page: 0000:01:00.0 dir=FROM_DEVICE dma_addr=fffff040 size=1500 attrs=SKIP_CPU_SYNC",
        "dma_unmap_sg: 12340000.mmc dir=TO_DEVICE phys_addrs={0x90000000,0x90008000} attrs=",
        "dma_unmap_page: 30be0000.ethernet dir=TO_DEVICE dma_addr=48001000 size=100 attrs=",
    ]
}

fn devices(ran: &Ran) -> Vec<String> {
    let line = ran.json();
    let devices = line["devices"].as_array().expect("devices");
    devices.iter().map(|device| device["device"].as_str().expect("a name").into()).collect()
}

/// The part of a report that belongs to a device.
fn device(ran: &Ran, name: &str) -> Value {
    let line = ran.json();
    let devices = line["devices"].as_array().expect("devices");
    devices.iter().find(|device| device["device"] == name).expect(name).clone()
}

/// Invalidations by address, and calls, of `by_page`.
fn by_page(device: &Value) -> [u64; 2] {
    ["by_address", "calls"].map(|name| device["strategies"][0][name].as_u64().expect(name))
}

#[test]
fn several_devices_and_a_malformed_line_are_a_table_each_and_a_count() {
    let mut events = several();
    events.insert(
        4,
        "dma_map_page: 0000:01:00.0 dir=TO_DEVICE dma_addr=zz size=1 phys_addr=0 attrs=",
    );
    let trace = format!("CPU:1 [LOST 7 EVENTS]\n{}", trace(&events));
    let told = replay(&trace, &[]).ok();
    assert!(
        told.stderr.contains("stdin line 6 skipped: dma_addr= is no number of 64 bits"),
        "{told:?}"
    );
    let text = told.text();
    for part in [
        "\n0000:01:00.0: 1 maps of 0.0 MB and 1 unmaps",
        "\n12340000.mmc: 1 maps",
        "\n30be0000.ethernet: 1 maps",
        "  no IOMMU: dma_addr is phys_addr in the only map.",
        "\nall devices with a name\n",
        "  1 lines that cannot be read, skipped",
        "  7 events lost by the tracer",
        "  1 events dma_sync_single_for_cpu, which change no mapping",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(text.matches("\nby_page ").count(), 4, "two devices, the sum, and its meaning");
    let line = replay(&trace, &["--json"]).ok();
    assert_eq!(devices(&line), ["0000:01:00.0", "12340000.mmc", "30be0000.ethernet"]);
    assert_eq!(line.json()["input"]["malformed_lines"], 1);
    assert_eq!(line.json()["input"]["maps"], 3);
    let [nic, mmc] = ["0000:01:00.0", "12340000.mmc"].map(|name| device(&line, name));
    assert_eq!([by_page(&nic), by_page(&mmc)], [[1, 1], [3, 1]]);
    assert_eq!([&nic["translated"], &nic["duration_ns"]], [&json!(true), &json!(500_000)]);
    let direct = device(&line, "30be0000.ethernet");
    assert_eq!([&direct["translated"], &direct["strategies"]], [&json!(false), &json!([])]);
    let sum = &line.json()["strategies"][0];
    assert_eq!([&sum["by_address"], &sum["window_worst_ns"]], [&json!(4), &Value::Null]);
}

#[test]
fn strict_ends_at_the_first_malformed_line() {
    let mut events = several();
    events.insert(2, "dma_unmap_page: 0000:01:00.0 dir=TO_DEVICE dma_addr=1000");
    events.push("dma_map_page:");
    replay(&trace(&events), &["--strict"]).fails(1, "stdin line 3: size= is missing");
    replay(&trace(&several()), &["--strict"]).ok();
    let large = "dma_map_page: d dir=TO_DEVICE dma_addr=1000 size=4294967297 phys_addr=1000 attrs=";
    replay(&trace(&[large]), &["--strict"]).fails(1, "line 1: a buffer of 4294967297 bytes");
}

#[test]
fn a_device_is_chosen_by_its_name_or_a_pattern() {
    let trace = trace(&several());
    let chosen = |options: &[&str]| replay(&trace, &[&["--json"], options].concat()).ok();
    let one = chosen(&["--device", "12340000.mmc"]);
    assert_eq!(devices(&one), ["12340000.mmc"]);
    assert_eq!(one.json()["input"]["unselected_events"], 4);
    assert_eq!(one.json()["strategies"], one.json()["devices"][0]["strategies"]);
    assert_eq!(
        devices(&chosen(&["--device", "*.ethernet", "--device", "0000:??:*"])),
        ["0000:01:00.0", "30be0000.ethernet"]
    );
    replay(&trace, &["--device", "eth0"])
        .fails(1, "no event of such a device (--device); it has 0000:01:00.0, 12340000.mmc, 30be");
    replay(&trace, &["--device", ""]).misused("a device has a name");
}

/// Each form of event, under the names of old kernels and new ones.
#[test]
fn every_form_of_event_maps_and_unmaps() {
    let maps = |kind: &str| {
        format!("{kind}: d dir=TO_DEVICE dma_addr=ffe00ff0 size=32 phys_addr=80000ff0 attrs=MMIO")
    };
    let unmaps = |kind: &str| format!("{kind}: d dir=TO_DEVICE dma_addr=ffe00ff0 size=32 attrs=");
    let alloc = |kind: &str| {
        format!(
            "{kind}: d dir=BIDIRECTIONAL dma_addr=ffe00000 size=8192 virt_addr=00000000d1c63a05 flags=GFP_KERNEL|__GFP_ZERO attrs="
        )
    };
    let free = |kind: &str| {
        format!(
            "{kind}: d dir=BIDIRECTIONAL dma_addr=ffe00000 size=8192 virt_addr=00000000d1c63a05 attrs="
        )
    };
    let old_sg = "dma_map_sg: d dir=TO_DEVICE dma_addrs={0xffe00000} sizes={0x2000} phys_addrs={0x1000,0x5000} attrs=";
    let new_sg = "dma:dma_map_sg: d dir=TO_DEVICE nents=2/2 ents=1/1 dma_addrs={0xffe00000} sizes={0x2000} phys_addrs={0x1000,0x5000} attrs=";
    let unmap_sg = "dma_unmap_sg: d dir=TO_DEVICE phys_addrs={0x1000,0x5000} attrs=";
    let sgt = "dma_alloc_sgt: d dir=TO_DEVICE dma_addr=ffe00000 size=8192 phys_addrs={0x1000,0x5000} flags=GFP_KERNEL attrs=";
    let free_sgt =
        "dma_free_sgt: d dir=TO_DEVICE dma_addr=ffe00000 size=8192 phys_addrs={0x1000,0x5000}";
    // Without `dir=`, as in events of allocated memory, and with the group's name, as `perf script`
    // prints it.
    let bare =
        "dma:dma_alloc: d dma_addr=ffe00000 size=8192 virt_addr=0xffff0000 flags=GFP_KERNEL attrs=";
    for (map, unmap) in [
        (maps("dma_map_page"), unmaps("dma_unmap_page")),
        (maps("dma_map_phys"), unmaps("dma_unmap_phys")),
        (maps("dma_map_resource"), unmaps("dma_unmap_resource")),
        (maps("dma:dma_map_phys"), unmaps("dma:dma_unmap_phys")),
        (alloc("dma_alloc"), free("dma_free")),
        (alloc("dma_alloc_pages"), free("dma_free_pages")),
        (bare.into(), free("dma_free")),
        (sgt.into(), free_sgt.into()),
        (old_sg.into(), unmap_sg.into()),
        (new_sg.into(), unmap_sg.into()),
    ] {
        let line = replay(&trace(&[&map, &unmap]), &["--json", "--strict"]).ok();
        let device = device(&line, "d");
        // Both pages that the buffer is in.
        assert_eq!(by_page(&device), [2, 1], "{map}");
        let bytes = ["mapped_bytes", "unmapped_bytes", "unmatched_unmaps"];
        let bytes = bytes.map(|name| device["input"][name].as_u64());
        assert_eq!(bytes, [Some(8192), Some(8192), Some(0)], "{map}");
    }
}

#[test]
fn what_a_trace_of_devices_cannot_tell_is_counted() {
    let events = [
        "dma_map_page: d dir=TO_DEVICE dma_addr=ffffffffffffffff size=64 phys_addr=1000 attrs=",
        "dma_map_phys: d dir=TO_DEVICE dma_addr=ffffffff size=64 phys_addr=1000 attrs=",
        "dma_alloc: d dir=TO_DEVICE dma_addr=0 size=64 virt_addr=0000000000000000 flags=GFP_KERNEL attrs=",
        "dma_alloc_sgt_err: d dir=TO_DEVICE dma_addr=0 size=64 virt_addr=0000000000000000 flags=GFP_KERNEL attrs=",
        "dma_map_sg_err: d dir=TO_DEVICE dma_addrs={0x1000} err=-12 attrs=",
        "dma_map_sg: d dir=TO_DEVICE nents=1/2 ents=1/2 [TRUNCATED] dma_addrs={0xffe00000} sizes={0x1000} phys_addrs={0x1000} attrs=",
        "dma_unmap_sg: d dir=TO_DEVICE phys_addrs={0x7000} attrs=",
        "dma_unmap_page: d dir=TO_DEVICE dma_addr=8000 size=64 attrs=",
        "dma_sync_single_for_device: d dir=TO_DEVICE dma_addr=8000 size=64",
        "dma_sync_sg_for_cpu: d dir=TO_DEVICE dma_addrs={0x1000} sizes={0x1000}",
        "dma_sync_sg_for_device: d dir=TO_DEVICE dma_addrs={0x1000} sizes={0x1000}",
    ];
    let line = replay(&trace(&events), &["--json", "--strict"]).ok();
    let counts = ["failed_maps", "truncated_lists", "unmatched_unmaps", "maps", "unmaps"];
    let counts = counts.map(|name| line.json()["input"][name].as_u64());
    assert_eq!(counts, [5, 1, 2, 1, 2].map(Some));
    assert_eq!(
        line.json()["input"]["not_replayed"],
        json!({"dma_sync_single_for_device": 1, "dma_sync_sg_for_cpu": 1, "dma_sync_sg_for_device": 1})
    );
}

/// Two devices use the same IOVA; the iommu events of the same maps name neither.
#[test]
fn devices_and_unnamed_events_are_kept_apart() {
    let events = [
        "attach_device_to_domain: IOMMU: device=b",
        "map: IOMMU: iova=0x1000 - 0x2000 paddr=0x10000 size=4096",
        "dma_map_page: a dir=TO_DEVICE dma_addr=1000 size=64 phys_addr=10000 attrs=",
        "dma_map_page: b dir=TO_DEVICE dma_addr=1000 size=64 phys_addr=20000 attrs=",
        "dma_unmap_page: a dir=TO_DEVICE dma_addr=1000 size=64 attrs=",
        "dma_unmap_page: b dir=TO_DEVICE dma_addr=1000 size=64 attrs=",
        "unmap: IOMMU: iova=0x1000 - 0x2000 size=4096 unmapped_size=4096",
    ];
    let trace = trace(&events);
    let line = replay(&trace, &["--json", "--strict"]).ok();
    assert_eq!(devices(&line), ["a", "b", "unnamed"]);
    assert_eq!(line.json()["input"]["assumed_unmapped_bytes"], 0);
    for name in ["a", "b", "unnamed"] {
        assert_eq!(by_page(&device(&line, name)), [1, 1], "{name}");
    }
    assert_eq!(line.json()["strategies"][0]["by_address"], 2, "unnamed ones may be the same");
    assert_eq!(line.json()["attached"], json!(["b"]));
    let text = replay(&trace, &[]).ok().text();
    assert!(text.contains("these may be the maps of the devices above\n  attached: b"), "{text}");
    assert_eq!(devices(&replay(&trace, &["--json", "--device", "unnamed"]).ok()), ["unnamed"]);
}

#[test]
fn bytes_that_are_no_text_and_endless_lines_are_skipped() {
    let good = trace(&several());
    let long = format!("{}\n", "x".repeat(3 << 20));
    let trace = format!("\u{fffd}\u{0} map: IOMMU:\n{long}{good}");
    let line = replay(&trace, &["--json"]).ok();
    assert!(line.stderr.contains("line 2 skipped: more than 1048576 bytes"), "{line:?}");
    assert_eq!(line.json()["input"]["malformed_lines"], 2);
    assert_eq!(line.json()["input"]["maps"], 3);
    replay(&trace, &["--strict"]).fails(1, "stdin line 1: iova= is missing");
}
