//! A made trace, line by line, and any bytes at all.

use proptest::prelude::*;

use super::*;

/// Two messages of one shape and a third of another; a line of another event, a comment, a broken line.
const MADE: &str = "\
# tracer: nop
dd-133 [000] ..... 1.000000: spi_message_submit: spi0.0 aa
dd-133 [000] ..... 1.000003: spi_controller_busy: spi0
dd-133 [000] ..... 1.000004: spi_message_start: spi0.0 aa
dd-133 [000] ..... 1.000010: spi_set_cs: spi0.0 activate
dd-133 [000] ..... 1.000012: spi_transfer_start: spi0.0 t1 len=1 tx=[03] rx=[]
dd-133 [000] ..... 1.000015: spi_transfer_stop: spi0.0 t1 len=1 tx=[03] rx=[]
dd-133 [000] ..... 1.000016: spi_transfer_start: spi0.0 t2 len=101 tx=[] rx=[]
dd-133 [000] ..... 1.000069: spi_transfer_stop: spi0.0 t2 len=101 tx=[] rx=[]
dd-133 [000] ..... 1.000070: spi_set_cs: spi0.0 deactivate
dd-133 [000] ..... 1.000080: spi_message_done: spi0.0 aa len=102/102
dd-133 [000] d.... 1.000090: irq_handler_exit: irq=1 ret=handled
 dd 133 [000] 1.000100000: spi:spi_message_submit: spi0.0 aa
 dd 133 [000] 1.000108000: spi:spi_message_start: spi0.0 aa
 dd 133 [000] 1.000114000: spi:spi_set_cs: spi0.0 activate, cs_high
 dd 133 [000] 1.000116000: spi:spi_transfer_start: spi0.0 t1 len=1 tx=[03] rx=[]
 dd 133 [000] 1.000119000: spi:spi_transfer_stop: spi0.0 t1 len=1 tx=[03] rx=[]
 dd 133 [000] 1.000120000: spi:spi_transfer_start: spi0.0 t2 len=101 tx=[] rx=[]
 dd 133 [000] 1.000173000: spi:spi_transfer_stop: spi0.0 t2 len=101 tx=[] rx=[]
 dd 133 [000] 1.000174000: spi:spi_set_cs: spi0.0 deactivate
 dd 133 [000] 1.000184000: spi:spi_message_done: spi0.0 aa len=102/102
dd-133 [000] ..... 1.000200: spi_message_submit: spi1.2 bb
dd-133 [000] ..... 1.000210: spi_transfer_start: spi1.2 t1
dd-133 [000] ..... 1.000220: spi_message_start: spi1.2 bb
dd-133 [000] ..... 1.000230: spi_message_done: spi1.2 bb len=0/0
the cat sat on the mat
";

fn phases(message: &Message) -> Vec<(String, f64)> {
    message.phases().into_iter().map(|phase| (phase.name, phase.us)).collect()
}

#[test]
fn a_message_is_divided_without_a_gap() {
    let trace = read(MADE);
    let message = &trace.messages[0];
    assert_eq!(
        phases(message),
        [
            ("submit to start".into(), 4.0),
            ("start to CS on".into(), 6.0),
            ("CS on to transfer 1".into(), 2.0),
            ("transfer 1, 1 byte".into(), 3.0),
            ("transfer 1 to transfer 2".into(), 1.0),
            ("transfer 2, 101 bytes".into(), 53.0),
            ("transfer 2 to CS off".into(), 1.0),
            ("CS off to done".into(), 10.0),
        ]
    );
    assert_eq!((message.us(), message.next_submit_ns), (80.0, Some(1_000_100_000)));
    assert_eq!(
        phases(&trace.messages[2]),
        [("submit to start".into(), 20.0), ("start to done".into(), 10.0)]
    );
    assert_eq!(trace.messages[2].next_submit_ns, None);
}

