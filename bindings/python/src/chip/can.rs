//! MCP2517FD and MCP2518FD: CAN FD controllers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use barewire::chip::OnPort;
use barewire::chip::mcp251xfd::{
    BitRate, CanError, Config, ErrorState, ExtendedId, Frame, Id, MAP, MAP_2517FD, Mcp251xfd, Mode,
    Oscillator, Part, Received, StandardId,
};
use barewire::spi::Settings;
use barewire_open::{AnyTimer, near};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::buffer;
use crate::bus::Bus;
use crate::error;
use crate::port::{Exclusive, SharedPort, port, simulated};
use crate::registers::Registers;
use crate::shared::SharedBus;

/// The bytes of a register's exchange.
const FRAME_BYTES: usize = 6;
/// A receiver looks for frames for this long before other threads and signals have their turn.
const PIECE: Duration = Duration::from_millis(10);
/// Between two looks: the time of a short frame at 1 Mbit/s.
const LOOK_NS: u64 = 50_000;

type CanChip = Mcp251xfd<OnPort<SharedPort, FRAME_BYTES>, AnyTimer>;

const MODES: [(&str, Mode); 7] = [
    ("can-fd", Mode::CanFd),
    ("classic", Mode::Classic),
    ("internal-loopback", Mode::InternalLoopback),
    ("external-loopback", Mode::ExternalLoopback),
    ("listen-only", Mode::ListenOnly),
    ("restricted", Mode::Restricted),
    ("configuration", Mode::Configuration),
];

/// A CAN frame, to send or as received.
#[pyclass(frozen, eq, module = "barewire")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CanFrame {
    frame: Frame,
    timestamp: Option<u64>,
}

fn id(id: u32, extended: bool) -> PyResult<Id> {
    let made = match extended {
        true => ExtendedId::new(id).map(Id::Extended),
        false => u16::try_from(id).ok().and_then(StandardId::new).map(Id::Standard),
    };
    let (what, max) = if extended { ("extended", 0x1fff_ffff) } else { ("standard", 0x7ff) };
    made.ok_or_else(|| error::argument(format!("{what} identifier {id:#x}: at most {max:#x}")))
}

#[pymethods]
impl CanFrame {
    /// A frame to send. A remote frame has no data but a length code.
    #[new]
    #[pyo3(signature = (id, data=None, *, extended=false, fd=false, bit_rate_switch=false, remote=false, dlc=0))]
    fn new(
        id: u32,
        data: Option<&Bound<'_, PyAny>>,
        extended: bool,
        fd: bool,
        bit_rate_switch: bool,
        remote: bool,
        dlc: u8,
    ) -> PyResult<Self> {
        let id = self::id(id, extended)?;
        let data = data.map(|data| buffer::to_send(data, 8)).transpose()?.unwrap_or_default();
        let frame = match (remote, fd) {
            (true, true) => return Err(error::argument("CAN FD has no remote frames")),
            (true, false) if !data.is_empty() => {
                return Err(error::argument("a remote frame has no data: give its dlc"));
            }
            (true, false) => Frame::remote(id, dlc),
            (false, true) => Frame::fd(id, &data, bit_rate_switch),
            (false, false) => Frame::classic(id, &data),
        };
        let lengths = if fd { "0 to 8, 12, 16, 20, 24, 32, 48 or 64" } else { "0 to 8" };
        let refused =
            || error::argument(format!("{} bytes: such a frame has {lengths}", data.len()));
        Ok(Self { frame: frame.ok_or_else(refused)?, timestamp: None })
    }

    /// The identifier.
    #[getter]
    fn id(&self) -> u32 {
        match self.frame.id() {
            Id::Standard(id) => id.as_raw().into(),
            Id::Extended(id) => id.as_raw(),
        }
    }

    /// Whether the identifier has 29 bits.
    #[getter]
    fn extended(&self) -> bool {
        matches!(self.frame.id(), Id::Extended(_))
    }

    /// The data.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.frame.data())
    }

    /// The data length code.
    #[getter]
    fn dlc(&self) -> u8 {
        self.frame.dlc()
    }

    /// Whether it is a frame of CAN FD.
    #[getter]
    fn fd(&self) -> bool {
        self.frame.is_fd()
    }

    /// Whether its data has the higher bit rate.
    #[getter]
    fn bit_rate_switch(&self) -> bool {
        self.frame.has_bit_rate_switch()
    }

    /// Whether it asks for data.
    #[getter]
    fn remote(&self) -> bool {
        self.frame.is_remote()
    }

    /// When it was received, in the chip's ticks; `None` for a frame that was made here.
    #[getter]
    fn timestamp(&self) -> Option<u64> {
        self.timestamp
    }

    fn __repr__(&self) -> String {
        let data: String = self.frame.data().iter().map(|byte| format!("{byte:02x}")).collect();
        let digits = if self.extended() { 8 } else { 3 };
        format!("<barewire.CanFrame {:0digits$x}#{data}>", self.id())
    }
}

/// A CAN FD controller.
#[pyclass(frozen, module = "barewire")]
pub(crate) struct Mcp251xFd {
    shared: Arc<SharedBus>,
    chip: Exclusive<CanChip>,
    settings: Settings,
    part: Part,
}

impl Mcp251xFd {
    fn operate<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut CanChip) -> Result<R, CanError> + Send,
    ) -> PyResult<R> {
        self.chip.with(py, |chip| {
            let ended = self.shared.detached(py, || work(chip))?;
            ended.map_err(|error| error::of_can(py, &self.shared.any, error))
        })
    }
}

/// A time in seconds from Python.
fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| error::argument(format!("timeout_s={seconds}: no such time")))
}

