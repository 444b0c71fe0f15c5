//! `cargo xtask clients`: unmodified programs of other authors on simulated and emulated boards.
//!
//! How it works: [`obtain`] fetches the programs and builds the command; [`list`] has each program's task. A
//! client runs in a directory of its own under `barewire run`, whose report says what went over the bus;
//! then its judge, a line of shell, checks the files that it left. The scripts that start it are in
//! `bench/barewire-foreign/clients`.

mod list;
mod obtain;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::builder::PossibleValuesParser;

use crate::context::{Context, Outcome};
use crate::needs::{self, Need};
use crate::report::End;
use crate::step::{Lane, Step};
use crate::tally::Tally;
use list::{CLIENTS, Client};

/// The step of CI.
pub(crate) const STEP: Step = Step {
    name: "clients",
    about: "programs nobody here wrote, unmodified",
    lane: Lane::Programs,
    minutes: 4,
    needs: &[
        Need::package("flashrom"),
        Need::program("gpiod", "gpiomon"),
        Need::program("spi-tools", "spi-pipe"),
        Need::program("python3-spidev", "/usr/share/doc/python3-spidev/copyright"),
        Need::program("python3-venv", "/usr/share/doc/python3-venv/copyright"),
        Need::package("sigrok-cli"),
        Need::program("gcc", "cc"),
        Need::program("npm", "npm"),
    ],
    paths: &["stack/", "bench/", "bindings/", "command/"],
    run: step,
};

/// The options of the command line.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// Which clients; all unless told
    #[arg(value_name = "CLIENT", value_parser = PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name)), hide_possible_values = true)]
    only: Vec<String>,
}

/// The clients for the help text.
pub(crate) fn list() -> String {
    let line = |client: &Client| format!("  {:<18}{}\n", client.name, client.about);
    format!("Clients:\n{}", CLIENTS.iter().map(line).collect::<String>())
}

/// How a client went.
struct Row {
    name: &'static str,
    messages: String,
    bytes: String,
    exit_code: Option<i32>,
    wrong: Option<String>,
}

/// The command.
pub(crate) fn run(options: &Options, cx: &Context) -> End {
    if let Some(lacking) = needs::obtain(STEP.needs, cx) {
        cx.console.say(&lacking);
    }
    let only = options.only.clone();
    End::of(&STEP.checked(cx, |cx| all(&only, cx)))
}

/// Each client counts as a test.
pub(crate) fn step(cx: &Context) -> Outcome {
    all(&[], cx)
}

fn all(only: &[String], cx: &Context) -> Outcome {
    let dir = cx.root.join(cx.target_dir("clients"));
    let tools = match obtain::all(&dir, cx) {
        Ok(tools) => tools,
        Err(stop) => return stop.outcome(STEP.name, cx),
    };
    let wanted = |client: &&Client| only.is_empty() || only.iter().any(|name| name == client.name);
    let mut rows = Vec::new();
    for client in CLIENTS.iter().filter(wanted) {
        cx.console.say(&format!("clients: {}", client.name));
        rows.push(try_one(client, &tools, &dir.join("runs").join(client.name)));
    }
    cx.console.say(&table(&rows));
    let wrong =
        rows.iter().filter_map(|row| Some(format!("{}: {}", row.name, row.wrong.as_ref()?)));
    let failures: Vec<_> = wrong.collect();
    let failed = failures.len() as u64;
    let passed = rows.len() as u64 - failed;
    Outcome::of_tests(failed == 0, Tally { passed, failed, failures, ..Tally::default() })
}

fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<18}{:>10}{:>14}{:>6}", "client", "messages", "bytes", "exit");
    for Row { name, messages, bytes, exit_code, wrong } in rows {
        let code = exit_code.map_or("-".into(), |code| code.to_string());
        let verdict = if wrong.is_none() { "passed" } else { "FAILED" };
        text += &format!("\n{name:<18}{messages:>10}{bytes:>14}{code:>6}  {verdict}");
    }
    for Row { name, wrong, .. } in rows {
        if let Some(wrong) = wrong {
            text += &format!("\nFAILED {name}: {wrong}");
        }
    }
    text
}

