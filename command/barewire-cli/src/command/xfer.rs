//! `barewire xfer`: one message of any transfers, full duplex.
//!
//! HEX is the bytes on the wire in order, for every word length. The received bytes are printed
//! likewise. Words of 16 and 32 bits lie in the core's buffers in the processor's order, hence the
//! swap on the way in and out.

use std::fmt::Write as _;

use barewire::spi::{Effective, Mode, Settings, Transfer};
use barewire_sim::board::{Access, MANY_ACCESSES, listed};
use barewire_sim::chip::{PS_PER_NS, Ps};
use barewire_sim::{Board, BoardSpec};
use serde::Serialize;

use crate::shared::bus_name::{self, BusName};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;
use crate::shared::session::{self, BusArgs, EndState, Figures, Place, Request, Session};
use crate::shared::text::{figure, hex, number};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The transfers of the message, each as hex: 9f000000, "9f 00", 0x9f:00
    #[arg(required = true, value_name = "HEX")]
    transfers: Vec<String>,
    #[command(flatten)]
    bus: BusArgs,
    /// The SPI mode, 0 to 3
    #[arg(long, value_name = "N", default_value = "0", value_parser = mode)]
    mode: Mode,
    /// Bits of a word: 8, 16 or 32
    #[arg(long, value_name = "BITS", default_value_t = 8, value_parser = number::count::<u8>)]
    bits: u8,
    /// Drop CS between the transfers
    #[arg(long)]
    cs_change: bool,
    /// From CS active to the first clock, at least
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = number::count::<u32>)]
    cs_setup_ns: u32,
    /// From the last clock to CS inactive, at least
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = number::count::<u32>)]
    cs_hold_ns: u32,
    /// CS stays inactive at least this long
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = number::count::<u32>)]
    cs_inactive_ns: u32,
    /// Between two words, at least
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = number::count::<u32>)]
    word_delay_ns: u32,
    /// Loopback: the controller receives what it sends; CS is driven all the same, so name one
    /// with nothing behind it
    #[arg(long = "loop")]
    loopback: bool,
    /// List each register access of the message, on a simulated board
    #[arg(long)]
    trace: bool,
}

fn mode(text: &str) -> Result<Mode, String> {
    let number = text.parse().ok().and_then(Mode::from_number);
    number.ok_or_else(|| "SPI modes are 0, 1, 2 and 3".into())
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    place: Place,
    chip_select: u8,
    mode: u8,
    bits_per_word: u8,
    speed_hz: u32,
    effective_speed_hz: u32,
    cs_setup_ns: u32,
    effective_cs_setup_ns: u64,
    cs_hold_ns: u32,
    effective_cs_hold_ns: u64,
    cs_inactive_ns: u32,
    effective_cs_inactive_ns: u64,
    word_delay_ns: u32,
    effective_word_delay_ns: u64,
    bytes: usize,
    transfers: Vec<ExchangedBytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accesses: Option<Vec<TracedAccess>>,
    /// The accesses for people.
    #[serde(skip)]
    listed: Option<String>,
}

/// An access of `--trace`.
#[derive(Serialize)]
struct TracedAccess {
    at_ns: u64,
    block: &'static str,
    register: Option<&'static str>,
    offset: u32,
    access: &'static str,
    value: u32,
}

impl TracedAccess {
    fn of(spec: &BoardSpec, access: &Access, begun_at: Ps) -> Self {
        let Access { at, block, offset, value, write } = *access;
        Self {
            at_ns: at.saturating_sub(begun_at) / PS_PER_NS,
            block: spec.block_name(block),
            register: spec.register_name(block, offset),
            offset,
            access: if write { "write" } else { "read" },
            value,
        }
    }
}

#[derive(Serialize)]
struct ExchangedBytes {
    tx: String,
    rx: String,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let parsed: Result<Vec<_>, _> = args.transfers.iter().map(|text| hex::parse(text)).collect();
    let sent = parsed.map_err(Failure::Usage)?;
    let bus = &args.bus;
    if args.trace && !matches!(bus_name::parse(&bus.bus).map_err(Failure::Usage)?, BusName::Sim(_))
    {
        let what = "--trace lists the accesses of a simulated board: --bus sim:BOARD";
        return Err(Failure::Usage(what.into()));
    }
    session::run(&Request::of(bus, EndState::AsSent), |session| exchange(args, &sent, session))
}