#[test]
fn lines_that_cannot_be_read_are_counted_with_their_reason() {
    let trace = read(MADE);
    assert_eq!((trace.lines, trace.messages.len(), trace.incomplete), (26, 3, 0));
    let skipped: Vec<(usize, &str)> =
        trace.skipped.iter().map(|line| (line.line, line.why.as_str())).collect();
    assert_eq!(trace.skipped_lines, 2);
    assert_eq!(
        skipped,
        [(23, "there is no len=: was the line cut?"), (26, "it is no line of a tracer")]
    );
}

#[test]
fn the_profile_is_of_medians_with_what_is_left() {
    let profile = Profile::of(&read(MADE).messages);
    let [first, second] = &profile.shapes[..] else { panic!("{profile:?}") };
    assert_eq!((first.messages, &first.transfers[..]), (2, &[1, 101][..]));
    assert_eq!((second.device.as_str(), second.messages), ("spi1.2", 1));
    let submit = &first.phases[0];
    assert_eq!((submit.median_us, submit.q1_us, submit.q3_us), (6.0, 5.0, 7.0));
    // 80 and 84 us, of which the profile says 82.
    assert_eq!((first.profile_us, first.whole.median_us, first.residual_us), (82.0, 82.0, 2.0));
    // 3 us of 1 byte and 53 of 101: half a microsecond a byte.
    let transfer = profile.transfer.expect("two lengths");
    assert!(
        (transfer.us_per_byte - 0.5).abs() < 1e-9 && (transfer.fixed_us - 2.5).abs() < 1e-9,
        "{transfer:?}"
    );
}

#[test]
fn a_message_without_its_begin_or_with_lost_events_is_not_one() {
    let late = MADE.split_once("1.000003").expect("there").1;
    assert_eq!((read(late).messages.len(), read(late).incomplete), (2, 1));
    let at = MADE.find(" dd 133 [000] 1.000116000").expect("there");
    let lost = format!("{}CPU:0 [LOST 7 EVENTS]\n{}", &MADE[..at], &MADE[at..]);
    let trace = read(&lost);
    assert_eq!((trace.lost, trace.messages.len(), trace.incomplete), (1, 2, 1));
    assert_eq!(trace.messages[0].next_submit_ns, Some(1_000_100_000));
    let cut = &MADE[..at];
    assert_eq!((read(cut).messages.len(), read(cut).incomplete), (1, 1));
}

#[test]
fn a_clock_that_goes_back_makes_no_phase() {
    let back = MADE.replacen("1.000015", "1.000001", 1);
    // It has no end before the clock goes back, and no begin behind.
    let read = read(&back);
    assert_eq!((read.messages.len(), read.incomplete, read.restarts), (2, 2, 1));
}

/// Another task begins the message; its submitter sleeps; an interrupt wakes the runner in the transfer.
const PUMPED: &str = "\
app-7 [001] d..2. 5.000000: spi_message_submit: spi2.0 aa
app-7 [001] d..2. 5.000002: sched_waking: comm=spi2 pid=40 prio=120 target_cpu=000
app-7 [001] d..2. 5.000005: sched_switch: prev_comm=my app prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=swapper/1 next_pid=0 next_prio=120
<idle>-0 [000] d..2. 5.000009: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=spi2 next_pid=40 next_prio=120
spi2-40 ( 40) [000] d..2. 5.000012: spi_message_start: spi2.0 aa
spi2-40 (-------) [000] d..2. 5.000015: spi_transfer_start: spi2.0 t1 len=4 tx_buf=[9f-00-00-00] rx_buf=[]
spi2-40 [000] d..2. 5.000017: sched_switch: spi2:40 [120] D ==> swapper/0:0 [120]
<idle>-0 [000] d.h2. 5.000030: irq_handler_entry: irq=42 name=30820000.spi
<idle>-0 [000] d.h2. 5.000032: sched_wakeup: spi2:40 [120] success=1 CPU:000
<idle>-0 [000] d.h2. 5.000033: irq_handler_exit: irq=42 ret=handled
<idle>-0 [000] d..2. 5.000039: sched_switch: swapper/0:0 [120] R ==> spi2:40 [120]
spi2-40 [000] d..2. 5.000041: spi_transfer_stop: spi2.0 t1 len=4 tx_buf=[9f-00-00-00] rx_buf=[ff-ef-40-18]
spi2-40 [000] d..2. 5.000044: spi_message_done: spi2.0 aa len=4/4
spi2-40 [000] d..2. 5.000046: sched_waking: comm=my app pid=7 prio=120 target_cpu=001
<idle>-0 [001] d..2. 5.000055: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=my app next_pid=7 next_prio=120
";

