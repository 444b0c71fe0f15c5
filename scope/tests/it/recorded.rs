//! Texts of a real kernel's tracer, recorded by hand: Debian's Linux 6.1.0-57-arm64 on QEMU's imx8mp-evk with two processors,
//! whose flash chip `dd` reads. tracefs' `trace`; trace-cmd 3.1.6, `report` and `report -t`; perf 6.1, `script` and `script
//! --ns`: events/spi, sched_switch, sched_waking, irq_handler_entry. Each is the beginning, to the eighth message's end.
//! Events and tools are real; QEMU's times are no board's.

use std::path::Path;

use barewire_scope::trace::{self, Event, parse};

/// Each text, and what its times are multiples of.
const RECORDED: [(&str, u64); 5] = [
    ("tracefs", 1_000),
    ("trace-cmd", 1_000),
    ("trace-cmd-ns", 1),
    ("perf", 1_000),
    ("perf-ns", 1),
];

#[test]
fn what_each_tool_wrote_is_read_whole_and_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut all = Vec::new();
    for (name, tick_ns) in RECORDED {
        let text = std::fs::read_to_string(folder.join(format!("{name}.txt"))).expect("a text");
        assert!(trace::is_trace(text.as_bytes()), "{name}");
        let events: Vec<_> = text.lines().map(|line| parse(line).expect(line).event).collect();
        let count = |is: fn(&Event<'_>) -> bool| events.iter().filter(|event| is(event)).count();
        let found = [
            count(|event| matches!(event, Event::Switch { .. })),
            count(|event| matches!(event, Event::Wake(_))),
            count(|event| matches!(event, Event::Interrupt(_))),
        ];
        // By the names alone.
        let named = ["sched_switch", "sched_waking", "irq_handler_entry"];
        assert_eq!(found, named.map(|event| text.matches(&format!("{event}: ")).count()), "{name}");
        assert!(found.iter().all(|count| *count > 5), "{name}: {found:?}");
        let read = trace::read(&text);
        assert_eq!(
            (read.skipped_lines, read.incomplete, read.lost, read.restarts, read.tick_ns),
            (0, 0, 0, 0, tick_ns),
            "{name}"
        );
        assert!(read.messages.iter().all(|message| message.submitter.is_some()), "{name}");
        all.push(read.messages);
    }
    // The same chip was read each time: lengths and bytes are the same, whatever wrote them.
    let sent = |messages: &[trace::Message]| -> Vec<_> {
        let transfers = messages.iter().flat_map(|message| &message.transfers);
        transfers.map(|one| (one.len, one.tx.clone(), one.rx.clone())).collect()
    };
    let first = sent(&all[0]);
    assert_eq!((all[0].len(), first.len(), first[1].0, first[2].2.len()), (8, 24, 4, 64));
    for (messages, (name, _)) in all.iter().zip(RECORDED) {
        assert_eq!(sent(messages), first, "{name}");
    }
}
