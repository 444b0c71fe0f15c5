//! `barewire serve`: one chip select for programs that speak flashrom's serprog protocol, by TCP or through
//! a pseudo-terminal; or with `--mmio` a simulated board for a kernel or an emulator ([`mmio`]).
//!
//! # How it works
//! One program at a time has the chip. While it is connected, the chip's lock between processes is held:
//! no other program's write comes between its write enable and its page. Between connections others may use
//! the chip.
//!
//! A kernel driver that comes back to the controller ends the command, with its name: also while no program is
//! connected. The programs' operations fail from then on.
//!
//! A simulated board's time goes on with the clock on the wall, and by the delays that the program asks for:
//! those are not waited for.
//!
//! # Every wait ends
//! A program may stop anywhere. So each wait for it looks at Ctrl-C, and has a limit: `--idle-limit` for the next command
//! and for the reading of an answer, [`SOON`] for its first command and for the rest of one. A delay is at most
//! [`DELAY_MAX_US`], and ends if the program leaves. A command that was sent in part goes with its connection: nothing that the
//! next program sends completes it. No connection begins with the chip selected, because each operation ends with CS
//! released, also one that fails.

mod line;
mod mmio;
mod protocol;

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use barewire::bus::Device;
use barewire::controller::Controller;
use barewire::spi::{Mode, Settings, Transfer};
use barewire_mmio::ChipName;
use serde::Serialize;

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;
use crate::shared::session::{
    self, BusArgs, ChipRequest, EndState, Figures, Place, Request, Session,
};
use crate::shared::text::figure;
use line::{Connection, Listener, Where};
use protocol::{Command, Limits, Next};

/// How long a program may take for its first command, and for the rest of one that it began.
const SOON: Duration = Duration::from_secs(10);
/// The longest delay between two operations. Programs poll a chip that is busy for longer.
const DELAY_MAX_US: u64 = 60_000_000;

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  barewire serve --serprog 127.0.0.1:3333 --bus sim:rpi3,flash=chip.bin --cs 1
  flashrom -p serprog:ip=127.0.0.1:3333 -r copy.bin
  barewire serve --serprog /tmp/chip --bus uio:uio0,reference-hz=80M,cs=native0
  flashrom -p serprog:dev=/tmp/chip:115200 -w firmware.bin
From another machine: ssh -L 3333:127.0.0.1:3333 BOARD
  barewire serve --mmio /tmp/board --bus sim:rpi5 --chip flash@2 --chip touch@0 --device-tree board.dts
  linux mem=96M dtb=board.dtb time-travel=inf-cpu barewire_mmio.socket=/tmp/board")]
#[command(group(clap::ArgGroup::new("what").required(true).args(["serprog", "mmio"])))]
pub(crate) struct Args {
    /// Where to listen: an address and port (0: any), or a path, which becomes a link to a pseudo-terminal
    #[arg(long, value_name = "ADDRESS:PORT|PATH")]
    serprog: Option<Where>,
    /// Serve a simulated board's registers, pads and interrupts at a Unix socket, for a kernel or an emulator
    #[arg(long, value_name = "SOCKET",
          conflicts_with_all = ["chip_select", "speed_hz", "mode", "vcd", "stats", "latency"])]
    mmio: Option<PathBuf>,
    /// With --mmio: a chip on the board, flash, can, adc, touch, jumper or spidev, and its chip select; more than once
    #[arg(long = "chip", value_name = "KIND@CS[=OPTION]", conflicts_with = "serprog", value_parser = mmio::chip)]
    chips: Vec<ChipName>,
    /// With --mmio: write the board's device tree for user-mode Linux there, before clients may connect; -: stdout
    #[arg(long, value_name = "FILE", conflicts_with = "serprog")]
    device_tree: Option<PathBuf>,
    /// With --mmio: list the clients' register accesses there at the end; -: stdout
    #[arg(long, value_name = "FILE", conflicts_with = "serprog")]
    trace: Option<PathBuf>,
    /// End when the first program has gone that asked for something
    #[arg(long)]
    once: bool,
    /// Disconnect a program that sends nothing, or does not read its answers, for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, conflicts_with = "mmio",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle_limit: u64,
    #[command(flatten)]
    bus: BusArgs,
    /// The SPI mode, 0 to 3
    #[arg(long, value_name = "N", default_value = "0", value_parser = mode)]
    mode: Mode,
}

fn mode(text: &str) -> Result<Mode, String> {
    let number = text.parse().ok().and_then(Mode::from_number);
    number.ok_or_else(|| "SPI modes are 0, 1, 2 and 3".into())
}

