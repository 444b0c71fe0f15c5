//! The chip, its bus and the settings of its CAN bus: what all verbs take, and print in their JSON.

use std::ops::RangeInclusive;

use barewire::chip::mcp251xfd::{BitRate, BitTiming, CanError, Config, Oscillator};
use barewire_linux::bus_text;
use barewire_linux::gpio::{GpioLine, Sense};
use barewire_sim::model::can::BitTimes;
use serde::Serialize;

use crate::shared::bus_name::{self, BusName};
use crate::shared::failure::Failure;
use crate::shared::real_time::RealTimeArgs;
use crate::shared::session::{EndState, Place, Request, TellArgs};
use crate::shared::text::number;

/// What all of them take.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct CanArgs {
    /// The bus, as for the other commands; sim:imx8mp has a CAN controller
    #[arg(long, value_name = "BUS", env = "BAREWIRE_BUS")]
    pub(super) bus: String,
    /// The chip select, by its number in `barewire list` [default: the CAN controller's on a
    /// simulated board, else 0]
    #[arg(long = "cs", value_name = "N", value_parser = number::count::<u8>)]
    pub(super) chip_select: Option<u8>,
    /// The fastest SPI clock allowed; 17 MHz is the most that the chip takes at 40 MHz (k and M: by
    /// 1000) [default: 16 MHz, or less if the chip takes less]
    #[arg(long, value_name = "HZ", value_parser = number::hertz)]
    speed_hz: Option<u32>,
    /// The chip's crystal or clock (k and M: by 1000) [default: a simulated board's, else 40 MHz]
    #[arg(long, value_name = "HZ", value_parser = number::hertz)]
    oscillator_hz: Option<u32>,
    /// The CAN bus's bit rate (k and M: by 1000)
    #[arg(long, value_name = "HZ", default_value = "250000", value_parser = number::hertz)]
    pub(super) bitrate: u32,
    /// The sample point, as a share of the bit time [default: as CiA recommends, 0.875 up to 500 kbit/s]
    #[arg(long, value_name = "SHARE", value_parser = permille)]
    pub(super) sample_point: Option<u16>,
    /// Accept and send CAN FD frames too
    #[arg(long)]
    pub(super) fd: bool,
    /// The bit rate of an FD frame's data (k and M: by 1000)
    #[arg(long, value_name = "HZ", default_value = "2000000", value_parser = number::hertz, requires = "fd")]
    pub(super) dbitrate: u32,
    /// The sample point of an FD frame's data bits [default: as CiA recommends]
    #[arg(long, value_name = "SHARE", value_parser = permille, requires = "fd")]
    pub(super) dsample_point: Option<u16>,
    /// Ask the chip every half millisecond instead of waiting for its interrupt, as is done on a board
    /// without --int
    #[arg(long)]
    pub(super) no_interrupt: bool,
    /// On a board, the GPIO line at the chip's INT pin, to sleep until it falls: gpio@0x30240000:9 is
    /// line 9 of the bank there, gpio@LABEL:9 of the chip with that label (experimental)
    #[arg(long = "int", value_name = "LINE", conflicts_with = "no_interrupt")]
    pub(super) interrupt_line: Option<String>,
    /// Every SPI access has a CRC
    #[arg(long)]
    pub(super) crc: bool,
    #[command(flatten)]
    real_time: RealTimeArgs,
    #[command(flatten)]
    pub(super) tell: TellArgs,
}

/// What clocks the chip.
const OSCILLATOR_HZ: RangeInclusive<u32> = 1_000_000..=40_000_000;

fn permille(text: &str) -> Result<u16, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.001..1.0).contains(&share) => Ok((share * 1e3).round() as u16),
        _ => Err("a share of the bit, as in 0.875".into()),
    }
}

/// Which chip, on which bus, and how it is talked to: the first fields of the commands' JSON.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Which {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) chip_select: u8,
    pub(super) chip: &'static str,
    pub(super) speed_hz: u32,
    pub(super) effective_speed_hz: u32,
    #[serde(flatten)]
    pub(super) rates: Rates,
}

/// The CAN bus's bits as the chip makes them.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Rates {
    pub(super) bitrate_hz: u32,
    sample_point_permille: u32,
    dbitrate_hz: Option<u32>,
    dsample_point_permille: Option<u32>,
}

impl CanArgs {
    /// The chip select of the options, else the one of a simulated board's CAN controller.
    pub(super) fn chip_select(&self) -> Result<u8, Failure> {
        if let Some(chip_select) = self.chip_select {
            return Ok(chip_select);
        }
        match bus_name::parse(&self.bus).map_err(Failure::Usage)? {
            BusName::Sim(options) => match options.board.can() {
                Some(can) => Ok(can.cs),
                None => {
                    let name = options.board.name;
                    Err(Failure::Failed(format!(
                        "sim:{name} has no CAN controller; sim:imx8mp has"
                    )))
                }
            },
            _ => Ok(0),
        }
    }

