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
dd-133 [000] d.... 1.000090: sched_switch: prev_comm=dd
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

fn phases(message: &Message) -> Vec<(&str, f64)> {
    message.phases.iter().map(|phase| (phase.name.as_str(), phase.us)).collect()
}

#[test]
fn a_message_is_divided_without_a_gap() {
    let trace = read(MADE);
    let message = &trace.messages[0];
    assert_eq!(
        phases(message),
        [
            ("submit to start", 4.0),
            ("start to CS on", 6.0),
            ("CS on to transfer 1", 2.0),
            ("transfer 1, 1 byte", 3.0),
            ("transfer 1 to transfer 2", 1.0),
            ("transfer 2, 101 bytes", 53.0),
            ("transfer 2 to CS off", 1.0),
            ("CS off to done", 10.0),
        ]
    );
    assert_eq!((message.us, message.done_to_submit_us), (80.0, Some(20.0)));
    assert_eq!(phases(&trace.messages[2]), [("submit to start", 20.0), ("start to done", 10.0)]);
    assert_eq!(trace.messages[2].done_to_submit_us, None);
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
    assert_eq!(trace.messages[0].done_to_submit_us, Some(20.0));
    let cut = &MADE[..at];
    assert_eq!((read(cut).messages.len(), read(cut).incomplete), (1, 1));
}

#[test]
fn a_clock_that_goes_back_makes_no_phase() {
    let back = MADE.replacen("1.000015", "1.000001", 1);
    assert_eq!((read(&back).messages.len(), read(&back).incomplete), (2, 1));
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
            prop_assert!(message.phases.iter().all(|phase| phase.us >= 0.0));
            prop_assert!((message.phases.iter().map(|phase| phase.us).sum::<f64>() - message.us).abs() < 1e-6);
        }
        for shape in profile.shapes {
            prop_assert!(shape.residual_us.is_finite() && shape.whole.q1_us <= shape.whole.q3_us);
        }
    }
}
