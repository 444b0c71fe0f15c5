//! A worker without rights: this same program, run again with its capabilities dropped.

use std::process::Command;

use barewire_linux::worker::{FifoPriority, Worker, WorkerOptions};

/// Set for the program without rights.
const WITHOUT: &str = "BAREWIRE_WITHOUT_RIGHTS";

/// Says what a worker was refused; nothing where it was not asked to.
#[test]
fn refused() {
    if std::env::var_os(WITHOUT).is_none() {
        return;
    }
    let fifo = WorkerOptions { scheduler: FifoPriority::new(50), ..WorkerOptions::default() };
    let locked = WorkerOptions { lock_memory: true, ..WorkerOptions::default() };
    for options in [fifo, locked] {
        let told = match Worker::spawn(&options, |_| println!("the body ran")) {
            Ok(_) => "nothing was refused".into(),
            Err(error) => error.to_string(),
        };
        println!("told: {told}");
    }
}

#[test]
fn without_a_right_the_spawner_is_told_which() {
    let itself = std::env::current_exe().expect("this program");
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_nice,-ipc_lock", "--inh-caps=-sys_nice,-ipc_lock"]);
    command.args(["prlimit", "--rtprio=0:0", "--memlock=65536:65536"]).arg(itself);
    command.args(["--exact", "refused", "--nocapture"]).env(WITHOUT, "1");
    let output = match command.output() {
        Ok(output) if output.status.success() => output,
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            println!("SKIPPED: capabilities cannot be dropped here: {why}");
            return;
        }
        Err(error) => {
            println!("SKIPPED: no setpriv or prlimit (util-linux) on this machine: {error}");
            return;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("the body ran"), "{text}");
    let told: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("told: ")).map(|(_, told)| told).collect();
    let [fifo, locked] = told[..] else { panic!("two answers: {text}") };
    for part in
        ["priority 50", "CAP_SYS_NICE", "RLIMIT_RTPRIO of 50, which is 0 (at most 0)", "rtprio 50"]
    {
        assert!(fifo.contains(part), "{part}: {fifo}");
    }
    for part in
        ["CAP_IPC_LOCK", "RLIMIT_MEMLOCK", "65536 (at most 65536) bytes", "memlock unlimited"]
    {
        assert!(locked.contains(part), "{part}: {locked}");
    }
}