fn only(text: &str) -> Message {
    let trace = read(text);
    assert_eq!(
        (trace.messages.len(), trace.skipped_lines, trace.incomplete),
        (1, 0, 0),
        "{trace:?}"
    );
    trace.messages[0].clone()
}

#[test]
fn the_scheduler_says_who_waited_for_whom() {
    let message = only(PUMPED);
    assert_eq!((message.submitter, message.runner), (Some(7), Some(40)));
    assert_eq!(message.pump_ns, Some((5_000_002_000, 5_000_009_000)));
    assert_eq!((&message.wakes_ns[..], message.interrupts["30820000.spi"]), (&[7_000][..], 1));
    assert_eq!(message.waiter_ns, Some(5_000_055_000));
    assert_eq!(message.transfers[0].tx, [0x9f, 0, 0, 0]);
    assert_eq!(message.transfers[0].rx, [0xff, 0xef, 0x40, 0x18]);
    // Without the wake-up after the end, the task may have run for another reason.
    let other = PUMPED.replace(
        "comm=my app pid=7 prio=120 target_cpu=001",
        "comm=x pid=8 prio=120 target_cpu=001",
    );
    assert_eq!(only(&other).waiter_ns, None);
    let sums = kinds(&read(PUMPED));
    let medians = sums[0].figures.each_ref().map(|counts| counts.percentile(50));
    let us = |us: u64| Some(1_000 * us);
    assert_eq!(medians, [us(12), us(3), us(26), None, us(3), us(44), us(11), None]);
    assert_eq!((sums[0].pumped, sums[0].transferring_ns), (1, 26_000));
}

/// `comm-pid [cpu] flags` of ftrace as perf has it, with `decimals` of the time and `prefix` before events.
fn like_perf(text: &str) -> String {
    let line = |line: &str| {
        let (head, rest) = line.split_once("] ").expect("a processor");
        let (task, cpu) = head.split_once('[').expect("a processor");
        let task = task.split_once('(').map_or(task, |task| task.0).trim();
        let (comm, pid) = task.rsplit_once('-').expect("a task");
        let (_, rest) = rest.split_once(' ').expect("flags");
        let (time, rest) = rest.split_once(": ").expect("a time");
        let system = if rest.starts_with("spi") {
            "spi"
        } else if rest.starts_with("irq") {
            "irq"
        } else {
            "sched"
        };
        format!("{comm} {pid}/{pid} [{cpu}] {time}000: {system}:{rest}\n")
    };
    text.lines().map(line).collect()
}

#[test]
fn each_tracers_text_is_the_same_message() {
    let message = only(PUMPED);
    let perf = read(&like_perf(PUMPED));
    assert_eq!((&perf.messages[0], perf.tick_ns), (&message, 1));
    assert_eq!(only(&PUMPED.replace(" d..2. ", "   ")), message);
    let headed = format!("version = 7\nCPU 2 is empty\ncpus=4\n{PUMPED}");
    assert_eq!(only(&headed), message);
    // Processor after processor, as per_cpu/*/trace one after the other.
    let (ones, zeros): (Vec<_>, Vec<_>) = PUMPED.lines().partition(|line| line.contains("[001]"));
    let apart = [ones, zeros].concat().join("\n");
    assert_eq!((only(&apart), read(&apart).reordered), (message, 10));
    // The latency format has microseconds, no brackets, and a mark where it took long.
    let latency = "dd-1 0d... 12us : spi_message_submit: spi0.0 aa\ndd-1 0d... 14us+: spi_message_start: spi0.0 aa\n\
                   dd-1 0d... 30us!: spi_message_done: spi0.0 aa len=0/0\n";
    assert_eq!((only(latency).submit_ns(), only(latency).us()), (12_000, 18.0));
}