    /// The line at the chip's INT pin, if one is named.
    pub(super) fn int_line(&self) -> Result<Option<(GpioLine, Sense)>, Failure> {
        let Some(text) = &self.interrupt_line else { return Ok(None) };
        let line = bus_text::parse_interrupt_line("--int", text);
        line.map(Some).map_err(|error| Failure::Failed(error.to_string()))
    }

    /// Refuses an INT line of the kernel if the board's INT line is simulated.
    fn check_int_line(&self) -> Result<(), Failure> {
        if self.int_line()?.is_none() {
            return Ok(());
        }
        match bus_name::parse(&self.bus).map_err(Failure::Usage)? {
            BusName::Sim(_) | BusName::Qemu(_) => Err(Failure::Usage(format!(
                "--int: a GPIO line of this machine is at no chip of {}; a simulated chip's INT is waited for anyway",
                self.bus
            ))),
            BusName::Spidev(_) | BusName::Mapped(_) => Ok(()),
            BusName::Null => Err(Failure::Usage("null: has no chips".into())),
        }
    }

    /// The request to the bus. Refuses bit rates that the chip does not make.
    pub(super) fn request(&self) -> Result<Request<'_>, Failure> {
        self.check_int_line()?;
        self.real_time.apply()?;
        let chip_select = self.chip_select()?;
        let request = Request::at(&self.bus, chip_select, &self.tell, EndState::AsSent);
        Ok(request.for_can(self.times()?))
    }

    /// Refuses options that are for boards, where all time is virtual.
    pub(super) fn refuse_boards_options(&self) -> Result<(), Failure> {
        self.check_int_line()?;
        match self.real_time.is_asked() {
            true => Err(Failure::Usage(
                "--fifo, --cpu and --mlock are for boards: the time of a simulated one is virtual"
                    .into(),
            )),
            false => Ok(()),
        }
    }

    /// The bits as they are on the bus: the ones that the chip makes for the requested rates.
    pub(super) fn rates(&self) -> Result<Rates, Failure> {
        let (nominal, data) = self.timings()?;
        let sysclk_hz = self.oscillator().sysclk_hz();
        Ok(Rates {
            bitrate_hz: nominal.bitrate_hz(sysclk_hz),
            sample_point_permille: nominal.sample_point_permille(),
            dbitrate_hz: data.map(|data| data.bitrate_hz(sysclk_hz)),
            dsample_point_permille: data.map(|data| data.sample_point_permille()),
        })
    }

    /// The times of those bits.
    pub(super) fn times(&self) -> Result<BitTimes, Failure> {
        let Rates { bitrate_hz, dbitrate_hz, .. } = self.rates()?;
        Ok(BitTimes::from_rates(bitrate_hz, dbitrate_hz.unwrap_or(bitrate_hz)))
    }

    fn timings(&self) -> Result<(BitTiming, Option<BitTiming>), Failure> {
        let sysclk_hz = self.oscillator().sysclk_hz();
        if !OSCILLATOR_HZ.contains(&self.oscillator_hz()) {
            // Checked before the bit rates, which would be blamed instead.
            return Err(CanError::Oscillator { sysclk_hz }.into());
        }
        let failed = |option| move |error| Failure::Failed(format!("{error} ({option})"));
        let nominal =
            BitTiming::nominal(sysclk_hz, &self.nominal()).map_err(failed("--bitrate"))?;
        let data = self.data().map(|data| BitTiming::data(sysclk_hz, &data)).transpose();
        Ok((nominal, data.map_err(failed("--dbitrate"))?))
    }

    pub(super) fn oscillator(&self) -> Oscillator {
        Oscillator::new(self.oscillator_hz())
    }

    /// The chip's clock of the options, else that of a simulated board's chip at that chip select.
    pub(super) fn oscillator_hz(&self) -> u32 {
        let of_board = || match bus_name::parse(&self.bus) {
            Ok(BusName::Sim(options)) => {
                let chip = options.board.chip_at(self.chip_select().ok()?)?;
                chip.can().map(|can| can.oscillator_hz)
            }
            _ => None,
        };
        self.oscillator_hz.or_else(of_board).unwrap_or(40_000_000)
    }

    /// The fastest SPI clock allowed.
    pub(super) fn speed_hz(&self) -> u32 {
        self.speed_hz.unwrap_or_else(|| self.oscillator().spi_max_hz().min(16_000_000))
    }

    pub(super) fn nominal(&self) -> BitRate {
        let rate = BitRate::new(self.bitrate);
        rate.with_sample_point_permille(self.sample_point.unwrap_or(0))
    }

    pub(super) fn data(&self) -> Option<BitRate> {
        let rate = BitRate::new(self.dbitrate);
        self.fd.then_some(rate.with_sample_point_permille(self.dsample_point.unwrap_or(0)))
    }

    /// The driver's configuration.
    pub(super) fn config(&self) -> Config {
        let config = match self.data() {
            Some(data) => Config::fd(self.oscillator(), self.nominal(), data),
            None => Config::classic(self.oscillator(), self.nominal()),
        };
        // A tick of the time stamps is a microsecond.
        let timestamp_prescaler =
            u16::try_from(self.oscillator_hz() / 1_000_000).unwrap_or(1).max(1);
        Config { crc: self.crc, timestamp_prescaler, ..config }
    }
}
