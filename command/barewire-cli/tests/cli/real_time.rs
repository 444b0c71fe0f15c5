//! Options that make a command's times independent of what else the machine does.

use super::command::run;

const ADC: [&str; 4] = ["adc", "read", "--bus", "sim:rpi3"];

fn with(options: &[&str]) -> super::command::Ran {
    run(&[&ADC[..], options].concat())
}

#[test]
fn a_processor_is_chosen_and_one_that_is_not_there_refused() {
    // The first processor that this process may use.
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first: String =
        list.expect("a list").trim().chars().take_while(char::is_ascii_digit).collect();
    with(&["--cpu", &first]).ok();
    with(&["--cpu", "1023"]).fails(1, "processor");
    with(&["--cpu", "99999"]).fails(1, "1023");
}

#[test]
fn priorities_are_those_of_the_kernel() {
    for wrong in ["0", "100", "high"] {
        with(&["--fifo", wrong]).misused("--fifo");
    }
    // A user with the right gets the priority; others get an error that names the limit.
    let ran = with(&["--fifo", "1"]);
    if ran.code != Some(0) {
        ran.fails(1, "rtprio");
    }
}

#[test]
fn an_echo_in_virtual_time_does_not_offer_them() {
    let echo = ["can", "echo", "--bus", "sim:imx8mp", "-n", "1"];
    for options in [&["--fifo", "10"][..], &["--cpu", "0"], &["--mlock"]] {
        run(&[&echo[..], options].concat()).fails(2, "virtual");
    }
    let help = run(&["can", "echo", "--help"]).ok().text();
    for option in ["--fifo", "--cpu", "--mlock", "--int "] {
        assert!(!help.contains(option), "{option} in {help}");
    }
    assert!(run(&["can", "dump", "--help"]).ok().text().contains("--mlock"));
}
