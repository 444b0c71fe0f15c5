//! The `barewire` command: flash chips, transfers and benches over SPI.
//!
//! Results go to stdout, everything else to stderr. Exit codes are in the help below.
//!
//! Every command is a module of `command`. `shared` holds what commands have in common.
//!
//! This is a library for its own program and for tests, which parse what pages say with `command()`.

mod command;
mod shared;

use std::fmt::Write as _;
use std::iter;
use std::process::ExitCode;

use barewire_linux::map::Block;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use command::{
    adc, bench, board, bound, can, completions, demo, diff, doctor, flash, iommu, lab, list, man,
    measure, regs, restore, run, scope, selftest, serve, xfer,
};
use shared::failure::Failure;
use shared::interrupt;
use shared::no_bus;
use shared::output::note;

const LONG_ABOUT: &str = "\
SPI at the cost of the wire: read and write flash chips, run transfers, measure what they cost.

Kinds of buses: simulated boards, where the shipped drivers run on models of the registers \
and the chip and every time printed is virtual; QEMU's boards, where the same drivers run on models \
nobody here wrote; Linux's spidev, any controller with a kernel driver; and a controller's own registers, by UIO or \
/dev/mem. The last two are experimental: they have not run on a board yet.";

const AFTER_HELP: &str = "\
Buses (--bus):
  sim:BOARD[,OPTION…]      a simulated board; `barewire list` names them. BOARD
                           may be the file of your own, sim:FILE.toml:
                           `barewire board new` writes one
    flash=FILE             the flash chip's content; a command that changes it
                           makes the file, erased
    flash-part=NAME        another flash chip; `barewire list --flash-parts`
                           names them
    protect=all|none|0xSR  status register 1 at power-up: what the chip protects
    input=CH:SIGNAL[+…]    what the converter's input CH carries: constant:MV,
                           ramp:HZ:FROM_MV:TO_MV,
                           sine:HZ:AMPLITUDE_MV:OFFSET_MV, file:PATH:RATE_HZ
                           (volts, one a line)
    oled=CS:DC:RES[:FILE]  an SSD1306 display behind chip select CS, its D/C#
                           and RES# at those GPIO pins; FILE gets its picture at
                           the end (PBM)
    select=CS:PIN[+…]      the chip of chip select CS is selected by that GPIO
                           pin, which the program drives
    no-cs                  the controller has no chip select lines: their pins
                           are the program's, as with a Raspberry Pi's overlay
                           spi0-0cs
    jumper=CS              a wire from MOSI to MISO in the place of that chip:
                           what is sent comes back
    wire=FROM:TO[+…]       GPIO pin TO has the level of pin FROM
    fault=NAME[+NAME…]     no-chip, stuck-low, stuck-busy, ignore-program,
                           timing-corrupts, power-loss-program[:N],
                           power-loss-erase[:N] (in the N-th, from 0)
    jitter-ns=N            register accesses take up to N ns longer, at random
    seed=N                 of that randomness: the same seed gives the same
                           trace
    costs=FILE             costs of a file in the places of the board's own:
                           measured.json
    done=read-only|needed  rpi3: DONE as in the manual, or to be written after
                           every transfer
    input-level=lost|kept  highbank: whether a level written to a pin that is an
                           input is kept
    xch=word-end|fifo-empty, tc=word-end|fifo-empty,
    dry=stalls|needs-xch, start-delay-ns=N
                           how an ECSPI (imx8mp, sabrelite) is where its manual
                           leaves it open: when XCH clears and TC sets, what a
                           burst does without words, how late its clock starts;
                           the manual's text and no delay unless told
  qemu:BOARD[,flash=FILE]  a board in QEMU, which is started and ended;
                           `barewire list` names them; FILE is QEMU's own
                           backing file of flash chip or SD card;
                           BAREWIRE_QEMU_ARM names another qemu-system-arm,
                           BAREWIRE_QEMU_AARCH64 another qemu-system-aarch64
  spidev:/dev/spidevB.C    a node of the kernel's spidev (experimental); --cs
                           stays 0
  barewire:N[,OPTION…]     a controller that this project's kernel module gives
                           to programs (experimental): the kernel knows block,
                           clock and chip selects
    cs=LINE[+LINE…]        lineN, chip select N of the device tree; or as below;
                           all of the device tree's unless told
    shared[=PATH]          other processes may use it too; else none may
    poll-limit-us=N, pipe=NAME, exclusive=PATH
                           as below
  mem:0xADDRESS[,OPTION…]  a controller's registers in /dev/mem, or
  uio:uioN[,OPTION…]       as the first block of a UIO device (experimental);
                           its kernel driver must be unbound, and its pins still
                           be its own
    controller=NAME        which it is:
{controllers}    reference-hz=HZ        the clock it divides; a Raspberry Pi's core clock
    cs=LINE[+LINE…]        LINE is nativeN, its own line N; gpio@0xADDRESS:BIT
                           or gpio@LABEL:BIT, a line of a GPIO chip through the
                           kernel; or gpio@0xADDRESS.BIT, a pin by its bank's
                           registers, which nobody else may use (i.MX). :high
                           behind it: active high
    unsafe-shared          write a bank's registers whoever else uses it
    node=NAME              use registers that the device tree gives to that
                           node, or with none to no node
    pipe=NAME              atmel's words on the way: wait-data-read (unless
                           told), one-word (where the block has no WDRBT),
                           two-words
    ignore-clock           go on where its clock is off or unknown, or has
                           another rate than reference-hz
    poll-limit-us=N        uio, barewire: transfers longer than N µs sleep until
                           the interrupt; else none does
    exclusive[=PATH]       no other process may use it meanwhile: messages need
                           no lock; else it is shared, each message under the
                           lock in /run/lock or in shared=PATH
  null:                    no wire and no chip: what everything else costs

