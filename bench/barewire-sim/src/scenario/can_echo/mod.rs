//! CAN frames echoed by an MCP2518FD behind SPI: lost frames, latency, and cost.
//!
//! *Read first*: David Jander, "A new SPI API for fast, low-latency regmap peripheral access",
//! linux-spi, 2022: the same chip, SoC and frames, and figures to hold these against.
//!
//! # How it works
//! A far node sends generated frames; the board's chip receives each, and its data goes back under the
//! identifier minus one. The same identifier would collide with the next frame, and a higher one would never
//! win arbitration on a full bus. [`Who`] names the code that echoes; each is charged the costs of the board's
//! profile and its own [counted](INSTRUCTIONS_PER_RECEIVED) instructions.
//!
//! Everything is on one processor, so that its time adds up: a thread of lowest priority takes what
//! the others leave.
//!
//! # Ordering
//! 1. The driver joins the CAN bus; everything before the far node's first frame counts nowhere.
//! 2. Frames are echoed until all have been, none was received for [`STALL_PS`], or the caller
//!    wants no more.
//! 3. The last echo leaves, the chip is stopped, and the account is closed.
//!
//! # Memory
//! Each service of the interrupt first adds what happened since the one before to the account, which keeps
//! counts: memory is bounded, however many frames there are. Medians are exact up to [`EXACT_VALUES`]
//! different values, and too small by less than 1/1024 beyond. A frame of the far node is lost when
//! [`WAITING_MAX`] later ones wait for their echo too.
//!
//! # Not supported
//! SocketCAN: the sockets here are a pair of processes' own. Other work on the processor.

mod account;
mod frames;
mod socket;
mod threads;
mod times;

use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroU64;

use barewire::bus::Bus;
use barewire::chip::mcp251xfd::{BitRate, CanError, Config, Mcp251xfd, Oscillator};
use barewire::spi::{Mode, Settings};

use crate::bring_up::{Charged, any};
use crate::chip::{PS_PER_S, Ps};
use crate::model::can::{BitTimes, CanBus, CanFrame, Feed, Traffic};
use crate::model::mcp2518fd::ChipFaults;
use crate::{Board, BoardOptions, BoardSpec, SimPlatform, Violation};
use account::Account;

pub use frames::{FrameAccount, Tally, WAITING_MAX};
pub use times::{EXACT_VALUES, KEPT_BITS, Spread, Times};

/// Instructions of the driver for a received frame, without those of its messages. Counted on x86-64 by
/// callgrind (`command/barewire-cli/tests/snapshots/instructions.txt`): can_receive minus the charge for
/// two messages, one of one transfer and one of two.
pub const INSTRUCTIONS_PER_RECEIVED: u64 = 257;
/// Instructions for a sent frame: can_transmit minus a message of two transfers.
pub const INSTRUCTIONS_PER_SENT: u64 = 203;
/// Bit times within which the last echoes must leave: eight of the longest frames, and as much again between them.
const LAST_BITS: u64 = 16 * 750;
/// From the driver's start to the far node's: more than 11 recessive bits.
const BEFORE_PS: Ps = 10_000_000_000;
/// If no frame arrives for the longest gap plus this time, no more are expected.
pub const STALL_PS: Ps = 1_000_000_000_000;

/// The code that echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The hard interrupt, without a kernel: bare metal.
    HardInterrupt,
    /// A process under Linux that UIO wakes.
    Process,
    /// Such a process passes frames to another one and back, through two sockets.
    Sockets,
}

impl Who {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::HardInterrupt, Self::Process, Self::Sockets];
}

/// The settings of a run: the board, the code that echoes, and the frames.
pub struct Setup {
    /// The board, which has a CAN controller.
    pub board: &'static BoardSpec,
    /// Options of the board that differ from its defaults.
    pub board_options: BoardOptions,
    /// The code that echoes.
    pub who: Who,
    /// A timer tick that fell due is charged with a process's next message, also if it fell into a sleep. A kernel that
    /// stops its tick when it is idle has none there.
    pub ticks: bool,
    /// The driver's configuration.
    pub config: Config,
    /// The CAN bus's bits, as `config` makes them.
    pub times: BitTimes,
    /// SPI's clock, at most.
    pub speed_hz: u32,
    /// Faults of the chip.
    pub faults: ChipFaults,
    /// The far node's frames, each with the time after the start at which it is ready to be sent.
    pub far: Box<dyn Iterator<Item = (Ps, CanFrame)>>,
    /// The number of those frames.
    pub frames: u64,
    /// The longest time between two of them.
    pub gap_ps: Ps,
}

