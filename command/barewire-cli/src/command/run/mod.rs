//! `barewire run`: a program that was written for spidev, on any bus, unmodified.
//!
//! # How it works
//! 1. The buses of all `--map`s are opened, each once, and each node's chip select is tried.
//! 2. The program is looked at: the library must be loadable into it ([`program`]). Nodes of the same name
//!    that the kernel has are hidden from it ([`hide`]), so that calls that bypass the library reach no
//!    chip. GPIO chips of `--map-gpio` are handled alike.
//! 3. Files are made that tell the program which board it runs on ([`identity`]).
//! 4. The program is started with `libbarewire_spidev.so` loaded. Its calls on the nodes come here
//!    ([`server`]), one at a time, and run on the bus ([`nodes`]) or the board's pins ([`gpio`]).
//! 5. When the program has ended, the buses are closed and its exit code is this command's.
//!
//! Ctrl-C is the program's: this command ends when the program does ([`signals`]).

mod clock;
mod direct;
mod gpio;
mod hide;
mod identity;
mod map;
mod news;
mod nodes;
mod program;
mod rings;
mod server;
mod shared;
mod signals;

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use barewire::spi::Mode;
use barewire_spidev_abi::gpio::ChipName;
use barewire_spidev_abi::protocol::{SERVER_VARIABLE, TREE_VARIABLE};
use barewire_spidev_abi::{BUFSIZ, NodeName, Setup, tree};
use serde::Serialize;
use tempfile::TempDir;

use crate::shared::failure::Failure;
use crate::shared::files::{NamedFile, Output};
use crate::shared::output::note;
use crate::shared::session::{
    EndState, Figures, Place, Report, Request, Session, StartedSession, TellArgs, VCD_LIMIT,
};
use crate::shared::text::number;
use clock::Clock;
use gpio::{Gpio, GpioMap};
use identity::{Identity, ToldAs};
use map::Map;
use nodes::Nodes;
use server::Server;

/// Exit codes of env(1) and of shells: no such program, one that cannot be run, and what is added to
/// the number of the signal that killed it.
pub(super) const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;
const BY_SIGNAL: i32 = 128;

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit codes: the program's own; 128 and the signal's number if one killed it; 127 if it was not found, 126 if \
it cannot be run; 1 and 2 as for every command.

Examples:
  barewire run --map /dev/spidev0.0=sim:rpi3,cs=1 -- flashrom -p linux_spi:dev=/dev/spidev0.0 -r chip.bin
  barewire run --map /dev/spidev0.0=sim:rpi3 -- python3 read_adc.py
  barewire run --as pi4 --map /dev/spidev0.0=null: -- python3 which_board.py")]
pub(crate) struct Args {
    /// A node that the program sees, and the bus that it is, with a chip select (unless told, the node's
    /// own): /dev/spidevB.C=BUS[,cs=N]; buses are those of --bus
    #[arg(long = "map", value_name = "NODE=BUS", required_unless_present = "gpio_maps")]
    maps: Vec<Map>,
    /// A GPIO chip that the program sees, and the simulated board whose pins are its lines:
    /// /dev/gpiochipN=sim:BOARD; a bus of --map by the same text is the same board
    #[arg(long = "map-gpio", value_name = "CHIP=BUS")]
    gpio_maps: Vec<GpioMap>,
    /// The board that the program is told it runs on [default: the mapped board]
    #[arg(long = "as", value_name = "BOARD", value_parser = ToldAs::parser())]
    told_as: Option<ToldAs>,
    /// The clock until the program sets one, like a device tree's spi-max-frequency (k and M: by 1000)
    #[arg(long, value_name = "HZ", default_value = "1M", value_parser = number::hertz)]
    speed_hz: u32,
    /// How long CS stays inactive at cs_change inside a message, at least (the kernel: 10000)
    #[arg(long, value_name = "NS", default_value_t = 1_000, value_parser = number::count::<u32>)]
    cs_change_delay_ns: u32,
    /// The most bytes of a message, each way, like spidev's bufsiz
    #[arg(long, value_name = "BYTES", default_value_t = BUFSIZ, value_parser = bufsiz)]
    bufsiz: u32,
    /// The library to load [default: beside this command; BAREWIRE_SPIDEV_LIBRARY]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Say on stderr why a call failed, once for each reason
    #[arg(long, short)]
    verbose: bool,
    /// Record the wire into FILE (one simulated board)
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,
    /// The most words and level changes that --vcd records; each takes some 50 bytes of memory, and some 250 of
    /// the file
    #[arg(long, value_name = "N", default_value_t = VCD_LIMIT, value_parser = number::count::<usize>)]
    vcd_limit: usize,
    /// Count what goes over each bus, by the names of Linux's spi statistics, and print it at the end
    #[arg(long)]
    stats: bool,
    /// Write those counts and the program's exit code into FILE, a line of JSON for each bus
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print no summary or notes, only errors
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(required = true, value_name = "COMMAND", last = true)]
    command: Vec<String>,
}