fn try_one(client: &Client, tools: &obtain::Tools, dir: &Path) -> Row {
    let mut row = Row {
        name: client.name,
        messages: "-".into(),
        bytes: "-".into(),
        exit_code: None,
        wrong: None,
    };
    row.wrong = try_to_run(client, tools, dir, &mut row).err();
    row
}

fn try_to_run(
    client: &Client,
    tools: &obtain::Tools,
    dir: &Path,
    row: &mut Row,
) -> Result<(), String> {
    // Otherwise files of an earlier run would be judged.
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    for board in client.maps.iter().filter_map(|map| board_file(map)) {
        let copied = fs::copy(tools.script(board), dir.join(board));
        copied.map_err(|e| format!("cannot copy {board}: {e}"))?;
    }
    let report = dir.join("report.json");
    let mut command = match client.maps {
        [] => tools.shell(dir),
        maps => {
            let mut command = Command::new(&tools.barewire);
            command.args(["run", "--quiet", "--report"]).arg(&report);
            let here = dir.display().to_string();
            command.args(client.options.iter().map(|option| option.replace("DIR", &here)));
            for map in maps {
                command.arg("--map").arg(map.replace("DIR", &here));
            }
            command.args(["--", "sh"]);
            tools.environment(&mut command, dir);
            command
        }
    };
    let log = dir.join("log");
    let file =
        fs::File::create(&log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
    let copy = file.try_clone().map_err(|e| e.to_string())?;
    let ended = command
        .args(["-euc", client.script])
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(copy)
        .status()
        .map_err(|e| format!("cannot start it: {e}"))?;
    row.exit_code = ended.code();
    if let Ok(text) = fs::read_to_string(&report) {
        row.messages = number(&text, "messages");
        row.bytes = number(&text, "bytes");
    }
    if !ended.success() {
        return Err(format!("{ended}\n{}", fs::read_to_string(&log).unwrap_or_default()));
    }
    let judged = tools.shell(dir).args(["-euc", client.judge]).stdin(Stdio::null()).output();
    let judged = judged.map_err(|e| format!("cannot start its judge: {e}"))?;
    if judged.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&judged.stderr).into_owned();
    Err(format!("its judge `{}`: {}\n{said}", client.judge, judged.status))
}

/// The board's file that a map names in the client's directory.
fn board_file(map: &str) -> Option<&str> {
    let (_, rest) = map.split_once("sim:DIR/")?;
    rest.split(',').next().filter(|name| name.ends_with(".toml"))
}

/// The number of a field in a line of JSON, as text.
fn number(json: &str, field: &str) -> String {
    let found = json.split_once(&format!("\"{field}\":")).map(|(_, rest)| rest);
    let digits = found.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect());
    digits.unwrap_or_else(|| "-".into())
}

/// The path of a file that a client's script uses.
fn scripts(cx: &Context) -> PathBuf {
    cx.root.join("bench/barewire-foreign/clients")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_names_of_their_own() {
        for (index, client) in CLIENTS.iter().enumerate() {
            assert!(client.name.len() < 18 && !client.about.is_empty(), "{}", client.name);
            assert!(CLIENTS[..index].iter().all(|before| before.name != client.name));
        }
    }

    #[test]
    fn a_boards_file_is_found_in_a_map() {
        assert_eq!(board_file("/dev/spidev0.0=sim:DIR/own.toml,cs=1"), Some("own.toml"));
        assert_eq!(board_file("/dev/spidev0.0=sim:rpi3,flash=DIR/chip.bin"), None);
    }

    #[test]
    fn numbers_are_found_in_a_report() {
        let line = r#"{"bus":"sim:rpi3","statistics":{"messages":12,"bytes":345}}"#;
        assert_eq!((number(line, "messages"), number(line, "bytes")), ("12".into(), "345".into()));
        assert_eq!(number(line, "errors"), "-");
    }
}
