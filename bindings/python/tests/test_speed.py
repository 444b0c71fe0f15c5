"""What calls cost, counted in instructions by valgrind: py-spidev's, ours, and an empty method's.

Each subject runs twice, with N and with 2 N calls, and the difference counts: what starts up and ends is in both. From
each the loop around the calls is taken away. py-spidev's ioctl is a function that returns at once, which is taken away
too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import HERE

CALLS = 2_000
SPEED = HERE / "speed"

XFER2_MAX = 0.6
"""xfer2 of 3 bytes on the null bus, against py-spidev's."""
PREPARED_MAX = 2.0
"""A prepared exchange of 3 bytes on the null bus, against an empty method or an empty object's call."""


def counted(subject: str, calls: int, preload: Path, out: Path) -> tuple[int, int]:
    """The instructions of a run, and those of them in `ioctl`."""
    environment = {**os.environ, "LD_PRELOAD": str(preload), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    valgrind = ["valgrind", "--tool=callgrind", "--compress-strings=no", f"--callgrind-out-file={out}"]
    program = [sys.executable, str(SPEED / "subjects.py"), subject, str(calls)]
    ran = subprocess.run([*valgrind, *program], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    found = re.search(r"Collected : (\d+)", ran.stderr)
    assert found, ran.stderr
    return int(found[1]), self_cost(out.read_text(errors="replace"), "ioctl")


def self_cost(profile: str, function: str) -> int:
    """The instructions of a function itself, from callgrind's file."""
    cost, inside, skip = 0, False, False
    for line in profile.splitlines():
        if line.startswith("fn="):
            inside = line[3:] == function
        elif line.startswith("calls="):
            # The line behind it is the callee's cost.
            skip = True
        elif line[:1] in "0123456789+-*" and line:
            if inside and not skip:
                cost += int(line.split()[1])
            skip = False
    return cost


def a_call(subject: str, preload: Path, folder: Path) -> float:
    """The instructions of a call, the loop included."""
    once, twice = (
        counted(subject, calls, preload, folder / f"{subject}.{calls}") for calls in (CALLS, 2 * CALLS)
    )
    outside = (twice[0] - twice[1]) - (once[0] - once[1])
    return outside / CALLS


def test_what_calls_cost(tmp_path: Path) -> None:
    pytest.importorskip("spidev")
    for tool in ("valgrind", "cc"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}: apt-get install valgrind gcc")
    preload = tmp_path / "no_kernel.so"
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", str(preload), str(SPEED / "no_kernel.c"), "-ldl"], check=True
    )
    subjects = ("loop", "py-spidev", "ours", "prepared.run", "prepared", "empty", "empty object")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        calls = pool.map(lambda subject: a_call(subject, preload, tmp_path), subjects)
        cost = dict(zip(subjects, calls, strict=True))
    cost = {subject: instructions - cost["loop"] for subject, instructions in cost.items()}
    xfer2 = cost["ours"] / cost["py-spidev"]
    # Like with like: a method with a method, an object that is called with an object that is called.
    run, call = cost["prepared.run"] / cost["empty"], cost["prepared"] / cost["empty object"]
    figures = (
        f"FIGURE: instructions of a call from Python: xfer2 of 3 bytes on the null bus {cost['ours']:.0f}, py-spidev "
        f"outside its ioctl {cost['py-spidev']:.0f} ({xfer2:.2f}, at most {XFER2_MAX}); a prepared exchange "
        f"{cost['prepared.run']:.0f} by its method run, an empty method {cost['empty']:.0f} ({run:.2f}, at most "
        f"{PREPARED_MAX}); by calling it {cost['prepared']:.0f}, an object whose call is empty "
        f"{cost['empty object']:.0f} ({call:.2f}, at most {PREPARED_MAX})"
    )
    print(f"\n{figures}")
    if path := os.environ.get("BAREWIRE_FIGURES"):
        Path(path).write_text(f"{figures}\n")
    assert xfer2 <= XFER2_MAX
    assert run <= PREPARED_MAX
    assert call <= PREPARED_MAX
