"""What is counted: `python subjects.py SUBJECT CALLS`. Each loop is the same but for what it calls.

`loop` is the loop alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import repeat
from typing import Any

SPEED_HZ = 10_000_000


def py_spidev() -> Any:
    import spidev  # type: ignore[import-not-found]

    spi = spidev.SpiDev()
    spi.open(9, 9)
    return spi


def ours() -> Any:
    import barewire
    from barewire import spidev

    barewire.map("/dev/spidev9.9", "null:", cs=0, speed_hz=SPEED_HZ)
    spi = spidev.SpiDev()
    spi.open(9, 9)
    return spi


def prepared() -> Any:
    import barewire

    device = barewire.Bus("null:").device(0, speed_hz=SPEED_HZ)
    return device.prepare(bytes(3))


def xfer2(spi: Any, calls: int) -> None:
    values = [1, 2, 3]
    call = spi.xfer2
    for _ in repeat(None, calls):
        call(values)


def plain(call: Callable[[], Any], calls: int) -> None:
    for _ in repeat(None, calls):
        call()


def loop(calls: int) -> None:
    for _ in repeat(None, calls):
        pass


def main(subject: str, calls: int) -> None:
    match subject:
        case "py-spidev":
            xfer2(py_spidev(), calls)
        case "ours":
            xfer2(ours(), calls)
        case "prepared":
            plain(prepared(), calls)
        case "prepared.run":
            plain(prepared().run, calls)
        case "empty object":
            import barewire

            plain(barewire._barewire._EmptyCall(), calls)
        case "loop":
            prepared()
            loop(calls)
        case "empty":
            plain(prepared()._empty, calls)
        case _:
            raise SystemExit(f"no subject {subject}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
