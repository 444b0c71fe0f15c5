"""What tests share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import barewire

HERE = Path(__file__).parent


@pytest.fixture
def rpi3() -> Iterator[barewire.Bus]:
    """A simulated Raspberry Pi 3: a converter on chip select 0, a W25Q32JV on 1."""
    with barewire.Bus("sim:rpi3", statistics=True) as bus:
        yield bus
        figures = bus.simulated()
        assert figures is not None and figures["violations"] == 0, figures


@pytest.fixture
def flash(rpi3: barewire.Bus) -> barewire.Device:
    """The flash chip's device."""
    return rpi3.device(1, speed_hz=20_000_000)


@pytest.fixture
def null() -> Iterator[barewire.Bus]:
    """A bus without a wire."""
    with barewire.Bus("null:", statistics=True) as bus:
        yield bus


@pytest.fixture
def no_maps() -> Iterator[None]:
    """No map before and after."""
    barewire.unmap()
    yield
    barewire.unmap()


def python(
    *args: str, env: dict[str, str] | None = None, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """A program of its own, with this package."""
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        [sys.executable, *args],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def beside_another_thread(work: Callable[[], object]) -> tuple[float, float]:
    """The processor time of work, and that of a thread that spins meanwhile, in seconds."""
    other_s, stop = [0.0], threading.Event()

    def spin() -> None:
        while not stop.is_set():
            pass
        other_s[0] = time.thread_time()

    thread = threading.Thread(target=spin)
    thread.start()
    began_s = time.thread_time()
    work()
    own_s = time.thread_time() - began_s
    stop.set()
    thread.join()
    return own_s, other_s[0]


def script(
    text: str, env: dict[str, str] | None = None, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """A program's text, run."""
    return python("-c", text, env=env, timeout_s=timeout_s)
