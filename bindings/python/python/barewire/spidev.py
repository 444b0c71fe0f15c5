"""py-spidev's module, over barewire's buses: `from barewire import spidev`.

A node that is mapped (`barewire.map`, or the variable BAREWIRE_MAP) is a chip select of the bus it is mapped to; any
other path is a node of the kernel's.
"""

from barewire._barewire import SpiDev

__all__ = ["SpiDev"]

__version__ = "3.8"
"""The version of py-spidev whose behaviour this has."""
