//! Lines of every tool and version.

use super::*;

const MAP: Event = Event::Map { iova: 0xffff_f000, phys: 0x8a3d_0000, size: 4096 };
const UNMAP: Event = Event::Unmap { iova: 0xffe0_0000, size: 0x20_0000, unmapped: 0x1000 };

#[test]
fn every_tool_s_lines_are_read() {
    for (line, time_ns, event) in [
        // trace, with the end of the range
        (
            "     v4l2-cam-1234    [003] d..1.   512.000123: map: IOMMU: iova=0x00000000fffff000 - 0x0000000100000000 paddr=0x000000008a3d0000 size=4096",
            Some(512_000_123_000),
            MAP,
        ),
        // without; a name with a space in it
        (
            "  my cam: x-1234  [003] 512.000123: unmap: IOMMU: iova=0x00000000ffe00000 size=2097152 unmapped_size=4096",
            Some(512_000_123_000),
            UNMAP,
        ),
        // trace-cmd report
        (
            "cam-77 [000]  0.5:   map:                  IOMMU: iova=0xfffff000 paddr=0x8a3d0000 size=4096",
            Some(500_000_000),
            MAP,
        ),
        // perf script --ns
        (
            "cam  77 [001] 12.123456789: iommu:unmap: IOMMU: iova=0xffe00000 - 0x100000000 size=2097152 unmapped_size=4096",
            Some(12_123_456_789),
            UNMAP,
        ),
        // a counting clock; no clock; a field more
        ("cam-77 [000] 77: map: IOMMU: iova=0xfffff000 paddr=0x8a3d0000 size=4096", None, MAP),
        ("map: IOMMU: iova=0xfffff000 paddr=0x8a3d0000 size=4096 dev=x y", None, MAP),
        ("CPU:2 [LOST 4321 EVENTS]", None, Event::Lost(4321)),
        ("CPU:2 [LOST EVENTS]", None, Event::Lost(1)),
        ("cam 77 [001] 12.1: PERF_RECORD_LOST lost 12", None, Event::Lost(12)),
        ("# tracer: nop", None, Event::Blank),
        ("cpus=4", None, Event::Blank),
        ("version = 7", None, Event::Blank),
        ("CPU 3 is empty", None, Event::Blank),
        (" => iommu_map", None, Event::Blank),
        ("\tffffffff81a0b1c2 iommu_map+0x12 ([kernel.kallsyms])", None, Event::Blank),
        ("   ", None, Event::Blank),
        (
            "cam-77 [000] 1.5: attach_device_to_domain: IOMMU: device=a",
            Some(1_500_000_000),
            Event::Named { event: "attach_device_to_domain", device: "a" },
        ),
        ("cam-77 [000] 1.5: sched_switch: map: prev=1", None, Event::Other),
        (
            "cam-77 [000] 1.5: io_page_fault: IOMMU:x iova=0x1 flags=0",
            Some(1_500_000_000),
            Event::Passed("io_page_fault"),
        ),
        // A name in the middle of a line does not count.
        ("cam-77 [000] 1.5: bprint: do_work: said dma_map_page: d x", None, Event::Other),
        (
            "cam-77 [000] 1.5: dma_sync_single_for_cpu: d dir=TO_DEVICE",
            Some(1_500_000_000),
            Event::Passed("dma_sync_single_for_cpu"),
        ),
    ] {
        assert_eq!(parse(line), Ok(TraceLine { time_ns, event }), "{line}");
    }
}

#[test]
fn what_no_tracer_prints_is_no_event() {
    for line in
        ["no event: at all, this [line]", "dead", "12", "[]", ":", "cam-77 [0x]", "\u{fffd}"]
    {
        assert_eq!(parse(line), Err(LineError::NoEvent), "{line}");
    }
    // A time, a counter or a processor is enough.
    for line in ["x 1.5: y", "x 77: y", "x [003] y"] {
        assert_eq!(parse(line), Ok(TraceLine { time_ns: None, event: Event::Other }), "{line}");
    }
}

