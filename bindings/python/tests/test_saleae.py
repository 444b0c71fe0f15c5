"""Saleae's exports: the CSV as PySigrok's driver for Logic 2 reads it, and the binary files beside the CSV."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import made
import pytest

from barewire import scope

logic2: Any = pytest.importorskip("pysigrok_logic2", reason="pip install pysigrok-saleae-logic2")

NAMES = ("sck", "mosi", "miso", "cs0")
MADE = made.drawn(seed=17, messages=60)


def changes() -> list[tuple[int, tuple[int, ...]]]:
    """The made capture as times in nanoseconds, and the levels from each on."""
    at, levels, rows = 0, {"c": 0, "o": 0, "i": 0, "s": 1}, []
    for line in made.vcd(MADE).splitlines():
        if line.startswith("#"):
            rows.append((at, tuple(levels.values())))
            at = int(line[1:])
        elif line[0] in "01":
            levels[line[1]] = int(line[0])
    return [*rows[1:], (at, tuple(levels.values()))]


def export(path: Path) -> None:
    """Writes the capture as Logic 2 exports it: `digital.csv`, and `digital_N.bin` of version 0."""
    rows = changes()
    csv = ["Time [s]," + ",".join(NAMES)]
    csv += [f"{at / 1e9:.9f},{','.join(map(str, levels))}" for at, levels in rows]
    (path / "digital.csv").write_text("\n".join(csv) + "\n")
    (path / "binary").mkdir()
    for bit in range(len(NAMES)):
        column = [(at / 1e9, levels[bit]) for at, levels in rows]
        times = [now for (_, before), (now, level) in zip(column, column[1:], strict=False) if level != before]
        head = struct.pack("<8siiIddQ", b"<SALEAE>", 0, 0, column[0][1], 0.0, column[-1][0], len(times))
        (path / f"binary/digital_{bit}.bin").write_bytes(head + struct.pack(f"<{len(times)}d", *times))


class Seen:
    """Messages in mode 0 as their driver gives the levels, in its samples of 2 ns."""

    def __init__(self, path: Path) -> None:
        driver = logic2.Logic2Input(path)
        self.channels = tuple(driver.logic_channels)
        self.messages: list[tuple[int, int, bytes, bytes]] = []
        sck, cs, begin = 0, 1, 0
        bits: tuple[list[int], list[int]] = ([], [])
        while True:
            try:
                # The next change of the clock or of chip select.
                now = driver.wait([{0: "e"}, {3: "e"}])
            except EOFError:
                return
            at = 2 * driver.samplenum
            if (cs, now[3]) == (1, 0):
                begin, bits = at, ([], [])
            elif (cs, now[3]) == (0, 1):
                out, back = (bytes(int("".join(map(str, some[n : n + 8])), 2) for n in range(0, len(some), 8)) for some in bits)
                self.messages.append((begin, at, out, back))
            elif (sck, now[0]) == (0, 1):
                bits[0].append(now[1])
                bits[1].append(now[2])
            sck, cs = now[0], now[3]


def test_the_csv_has_the_messages_that_their_driver_sees_and_the_binary_those_of_the_csv(tmp_path: Path) -> None:
    export(tmp_path)
    seen = Seen(tmp_path)
    assert seen.channels == NAMES
    # The driver is no better than the test: it has to see what was made.
    assert [(out, back) for _, _, out, back in seen.messages] == [(one.mosi, one.miso) for one in MADE]
    # Binary files have no names, and what is drawn does not say which of the two data wires is which.
    for name, wires in (("digital.csv", NAMES), ("binary", ("Channel 0", "Channel 1", "Channel 2", "Channel 3"))):
        with scope.open(tmp_path / name, mosi=wires[1], miso=wires[2]) as capture:
            assert (capture.wires["sck"], tuple(capture.channels)) == (wires[0], wires)
            messages = capture.messages()
        assert len(messages) == len(seen.messages)
        for nth, (begin, end, out, back) in enumerate(seen.messages):
            assert (messages.mosi[nth], messages.miso[nth]) == (out, back), (name, nth)
            # Within one of the driver's samples.
            assert abs(messages.start_ns[nth] - begin) <= 2 and abs(messages.end_ns[nth] - end) <= 2, (name, nth)