fn exchange(args: &Args, sent: &[Vec<u8>], session: &Session) -> Result<Report, Failure> {
    let loopback = if args.loopback { Mode::LOOP } else { Mode::default() };
    let settings = Settings {
        mode: args.mode | loopback | session.mode(session.chip_select),
        bits_per_word: args.bits,
        cs_setup_ns: args.cs_setup_ns,
        cs_hold_ns: args.cs_hold_ns,
        cs_inactive_ns: args.cs_inactive_ns,
        word_delay_ns: args.word_delay_ns,
        ..Settings::new(session.chip_select, args.bus.speed_hz)
    };
    let device = session.open.bus().device(&settings)?;
    let effective = *device.effective();
    if !session.silent {
        tell_differences(&settings, &effective);
    }
    let mut buffers = sent.to_vec();
    buffers.iter_mut().for_each(|bytes| swap_words(bytes, args.bits));
    let mut message: Vec<Transfer<'_>> =
        buffers.iter_mut().map(|bytes| Transfer::in_place(bytes)).collect();
    if args.cs_change {
        // CS drops after the last one anyway.
        let last = message.len() - 1;
        message[..last].iter_mut().for_each(|transfer| transfer.cs_change = true);
    }
    session.begin_figures();
    // The message may change what other processes' operations rely on.
    let mut lock = session.chip_lock(settings.chip_select)?;
    if let Some(lock) = &mut lock {
        lock.acquire().map_err(|errno| match interrupt::check() {
            Err(stopped) => stopped,
            Ok(()) => Failure::io("have the chip", &errno.into()),
        })?;
    }
    let board = session.open.board().map(|simulated| &simulated.board).filter(|_| args.trace);
    let begun_at = board.map_or(0, |board| board.engine().now_ps());
    if let Some(board) = board {
        board.start_accesses(MANY_ACCESSES);
    }
    let bytes = device.sync(&mut message)?;
    let accesses = board.map(Board::take_accesses).unwrap_or_default();
    drop(lock);
    buffers.iter_mut().for_each(|bytes| swap_words(bytes, args.bits));
    let exchanged = |(tx, rx): (&Vec<u8>, &Vec<u8>)| ExchangedBytes {
        tx: hex::format(tx, ""),
        rx: hex::format(rx, ""),
    };
    Ok(Report {
        place: session.place.clone(),
        chip_select: settings.chip_select,
        mode: settings.mode.number(),
        bits_per_word: settings.bits_per_word,
        speed_hz: settings.speed_hz,
        effective_speed_hz: effective.speed_hz,
        cs_setup_ns: settings.cs_setup_ns,
        effective_cs_setup_ns: effective.cs_setup_ns,
        cs_hold_ns: settings.cs_hold_ns,
        effective_cs_hold_ns: effective.cs_hold_ns,
        cs_inactive_ns: settings.cs_inactive_ns,
        effective_cs_inactive_ns: effective.cs_inactive_ns,
        word_delay_ns: settings.word_delay_ns,
        effective_word_delay_ns: effective.word_delay_ns,
        bytes,
        transfers: sent.iter().zip(&buffers).map(exchanged).collect(),
        accesses: board.map(|board| {
            accesses.iter().map(|it| TracedAccess::of(board.spec(), it, begun_at)).collect()
        }),
        listed: board.map(|board| listed(board.spec(), &accesses, begun_at)),
    })
}

/// Between wire order and the processor's, either way. A broken last word is the bus's to refuse.
fn swap_words(bytes: &mut [u8], bits: u8) {
    if cfg!(target_endian = "little") && matches!(bits, 16 | 32) {
        bytes.chunks_exact_mut(usize::from(bits / 8)).for_each(<[u8]>::reverse);
    }
}

fn tell_differences(asked: &Settings, effective: &Effective) {
    if effective.speed_hz != asked.speed_hz {
        let [asked, made] = [asked.speed_hz, effective.speed_hz].map(|hz| figure::clock(hz.into()));
        note!("{asked} asked: the controller makes {made}");
    }
    let quantum = effective.quantum_ns;
    for (what, asked, made) in [
        ("cs-setup", asked.cs_setup_ns, effective.cs_setup_ns),
        ("cs-hold", asked.cs_hold_ns, effective.cs_hold_ns),
        ("cs-inactive", asked.cs_inactive_ns, effective.cs_inactive_ns),
        ("word-delay", asked.word_delay_ns, effective.word_delay_ns),
    ] {
        // A time that the user did not ask for is not reported, even if the hardware adds one.
        if asked > 0 && u64::from(asked) != made {
            note!("{what} of {asked} ns asked: {made} ns made (steps of {quantum} ns)");
        }
    }
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        let mut text = String::new();
        for ExchangedBytes { rx, .. } in &self.transfers {
            let pairs: Vec<&str> = (0..rx.len()).step_by(2).map(|at| &rx[at..at + 2]).collect();
            let _ = writeln!(text, "{}", pairs.join(" "));
        }
        if let Some(listed) = &self.listed {
            let _ = write!(text, "\n{:>9} {:<12} register\n{listed}", "ns", "block");
        }
        text
    }
}