#[pymethods]
impl Mcp251xFd {
    /// Resets and configures the chip, off the CAN bus. With `data_bitrate_hz` it does CAN FD. On a simulated board chip
    /// select and oscillator are the board's if they are not given.
    #[new]
    #[pyo3(signature = (bus, chip_select=None, *, bitrate_hz, data_bitrate_hz=None, oscillator_hz=None,
                        mode=None, speed_hz=None, crc=false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "what a CAN controller is configured with, by name"
    )]
    fn new(
        py: Python<'_>,
        bus: &Bus,
        chip_select: Option<u8>,
        bitrate_hz: u32,
        data_bitrate_hz: Option<u32>,
        oscillator_hz: Option<u32>,
        mode: Option<&str>,
        speed_hz: Option<u32>,
        crc: bool,
    ) -> PyResult<Self> {
        let shared = Arc::clone(&bus.shared);
        let on_board = simulated(&shared).and_then(|options| options.board.can());
        let oscillator_hz = oscillator_hz.or(on_board.map(|can| can.oscillator_hz));
        let missing = || error::argument("oscillator_hz= of the chip's crystal is needed");
        let oscillator = Oscillator::new(oscillator_hz.ok_or_else(missing)?);
        let nominal = BitRate::new(bitrate_hz);
        let mut config = match data_bitrate_hz {
            Some(data) => Config::fd(oscillator, nominal, BitRate::new(data)),
            None => Config::classic(oscillator, nominal),
        };
        config.crc = crc;
        if let Some(name) = mode {
            let names = MODES.map(|(name, _)| name);
            let found = MODES.iter().find(|(known, _)| *known == name);
            let refused = || error::argument(near::unknown("mode", name, &names));
            config.mode = found.ok_or_else(refused)?.1;
        }
        let chip_select = chip_select.or(on_board.map(|can| can.cs)).unwrap_or(0);
        let settings = Settings::new(chip_select, speed_hz.unwrap_or(oscillator.spi_max_hz()));
        let (port, timer) = (port(py, &shared, &settings)?, shared.any.timer());
        let chip = shared.detached(py, || Mcp251xfd::on_port(port, timer, config))?;
        let chip = chip.map_err(|error| error::of_can(py, &shared.any, error))?;
        let part = chip.part();
        Ok(Self { shared, chip: Exclusive::new(chip), settings, part })
    }

    fn __repr__(&self) -> String {
        format!(
            "<barewire.Mcp251xFd {} chip_select={} {:?}>",
            self.shared.any.name(),
            self.settings.chip_select,
            self.part
        )
    }

    /// Joins the CAN bus.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        self.operate(py, |chip| chip.start())
    }

    /// Leaves the CAN bus.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.operate(py, |chip| chip.stop())
    }

    /// Queues a frame in the chip; waits up to a second for a free place.
    #[pyo3(signature = (frame, /, *, timeout_s=1.0))]
    fn send(&self, py: Python<'_>, frame: &CanFrame, timeout_s: f64) -> PyResult<()> {
        let limit = seconds(timeout_s)?;
        let begun = Instant::now();
        loop {
            match self.operate(py, |chip| match chip.transmit(&frame.frame) {
                Err(CanError::TxFull) if begun.elapsed() < limit => Ok(false),
                sent => sent.map(|_| true),
            })? {
                true => return Ok(()),
                false => py.check_signals()?,
            }
        }
    }

    /// Takes a received frame; `None` if none came in `timeout_s` seconds.
    #[pyo3(signature = (*, timeout_s=0.0))]
    fn receive(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<CanFrame>> {
        use barewire::time::Timer;
        let limit = seconds(timeout_s)?;
        let begun = Instant::now();
        let mut timer = self.shared.any.timer();
        loop {
            let mut received = Received::EMPTY;
            let found = self.operate(py, |chip| {
                let looked = Instant::now();
                loop {
                    let found = chip.service(&mut received)?;
                    if found.frame {
                        return Ok(true);
                    }
                    if found.is_nothing() && begun.elapsed() >= limit {
                        return Ok(false);
                    }
                    if looked.elapsed() >= PIECE {
                        return Ok(false);
                    }
                    timer.sleep_ns(LOOK_NS);
                }
            })?;
            if found {
                let Received { frame, timestamp, .. } = received;
                return Ok(Some(CanFrame { frame, timestamp: Some(timestamp) }));
            }
            if begun.elapsed() >= limit {
                return Ok(None);
            }
            py.check_signals()?;
        }
    }

    /// The error counters and the state that follows from them.
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.operate(py, |chip| chip.error_counters())?;
        let dict = PyDict::new(py);
        dict.set_item("transmit", counters.transmit)?;
        dict.set_item("receive", counters.receive)?;
        let state = match counters.state {
            ErrorState::Active => "active",
            ErrorState::Warning => "warning",
            ErrorState::Passive => "passive",
            ErrorState::BusOff => "bus-off",
        };
        dict.set_item("state", state)?;
        Ok(dict)
    }

    /// The chip's registers by name.
    #[getter]
    fn registers(&self, py: Python<'_>) -> PyResult<Registers> {
        let map = match self.part {
            Part::Mcp2517fd => &MAP_2517FD,
            Part::Mcp2518fd => &MAP,
        };
        Registers::on(py, &self.shared, map, &self.settings)
    }

    /// Which of the two it is.
    #[getter]
    fn part(&self) -> &'static str {
        match self.part {
            Part::Mcp2517fd => "MCP2517FD",
            Part::Mcp2518fd => "MCP2518FD",
        }
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.start(slf.py())?;
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<bool> {
        self.stop(py).map(|()| false)
    }
}