/// The largest buffer size that is of use with Linux's spidev. The program's messages are copied.
const BUFSIZ_MAX: u32 = 16 << 20;

fn bufsiz(text: &str) -> Result<u32, String> {
    match number::count::<u32>(text)? {
        bytes @ 1..=BUFSIZ_MAX => Ok(bytes),
        bytes => Err(format!("{bytes} is not between 1 and {BUFSIZ_MAX}")),
    }
}

/// A program that cannot be started, with the exit code that env(1) has for it.
fn cannot_start(code: u8, why: &str) -> Failure {
    note!("barewire: run: {why}");
    Failure::Program(code)
}

/// A bus that was served. It prints nothing: the program has printed its own output.
#[derive(Serialize)]
struct ServedBus {
    #[serde(flatten)]
    place: Place,
    exit_code: u8,
}

impl Report for ServedBus {
    fn text(&self, _: Option<&Figures>) -> String {
        String::new()
    }
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    map::check(&args.maps)?;
    gpio::check(&args.gpio_maps)?;
    let library = program::library(args.library.as_deref())?;
    let program = program::find(&args.command[0])?;
    program::check(&program, &library)?;
    let mut buses: Vec<&str> = args.maps.iter().map(|map| map.bus.as_str()).collect();
    if let Some(slip) = gpio::likely_slip(&args.gpio_maps, &buses).filter(|_| !args.quiet) {
        note!("barewire: {slip}");
    }
    buses.extend(args.gpio_maps.iter().map(|map| map.bus.as_str()));
    buses.sort_unstable();
    buses.dedup();
    if args.vcd.is_some() && buses.len() > 1 {
        return Err(Failure::Usage("--vcd records one board; the maps name several".into()));
    }
    let tell = TellArgs {
        json: false,
        vcd: args.vcd.clone(),
        vcd_limit: args.vcd_limit,
        stats: args.stats,
        latency: false,
        costs: None,
        quiet: args.quiet,
    };
    let requests: Vec<_> = buses
        .iter()
        .map(|bus| Request::at(bus, 0, &tell, EndState::AsServed).that_changes_the_chip())
        .collect();
    signals::block_ends(true);
    let report = args.report.as_deref().map(|path| NamedFile { by: "--report", path });
    let mut report = report.map(|report| Output::create(report, false)).transpose()?;
    let mut open = Vec::new();
    let served = requests
        .iter()
        .try_for_each(|request| StartedSession::new(request).map(|begun| open.push(begun)))
        .and_then(|()| {
            let sessions = buses.iter().copied().zip(open.iter().map(|begun| &begun.session));
            serve(args, &library, &program, &sessions.collect::<Vec<_>>())
        })
        .map(code_of);
    let mut ended = Ok(());
    for (begun, request) in open.into_iter().zip(&requests) {
        let result = served.clone().map(|exit_code| {
            let place = begun.session.place.clone();
            ServedBus { place, exit_code }
        });
        if let (Some(report), Ok(served)) = (&mut report, &result) {
            ended =
                ended.and(begun.line(served).and_then(|line| report.write_all(line.as_bytes())));
        }
        ended = ended.and(begun.end(request, result));
    }
    let exit_code = served?;
    let reported = report.map_or(Ok(()), Output::commit);
    match exit_code {
        // A bus that ended badly outweighs a program that ended well.
        0 => ended.and(reported),
        code => {
            // It may be why the program ended badly.
            if let Err(why) = &ended {
                note!("barewire: run: {why}");
            }
            reported.and(Err(Failure::Program(code)))
        }
    }
}

