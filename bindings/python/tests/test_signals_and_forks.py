"""Ctrl-C in long calls, and children of a process that has a bus open."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
import time

import pytest
from conftest import script

LONG = {
    "sampling": "barewire.Mcp3008(bus).sample(50_000_000)",
    "slow sampling": "barewire.Mcp3008(bus).sample(50_000_000, 1_000)",
    "writing": "[chip.write(0, bytes([n % 256]) * chip.size) for n in range(1000)]",
    "erasing": "[(chip.erase_chip(), chip.write(0, bytes(chip.size))) for _ in range(1000)]",
    "reading": "[chip.read() for _ in range(10_000)]",
    "receiving": "can.receive(timeout_s=1000)",
    "xfer3": "spi.xfer3([0] * 20_000_000)",
    "writebytes2": "spi.writebytes2(bytes(300_000_000))",
    "waiting for a lock": "lock_of_another()",
    "short messages": "[run() for _ in iter(int, 1)]",
}

PROGRAM = """
import signal, threading
import barewire
from barewire import spidev
# A shell has its background jobs ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
bus = barewire.Bus("sim:rpi3")
other = barewire.Bus("sim:imx8mp")
chip = barewire.Flash(bus)
can = barewire.Mcp251xFd(other, bitrate_hz=500_000, mode="internal-loopback")
can.start()
barewire.map("/dev/spidev0.0", bus, chip_select=0)
spi = spidev.SpiDev(0, 0)
run = barewire.Bus("null:").device(0, speed_hz=10_000_000).prepare(bytes(3))
def lock_of_another():
    locked, leave = threading.Event(), threading.Event()
    def hold():
        with bus.lock():
            locked.set()
            leave.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    locked.wait()
    try:
        chip.read(0, 1)
    finally:
        leave.set()
        thread.join()
try:
    print("ready", flush=True)
    WORK
except KeyboardInterrupt:
    assert chip.status() & 3 == 0, "busy or write-enabled"
    assert chip.id.hex() == "ef4016" and len(chip.read(0, 1000)) == 1000
    print("interrupted")
"""


@pytest.mark.parametrize("work", LONG)
def test_ctrl_c_ends_long_calls_and_leaves_the_chip_in_order(work: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("WORK", LONG[work])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None and program.stdout.readline() == "ready\n"
        # The signal comes, as a rule, in the middle of the work that begins here.
        time.sleep(0.4)
        program.send_signal(signal.SIGINT)
        # Without the signal each takes minutes.
        out, err = program.communicate(timeout=60)
        assert (out, program.returncode) == ("interrupted\n", 0), err
    finally:
        program.kill()


CHILD = """
import os, sys, threading
import barewire
from barewire import spidev
bus = barewire.Bus("sim:rpi3", statistics=True)
device = bus.device(1, speed_hz=1_000_000)
run = device.prepare(b"\\x9f\\0\\0\\0")
chip = barewire.Flash(bus)
barewire.map("/dev/spidev0.0", "sim:rpi3", chip_select=1)
spi = spidev.SpiDev(0, 0)
stop = threading.Event()
def busy():
    while not stop.is_set():
        device.transfer(bytes(1000))
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (lambda: device.transfer(b"x"), run, lambda: chip.read(0, 1), bus.simulated, lambda: bus.lock().__enter__(),
                    lambda: bus.device(1, speed_hz=1)):
            try:
                use()
            except barewire.ForkedError as error:
                refused += "open it in this process" in str(error)
        try:
            spi.xfer2([1])
        except barewire.ForkedError:
            refused += 1
        spi.close()
        bus.close()
        with barewire.Bus("sim:rpi3") as own:
            refused += own.device(1, speed_hz=1_000_000).transfer(b"\\x9f\\0\\0\\0") == b"\\xff\\xef\\x40\\x16"
        barewire.unmap()
        barewire.map("/dev/spidev0.0", "sim:rpi3", chip_select=1)
        refused += spidev.SpiDev(0, 0).xfer2([0x9f, 0, 0, 0])[1:] == [0xef, 0x40, 0x16]
        os._exit(refused)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 9, status
stop.set()
for thread in threads:
    thread.join()
