"""Chips: flash, converters, CAN controllers, registers by name."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import beside_another_thread, script

import barewire
from barewire import CanFrame


@pytest.fixture
def chip(rpi3: barewire.Bus) -> barewire.Flash:
    return barewire.Flash(rpi3)


def test_flash_is_identified(chip: barewire.Flash) -> None:
    assert (chip.id.hex(), chip.size, chip.erase_size, chip.page_size) == ("ef4016", 4 << 20, 4096, 256)
    assert "ef4016" in repr(chip)
    assert chip.status() == 0


def test_flash_is_written_read_verified_and_erased(chip: barewire.Flash) -> None:
    data = np.random.default_rng(1).integers(0, 256, 10_000, np.uint8)
    seen: list[tuple[int, int]] = []
    done = chip.write(4000, data, progress=lambda at, of: seen.append((at, of)))
    # Bytes at a page's ends that stay as they are need no programming.
    assert 9_900 < done["programmed_bytes"] <= 10_000 and done["erases"] == 0
    assert seen[-1] == (10_000, 10_000) and len(seen) > 2
    assert chip.read(4000, 10_000) == data.tobytes()
    assert chip.read(3999, 2) == b"\xff" + data.tobytes()[:1]
    into = np.zeros(10_000, np.uint8)
    assert chip.read(4000, 10_000, into=into) is into and (into == data).all()
    chip.verify(4000, data)
    again = chip.write(4000, data)
    assert again["unchanged_bytes"] == 10_000 and again["programs"] == 0
    data[77] ^= 1
    with pytest.raises(barewire.VerifyError, match=f"at {4077:#x}"):
        chip.verify(4000, data)
    chip.erase(4096, 4096)
    assert chip.read(4096, 4096) == b"\xff" * 4096
    assert chip.read(4095, 1) == data.tobytes()[95:96], "what is before stays"


def test_the_whole_chip_is_read_and_erased(chip: barewire.Flash) -> None:
    chip.write(0, b"first")
    chip.write(chip.size - 4, b"last")
    everything = chip.read()
    assert len(everything) == chip.size and everything[:5] == b"first" and everything[-4:] == b"last"
    seen: list[int] = []
    with pytest.raises(TypeError):
        chip.erase()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        chip.erase(0x1000)  # type: ignore[call-arg]
    assert chip.read(0, 5) == b"first", "half an order erases nothing"
    chip.erase_chip(progress=lambda done, _total: seen.append(done))
    assert chip.read() == b"\xff" * chip.size
    assert seen == sorted(seen) and seen[-1] == chip.size and len(seen) > 10


@pytest.mark.parametrize(("offset", "length"), [(4 << 20, 1), (0, (4 << 20) + 1), (1 << 60, 1), (1 << 63, 1 << 63)])
def test_ranges_outside_are_refused(chip: barewire.Flash, offset: int, length: int) -> None:
    with pytest.raises(barewire.ChipArgumentError, match="the chip has 4194304 bytes"):
        chip.read(offset, length)
    with pytest.raises(barewire.ChipArgumentError):
        chip.erase(offset, length)
    with pytest.raises(barewire.ChipArgumentError):
        chip.write(max(offset, chip.size - 3), bytes(64))
    for wrong in (-1, "0", 1.5):
        with pytest.raises((TypeError, OverflowError)):
            chip.read(wrong)  # type: ignore[arg-type]


def test_misaligned_erases_are_refused(chip: barewire.Flash) -> None:
    for offset, length in [(1, 4096), (0, 100)]:
        with pytest.raises(barewire.ChipError, match="4096") as caught:
            chip.erase(offset, length)
        assert caught.value.errno == 22


def test_a_callback_that_raises_stops_in_order(chip: barewire.Flash) -> None:
    class Stop(Exception):
        pass

    def stop(_done: int, _total: int) -> None:
        raise Stop

    for use in (
        lambda: chip.write(0, bytes(100_000), progress=stop),
        lambda: chip.read(progress=stop),
        lambda: chip.erase_chip(progress=stop),
        lambda: chip.verify(200_000, b"\xff" * 200_000, progress=stop),
    ):
        with pytest.raises(Stop):
            use()
        assert chip.status() & 3 == 0, "not busy, not write-enabled"
    assert chip.read(0, 4096) in (bytes(4096), b"\xff" * 4096)


def test_a_callback_that_uses_the_chip_is_told(chip: barewire.Flash) -> None:
    with pytest.raises(barewire.DeadlockError, match="own callback"):
        chip.write(0, bytes(5_000), progress=lambda _done, _total: chip.status())
    assert chip.status() == 0


def test_a_callback_that_closes_the_bus(chip: barewire.Flash, rpi3: barewire.Bus) -> None:
    with pytest.raises(barewire.ClosedError):
        chip.write(0, bytes(50_000), progress=lambda _done, _total: rpi3.close())


def test_threads_share_a_flash_chip(chip: barewire.Flash) -> None:
    chip.write(0, bytes(range(256)) * 16)
    wrong = []

    def work() -> None:
        for offset in range(50):
            if chip.read(offset, 100) != bytes(range(offset, offset + 100)):
                wrong.append(offset)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_chip_that_is_not_there() -> None:
    with barewire.Bus("sim:rpi3,fault=no-chip") as bus:
        with pytest.raises(barewire.ChipError) as caught:
            barewire.Flash(bus)
        assert caught.value.errno == 19
        with pytest.raises(barewire.ChipError) as caught:
            barewire.Mcp3008(bus).read(0)
        assert caught.value.errno == 19


def test_a_converter_reads(rpi3: barewire.Bus) -> None:
    with barewire.Bus("sim:rpi3,input=2:constant:1234") as bus:
        adc = barewire.Mcp3008(bus)
        assert (adc.part, adc.channels, adc.code_max, adc.vref_mv) == ("MCP3008", 8, 1023, 5000)
        assert adc.read(2) == 1234 * 1024 // 5000
        assert abs(adc.volts(2) - 1.234) < 0.006
        assert adc.read(2, minus=3) == 0 or adc.read(3, minus=2) == 0, "one of the two is negative"
        for wrong in (8, 200):
            with pytest.raises(barewire.ChipError, match=f"no channel {wrong}"):
                adc.read(wrong)
        with pytest.raises(barewire.ChipError):
            adc.read(0, minus=2)
    with pytest.raises(ValueError, match="did you mean"):
        barewire.Mcp3008(rpi3, part="mcp3009")
    for part in ("mcp3002", "mcp3004", "mcp3204", "mcp3208"):
        with pytest.raises(ValueError, match="converter is an MCP3008; read as an MCP3"):
            barewire.Mcp3008(rpi3, part=part)
    with pytest.raises(barewire.ChipError):
        barewire.Mcp3008(rpi3, speed_hz=10_000_000)
    with pytest.raises(barewire.ChipError):
        barewire.Mcp3008(rpi3, supply_mv=1_000)


def test_100000_samples_in_one_call(rpi3: barewire.Bus) -> None:
    samples = barewire.Mcp3008(rpi3).sample(100_000, 50_000)
    assert isinstance(samples.codes, np.ndarray) and isinstance(samples.times_s, np.ndarray)
    assert samples.codes.shape == (100_000,) and samples.codes.dtype == np.uint16
    assert samples.missed == 0 and abs(samples.rate_hz - 50_000) < 1
    steps = np.diff(samples.times_s)
    assert steps.min() > 15e-6 and steps.max() < 25e-6
    # A sine of 100 Hz, 2 V about 2.5 V.
    volts = samples.volts
    assert abs(volts.mean() - 2.5) < 0.01 and abs(np.ptp(volts) / 2 - 2.0) < 0.01
    spectrum = np.abs(np.fft.rfft(volts - volts.mean()))
    frequency = np.argmax(spectrum) * 50_000 / len(volts)
    assert abs(frequency - 100) < 0.6


def test_sampling_repeats_exactly() -> None:
    def run() -> tuple[bytes, bytes]:
        with barewire.Bus("sim:rpi3") as bus:
            samples = barewire.Mcp3008(bus).sample(5_000, 40_000)
        return samples.codes.tobytes(), samples.times_s.tobytes()

    assert run() == run()


def test_a_rate_that_is_late_is_counted(rpi3: barewire.Bus) -> None:
    adc = barewire.Mcp3008(rpi3)
    free = adc.sample(2_000)
    assert free.missed == 0 and free.rate_hz > 50_000
    fast = adc.sample(2_000, adc.max_rate_hz)
    assert fast.missed > 0 and fast.rate_hz < adc.max_rate_hz
    with pytest.raises(barewire.ChipError, match=str(adc.max_rate_hz)):
        adc.sample(10, adc.max_rate_hz + 1)


def test_several_channels(rpi3: barewire.Bus) -> None:
    samples = barewire.Mcp3008(rpi3).sample(1_000, 10_000, channel=[0, 1, 7])
    assert samples.codes.shape == (1_000, 3) and samples.times_s.shape == (1_000, 3)
    assert samples.codes.mean() > 0, "its type is an array's"
    assert abs(samples.rate_hz - 10_000) < 1 and samples.channels == (0, 1, 7)


@pytest.mark.parametrize(
    ("samples", "rate_hz", "channel", "error"),
    [
        (0, 1000, 0, ValueError), (10, 0, 0, ValueError), (10, None, [], ValueError), (-1, None, 0, OverflowError),
        (1 << 40, None, 0, ValueError), (10, 1.5, 0, TypeError), (10, None, 8, barewire.ChipError),
        (10, None, 256, OverflowError), (10, None, "0", (TypeError, ValueError)),
    ],
)
def test_wrong_samplings_are_refused(
    rpi3: barewire.Bus, samples: int, rate_hz: int, channel: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        barewire.Mcp3008(rpi3).sample(samples, rate_hz, channel=channel)


def test_without_numpy_there_are_arrays() -> None:
    text = (
        "import sys; sys.modules['numpy'] = None\n"
        "import barewire\n"
        "with barewire.Bus('sim:rpi3') as bus:\n"
        "    samples = barewire.Mcp3008(bus).sample(1000, 10_000)\n"
        "    two = barewire.Mcp3008(bus).sample(1000, 10_000, channel=(0, 1))\n"
        "print(type(samples.codes).__name__, len(samples.codes), samples.missed, round(samples.rate_hz))\n"
        "print(len(two.codes), round(two.rate_hz))\n"
        "try: samples.volts\n"
        "except RuntimeError as error: print(error.strerror)\n"
    )
    ran = script(text)
    assert ran.stdout.splitlines() == [
        "array 1000 0 10000", "2000 10000", "volts needs NumPy: pip install numpy, or compute them from codes",
    ], ran.stderr


def test_other_threads_run_while_samples_are_taken(rpi3: barewire.Bus) -> None:
    adc = barewire.Mcp3008(rpi3)
    own_s, other_s = beside_another_thread(lambda: adc.sample(300_000))
    assert own_s > 0.05 and other_s > own_s / 10, (own_s, other_s)


@pytest.fixture
def imx8mp() -> Iterator[barewire.Bus]:
    """A board with an MCP2518FD."""
    with barewire.Bus("sim:imx8mp") as bus:
        yield bus


def test_can_frames_in_loopback(imx8mp: barewire.Bus) -> None:
    frames = [
        CanFrame(0x123, b"hello"),
        CanFrame(0x1ABCDEF0, bytes(range(8)), extended=True),
        CanFrame(0x7FF, remote=True, dlc=4),
        CanFrame(0, b""),
        CanFrame(0x55, bytes(range(64)), fd=True, bit_rate_switch=True),
        CanFrame(0x56, bytes(12), fd=True),
    ]
    with barewire.Mcp251xFd(
        imx8mp, bitrate_hz=500_000, data_bitrate_hz=2_000_000, mode="internal-loopback"
    ) as can:
        assert can.part == "MCP2518FD"
        received = []
        for frame in frames:
            can.send(frame)
            received.append(can.receive(timeout_s=60))
        for sent, got in zip(frames, received, strict=True):
            assert got is not None and got.timestamp is not None and sent.timestamp is None
            assert (got.id, got.data, got.extended, got.fd, got.remote, got.dlc, got.bit_rate_switch) == (
                sent.id, sent.data, sent.extended, sent.fd, sent.remote, sent.dlc, sent.bit_rate_switch,
            )
        assert can.receive() is None and can.receive(timeout_s=0.01) is None
        assert can.errors() == {"transmit": 0, "receive": 0, "state": "active"}


def test_alone_on_a_can_bus_nobody_acknowledges(imx8mp: barewire.Bus) -> None:
    with barewire.Mcp251xFd(imx8mp, bitrate_hz=500_000) as can:
        can.send(CanFrame(1, b"x"))
        until = time.monotonic() + 60
        while can.errors()["state"] == "active" and time.monotonic() < until:
            assert can.receive() is None
        assert can.errors()["transmit"] > 0
        with pytest.raises(barewire.ChipTimeout, match="taken"):
            for _ in range(20):
                can.send(CanFrame(2), timeout_s=0.02)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CanFrame(0x800), lambda: CanFrame(1 << 29, extended=True), lambda: CanFrame(1, bytes(9)),
        lambda: CanFrame(1, bytes(9), fd=True), lambda: CanFrame(1, b"x", remote=True), lambda: CanFrame(1, remote=True, dlc=9),
        lambda: CanFrame(1, remote=True, fd=True),
    ],
)
def test_frames_that_are_none(make: type) -> None:
    with pytest.raises(ValueError):
        make()


def test_wrong_can_configurations_are_refused(imx8mp: barewire.Bus, rpi3: barewire.Bus) -> None:
    with pytest.raises(barewire.Error):
        barewire.Mcp251xFd(imx8mp, bitrate_hz=123)
    with pytest.raises(ValueError, match="did you mean"):
        barewire.Mcp251xFd(imx8mp, bitrate_hz=500_000, mode="clasic")
    with pytest.raises(ValueError, match="oscillator_hz"):
        barewire.Mcp251xFd(rpi3, bitrate_hz=500_000)
    with pytest.raises(barewire.ChipError):
        barewire.Mcp251xFd(imx8mp, 0, bitrate_hz=500_000)
    can = barewire.Mcp251xFd(imx8mp, bitrate_hz=500_000, mode="internal-loopback")
    with can:
        with pytest.raises(barewire.ChipError):
            can.send(CanFrame(1, bytes(64), fd=True))
        for timeout in (-1, float("nan"), 1e30):
            with pytest.raises(ValueError, match="timeout_s"):
                can.receive(timeout_s=timeout)


def test_registers_by_name(imx8mp: barewire.Bus) -> None:
    registers = imx8mp.registers("mcp2518fd")
    assert registers["OSC.OSCRDY"] == 1 and registers.read("c1con.opmod") == 4
    registers["C1CON.TXBWS"] = 5
    assert registers["C1CON"] >> 28 == 5 and registers.fields("C1CON")["TXBWS"] == 5
    registers.write("C1MASK3", 0x12345)
    assert registers["C1MASK3"] == 0x12345 and "C1MASK3" in registers.names and "C1MASK3" in registers
    assert "C1NONE" not in registers and "C1CON.NONE" not in registers
    dump = registers.dump()
    assert dump["C1MASK3"] == 0x12345 and len(dump) > 150
    assert repr(registers).startswith("<barewire.Registers sim:imx8mp ")
    for wrong, error in [("C1COM", KeyError), ("C1CON.OPMODE", KeyError), ("", KeyError)]:
        with pytest.raises(error):
            registers[wrong]
    with pytest.raises(ValueError, match="at most 15"):
        registers["C1CON.TXBWS"] = 16
    with pytest.raises(ValueError, match="read-only"):
        registers["C1CON.OPMOD"] = 1
    with pytest.raises(OverflowError):
        registers["C1CON"] = 1 << 32
    with pytest.raises(ValueError, match="did you mean"):
        imx8mp.registers("mcp2518")
    can = barewire.Mcp251xFd(imx8mp, bitrate_hz=500_000)
    assert can.registers["C1CON.OPMOD"] == 4


def test_objects_are_freed(rpi3: barewire.Bus) -> None:
    chip = barewire.Flash(rpi3)
    before = sys.getrefcount(rpi3)
    for _ in range(50):
        chip.read(0, 10)
        barewire.Mcp3008(rpi3).read(0)
    assert sys.getrefcount(rpi3) == before