#[test]
fn what_cannot_be_known_is_no_message() {
    // Lines that are cut, at each of their bytes: either nothing, or the same.
    let (message, lines) = (only(PUMPED), PUMPED.lines().collect::<Vec<_>>());
    for (nth, line) in lines.iter().enumerate() {
        for cut in 0..line.len() {
            let text: String = (0..)
                .zip(&lines)
                .map(|(at, line)| format!("{}\n", if at == nth { &line[..cut] } else { line }))
                .collect();
            for found in read(&text).messages {
                assert_eq!(found.submit_ns(), message.submit_ns(), "{text}");
                assert_eq!(found.done_ns(), message.done_ns(), "{text}");
                assert_eq!(found.lengths().collect::<Vec<_>>(), [4], "{text}");
                assert!(found.waiter_ns.is_none_or(|ran| Some(ran) == message.waiter_ns), "{text}");
                assert!(found.pump_ns.is_none_or(|pump| Some(pump) == message.pump_ns), "{text}");
            }
        }
    }
    // Without both lines of a transfer, the others do not add up to what the end says.
    let short: String = MADE
        .lines()
        .filter(|line| !line.contains("000: spi:spi_transfer_") || line.contains("t1"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        (read(MADE).messages.len(), read(&short).messages.len(), read(&short).incomplete),
        (3, 2, 1)
    );
    // A clock that counts cycles.
    let cycles = PUMPED.replace("5.0000", "50000");
    assert_eq!(read(&cycles).messages.len(), 0);
    assert!(read(&cycles).skipped[0].why.contains("echo mono > trace_clock"));
    // Two recordings, one after the other, are not mixed.
    let twice = read(&format!("{PUMPED}{PUMPED}"));
    assert_eq!((twice.restarts, twice.messages.len(), twice.duration_ns), (1, 2, 110_000));
    assert_eq!(twice.messages[0].next_submit_ns, None);
}

#[test]
fn events_that_were_lost_spoil_what_lasts_there_and_nothing_else() {
    // Of processor 1 before its last line: it had its line before at 5.000005.
    let at = PUMPED.find("<idle>-0 [001]").expect("there");
    for (said, count) in [
        ("CPU:1 [LOST 12 EVENTS]", 12),
        ("CPU:1 [LOST EVENTS]", 0),
        ("CPU:1 [3 EVENTS DROPPED]", 3),
    ] {
        let trace = read(&format!("{}{said}\n{}", &PUMPED[..at], &PUMPED[at..]));
        assert_eq!((trace.messages.len(), trace.incomplete), (0, 1), "{said}");
        assert_eq!((trace.lost, trace.lost_events), (1, count), "{said}");
    }
    let perf = format!("{PUMPED}x 1 [001] 5.000070: PERF_RECORD_LOST lost 9\n");
    let trace = read(&perf);
    assert_eq!((trace.messages.len(), trace.lost_events), (1, 9));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let trace = read(&String::from_utf8_lossy(&bytes));
        let _ = Profile::of(&trace.messages);
    }

    /// Lines of a trace in another order, cut, repeated.
    #[test]
    fn no_shuffled_trace_panics(picks in prop::collection::vec((0..26_usize, 0..120_usize), 0..60)) {
        let lines: Vec<&str> = MADE.lines().collect();
        let text: Vec<&str> = picks
            .iter()
            .map(|&(line, cut)| lines[line].get(..cut.max(40)).unwrap_or(lines[line]))
            .collect();
        let trace = read(&text.join("\n"));
        let profile = Profile::of(&trace.messages);
        for message in &trace.messages {
            prop_assert!(message.phases().iter().all(|phase| phase.us >= 0.0));
            prop_assert!((message.phases().iter().map(|phase| phase.us).sum::<f64>() - message.us()).abs() < 1e-6);
        }
        for shape in profile.shapes {
            prop_assert!(shape.residual_us.is_finite() && shape.whole.q1_us <= shape.whole.q3_us);
        }
    }
}