Without --bus the environment's BAREWIRE_BUS is used; without both, a command
that needs a bus ends with exit code 2. demo, list, doctor, bench, lab, scope
and diff need none.

Examples:
  barewire demo
  barewire doctor
  barewire board new board.toml --like rpi3
  barewire list board.toml
  barewire xfer --bus sim:board.toml --cs 1 9f000000
  barewire flash id --bus sim:imx8mp --json
  barewire flash write --bus sim:imx8mp --stats --latency firmware.bin
  barewire flash write --bus sim:imx8mp,flash=chip.bin firmware.bin
  barewire flash read --bus sim:imx8mp,flash=chip.bin --offset 1M --length 64K part.bin
  barewire flash write --bus sim:sabrelite,flash=sst.bin --unprotect boot.bin
  barewire xfer --bus sim:imx8mp --cs 0 --vcd id.vcd 9f000000
  barewire flash id --bus qemu:sabrelite --json
  barewire flash write --bus qemu:sabrelite,flash=sst.bin --offset 4001 boot.bin
  barewire xfer --bus qemu:lm3s6965evb --speed-hz 400k 400000000095ffffff
  barewire selftest --bus qemu:highbank
  barewire flash id --bus spidev:/dev/spidev0.0 --speed-hz 10M
  barewire adc read --bus sim:rpi3 --chip mcp3008 --channel 0,1
  barewire adc stream --bus mem:0x3f204000,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8
  barewire adc stream --bus sim:rpi3,input=0:sine:1000:2000:2500 --batch 1,100 --plot
  barewire can echo --bus sim:imx8mp --full-load --frames 50000
  barewire can dump --bus sim:imx8mp -g 10 -n 20 -I 77 -t z
  barewire can gen --bus sim:imx8mp -g 0 -n 1000 -I i -L 8
  barewire regs read --bus sim:imx8mp --chip mcp2518fd C1CON OSC.OSCRDY 0xe04
  barewire regs write --bus sim:imx8mp --chip mcp2518fd C1CON.REQOP=4 C1NBTCFG=0x3e0f0f
  barewire run --map /dev/spidev0.0=sim:rpi3,cs=1 -- flashrom -p linux_spi:dev=/dev/spidev0.0 -r chip.bin
  barewire serve --serprog 127.0.0.1:3333 --bus sim:rpi3,flash=chip.bin
  barewire selftest --bus sim:imx8mp --fault bit-flip --fault-seed 7  (must fail)
  barewire measure --board sim:imx8mp --flash --quick -o measured
  barewire bound examples/canecho.toml --bus sim:imx8mp --schedules 100000
  barewire lab explain jander-rfc-cs2clk-A
  barewire lab sweep --path spidev-4.4 --board rpi3 --delay 0..12us
  barewire lab report --out lab.html
  barewire scope id.vcd --chip nor --messages
  barewire scope id.vcd --draw 0
  barewire scope id.vcd --chip nor -o scope.html
  barewire diff before.vcd after.vcd

Exit codes:
  0    done
  1    it failed; stderr says why
  2    wrong usage
  130  stopped by Ctrl-C (or SIGTERM)";

/// [`AFTER_HELP`] with the controllers that can be mapped.
fn after_long_help() -> String {
    let mut controllers = String::new();
    for block in Block::ALL {
        let note = if block == Block::DEFAULT { " (unless told)" } else { "" };
        let (name, machines) = (block.name(), block.machines());
        let _ = writeln!(controllers, "{:27}{name:<9}{machines}{note}", "");
    }
    AFTER_HELP.replace("{controllers}", &controllers)
}

