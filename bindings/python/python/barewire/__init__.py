"""barewire: SPI at the cost of the wire, on real buses, simulated boards and emulated ones.

    import barewire

    with barewire.Bus("sim:rpi3") as bus:
        flash = barewire.Flash(bus)
        print(flash.id.hex(), flash.size)

`barewire.spidev` is py-spidev's module, over the same buses; `import barewire.shim` makes `import spidev` find it.
`barewire.scope` reads captures of logic analyzers, `barewire.fleet` thousands of them.
"""

from __future__ import annotations

import atexit as _atexit

from barewire import _barewire, _maps, scope
from barewire._barewire import (
    AioDevice,
    Bus,
    CanFrame,
    Device,
    Flash,
    Lock,
    Mcp251xFd,
    Prepared,
    Registers,
    Transfer,
    map,
    maps,
    unmap,
)
from barewire._errors import (
    ArgumentError,
    ArgumentTypeError,
    BusAccessError,
    BusNameError,
    BusNotFoundError,
    CaptureError,
    ChipArgumentError,
    ChipError,
    ChipTimeout,
    ClosedError,
    DeadlockError,
    Error,
    ForkedError,
    MessageError,
    MessageTimeout,
    OpenError,
    RegisterNameError,
    SettingsError,
    StateError,
    VerifyError,
)
from barewire._samples import Mcp3008, Samples

__version__: str = _barewire.__version__

MODE_0 = 0
"""Clock idles low, data sampled on the leading edge."""
MODE_1 = 1
"""Clock idles low, data sampled on the trailing edge."""
MODE_2 = 2
"""Clock idles high, data sampled on the leading edge."""
MODE_3 = 3
"""Clock idles high, data sampled on the trailing edge."""
CS_HIGH = 0x04
"""Chip select is active high."""
LSB_FIRST = 0x08
"""Words are sent least significant bit first."""
LOOP = 0x20
"""The controller receives what it sends."""
NO_CS = 0x40
"""No chip select."""

__all__ = [
    "CS_HIGH",
    "LOOP",
    "LSB_FIRST",
    "MODE_0",
    "MODE_1",
    "MODE_2",
    "MODE_3",
    "NO_CS",
    "AioDevice",
    "ArgumentError",
    "ArgumentTypeError",
    "Bus",
    "BusAccessError",
    "BusNameError",
    "BusNotFoundError",
    "CanFrame",
    "CaptureError",
    "ChipArgumentError",
    "ChipError",
    "ChipTimeout",
    "ClosedError",
    "DeadlockError",
    "Device",
    "Error",
    "Flash",
    "ForkedError",
    "Lock",
    "Mcp3008",
    "Mcp251xFd",
    "MessageError",
    "MessageTimeout",
    "OpenError",
    "Prepared",
    "RegisterNameError",
    "Registers",
    "Samples",
    "SettingsError",
    "StateError",
    "Transfer",
    "VerifyError",
    "map",
    "maps",
    "scope",
    "unmap",
]

for _name in __all__:
    # Names the module where users find it.
    if isinstance(globals()[_name], type):
        try:
            globals()[_name].__module__ = __name__
        except TypeError:
            # A class of the extension module has it.
            pass

# Boards that are still there end in order.
_atexit.register(unmap)
_maps.load()