/// The result. Scripts rely on its field names.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    place: Place,
    chip_select: u8,
    connections: u64,
    operations: u64,
    bytes_sent: u64,
    bytes_received: u64,
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        let Self { connections, operations, bytes_sent, bytes_received, .. } = self;
        let [operations, sent, received] =
            [operations, bytes_sent, bytes_received].map(|count| figure::grouped(*count));
        format!(
            "served {connections} connections: {operations} operations, {sent} bytes sent, {received} received\n"
        )
    }

    fn verdict(&self) -> Result<(), Failure> {
        interrupt::check()
    }
}

/// Runs it: until Ctrl-C, with the report printed and the exit code of every command that is interrupted.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(socket) = &args.mmio {
        return mmio::serve(args, socket);
    }
    let Some(serprog) = &args.serprog else {
        unreachable!("clap asks for one of the two");
    };
    let request = Request::of(&args.bus, EndState::AsServed)
        .for_chip(ChipRequest::Flash)
        .that_changes_the_chip();
    session::run(&request, |session| serve(args, serprog, session))
}

fn serve(args: &Args, serprog: &Where, session: &Session) -> Result<Report, Failure> {
    let chip_select = session.chip_select;
    let settings = Settings::new(chip_select, args.bus.speed_hz)
        .with_mode(args.mode | session.mode(chip_select));
    // A wrong chip select is an error of this command, not of the first program.
    session.open.bus().device(&settings)?;
    let mut listener = Listener::open(serprog)?;
    // Printed even with `--quiet`, because scripts read the port from this line.
    note!("{}", listener.told());
    let mut report = Report {
        place: session.place.clone(),
        chip_select,
        connections: 0,
        operations: 0,
        bytes_sent: 0,
        bytes_received: 0,
    };
    while let Some(line) = listener.next(|| Ok(session.open.check()?))? {
        let kept = match session.keep_chip(chip_select) {
            Ok(kept) => kept,
            Err(failure) => {
                note!("barewire: serve: {failure}");
                continue;
            }
        };
        report.connections += 1;
        let idle_limit = Duration::from_secs(args.idle_limit);
        let mut serving = Serving::new(session, settings, line, idle_limit, &mut report)?;
        let served = serving.run();
        let has_asked = serving.has_asked;
        drop(kept);
        served?;
        // A port scan is no program.
        if args.once && has_asked {
            break;
        }
    }
    Ok(report)
}

/// One program's connection.
struct Serving<'s, 'r> {
    session: &'s Session,
    settings: Settings,
    device: Device<'s, dyn Controller + 's>,
    line: Connection,
    report: &'r mut Report,
    limits: Limits,
    /// The delay that the program asked for at the next O_EXEC.
    delay_us: u64,
    /// When the last operation ended.
    last: Instant,
    /// How long the program may do nothing.
    idle_limit: Duration,
    /// Whether it has sent a command that this server knows, other than the one that is a zero byte.
    has_asked: bool,
}

impl<'s, 'r> Serving<'s, 'r> {
    fn new(
        session: &'s Session,
        settings: Settings,
        line: Connection,
        idle_limit: Duration,
        report: &'r mut Report,
    ) -> Result<Self, Failure> {
        let device = session.open.bus().device(&settings)?;
        let limits = Limits::of(device.limits().max_message_bytes);
        let last = Instant::now();
        let (delay_us, has_asked) = (0, false);
        Ok(Self {
            session,
            settings,
            device,
            line,
            report,
            limits,
            delay_us,
            last,
            idle_limit,
            has_asked,
        })
    }

