//! `cargo xtask clients`: programs nobody here wrote, unmodified, on simulated and emulated boards.
//!
//! How it works: [`obtain`] fetches the programs and builds the command; [`list`] says what each is asked to
//! do. A client runs in a directory of its own under `barewire run`, whose report says what went over the
//! bus; then its judge, a shell's line, looks at what it left. What runs it is in
//! `bench/barewire-foreign/clients`.

mod list;
mod obtain;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ci::{Context, Outcome};
use crate::nearest;
use crate::tally::Tally;
use list::CLIENTS;
pub(crate) use list::Client;

/// The help text of the command.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "Runs programs nobody here wrote on simulated and emulated boards, unmodified.\n\n\
         usage: cargo xtask clients [CLIENT…]\n\nclients:\n",
    );
    for client in CLIENTS {
        text += &format!("  {:<18}{}\n", client.name, client.about);
    }
    text
}

/// Reads what follows `clients`.
pub(crate) fn parse(args: &[String]) -> Result<Vec<&'static Client>, String> {
    let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    args.iter()
        .map(|name| {
            let found = CLIENTS.iter().find(|client| client.name == name);
            found.ok_or_else(|| nearest::unknown("client", name, &names))
        })
        .collect()
}

/// How a client went.
struct Row {
    name: &'static str,
    messages: String,
    bytes: String,
    exit_code: Option<i32>,
    wrong: Option<String>,
}

/// The command; `false` if a client failed.
pub(crate) fn run(only: &[&'static Client], cx: &Context) -> bool {
    let outcome = all(only, cx);
    outcome.counts().1 == 0
}

/// The step of CI: each client counts as a test.
pub(crate) fn step(cx: &Context) -> Outcome {
    all(&[], cx)
}

fn all(only: &[&'static Client], cx: &Context) -> Outcome {
    let dir = cx.root.join(cx.target_dir("clients"));
    let tools = match obtain::all(&dir, cx) {
        Ok(tools) => tools,
        Err(obtain::Stop::Lacks(why)) => return cx.lacks(&format!("clients: {why}")),
        Err(obtain::Stop::Broke(why)) => {
            cx.console.say(&why);
            let note = "the clients could not be made".into();
            return Outcome::failed().with_note(note).with_failure(why);
        }
    };
    let wanted =
        |client: &&Client| only.is_empty() || only.iter().any(|one| one.name == client.name);
    let mut rows = Vec::new();
    for client in CLIENTS.iter().filter(wanted) {
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
    // What an earlier run left would be judged.
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
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
        assert!(parse(&["spi-pipe".into()]).is_ok_and(|clients| clients.len() == 1));
        assert!(parse(&["spi-pip".into()]).is_err_and(|error| error.contains("spi-pipe")));
    }

    #[test]
    fn numbers_are_found_in_a_report() {
        let line = r#"{"bus":"sim:rpi3","statistics":{"messages":12,"bytes":345}}"#;
        assert_eq!((number(line, "messages"), number(line, "bytes")), ("12".into(), "345".into()));
        assert_eq!(number(line, "errors"), "-");
    }
}
