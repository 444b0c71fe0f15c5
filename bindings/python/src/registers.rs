//! A chip's registers by name, as `barewire regs` has them.

use std::sync::Arc;

use barewire::chip::OnPort;
use barewire::chip::mcp251xfd::{MAP, MAP_2517FD, Oscillator};
use barewire::regmap::{Access, Field, Location, Map, RegMap};
use barewire::spi::Settings;
use barewire_open::near;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::port::{Exclusive, SharedPort, port, simulated};
use crate::shared::SharedBus;

/// The bytes of an exchange of every map here.
const FRAME_BYTES: usize = 6;
/// The slowest oscillator that the chips have: its clock is safe with every other.
const SLOWEST_HZ: u32 = 4_000_000;

static MAPS: [(&str, &Map); 2] = [("mcp2518fd", &MAP), ("mcp2517fd", &MAP_2517FD)];

/// A chip's registers, by the names of its manual.
#[pyclass(frozen, module = "barewire")]
pub(crate) struct Registers {
    shared: Arc<SharedBus>,
    map: &'static Map,
    regs: Exclusive<RegMap<OnPort<SharedPort, FRAME_BYTES>, FRAME_BYTES>>,
}

/// The register or field that a name stands for.
struct Place {
    at: Location<'static>,
    field: Option<&'static Field>,
}

impl Registers {
    /// The registers of a chip on a bus.
    pub(crate) fn open(
        py: Python<'_>,
        shared: &Arc<SharedBus>,
        chip: &str,
        chip_select: Option<u8>,
        speed_hz: Option<u32>,
    ) -> PyResult<Self> {
        let found = MAPS.iter().find(|(name, _)| name.eq_ignore_ascii_case(chip));
        let names = MAPS.map(|(name, _)| name);
        let refused = || error::argument(near::unknown("chip", chip, &names));
        let map = found.ok_or_else(refused)?.1;
        let on_board = simulated(shared).and_then(|options| options.board.can());
        let chip_select = chip_select.or(on_board.map(|can| can.cs)).unwrap_or(0);
        let oscillator_hz = on_board.map_or(SLOWEST_HZ, |can| can.oscillator_hz);
        let speed_hz = speed_hz.unwrap_or(Oscillator::new(oscillator_hz).spi_max_hz());
        Self::on(py, shared, map, &Settings::new(chip_select, speed_hz))
    }

    /// The registers of a map behind these settings.
    pub(crate) fn on(
        py: Python<'_>,
        shared: &Arc<SharedBus>,
        map: &'static Map,
        settings: &Settings,
    ) -> PyResult<Self> {
        let regs = RegMap::new(OnPort::new(port(py, shared, settings)?), map);
        Ok(Self { shared: Arc::clone(shared), map, regs: Exclusive::new(regs) })
    }

    /// Finds `C1CON`, `C1FIFOCON3` or `C1CON.REQOP`.
    fn find(&self, name: &str) -> PyResult<Place> {
        let (register, field) = match name.split_once('.') {
            Some((register, field)) => (register, Some(field)),
            None => (name, None),
        };
        let at = self.map.find(register).ok_or_else(|| {
            let names: Vec<_> = self.map.registers().iter().map(|one| one.name()).collect();
            error::register_name(near::unknown("register", register, &names))
        })?;
        let Some(wanted) = field else { return Ok(Place { at, field: None }) };
        let fields = at.register().all_fields();
        let found = fields.iter().find(|field| field.name().eq_ignore_ascii_case(wanted));
        let names: Vec<_> = fields.iter().map(|field| field.name()).collect();
        let refused = || error::register_name(near::unknown("field", wanted, &names));
        Ok(Place { at, field: Some(found.ok_or_else(refused)?) })
    }

    fn value(&self, py: Python<'_>, at: Location<'static>) -> PyResult<u32> {
        self.regs.with(py, |regs| {
            let read = self.shared.detached(py, || regs.read(at))?;
            read.map_err(|error| error::of_regmap(py, &self.shared.any, error))
        })
    }
}

#[pymethods]
impl Registers {
    fn __repr__(&self) -> String {
        let count = self.map.registers().len();
        format!("<barewire.Registers {} {count} names>", self.shared.any.name())
    }

    /// Reads a register, or a field of one: `read("C1CON")`, `read("C1CON.OPMOD")`.
    #[pyo3(signature = (name, /))]
    fn read(&self, py: Python<'_>, name: &str) -> PyResult<u32> {
        let Place { at, field } = self.find(name)?;
        let value = self.value(py, at)?;
        Ok(field.map_or(value, |field| field.get(value)))
    }

    /// Writes a register, or a field of one, whose other bits stay.
    #[pyo3(signature = (name, value, /))]
    fn write(&self, py: Python<'_>, name: &str, value: u32) -> PyResult<()> {
        let Place { at, field } = self.find(name)?;
        if let Some(field) = field {
            if field.is_read_only() {
                return Err(error::argument(format!("{name} is read-only")));
            }
            let max = field.get(u32::MAX);
            if value > max {
                return Err(error::argument(format!("{name} takes at most {max}, not {value}")));
            }
        }
        self.regs.with(py, |regs| {
            let written = self.shared.detached(py, || match field {
                None => regs.write(at, value),
                Some(field) => regs.update_bits(at, field.mask(), field.put(0, value)).map(drop),
            })?;
            written.map_err(|error| error::of_regmap(py, &self.shared.any, error))
        })
    }

    /// The fields of a register by name, with their values.
    #[pyo3(signature = (name, /))]
    fn fields<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let Place { at, .. } = self.find(name)?;
        let value = self.value(py, at)?;
        let dict = PyDict::new(py);
        for field in at.register().all_fields() {
            dict.set_item(field.name(), field.get(value))?;
        }
        Ok(dict)
    }

    /// Every register that can be read without changing it, by name.
    fn dump<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for at in self.map.locations() {
            let register = at.register();
            if register.access() == Access::WriteOnly || register.is_precious() {
                continue;
            }
            dict.set_item(at.to_string(), self.value(py, at)?)?;
            py.check_signals()?;
        }
        Ok(dict)
    }

    /// The names of all registers.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.map.locations().map(|at| at.to_string()).collect()
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<u32> {
        self.read(py, name)
    }

    fn __setitem__(&self, py: Python<'_>, name: &str, value: u32) -> PyResult<()> {
        self.write(py, name, value)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }
}