/// A program's exit code as a shell tells it.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(BY_SIGNAL + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Starts the program and serves its calls until it has ended.
fn serve(
    args: &Args,
    library: &Path,
    program: &Path,
    sessions: &[(&str, &Session)],
) -> Result<ExitStatus, Failure> {
    let dir = TempDir::with_prefix("barewire-run-")
        .map_err(|error| Failure::io("make a temporary directory", &error))?;
    let names: Vec<NodeName> = args.maps.iter().map(|map| map.node).collect();
    tree::make(dir.path(), &names, args.bufsiz)
        .map_err(|error| Failure::io("write a temporary directory", &error))?;
    let chips: Vec<ChipName> = args.gpio_maps.iter().map(|map| map.chip).collect();
    let setup = Setup {
        chip_select: 0,
        mode: Mode::default(),
        speed_hz: args.speed_hz,
        cs_change_delay_ns: args.cs_change_delay_ns,
        bufsiz: args.bufsiz,
    };
    if args.report.is_some() {
        sessions.iter().for_each(|(_, session)| session.open.bus().set_counting(true));
    }
    // Messages that are counted or explained must go through this process.
    let served = args.verbose || args.stats || args.report.is_some();
    let tree = (!served).then(|| dir.path());
    let clocks = Clock::of_all(sessions);
    let nodes = Nodes::open(&args.maps, sessions, &clocks, &setup, args.verbose, tree)?;
    // The board of the pins comes first: programs ask for the board to find their pins.
    let mapped =
        args.gpio_maps.iter().map(|map| &map.bus).chain(args.maps.iter().map(|map| &map.bus));
    let mut places = mapped.filter_map(|bus| {
        let session = sessions.iter().find(|(name, _)| name == bus)?;
        // A board of the user's own is the one that it is like.
        let board = session.1.open.board().and_then(|board| board.board.spec().like);
        Some(board.map_or(session.1.place.bus.clone(), |like| format!("sim:{like}")))
    });
    let told = identity::told(args.told_as, places.clone());
    let asked_for = args.told_as.and(told).and_then(Identity::chip);
    let verbosity = (args.verbose, args.quiet);
    let gpio = Gpio::open(&args.gpio_maps, sessions, &clocks, asked_for, verbosity)?;
    gpio.make_tree(dir.path())?;
    if let Some(told) = told {
        // The header's chip is the first, if that is one of the board that is told.
        let is_header = asked_for.is_some() || places.next().is_some_and(|bus| told.is(&bus));
        told.make(dir.path(), chips.first().copied().filter(|_| is_header))
            .map_err(|error| Failure::io("write a temporary directory", &error))?;
    }
    let mut server = Server::new(nodes, gpio)?;
    let nodes = names.iter().map(|node| node.path());
    hide::hide(&nodes.chain(chips.iter().map(|chip| chip.path())).collect::<Vec<_>>(), dir.path())?;
    let child = start(args, library, program, dir.path(), server.name())?;
    // Only after the program was started, because a program inherits the blocked signals.
    let signals = signals::Signals::take()?;
    let status = server.serve_until_ended(child, &signals)?;
    if !server.was_reported_to() && !args.quiet {
        note!(
            "barewire: warning: {} never loaded {}: it saw no mapped node",
            program.display(),
            library.display()
        );
    }
    Ok(status)
}

fn start(
    args: &Args,
    library: &Path,
    program: &Path,
    tree: &Path,
    server: &str,
) -> Result<Child, Failure> {
    // Other libraries to be preloaded are kept, after this one.
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    // The program inherits what is blocked.
    signals::block_ends(false);
    let started = Command::new(&args.command[0])
        .args(&args.command[1..])
        .env("LD_PRELOAD", preload)
        .env(SERVER_VARIABLE, server)
        .env(TREE_VARIABLE, tree)
        .spawn();
    signals::block_ends(true);
    started.map_err(|error| {
        cannot_start(NOT_RUNNABLE, &format!("cannot start {}: {error}", program.display()))
    })
}
