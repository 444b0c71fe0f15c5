"""Exceptions: the table of docs/python.md, and what raises them."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import HERE

import barewire
from barewire import Transfer, _errors

PAGE = HERE / "../../../docs/python.md"


def table() -> dict[str, tuple[str, list[str]]]:
    """Of each class in the page: its base, and the built-in exceptions that it is too."""
    rows = {}
    for line in PAGE.read_text().partition("## Errors")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`"):
            name, base, also, _ = (cell.replace("`", "") for cell in cells)
            rows[name] = base, [word.strip() for word in also.split(",") if word.strip()]
    return rows


def test_the_page_lists_each_exception_with_its_bases() -> None:
    classes = {
        name: value for name, value in vars(_errors).items() if isinstance(value, type) and name != "Error"
    }
    rows = table()
    assert set(rows) == set(classes)
    for name, (base, also) in rows.items():
        bases = [base, *also]
        assert [one.__name__ for one in classes[name].__bases__] == bases, name
        assert all(hasattr(builtins, one) or one in rows for one in also), name
        assert issubclass(classes[name], barewire.Error) and issubclass(classes[name], OSError)
        assert getattr(barewire, name) is classes[name] and name in barewire.__all__


def refused(chip: barewire.Flash, bus: barewire.Bus, tmp: Path) -> list[tuple[Callable[[], object], type, int]]:
    """Calls, what they raise, and the error number."""
    device = bus.device(1, speed_hz=1_000_000)
    converter = barewire.Mcp3008(bus)
    return [
        (lambda: barewire.Bus("spidev:/dev/spidev99.99"), barewire.BusNotFoundError, 2),
        (lambda: barewire.Bus(f"sim:rpi3,flash={tmp}/no/such.bin"), barewire.BusNotFoundError, 2),
        (lambda: barewire.Bus("sim:rpi9"), barewire.BusNameError, 22),
        (lambda: bus.device(7, speed_hz=1_000_000), barewire.SettingsError, 22),
        (lambda: device.transfer([256]), barewire.ArgumentError, 22),
        (lambda: device.transfer("text"), barewire.ArgumentTypeError, 22),  # type: ignore[arg-type]
        (lambda: device.transfer(bytes(2), into=bytearray(3)), barewire.ArgumentError, 22),
        (lambda: Transfer.read(1, speed=1), barewire.ArgumentTypeError, 22),  # type: ignore[call-arg]
        (lambda: bus.lock().__exit__(None, None, None), barewire.StateError, 1),
        (lambda: bus.registers("mcp2518"), barewire.ArgumentError, 22),
        (lambda: bus.registers("mcp2518fd")["C1COM"], barewire.RegisterNameError, 22),
        (lambda: chip.read(chip.size, 1), barewire.ChipArgumentError, 22),
        (lambda: chip.write(chip.size, b"x"), barewire.ChipArgumentError, 22),
        (lambda: chip.erase(1, 4096), barewire.ChipArgumentError, 22),
        (lambda: chip.verify(0, b"x"), barewire.VerifyError, 5),
        (lambda: converter.read(9), barewire.ChipArgumentError, 22),
        (lambda: barewire.map("/dev/null", "sim:rpi3"), barewire.ArgumentError, 22),
    ]


def test_each_call_raises_the_class_of_its_kind_with_its_number(rpi3: barewire.Bus, tmp_path: Path) -> None:
    for call, error, errno in refused(barewire.Flash(rpi3), rpi3, tmp_path):
        with pytest.raises(barewire.Error) as caught:
            call()
        assert type(caught.value) is error and caught.value.errno == errno, caught.value
        assert caught.value.strerror and not caught.value.strerror.startswith("["), caught.value


def test_code_that_knows_nothing_of_barewire_catches_them(rpi3: barewire.Bus) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        barewire.Bus("spidev:/dev/spidev99.99")
    assert caught.value.errno == 2
    if os.geteuid() != 0:
        with pytest.raises(OSError):
            barewire.Bus("spidev:/dev/mem")
    device = rpi3.device(1, speed_hz=1_000_000)
    rpi3.close()
    with pytest.raises(BrokenPipeError):
        device.transfer(b"\x9f")


def test_objects_show_what_they_are(rpi3: barewire.Bus) -> None:
    device = rpi3.device(1, speed_hz=1_000_000)
    assert repr(device.aio) == "<barewire.AioDevice sim:rpi3 chip_select=1>"
    assert repr(device.prepare(b"abc")) == "<barewire.Prepared sim:rpi3 chip_select=1 3 bytes>"
    assert repr(rpi3.lock()) == "<barewire.Lock 'sim:rpi3'>".replace("'", '"')
    with rpi3.lock() as lock:
        assert repr(lock).endswith(" held>")
    assert repr(Transfer.read(3, cs_change=True)) == "barewire.Transfer.read(3, cs_change=True)"
    assert repr(Transfer.write(b"\x9f", delay_ns=5)) == "barewire.Transfer.write(b'\\x9f', delay_ns=5)"
    assert repr(barewire.Mcp3008(rpi3)) == "<barewire.Mcp3008 sim:rpi3 MCP3008 5000 mV>"