#[test]
fn what_is_wrong_with_a_line_is_said() {
    for (fields, expected) in [
        ("map: IOMMU: iova=0x1000 paddr=0x10", LineError::Missing("size")),
        ("map: IOMMU: iova=0x1000 size=16", LineError::Missing("paddr")),
        ("map: IOMMU:", LineError::Missing("iova")),
        ("unmap: IOMMU: iova=0x1000 size=16", LineError::Missing("unmapped_size")),
        ("unmap: IOMMU: iova=0x1000 -", LineError::Missing("size")),
        ("map: IOMMU: iova=0x1g paddr=0 size=16", LineError::Number("iova")),
        ("map: IOMMU: iova=0x+1 paddr=0 size=16", LineError::Number("iova")),
        ("map: IOMMU: iova= paddr=0 size=16", LineError::Number("iova")),
        ("map: IOMMU: iova=0x10000000000000000 paddr=0 size=16", LineError::Number("iova")),
        ("map: IOMMU: iova=0x1 paddr=0 size=-16", LineError::Number("size")),
        ("map: IOMMU: iova=0x1 paddr=0 size=0", LineError::Empty),
        ("map: IOMMU: iova=0xffffffffffffffff paddr=0 size=2", LineError::Overflow),
        ("map: IOMMU: iova=0 paddr=0xffffffffffffffff size=2", LineError::Overflow),
        (
            "map: IOMMU: iova=0x1000 - 0x3000 paddr=0 size=4096",
            LineError::End { end: 0x3000, expected: 0x2000 },
        ),
        (
            "unmap: IOMMU: iova=0x1000 size=16 unmapped_size=17",
            LineError::TooMuch { size: 16, unmapped: 17 },
        ),
    ] {
        assert_eq!(parse(&format!("cam-77 [000] 1.5: {fields}")), Err(expected), "{fields}");
    }
    // A range may end at the last address of 64 bits.
    let last = "map: IOMMU: iova=0xffffffffffffffff - 0x0 paddr=0 size=1";
    assert!(parse(last).is_ok(), "{:?}", parse(last));
}

#[test]
fn fields_of_dma_events_are_read_as_the_kernel_prints_them() {
    let call = |fields: &str| match parse(&format!("nic-77 [000] 1.5: {fields}")) {
        Ok(TraceLine {
            time_ns: Some(1_500_000_000),
            event: Event::Dma { device: "0000:01:00.0", call },
        }) => call,
        other => panic!("{fields}: {other:?}"),
    };
    // Hexadecimal without 0x, decimal, and lists of hexadecimal with it.
    assert_eq!(
        call("dma_map_page: 0000:01:00.0 dir=TO_DEVICE dma_addr=10 size=10 phys_addr=a0 attrs="),
        Call::Map { addr: 0x10, size: 10, phys: Some(0xa0) }
    );
    assert_eq!(
        call("dma:dma_unmap_phys: 0000:01:00.0 dir=NONE dma_addr=10 size=10 attrs=MMIO"),
        Call::Unmap { addr: 0x10, size: 10 }
    );
    assert_eq!(
        call(
            "dma_map_sg: 0000:01:00.0 dir=NONE nents=3/9 ents=2/9 [TRUNCATED] dma_addrs={0x10,0x20} sizes={0x8,0x4} phys_addrs={0x1,0x2,0x3} attrs="
        ),
        Call::MapList {
            segments: vec![(0x10, 8), (0x20, 4)],
            phys: vec![1, 2, 3],
            truncated: true
        }
    );
    // The values printed as dma_addrs are physical addresses.
    assert_eq!(
        call("dma_map_sg_err: 0000:01:00.0 dir=NONE dma_addrs={0x1} err=-5 attrs="),
        Call::Failed
    );
    assert_eq!(
        call(
            "dma_alloc_sgt: 0000:01:00.0 dir=NONE dma_addr=10 size=64 phys_addrs={0x40} flags=0 attrs="
        ),
        Call::Map { addr: 0x10, size: 64, phys: Some(0x40) }
    );
    // The last byte of 32 bits is an error, unless it is where the buffer begins in its page.
    assert_eq!(
        call("dma_map_page: 0000:01:00.0 dir=NONE dma_addr=ffffffff size=1 phys_addr=fff attrs="),
        Call::Map { addr: 0xffff_ffff, size: 1, phys: Some(0xfff) }
    );
    for (fields, expected) in [
        ("dma_map_page:", LineError::Missing("device")),
        ("dma_map_page: d", LineError::Missing("dma_addr")),
        ("dma_map_page: dma_addr=1 size=1 phys_addr=1", LineError::Missing("device")),
        ("dma_map_page: d dma_addr=1 size=1", LineError::Missing("phys_addr")),
        ("dma_map_page: d dma_addr=-1 size=1 phys_addr=1", LineError::Number("dma_addr")),
        ("dma_map_page: d dma_addr=1 size=0 phys_addr=1", LineError::Empty),
        ("dma_map_page: d dma_addr=1 size=2 phys_addr=ffffffffffffffff", LineError::Overflow),
        ("dma_unmap_page: d dma_addr=ffffffffffffffff size=2", LineError::Overflow),
        ("dma_alloc: d dma_addr=1 size=2", LineError::Missing("virt_addr")),
        ("dma_unmap_sg: d phys_addrs={}", LineError::Empty),
        ("dma_unmap_sg: d phys_addrs={0x1,0x", LineError::List("phys_addrs")),
        ("dma_unmap_sg: d phys_addrs={0x1,,0x2}", LineError::List("phys_addrs")),
        ("dma_map_sg: d dma_addrs={} sizes={} phys_addrs={0x1}", LineError::Empty),
        (
            "dma_map_sg: d dma_addrs={0x1} sizes={0x1,0x2} phys_addrs={0x1}",
            LineError::Uneven { addresses: 1, sizes: 2 },
        ),
    ] {
        assert_eq!(parse(&format!("nic-77 [000] 1.5: {fields}")), Err(expected), "{fields}");
    }
}
