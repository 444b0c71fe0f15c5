"""Questions to py-spidev, asked of ours and of the original: `python questions.py ours|original`.

The original runs under `barewire run`, on the same simulated board. Each answer is a line: what came back, or the
exception. Everything is closed here, because the original never frees an object. What is not asked: the keywords of
`open` while it is open, where the original leaks a descriptor.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Callable
from typing import Any

ID = [0x9F, 0, 0, 0]


class Name:
    """A path by `os.fspath`."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return self.path


def questions(spidev: Any) -> dict[str, Callable[[Any], Any]]:
    """By name: what is done with an open SpiDev."""

    def overwritten(method: str) -> Callable[[Any], Any]:
        def ask(spi: Any) -> Any:
            values = list(ID)
            returned = getattr(spi, method)(values)
            return returned is values, values

        return ask

    def set_to(name: str, value: Any) -> Callable[[Any], Any]:
        def ask(spi: Any) -> Any:
            before = getattr(spi, name)
            try:
                setattr(spi, name, value)
            finally:
                # What is there after a refusal is a part of the answer.
                print(f"  {name}: {before!r} -> {getattr(spi, name)!r}")
            return spi.xfer2(list(ID))

        return ask

    def on_closed(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def closed(spi: Any) -> Any:
            spi.close()
            return ask(spi)

        return closed

    def shared_mode(spi: Any) -> Any:
        with spidev.SpiDev(0, 0) as other:
            other.mode = 3
            spi.xfer2(list(ID))
            with spidev.SpiDev(0, 0) as third:
                found = spi.mode, other.mode, third.mode
            other.mode = 0
        return found

    def speed_at_last_close(spi: Any) -> Any:
        spi.max_speed_hz = 3_000_000
        second = spidev.SpiDev(0, 0)
        seen = second.max_speed_hz
        spi.close()
        second.close()
        with spidev.SpiDev(0, 0) as third:
            return seen, third.max_speed_hz

    def no_read0(spi: Any) -> Any:
        spi.read0 = True
        return spi.read0, spi.xfer2(list(ID))

    def subclass(_: Any) -> Any:
        class Chip(spidev.SpiDev):  # type: ignore[misc]
            def __init__(self, number: int, word: str) -> None:
                super().__init__(0, number)
                self.word = word

        with Chip(0, "w") as chip:
            return chip.word, chip.xfer2(list(ID)), isinstance(chip, spidev.SpiDev)

    def with_statement(_: Any) -> Any:
        with spidev.SpiDev(0, 0) as spi:
            inside = spi.xfer2(list(ID))
        return inside, spi.fileno()

    def delete(name: str) -> Callable[[Any], Any]:
        return lambda spi: delattr(spi, name)

    def constructor(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        def ask(_: Any) -> Any:
            with spidev.SpiDev(*args, **kwargs) as spi:
                return spi.fileno() > 2, spi.xfer2(list(ID))

        return ask

    def open_path(path: Any) -> Callable[[Any], Any]:
        def ask(_: Any) -> Any:
            with spidev.SpiDev() as spi:
                spi.open_path(path)
                return spi.xfer2(list(ID))

        return ask

    def written(method: str, values: Any) -> Callable[[Any], Any]:
        def ask(spi: Any) -> Any:
            done = getattr(spi, method)(values)
            return done, spi.xfer2([0x05, 0])

        return ask

    def erased_read(spi: Any) -> Any:
        return spi.xfer3([0x03, 0, 0, 0] + [0] * 9_000)[-3:], type(spi.xfer3([1])).__name__

    asked: dict[str, Callable[[Any], Any]] = {
        "attributes": lambda spi: (
            spi.mode, spi.bits_per_word, spi.max_speed_hz, spi.lsbfirst, spi.cshigh, spi.loop,
            spi.no_cs, spi.threewire, spi.read0,
        ),
        "fileno": lambda spi: spi.fileno() > 2,
        "xfer list": overwritten("xfer"),
        "xfer2 list": overwritten("xfer2"),
        "xfer3 list": overwritten("xfer3"),
        "erased read": erased_read,
        "with": with_statement,
        "subclass": subclass,
        "shared mode": shared_mode,
        "speed at last close": speed_at_last_close,
        "read0": no_read0,
        "writebytes list": written("writebytes", [0x06]),
        "writebytes tuple": written("writebytes", (0x04,)),
        "writebytes bytes": written("writebytes", b"\x06"),
        "writebytes bytearray": written("writebytes", bytearray(b"\x04")),
        "writebytes 4097": lambda spi: spi.writebytes([0] * 4097),
        "writebytes2 list": written("writebytes2", [0x06]),
        "writebytes2 bytes": written("writebytes2", b"\x04"),
        "writebytes2 memoryview": written("writebytes2", memoryview(b"\x06")),
        "writebytes2 array of words": written("writebytes2", array.array("H", [0x0404])),
        "writebytes2 empty list": lambda spi: spi.writebytes2([]),
        "writebytes2 empty bytes": lambda spi: spi.writebytes2(b""),
        "writebytes2 10000": lambda spi: spi.writebytes2([0] * 10_000),
        "readbytes 3": lambda spi: spi.readbytes(3),
        "readbytes 0": lambda spi: spi.readbytes(0),
        "readbytes -5": lambda spi: spi.readbytes(-5),
        "readbytes 4096": lambda spi: len(spi.readbytes(4096)),
        "readbytes text": lambda spi: spi.readbytes("3"),
        "readbytes float": lambda spi: spi.readbytes(3.0),
        "readbytes nothing": lambda spi: spi.readbytes(),
        "readbytes large": lambda spi: spi.readbytes(1 << 40),
        "constructor none": lambda _: spidev.SpiDev().fileno(),
        "constructor -1": lambda _: spidev.SpiDev(-1, -1).fileno(),
        "constructor 0 0": constructor(0, 0),
        "constructor bus alone": constructor(0),
        "constructor text number": constructor("0", 0),
        "constructor float": constructor(0.0, 0),
        "constructor three": constructor(0, 0, 0),
        "constructor other keyword": constructor(bux=0),
        "constructor missing node": constructor(7, 3),
        "open missing": lambda spi: spi.open(7, 3),
        "open keywords": lambda spi: (spi.close(), spi.open(bus=0, device=0), spi.xfer2(list(ID))),
        "open text": lambda spi: spi.open("0", 0),
        "open large": lambda spi: spi.open(1 << 40, 0),
        "open nothing": lambda spi: spi.open(),
        "open_path": open_path("/dev/spidev0.0"),
        "open_path bytes": open_path(b"/dev/spidev0.0"),
        "open_path pathlike": open_path(Name("/dev/spidev0.0")),
        "open_path missing": open_path("/dev/spidev7.7"),
        "open_path folder": open_path("/dev"),
        "open_path number": open_path(3),
        "open_path nul": open_path("/dev/spidev0.0\0"),
        "unknown attribute": lambda spi: setattr(spi, "speed", 1),
    }
    for method in ("xfer", "xfer2", "xfer3"):
        def ask(*args: Any, method: str = method, **kwargs: Any) -> Callable[[Any], Any]:
            return lambda spi: getattr(spi, method)(*args, **kwargs)

        asked |= {
            f"{method} tuple": ask(tuple(ID)),
            f"{method} bytes": ask(bytes(ID)),
            f"{method} bytearray": ask(bytearray(ID)),
            f"{method} memoryview": ask(memoryview(bytes(ID))),
            f"{method} array": ask(array.array("B", ID)),
            f"{method} range": ask(range(4)),
            f"{method} generator": ask(value for value in ID),
            f"{method} dict": ask(dict.fromkeys(ID)),
            f"{method} one": ask([0]),
            f"{method} 64": ask([0] * 64),
            f"{method} 65": ask([0] * 65),
            f"{method} bools": ask([True, False, False]),
            f"{method} speed": ask(list(ID), 4_000_000),
            f"{method} speed delay bits": ask(list(ID), 4_000_000, 10, 8),
            f"{method} speed 0": ask(list(ID), 0, 0, 0),
            f"{method} speed 1": ask(list(ID), 1),
            f"{method} speed huge": ask(list(ID), 4_000_000_000),
            f"{method} bits 12": ask(list(ID), 0, 0, 12),
            f"{method} bits 7": ask(list(ID), 0, 0, 7),
            f"{method} bits 16": ask(list(ID), 0, 0, 16),
            f"{method} bits 16 odd": ask([0, 0, 0], 0, 0, 16),
            f"{method} bits 64": ask(list(ID), 0, 0, 64),
            f"{method} nothing": ask(),
            f"{method} None": ask(None),
            f"{method} number": ask(5),
            f"{method} empty": ask([]),
            f"{method} empty bytes": ask(b""),
            f"{method} floats": ask([1.0, 2.0]),
            f"{method} text item": ask([0x9F, "0"]),
            f"{method} text": ask("abc"),
            f"{method} speed text": ask(list(ID), "fast"),
            f"{method} speed float": ask(list(ID), 1e6),
            f"{method} five": ask(list(ID), 0, 0, 8, 0),
            f"{method} keyword": ask(list(ID), speed_hz=1_000_000),
        }
    for method in ("xfer", "xfer2"):
        asked[f"{method} 4096"] = lambda spi, m=method: getattr(spi, m)([0] * 4096)[:3]  # type: ignore[misc]
        asked[f"{method} 4097"] = lambda spi, m=method: getattr(spi, m)([0] * 4097)  # type: ignore[misc]
    for name, values in {
        "mode": (0, 1, 2, 3, 4, -1, True, "0", 1.0, None),
        "bits_per_word": (8, 16, 32, 9, 7, 33, 0, -8, "8", 8.0),
        "max_speed_hz": (1_000_000, 500_000, 100_000_000, 1, 0, "1", 1e6),
        "lsbfirst": (True, False, 1, None),
        "cshigh": (True, False, 1),
        "threewire": (True, False, 1),
        "loop": (True, False, 0),
        "no_cs": (True, False, "yes"),
        "read0": (True, False, 1),
    }.items():
        for value in values:
            asked[f"{name} = {value!r}"] = set_to(name, value)
        asked[f"del {name}"] = delete(name)
    closed = (
        "attributes", "xfer2 list", "xfer3 list", "xfer tuple", "readbytes 3", "writebytes2 list",
        "writebytes2 10000", "mode = 0", "bits_per_word = 8", "max_speed_hz = 0", "max_speed_hz = 500000",
        "lsbfirst = True", "read0 = True", "xfer2 empty", "xfer2 floats",
    )
    asked |= {f"closed: {name}": on_closed(asked[name]) for name in closed}
    asked["closed twice"] = lambda spi: (spi.close(), spi.close(), spi.fileno())
    return asked


ADDRESS = "Non-Int/Long value in arguments: "


def answer(ask: Callable[[Any], Any], spi: Any) -> str:
    """What came back, as text."""
    try:
        return repr(ask(spi))
    except Exception as error:
        args = error.args
        if args and isinstance(args[0], str) and args[0].startswith(ADDRESS):
            # Behind it the original has an address.
            args = (ADDRESS,)
        if isinstance(error, (TypeError, OverflowError, AttributeError)) and not (args and args[0] in SENTENCES):
            # Python's own sentences differ between the ways to write an extension.
            args = ()
        return f"{type(error).__name__}{args!r}"


SENTENCES = {
    ADDRESS,
    "Empty argument list.",
    "Argument list size exceeds 4096 bytes.",
    "expected a sequence",
    "The mode attribute must be an integer",
    "The mode attribute must be an integerbetween 0 and 3.",
    "The bits_per_word attribute must be an integer",
    "invalid bits_per_word (8 to 32)",
    "The max_speed_hz attribute must be an integer",
    *(f"The {name} attribute must be boolean" for name in ("lsbfirst", "cshigh", "3wire", "loop", "no_cs", "read0")),
}


def module(which: str) -> Any:
    """py-spidev, or ours with the same board behind the same node."""
    if which == "original":
        import spidev  # type: ignore[import-not-found]

        return spidev
    import barewire
    from barewire import spidev as ours

    barewire.map("/dev/spidev0.0", "sim:rpi3", chip_select=1)
    return ours


def main(which: str) -> None:
    spidev = module(which)
    assert spidev.__version__ == "3.8"
    for name, ask in questions(spidev).items():
        spi = spidev.SpiDev(0, 0)
        print(f"{name}: {answer(ask, spi)}")
        spi.close()
        # The settings that stay with the node.
        with spidev.SpiDev(0, 0) as spi:
            spi.max_speed_hz = 1_000_000
            if spi.mode or spi.lsbfirst or spi.loop or spi.no_cs:
                spi.lsbfirst, spi.loop, spi.no_cs = False, False, False
                spi.mode = 0
            spi.bits_per_word = 8
            spi.writebytes([0x04])


if __name__ == "__main__":
    main(sys.argv[1])