    /// Serves until the program disconnects, does nothing for too long, or the user asks to stop.
    fn run(&mut self) -> Result<(), Failure> {
        let mut asked = Vec::new();
        let mut piece = [0; 4096];
        let mut heard = Instant::now();
        loop {
            while let Next::Command(command, bytes) = protocol::next(&asked) {
                if interrupt::asked() {
                    return Ok(());
                }
                self.has_asked |= asked[0] != 0 && command != Command::Unknown;
                let ControlFlow::Continue(answer) = self.answer(command) else { return Ok(()) };
                asked.drain(..bytes);
                let sent = self.line.send(&answer, self.idle_limit);
                // Behind the answer, which tells the program that its operation failed.
                if answer == protocol::nak() {
                    self.session.open.check()?;
                }
                if let Err(error) = sent {
                    if error.kind() == ErrorKind::TimedOut {
                        let limit = self.idle_limit.as_secs();
                        note!(
                            "barewire: serve: a program did not read its answer for {limit} s: disconnected (--idle-limit)"
                        );
                    }
                    return Ok(());
                }
                heard = Instant::now();
            }
            match self.line.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    asked.extend_from_slice(&piece[..bytes]);
                    heard = Instant::now();
                }
                // Nothing came for a while.
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if interrupt::asked() {
                        return Ok(());
                    }
                    self.session.open.check()?;
                    if self.is_over(heard.elapsed(), !asked.is_empty()) {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(()),
            }
        }
    }

    /// Whether a program that sent nothing for that long is disconnected; `in_part` if the rest of a command is missing.
    fn is_over(&self, silent: Duration, in_part: bool) -> bool {
        let (what, limit) = match (in_part, self.has_asked) {
            (true, _) => ("left a command unfinished", self.idle_limit.min(SOON)),
            (false, false) => ("asked for nothing", self.idle_limit.min(SOON)),
            (false, true) => ("sent nothing", self.idle_limit),
        };
        if silent < limit {
            return false;
        }
        note!("barewire: serve: a program {what} for {} s: disconnected", limit.as_secs());
        true
    }

    /// The answer; none if the program has gone, or the user asks to stop.
    fn answer(&mut self, command: Command<'_>) -> ControlFlow<(), Vec<u8>> {
        ControlFlow::Continue(match command {
            Command::Known(answer) => answer,
            Command::Limit(limit) => self.limits.answer(limit),
            Command::Delay(us) if self.delay_us + u64::from(us) > DELAY_MAX_US => {
                note!(
                    "barewire: serve: a delay above {} s is refused: poll the chip instead",
                    DELAY_MAX_US / 1_000_000
                );
                protocol::nak()
            }
            Command::Delay(us) => {
                self.delay_us += u64::from(us);
                protocol::ack(&[])
            }
            Command::Execute => {
                self.wait()?;
                protocol::ack(&[])
            }
            Command::Discard => {
                self.delay_us = 0;
                protocol::ack(&[])
            }
            Command::Speed(speed_hz) => self.set_speed(speed_hz),
            Command::Operation { send, receive } => self.operate(send, receive),
            Command::Unknown => protocol::nak(),
        })
    }

    /// Waits as long as the program asked, on a simulated board by its clock alone. Breaks off if the program leaves or the
    /// user asks to stop.
    fn wait(&mut self) -> ControlFlow<()> {
        let us = std::mem::take(&mut self.delay_us);
        if let Some(board) = self.session.open.board() {
            board.idle_ns(us.saturating_mul(1_000));
            return interrupt::flow();
        }
        let until = Instant::now() + Duration::from_micros(us);
        loop {
            interrupt::flow()?;
            let left = until.saturating_duration_since(Instant::now());
            if left <= line::PATIENCE {
                std::thread::sleep(left);
                return ControlFlow::Continue(());
            }
            if self.line.leaves() {
                return ControlFlow::Break(());
            }
        }
    }

    fn set_speed(&mut self, speed_hz: u32) -> Vec<u8> {
        let limits = self.device.limits();
        // Zero is refused by the protocol, and no clock above the one that was asked for here is set.
        let speed_hz = speed_hz.min(self.settings.speed_hz).min(limits.max_speed_hz);
        let settings = Settings { speed_hz, ..self.settings };
        match self.session.open.bus().device(&settings) {
            Ok(device) => {
                self.device = device;
                protocol::ack(&device.effective().speed_hz.to_le_bytes())
            }
            Err(_) => protocol::nak(),
        }
    }

    fn operate(&mut self, send: &[u8], receive: usize) -> Vec<u8> {
        if let Some(board) = self.session.open.board() {
            let idle = self.last.elapsed().as_nanos();
            board.idle_ns(u64::try_from(idle).unwrap_or(u64::MAX));
        }
        let mut received = vec![0; receive];
        let mut message = Vec::with_capacity(2);
        if !send.is_empty() {
            message.push(Transfer::write(send));
        }
        if receive > 0 {
            message.push(Transfer::read(&mut received));
        }
        let ran = match message.is_empty() {
            true => Ok(0),
            false => self.device.sync(&mut message),
        };
        self.last = Instant::now();
        match ran {
            Ok(_) => {
                self.report.operations += 1;
                self.report.bytes_sent += send.len() as u64;
                self.report.bytes_received += receive as u64;
                protocol::ack(&received)
            }
            Err(error) => {
                note!("barewire: serve: an operation failed: {error}");
                protocol::nak()
            }
        }
    }
}