impl Setup {
    /// The thread's own: 8 random bytes under 0x077 at 250 kbit/s, SPI at 16 MHz.
    #[must_use]
    pub fn published(board: &'static BoardSpec, who: Who, frames: NonZeroU64, gap_ps: Ps) -> Self {
        let oscillator_hz = board.can().map_or(40_000_000, |can| can.oscillator_hz);
        let nominal = BitRate::new(250_000);
        Self {
            board,
            board_options: BoardOptions::default(),
            who,
            ticks: true,
            config: Config::classic(Oscillator::new(oscillator_hz), nominal),
            times: BitTimes::from_rates(nominal.bitrate_hz, nominal.bitrate_hz),
            speed_hz: 16_000_000,
            faults: ChipFaults::default(),
            far: Box::new(Traffic { gap_ps, count: Some(frames), ..Traffic::default() }.frames()),
            frames: frames.get(),
            gap_ps,
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("board", &self.board.name)
            .field("who", &self.who)
            .field("frames", &self.frames)
            .finish_non_exhaustive()
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct EchoFigures {
    /// The frames, counted by outcome.
    pub frames: Tally,
    /// From the end of a received frame to the beginning of its echo.
    pub rx_eof_to_tx_sof: Option<Spread>,
    /// The interrupt pin low.
    pub int_low: Option<Spread>,
    /// From chip select to the first clock's edge.
    pub cs_to_clock: Option<Spread>,
    /// Chip select high between an interrupt's first and second access.
    pub cs_high: Option<Spread>,
    /// From the time at which the first frame is ready to be sent until all is done. Shares are of this time.
    pub elapsed_ps: Ps,
    /// The part of `elapsed_ps` in which the processor was busy.
    pub cpu_ps: Ps,
    /// The part of `cpu_ps` for receiving: from the interrupt to the frame in memory, or in the socket.
    pub receive_ps: Ps,
    /// The part of `cpu_ps` for sending, unless another process sends.
    pub send_ps: Ps,
    /// The time in which SPI's clock ran.
    pub wire_ps: Ps,
    /// The part of `wire_ps` for receiving.
    pub receive_wire_ps: Ps,
    /// SPI accesses.
    pub accesses: u64,
    /// The SPI accesses for receiving.
    pub receive_accesses: u64,
    /// How often the driver looked at the chip and found something other than one frame.
    pub strange: u64,
    /// Wake-ups, or hard interrupts.
    pub interrupts: u64,
    /// Whether the caller ended the run.
    pub interrupted: bool,
    /// The rules that were broken on the wire.
    pub violations: Vec<Violation>,
}

impl EchoFigures {
    /// A time's share of the whole, in percent: of one processor, or of SPI's wire.
    #[must_use]
    pub fn percent(&self, part_ps: Ps) -> f64 {
        part_ps as f64 * 100.0 / self.elapsed_ps.max(1) as f64
    }
}

/// Why there was no echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoError {
    /// The bus does not support the request.
    Spi(barewire::spi::Error),
    /// The driver gave up.
    Can(CanError),
}

impl From<CanError> for EchoError {
    fn from(error: CanError) -> Self {
        Self::Can(error)
    }
}

impl fmt::Display for EchoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spi(error) => error.fmt(f),
            Self::Can(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EchoError {}

/// Runs the scenario. `carry_on` is called with the number of each received frame, and with the last
/// number again while no frame comes; it returns whether to continue.
///
/// # Errors
/// The driver's error: the chip cannot be used. It is stopped, if it still answers.
///
/// # Panics
/// If the board has no CAN controller.
pub fn run(setup: Setup, carry_on: &mut dyn FnMut(u64) -> bool) -> Result<EchoFigures, EchoError> {
    let board = Board::new(setup.board, setup.board_options);
    let can = CanBus::new(setup.times);
    let (chip, line) = board.attach_can(&can, None).expect("the board has a CAN controller");
    chip.borrow_mut().set_faults(setup.faults);
    let spec = setup.board.can().expect("the board has a CAN controller");
    let mut charged = Charged::new(any(&board), board.clone());
    if setup.who != Who::HardInterrupt && setup.ticks {
        charged = charged.for_linux_process();
    }
    let spi = Bus::with_platform(charged, &SimPlatform);
    let high = setup.board.cs.get(usize::from(spec.cs)).is_some_and(|cs| cs.active_high);
    let mode = if high { Mode::CS_HIGH } else { Mode::default() };
    let settings = Settings::new(spec.cs, setup.speed_hz).with_mode(mode);
    let device = spi.device(&settings).map_err(EchoError::Spi)?;
    let speed_hz = device.effective().speed_hz;
    let mut driver = Mcp251xfd::new(device, board.timer(), setup.config)?;
    driver.start()?;
    let start_ps = board.engine().now_ps() + BEFORE_PS;
    let far = setup.far.map(move |(at, frame)| (start_ps.saturating_add(at), frame));
    let far = can.add(Feed::new("far", far));
    let bench = threads::Bench {
        board: &board,
        can: &can,
        chip: &chip,
        line: &line,
        start_ps,
        stall_ps: STALL_PS.saturating_add(setup.gap_ps),
        last_ps: LAST_BITS * setup.times.nominal_ps,
    };
    // Joining the bus raises an interrupt too, which must not be counted.
    chip.borrow().start_int_lows();
    let account = RefCell::new(Account::new(far, PS_PER_S / u64::from(2 * speed_hz)));
    let ran = threads::run(&bench, setup.who, setup.frames, &account, &mut driver, carry_on);
    // Leaving the bus interrupts too, which is not of the run.
    bench.add_to(&account);
    chip.borrow().stop_int_lows();
    let stopped = driver.stop();
    let ran = ran?;
    stopped?;
    can.catch_up(board.engine().now_ps());
    bench.add_to(&account);
    let kernel_ps = match setup.who {
        Who::HardInterrupt => 0,
        Who::Process | Who::Sockets => board.profile().irq_thread_ps.value,
    };
    Ok(account.into_inner().close(&ran, kernel_ps, board.violations()))
}
