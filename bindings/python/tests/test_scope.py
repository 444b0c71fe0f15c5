"""Captures as columns: beside the command's own messages, and beside a known truth."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest
from conftest import HERE, beside_another_thread, script

import barewire
from barewire import scope

EXAMPLE = HERE / "../../../examples/adc.vcd"
PAGE = HERE / "../../../docs/scope.md"
TIMES = ("start_ns", "end_ns", "cs_inactive_ns", "lead_ns", "clocked_ns", "lag_ns")


def command() -> str:
    """The command barewire."""
    found = os.environ.get("BAREWIRE") or shutil.which("barewire")
    if found is None:
        pytest.skip("no command barewire: set BAREWIRE to it")
    return found


def told(path: Path, *options: str) -> list[dict[str, Any]]:
    """What the command says of each message, and of the whole as the last."""
    ran = subprocess.run(
        [command(), "scope", str(path), "--messages", "--json", *options], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def filled(column: Any) -> list[Any]:
    """A column with None for what is masked."""
    return list(column.tolist())


def compare(messages: scope.Messages, lines: list[dict[str, Any]], width: int = 2) -> None:
    """Messages and the command's lines are the same."""

    def whole(value: float | None) -> int | None:
        return None if value is None else int(value + 0.5)

    assert len(messages) == len(lines) and len(lines) > 0
    for name in TIMES:
        assert filled(messages[name]) == [whole(line[name]) for line in lines], name
    for name in ("message", "select", "sck_hz", "words", "bits_over", "cut"):
        assert filled(messages[name]) == [line[name] for line in lines], name
    for name in ("kind", "detail"):
        assert filled(messages[name]) == [line[name] or None for line in lines], name
    gaps = [sorted(line["gaps_ns"]) for line in lines]
    assert filled(messages.gap_ns_max) == [whole(one[-1]) if one else None for one in gaps]
    assert filled(messages.gap_ns_median) == [whole(one[(len(one) - 1) // 2]) if one else None for one in gaps]
    for name in ("mosi", "miso"):
        for value, line in zip(messages[name], lines, strict=True):
            if line[name] is None:
                assert value is np.ma.masked
                continue
            words = re.findall("." * width, line[name])
            expected = b"".join(int(word, 16).to_bytes(messages.word_bytes, "little") for word in words)
            assert value == expected


def test_messages_are_the_commands() -> None:
    with scope.open(EXAMPLE, chip="mcp3008") as capture:
        messages = capture.messages()
    *lines, summary = told(EXAMPLE, "--chip", "mcp3008")
    compare(messages, lines)
    assert messages.kind[0] == "single-ended 0" and messages.mosi[0] == b"\x01\x80\x00"
    assert capture.why == summary["why"] and capture.notes == summary["notes"]
    assert capture.mode == summary["wires"]["mode"] and capture.word_bits == 8
    assert capture.wires["selects"] == summary["wires"]["selects"]
    assert {capture.wires["sck"], capture.wires["mosi"], capture.wires["miso"], "cs0", "cs1"} == set(capture.channels)


def test_messages_are_those_that_were_made(tmp_path: Path) -> None:
    path, truth = tmp_path / "made.vcd", made.drawn(1, 3_000)
    path.write_text(made.vcd(truth))
    messages = scope.open(path).messages()
    assert filled(messages.mosi) == [one.mosi for one in truth]
    assert filled(messages.miso) == [one.miso for one in truth]
    assert filled(messages.lead_ns) == [one.lead_ns for one in truth]
    assert filled(messages.lag_ns) == [one.lag_ns for one in truth]
    assert filled(messages.gap_ns_max) == [max(one.gap_ns, default=None) for one in truth]
    assert filled(messages.cs_inactive_ns) == [None, *(one.inactive_ns for one in truth[1:])]
    assert filled(messages.words) == [len(one.mosi) for one in truth]
    compare(messages, told(path)[:-1])
    # Batches are the same, in pieces.
    capture = scope.open(path)
    batches = list(capture.batches(700))
    assert [len(one) for one in batches] == [700, 700, 700, 700, 200]
    for name in scope.COLUMNS:
        assert sum((filled(one[name]) for one in batches), []) == filled(messages[name]), name
    assert len(capture.messages()) == 3_000, "a second call reads the file again"


def test_the_table_has_nulls_and_the_pages_schema(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "made.vcd"
    path.write_text(made.vcd(made.drawn(2, 50)))
    several: list[dict[str, Any]] = [{}, {"chip": "mcp3008"}, {"miso": "mosi", "mosi": "mosi"}]
    for options in several:
        messages = scope.open(path, **options).messages()
        table = messages.arrow()
        table.validate(full=True)
        assert table.schema.equals(scope.schema(), check_metadata=True)
        for name in scope.COLUMNS:
            assert table[name].to_pylist() == filled(messages[name]), name
        assert table["cs_inactive_ns"].null_count == 1
        part = messages.slice(10, 20).arrow()
        part.validate(full=True)
        assert part.to_pylist() == table.slice(10, 10).to_pylist()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (may|never) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    documented = {name: (kind, missing == "may", about) for name, kind, missing, about in rows}
    assert documented == scope.COLUMNS and list(documented) == scope.schema().names


def test_hints_are_kept(tmp_path: Path) -> None:
    capture = scope.open(EXAMPLE, clk="sck", mosi="miso", miso="mosi", cs=["cs0"], cs_active="low", mode=0)
    assert (capture.wires["mosi"], capture.wires["miso"]) == ("miso", "mosi")
    *lines, _ = told(EXAMPLE, "--bits", "12")
    compare(scope.open(EXAMPLE, bits=12).messages(), lines, 3)
    *lines, _ = told(EXAMPLE, "--cs", "none", "--bits", "24")
    wide = scope.open(EXAMPLE, cs="none", bits=24).messages()
    compare(wide, lines, 6)
    assert wide.word_bytes == 4 and wide.select.mask.all() and wide.lead_ns.mask.all()
    *lines, summary = told(EXAMPLE, "--glitch", "145ns")
    capture = scope.open(EXAMPLE, glitch_ns=145)
    compare(capture.messages(), lines)
    assert capture.glitches == summary["glitches"] and capture.notes == summary["notes"]


def test_errors_name_the_file(tmp_path: Path) -> None:
    text = tmp_path / "text.vcd"
    text.write_text("a letter\n")
    with pytest.raises(barewire.CaptureError, match=r"text\.vcd: no capture of sigrok") as caught:
        scope.open(text)
    assert isinstance(caught.value, ValueError) and caught.value.errno == 22
    with pytest.raises(barewire.CaptureError, match="absent") as caught:
        scope.open(tmp_path / "absent")
    assert caught.value.errno == 2
    (tmp_path / "empty.vcd").touch()
    with pytest.raises(barewire.CaptureError, match="it is empty"):
        scope.open(tmp_path / "empty.vcd")
    with pytest.raises(barewire.CaptureError, match='no channel "clock".*sck'):
        scope.open(EXAMPLE, clk="clock")
    with pytest.raises(barewire.CaptureError, match="samplerate"):
        scope.open(EXAMPLE, samplerate=1_000_000)
    wrong: list[dict[str, Any]] = [
        {"chip": "nand"},
        {"mode": 4},
        {"bits": 33},
        {"glitch_ns": -1},
        {"samplerate": 0},
        {"cs_active": "both"},
    ]
    for options in wrong:
        with pytest.raises(barewire.ArgumentError):
            scope.open(EXAMPLE, **options)
    with pytest.raises(barewire.ArgumentError, match="rows is 0"):
        next(scope.open(EXAMPLE).batches(0))
    with pytest.raises(KeyError, match="lead_ns"):
        scope.open(EXAMPLE).messages()["lead"]


def test_an_error_in_the_middle_comes_behind_the_messages_before_it(tmp_path: Path) -> None:
    path = tmp_path / "cut.vcd"
    whole = made.vcd(made.drawn(3, 30_000))
    path.write_text(whole[: len(whole) * 9 // 10] + "\n#5\nnonsense here\n" + whole[-100:])
    capture, seen = scope.open(path), 0
    with pytest.raises(barewire.CaptureError, match=r"cut\.vcd"):
        for messages in capture.batches(100):
            assert messages.message[0] == seen
            seen += len(messages)
    assert seen > 10_000
    assert capture.why == [], "what an error ended has no wires"


def test_threads_run_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "long.vcd"
    path.write_text(made.vcd(made.drawn(4, 20_000)))
    own_s, other_s = beside_another_thread(lambda: scope.open(path).messages())
    assert other_s > own_s / 4, (own_s, other_s)


def test_without_packages_the_remedy_is_named() -> None:
    hidden = "import sys; sys.modules['{0}'] = None; from barewire import scope; m = scope.open({1!r}).messages(); {2}"
    for package, call in (("numpy", "m.lead_ns"), ("pyarrow", "m.arrow()")):
        ran = script(hidden.format(package, str(EXAMPLE), call))
        assert "StateError" in ran.stderr and f"pip install {package}" in ran.stderr, ran.stderr
