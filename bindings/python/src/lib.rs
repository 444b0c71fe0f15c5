//! `barewire._barewire`: what Python's package is made of.
//!
//! # How it works
//! * `shared`: an open bus, the holder of its lock, and the thread that runs queued work. `port`: the ports of
//!   drivers.
//! * `bus`: buses by name, devices, prepared exchanges, asyncio, locks. `chip`: the drivers. `registers`: by name.
//! * `spidev`: py-spidev's class, over the same buses. `scope`: captures as columns.
//! * `buffer`: bytes from Python's objects and back. `error`: exceptions.
//!
//! The Python half of the package is in `python/barewire`: exceptions, maps from the environment, NumPy.
//!
//! # What runs without the interpreter
//! A call that uses a bus lets other Python threads run, but for a short message on a bus whose messages take
//! microseconds (`shared`).
//!
//! # Not supported
//! Sub-interpreters, and Pythons without a global interpreter lock: the counts of calls under way rely on it.

mod buffer;
mod bus;
mod chip;
mod error;
mod port;
mod registers;
mod scope;
mod shared;
mod spidev;

/// The extension module.
#[pyo3::pymodule]
mod _barewire {
    #[pymodule_export]
    use crate::bus::aio::{AioDevice, settle_future};
    #[pymodule_export]
    use crate::bus::{Bus, Device, EmptyCall, Lock, Prepared, PyTransfer};
    #[pymodule_export]
    use crate::chip::{CanFrame, Flash, Mcp251xFd, Mcp3008};
    #[pymodule_export]
    use crate::registers::Registers;
    #[pymodule_export]
    use crate::scope::PyScope;
    #[pymodule_export]
    use crate::spidev::{SpiDev, map_node, maps, unmap_node};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