assert run() == b"\\xff\\xef\\x40\\x16" and spi.xfer2([0x9f, 0, 0, 0])[1:] == [0xef, 0x40, 0x16]
print("the parent's is in order")
"""


def test_a_child_is_told_to_open_its_own() -> None:
    ran = script(CHILD)
    assert ran.stdout == "the parent's is in order\n", ran.stderr


# A child by the system call clone, of which neither Python nor libc hears. No other thread may have a lock of theirs then.
CLONED = """
import ctypes, os, platform, signal
import barewire
bus = barewire.Bus("null:")
device = bus.device(0, speed_hz=1_000_000)
device.transfer(b"x")
clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
child = ctypes.PyDLL(None).syscall(clone, int(signal.SIGCHLD), 0, 0, 0, 0)
if child == 0:
    try:
        device.transfer(b"x")
    except barewire.ForkedError:
        os._exit(7)
    os._exit(1)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), len(device.transfer(b"x")))
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the system call's number is not known here")
def test_a_child_that_python_does_not_know_is_told_too() -> None:
    ran = script(CLONED)
    assert ran.stdout == "7 1\n", ran.stderr


# A child that shares the memory, by libc's clone with a stack of its own; the parent waits until it ends (CLONE_VFORK), so
# that one of the two runs the interpreter.
BORROWED = """
import ctypes, mmap, os, signal
import barewire
bus = barewire.Bus("null:")
device = bus.device(0, speed_hz=1_000_000)
run = device.prepare(b"x")
CLONE_VM, CLONE_VFORK = 0x100, 0x4000
def refused(_):
    count = 0
    for use in (lambda: device.transfer(b"x"), run, lambda: bus.device(0, speed_hz=1), lambda: bus.lock().__enter__()):
        try:
            use()
        except barewire.ForkedError:
            count += 1
    bus.close()
    return count
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(refused)
stack = mmap.mmap(-1, 1 << 20)
top = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + (1 << 20)
clone = ctypes.PyDLL(None).clone
clone.argtypes = [type(callback), ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
for _ in range(20):
    device.transfer(b"x")
    child = clone(callback, top, CLONE_VM | CLONE_VFORK | int(signal.SIGCHLD), None)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 4, status
print(len(device.transfer(b"x")), len(run()))
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the interpreter refuses to run on a stack that is not its thread's")
def test_a_child_that_shares_the_memory_is_told_too() -> None:
    ran = script(BORROWED)
    assert ran.stdout == "1 1\n", ran.stderr


def test_multiprocessing_by_fork_exits_in_order() -> None:
    text = (
        "import multiprocessing, barewire\n"
        "bus = barewire.Bus('sim:rpi3')\n"
        "def work(_):\n"
        "    with barewire.Bus('sim:rpi3') as own:\n"
        "        return barewire.Flash(own).id.hex()\n"
        "with multiprocessing.get_context('fork').Pool(3) as pool:\n"
        "    print(pool.map(work, range(6)))\n"
        "print(barewire.Flash(bus).id.hex())\n"
    )
    ran = script(text)
    assert ran.stdout == f"{['ef4016'] * 6}\nef4016\n", ran.stderr


@pytest.mark.parametrize(
    "text",
    [
        "import barewire; bus = barewire.Bus('sim:rpi3'); device = bus.device(1, speed_hz=1_000_000)",
        "import barewire; bus = barewire.Bus('sim:rpi3'); lock = bus.lock(); lock.__enter__()",
        "import asyncio, barewire\nbus = barewire.Bus('sim:rpi3'); device = bus.device(1, speed_hz=1_000_000).aio\n"
        "async def main(): device.transfer(bytes(1_000_000))\nasyncio.run(main())",
        "import threading, barewire\nbus = barewire.Bus('sim:rpi3'); device = bus.device(1, speed_hz=1_000_000)\n"
        "threading.Thread(target=lambda: [device.transfer(bytes(10_000)) for _ in iter(int, 1)], daemon=True).start()",
        "import barewire; from barewire import spidev; barewire.map('/dev/spidev0.0', 'sim:rpi3'); spi = spidev.SpiDev(0, 0)",
    ],
    ids=["open", "locked", "awaited", "a daemon's", "a node"],
)
def test_programs_that_just_end(text: str) -> None:
    ran = script(text, timeout_s=30)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_killed_programs_leave_their_flash_file_free(tmp_path: object) -> None:
    text = (
        f"import barewire, os, signal, warnings; warnings.simplefilter('ignore')\n"
        f"bus = barewire.Bus('sim:rpi3,flash={tmp_path}/chip.bin'); chip = barewire.Flash(bus)\n"
        f"print(chip.read(0, 4).hex(), flush=True)\n"
        f"chip.write(0, b'kept'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    first, second = script(text), script(text)
    assert first.returncode == second.returncode == -9
    assert (first.stdout, second.stdout) == ("ffffffff\n", b"kept".hex() + "\n")
