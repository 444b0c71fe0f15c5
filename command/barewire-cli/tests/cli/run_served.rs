//! `barewire run`: requests in memory that a process shares with the server. The known content of a
//! flash chip shows whether each answer went to the process that asked.

use std::fs;
use std::path::Path;

use super::command::{Ran, run, text};
use super::run::{BAREWIRE, client, library};

const NODE: &str = "/dev/spidev0.0";

/// A chip whose byte at each address is `served.c`'s, and a map of it.
fn chip(dir: &Path) -> String {
    let bytes = |at: u32| (at.wrapping_mul(7).wrapping_add(at >> 8)).to_le_bytes()[0];
    let content: Vec<u8> = (0..4 << 20).map(bytes).collect();
    let path = dir.join("chip.bin");
    fs::write(&path, content).expect("written");
    format!("{NODE}=sim:rpi3,cs=1,flash={}", path.display())
}

/// `served.c` in that mode.
fn served(mode: &str) -> Ran {
    library();
    let (dir, program) = client("served.c", &[]);
    let map = chip(dir.path());
    run(&["run", "--speed-hz", "20M", "--map", &map, "--", &text(&program), mode, NODE])
}

#[track_caller]
fn is_right(mode: &str) {
    let ran = served(mode);
    if ran.text().contains("not here") {
        println!("SKIPPED: {mode}: this user may not");
        return;
    }
    ran.prints(&format!("{mode}: right\n"));
}

#[test]
fn more_threads_than_slots_get_their_own_answers() {
    is_right("threads");
}

#[test]
fn children_of_each_kind_get_their_own_answers() {
    is_right("children");
}

#[test]
fn processes_that_are_killed_leave_the_others_served() {
    is_right("killed");
}

#[test]
fn a_program_that_closes_what_it_does_not_know_loses_nothing() {
    is_right("closes");
}

#[test]
fn a_full_table_of_descriptors_ends_no_message() {
    is_right("full");
}

#[test]
fn a_program_that_changes_its_user_keeps_its_nodes_and_opens_no_more() {
    let ran = served("user");
    if ran.text().contains("not here") {
        println!("SKIPPED: user: this user may not");
        return;
    }
    ran.prints("user: right\n");
    assert!(ran.stderr.contains("a program of another user is refused (EACCES)"), "{ran:?}");
}

#[test]
fn another_network_namespace_keeps_its_nodes() {
    is_right("network");
}

#[test]
fn a_handler_that_sends_messages_and_leaves_by_longjmp_gets_its_own_answers() {
    is_right("handlers");
}

#[test]
fn a_served_message_takes_at_most_three_system_calls() {
    let ran = served("calls").ok();
    let text = ran.text();
    let (calls, rest) = text.split_once(' ').expect("a count");
    assert_eq!(rest, "system calls a message at most\ncalls: right\n");
    // Two if the server was faster than the program could wait.
    assert!(["2", "3"].contains(&calls), "{ran:?}");
}

#[test]
fn what_guests_ask_of_messages_in_the_program_is_asked_of_the_server() {
    library();
    let (dir, program) = client("../../../../guests/spichecks.c", &[]);
    let map = chip(dir.path());
    for what in ["faults", "signals", "threads", "settings", "descriptors"] {
        let ran = run(&["run", "--map", &map, "--", &text(&program), what, NODE]);
        assert_eq!(ran.code, Some(0), "{what}: {ran:?}");
    }
}

#[test]
fn a_server_without_descriptors_refuses_an_open_and_serves_the_others() {
    library();
    let (dir, program) = client("served.c", &[]);
    let map = chip(dir.path());
    // The program's own limit is higher than the server's.
    let script = format!(
        "ulimit -Sn 64; exec {BAREWIRE} run --speed-hz 20M --map {map} -- \
         sh -c 'ulimit -Sn 1000; exec {} until-full {NODE}'",
        text(&program)
    );
    let ran =
        Ran::from(std::process::Command::new("sh").args(["-c", &script]).output().expect("sh"));
    ran.prints("Too many open files in system after many\nuntil-full: right\n");
    let said = ran.stderr.matches("all descriptors of `barewire run` itself are in use").count();
    assert_eq!(said, 1, "{ran:?}");
}
