"""Maps from the environment: `BAREWIRE_MAP="/dev/spidev0.0=sim:rpi3,cs=1;/dev/spidev0.1=…"`."""

from __future__ import annotations

import errno
import os

from barewire import _barewire
from barewire._errors import BusNameError

VARIABLE = "BAREWIRE_MAP"


def parse(text: str) -> tuple[str, str, int | None]:
    """A map as `barewire run --map` takes it: `NODE=BUS[,cs=N]`."""
    node, equals, bus = text.partition("=")
    if not equals:
        sentence = f"{VARIABLE}: {text!r}: a map is NODE=BUS[,cs=N], as in /dev/spidev0.0=sim:rpi3,cs=1"
        raise BusNameError(errno.EINVAL, sentence)
    chip_select = None
    options = []
    for option in bus.split(","):
        # The `cs=` of a mapped controller names lines, not a number.
        if option.startswith("cs=") and option[3:].isdecimal():
            chip_select = int(option[3:])
        else:
            options.append(option)
    return node.strip(), ",".join(options), chip_select


def load() -> None:
    """Makes the maps of the environment. Called once, when the package is imported."""
    for text in os.environ.get(VARIABLE, "").split(";"):
        if not text.strip():
            continue
        node, bus, chip_select = parse(text.strip())
        try:
            _barewire.map(node, bus, chip_select=chip_select)
        except (ValueError, OverflowError) as error:
            sentence = f"{VARIABLE}: {text.strip()!r}: {getattr(error, 'strerror', None) or error}"
            raise BusNameError(errno.EINVAL, sentence) from None
