//! `--mmio`: a simulated board's registers, pads and interrupt lines for a kernel or an emulator in another
//! process.
//!
//! *Read first*: docs/mmio.md for the protocol.
//!
//! # How it works
//! One client at a time has the board; the board keeps its power and its state between clients. Its time passes
//! by the clients' requests alone. What the bus's name says of chips would be ignored here, so it is refused: chips
//! are named by `--chip`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;

use barewire_mmio::{ChipName, Machine, Server, tree};
use barewire_sim::Board;
use barewire_sim::board::{MANY_ACCESSES, listed};
use barewire_sim::model::nor::NorFaults;
use serde::Serialize;

use super::Args;
use super::line::PATIENCE;
use crate::shared::bus_name::{self, BusName, SimOptions};
use crate::shared::failure::Failure;
use crate::shared::files::{NamedFile, Output};
use crate::shared::interrupt;
use crate::shared::output::{self, note};
use crate::shared::text::figure;

/// The result. Scripts rely on its field names.
#[derive(Debug, Serialize)]
struct Report {
    bus: String,
    connections: u64,
    requests: u64,
    refused: u64,
    violations: u64,
    violation_texts: Vec<String>,
    chips: Vec<String>,
}

impl Report {
    fn text(&self) -> String {
        let [requests, refused] = [self.requests, self.refused].map(figure::grouped);
        let mut text = format!(
            "served {} connections: {requests} requests, {refused} refused\n",
            self.connections
        );
        for chip in &self.chips {
            text += &format!("{chip}\n");
        }
        if self.violations > 0 {
            text += &format!("{} rules broken on the wire, the first:\n", self.violations);
        }
        for violation in &self.violation_texts {
            text += &format!("  {violation}\n");
        }
        text
    }
}

/// The socket's name, which goes with the listener.
struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
    fn bind(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::io(format_args!("listen at {}", path.display()), &error);
        let listener = UnixListener::bind(path).map_err(failed)?;
        let listener = Self { listener, path: path.to_owned() };
        listener.listener.set_nonblocking(true).map_err(failed)?;
        Ok(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It was made here.
        let _ = fs::remove_file(&self.path);
    }
}

/// The board as asked.
///
/// # Errors
/// [`Failure::Usage`] for another kind of bus, and for what the name says of chips.
fn board(args: &Args) -> Result<Board, Failure> {
    let name = bus_name::parse(&args.bus.bus).map_err(Failure::Usage)?;
    let BusName::Sim(mut options) = name else {
        let what = "--mmio serves a simulated board: --bus sim:BOARD";
        return Err(Failure::Usage(what.into()));
    };
    let SimOptions { flash, flash_part, status, inputs, oled, wiring, faults, .. } = &options;
    let of_chips = [
        ("flash", flash.is_some()),
        ("flash-part", flash_part.is_some()),
        ("protect", status.is_some()),
        ("input", !inputs.is_empty()),
        ("oled", oled.is_some()),
        ("fault", faults.chip != NorFaults::default()),
    ];
    let wired = wiring.given().map(|option| (option, true));
    if let Some((option, _)) = of_chips.into_iter().chain(wired).find(|(_, given)| *given) {
        let what = format!("option {option}: with --mmio, chips are named by --chip KIND@CS");
        return Err(Failure::Usage(what));
    }
    if !options.board.is_shipped() && !options.board.chips.is_empty() {
        let what = "with --mmio, chips are named by --chip KIND@CS: leave [[chip]] out of the board's file";
        return Err(Failure::Usage(what.into()));
    }
    options.costs = args.bus.tell.costs.unwrap_or_default().level();
    Ok(Board::new(options.board, options.board_options()))
}

/// Serves until Ctrl-C or, if asked, until the first client has gone.
pub(super) fn serve(args: &Args, socket: &Path) -> Result<(), Failure> {
    let usage = |error: barewire_mmio::FitError| Failure::Usage(error.to_string());
    let machine = Machine::new(board(args)?, &args.chips).map_err(usage)?;
    let tell = &args.bus.tell;
    if let Some(path) = &args.device_tree {
        let source = tree::source(&machine).map_err(|no| Failure::Failed(no.to_string()))?;
        Output::create(NamedFile { by: "--device-tree", path }, tell.json)?.write(&source)?;
    }
    let trace = args.trace.as_deref().map(|path| NamedFile { by: "--trace", path });
    let trace = trace.map(|trace| Output::create(trace, tell.json)).transpose()?;
    let listener = Listener::bind(socket)?;
    let mut server = Server::new(machine);
    // Printed even with `--quiet`, because scripts wait for this line.
    output::stderr_line(format_args!("registers of {} at {}", args.bus.bus, socket.display()));
    let mut connections = 0;
    let begun_at = server.machine().board().engine().now_ps();
    if trace.is_some() {
        server.machine().board().start_accesses(MANY_ACCESSES);
    }
    while !interrupt::asked() {
        let client = match listener.listener.accept() {
            Ok((client, _)) => client,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(PATIENCE);
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io("accept a client", &error)),
        };
        connections += 1;
        let set = client.set_nonblocking(false);
        match set.and_then(|()| server.serve(&client, interrupt::asked)) {
            Ok(_) => {}
            // A client's mistake is no reason to leave the others without the board.
            Err(error) if !args.once => note!("barewire: serve: {error}"),
            Err(error) => return Err(Failure::io("serve the client", &error)),
        }
        if args.once {
            break;
        }
    }
    if let Some(trace) = trace {
        let board = server.machine().board();
        let accesses = board.take_accesses();
        if accesses.len() == MANY_ACCESSES {
            note!(
                "--trace: the first {} accesses are listed",
                figure::grouped(MANY_ACCESSES as u64)
            );
        }
        trace.write(&listed(board.spec(), &accesses, begun_at))?;
    }
    report(args, &server, connections)?;
    interrupt::check()
}

fn report(args: &Args, server: &Server, connections: u64) -> Result<(), Failure> {
    let machine = server.machine();
    let (requests, refused) = server.counts();
    let mut violations = machine.board().violations();
    violations.retain(|violation| violation.rule.harms());
    let report = Report {
        bus: args.bus.bus.clone(),
        connections,
        requests,
        refused,
        violations: machine.board().harms_total(),
        violation_texts: violations.iter().map(ToString::to_string).collect(),
        chips: machine.chips().iter().flat_map(|chip| chip.told()).collect(),
    };
    match args.bus.tell.json {
        true => output::json(&report),
        false if args.bus.tell.quiet => Ok(()),
        false => output::text(&report.text()),
    }
}

/// A chip, as clap parses it.
pub(super) fn chip(text: &str) -> Result<ChipName, String> {
    text.parse().map_err(|error: barewire_mmio::FitError| error.to_string())
}