#[derive(Parser, Debug)]
#[command(
    name = "barewire",
    version,
    about = "SPI at the cost of the wire: flash chips, transfers, benches",
    long_about = LONG_ABOUT,
    after_long_help = after_long_help(),
    after_help = "`barewire --help` has the bus options, examples and exit codes.",
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the main job on a simulated board, with figures
    Demo(demo::Args),
    /// List the buses, their chip selects and what is behind them
    List(list::Args),
    /// Write and print files of simulated boards, your own and the shipped ones
    #[command(subcommand)]
    Board(board::Verb),
    /// Say what stands between this machine and a working bus, and what to do about it; touches nothing
    Doctor(doctor::Args),
    /// Give chips and controllers back to the kernel drivers that they had before doctor's steps
    Restore(restore::Args),
    /// Run one message of transfers and print what came in
    Xfer(xfer::Args),
    /// Identify, read, write, erase and verify a flash chip
    #[command(subcommand)]
    Flash(flash::Verb),
    /// Read and stream an analog-to-digital converter of the MCP3008 family
    #[command(subcommand)]
    Adc(adc::Verb),
    /// Listen to a CAN bus, send on it, echo its frames, or bridge it to a socket, through an MCP2518FD
    #[command(subcommand)]
    Can(can::Verb),
    /// Read, write and dump a chip's registers by name
    #[command(subcommand)]
    Regs(regs::Verb),
    /// Run a program that was written for spidev on any bus, unmodified
    Run(run::Args),
    /// Serve a chip to programs that speak flashrom's serprog protocol, or a simulated board to a kernel
    Serve(serve::Args),
    /// Run the loopback cases of Linux's spi-loopback-test on a bus; the chip behind the chip select
    /// hears them (simulated boards: it is taken off)
    Selftest(selftest::Args),
    /// Time the bus paths on this machine, without any wire, or with --board those to a chip
    Bench(bench::Args),
    /// Measure what this board's registers, wake-ups and messages take, beside what was predicted, and make costs of it
    Measure(measure::Args),
    /// Bound the worst time from call to return of each task that shares a bus, and say what shortens it
    Bound(bound::Args),
    /// Say where the page tables' verbs are
    #[command(hide = true, disable_help_flag = true)]
    Iommu(iommu::Args),
    /// Replay published experiments on kernels and barewire, simulated: figures, causes, predictions, a report
    #[command(subcommand)]
    Lab(lab::Verb),
    /// Take a logic analyzer's capture apart: each message's times, and how those of each kind are distributed
    Scope(scope::Args),
    /// Compare two captures or kernel traces, before and after a change: which kinds of messages differ, by how much and how surely
    Diff(diff::Args),
    /// Print a shell's completions of this command
    Completions(completions::Args),
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man(man::Args),
}

impl Command {
    fn run(&self) -> Result<(), Failure> {
        match self {
            Command::Demo(args) => demo::run(args),
            Command::List(args) => list::run(args),
            Command::Board(verb) => board::run(verb),
            Command::Doctor(args) => doctor::run(args),
            Command::Restore(args) => restore::run(args),
            Command::Bound(args) => bound::run(args),
            Command::Xfer(args) => xfer::run(args),
            Command::Flash(verb) => flash::run(verb),
            Command::Adc(verb) => adc::run(verb),
            Command::Can(verb) => can::run(verb),
            Command::Regs(verb) => regs::run(verb),
            Command::Run(args) => run::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Selftest(args) => selftest::run(args),
            Command::Bench(args) => bench::run(args),
            Command::Measure(args) => measure::run(args),
            Command::Iommu(_) => iommu::run(),
            Command::Lab(verb) => lab::run(verb),
            Command::Scope(args) => scope::run(args),
            Command::Diff(args) => diff::run(args),
            Command::Completions(args) => completions::run(args, Cli::command()),
            Command::Man(args) => man::run(args, Cli::command()),
        }
    }
}

/// The command line's definition, to parse with and not to run.
#[doc(hidden)]
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// The command and its verb, for errors: "flash read".
fn name(matches: &ArgMatches) -> String {
    let names = iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
    names.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
}

/// The program.
#[doc(hidden)]
#[must_use]
pub fn main() -> ExitCode {
    let parsed = command().try_get_matches().and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))?;
        Ok((cli.command, name(&matches)))
    });
    let (command, name) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => no_bus::explained(error).exit(),
    };
    let result = match &command {
        // They have nothing to put in order: Ctrl-C ends them at once, as without a handler.
        Command::Bench(_) | Command::Lab(_) => command.run(),
        // Ctrl-C is the program's; the server ends with it.
        Command::Run(_) => command.run(),
        _ => interrupt::install().and_then(|()| command.run()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                note!("barewire: {name}: {failure}");
            }
            ExitCode::from(failure.code())
        }
    }
}
