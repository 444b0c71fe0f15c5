"""py-spidev's class: judged by the original, and where it differs on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import HERE, python, script

import barewire
from barewire import spidev

ID = [0xFF, 0xEF, 0x40, 0x16]
SENT = [0x9F, 0, 0, 0]

pytestmark = pytest.mark.usefixtures("no_maps")


@pytest.fixture
def spi(no_maps: None) -> spidev.SpiDev:
    barewire.map("/dev/spidev0.0", "sim:rpi3", chip_select=1)
    return spidev.SpiDev(0, 0)


def test_ours_answers_every_question_as_the_original_does() -> None:
    """The original runs under `barewire run`, whose path BAREWIRE has."""
    command = os.environ.get("BAREWIRE")
    if not command:
        pytest.skip("BAREWIRE is not set: `cargo xtask ci --step python` sets it to the command's path")
    questions = str(HERE / "questions.py")
    ours = python(questions, "ours")
    assert ours.returncode == 0, ours.stderr
    run = [command, "run", "--quiet", "--map", "/dev/spidev0.0=sim:rpi3,cs=1", "--"]
    original = subprocess.run(
        [*run, sys.executable, questions, "original"], capture_output=True, text=True, timeout=300, check=False
    )
    assert original.returncode == 0, original.stderr
    answers = original.stdout.splitlines()
    assert len(answers) > 270, "they were asked"
    assert ours.stdout.splitlines() == answers


@pytest.mark.parametrize("method", ["xfer", "xfer2", "xfer3", "writebytes", "writebytes2"])
@pytest.mark.parametrize("value", [256, -1, 1 << 70, 300])
def test_what_is_no_byte_raises(spi: spidev.SpiDev, method: str, value: int) -> None:
    values = [0x9F, value, 0]
    with pytest.raises(ValueError, match="value 1 is"):
        getattr(spi, method)(values)
    assert values == [0x9F, value, 0], "nothing was overwritten"


@pytest.mark.parametrize("method", ["xfer", "xfer2", "writebytes"])
def test_lengths_are_not_wrapped(spi: spidev.SpiDev, method: str) -> None:
    for length in (4097, 65_536, 65_537, 100_000):
        with pytest.raises(OverflowError, match="exceeds 4096"):
            getattr(spi, method)([0] * length)


def test_readbytes_does_not_read_less_than_asked(spi: spidev.SpiDev) -> None:
    assert len(spi.readbytes(4096)) == 4096
    with pytest.raises(OverflowError):
        spi.readbytes(4097)


def test_settings_are_not_masked(spi: spidev.SpiDev) -> None:
    for name, value in [("mode", 256), ("mode", 1 << 40), ("bits_per_word", 264)]:
        with pytest.raises(TypeError):
            setattr(spi, name, value)
    for value in (1 << 32, -1):
        with pytest.raises(OverflowError):
            spi.max_speed_hz = value
    for arguments in [(1 << 32,), (0, 65_536), (0, 0, 256), (-1,)]:
        with pytest.raises(OverflowError):
            spi.xfer2(list(SENT), *arguments)
    assert (spi.mode, spi.bits_per_word, spi.max_speed_hz) == (0, 8, 1_000_000)


def test_arrays_of_numpy_are_taken(spi: spidev.SpiDev) -> None:
    sent = np.array(SENT, dtype=np.uint8)
    assert spi.xfer2(sent) == ID
    assert spi.xfer3(sent) == tuple(ID)
    assert sent.tolist() == SENT, "an array is not overwritten"
    assert spi.xfer2(sent.astype(np.int64)) == ID, "item by item"
    assert spi.xfer2(list(sent)) == ID, "NumPy's integers"
    assert spi.xfer2(sent[::1]) == ID
    assert spi.xfer2(np.repeat(sent, 2)[::2]) == ID, "with gaps"
    spi.writebytes(np.array([6], np.uint8))
    assert spi.xfer2([5, 0])[1] == 2
    spi.writebytes2(np.array([4], np.uint8))
    assert spi.xfer2([5, 0])[1] == 0
    with pytest.raises(ValueError, match="a byte is 0 to 255"):
        spi.xfer2(np.array([1, 256]))
    with pytest.raises(TypeError):
        spi.xfer2(np.array([0.5]))


def test_a_subclass_of_list_is_overwritten(spi: spidev.SpiDev) -> None:
    class Values(list[int]):
        pass

    values = Values(SENT)
    assert spi.xfer2(values) is values and values == ID


def test_a_path_opens_too(spi: spidev.SpiDev, tmp_path: Path) -> None:
    link = tmp_path / "chip"
    link.symlink_to("/dev/spidev0.0")
    for path in ("/dev/spidev0.0", b"/dev/spidev0.0", Path("/dev/spidev0.0")):
        with spidev.SpiDev(path) as other:
            assert other.xfer2(list(SENT)) == ID
    with pytest.raises(TypeError):
        spidev.SpiDev("/dev/spidev0.0", 1)


def test_nodes_of_one_bus_name_share_a_board(spi: spidev.SpiDev) -> None:
    barewire.map("/dev/spidev0.1", "sim:rpi3", chip_select=0)
    with spidev.SpiDev(0, 1) as adc:
        answer = adc.xfer2([1, 0x80, 0])
        assert answer[1] & 4 == 0, "the converter's null bit"
    with barewire.Bus("sim:rpi3") as bus:
        barewire.map("/dev/spidev1.0", bus, chip_select=1)
        with spidev.SpiDev(1, 0) as other:
            other.writebytes([0x06])
            assert bus.device(1, speed_hz=1_000_000).transfer([5, 0])[1] == 2
    assert spi.xfer2([5, 0])[1] == 0, "another board"


def test_a_note_says_why(spi: spidev.SpiDev) -> None:
    with pytest.raises(OSError) as caught:
        spi.xfer2(list(SENT), 1)
    assert caught.value.errno == 22
    assert "slowest clock" in caught.value.__notes__[0]


def test_a_descriptor_is_no_way_around(spi: spidev.SpiDev) -> None:
    with pytest.raises(OSError):
        os.write(spi.fileno(), b"\x06")
    with pytest.raises(OSError):
        os.read(spi.fileno(), 1)
    assert not os.get_inheritable(spi.fileno())


def test_threads_share_an_object(spi: spidev.SpiDev) -> None:
    wrong = []

    def work() -> None:
        for _ in range(200):
            if spi.xfer2(list(SENT)) != ID:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_on_a_bus_of_short_messages() -> None:
    """A short message keeps the interpreter while it holds the object: nobody may wait for either with the other."""
    text = (
        "import threading, barewire\n"
        "from barewire import spidev\n"
        "barewire.map('/dev/spidev0.0', 'null:', chip_select=0)\n"
        "spi = spidev.SpiDev(0, 0)\n"
        "def work(turn):\n"
        "    for n in range(3000):\n"
        "        spi.xfer2([1, 2, 3], 10_000_000 + (n + turn) % 7)\n"
        "        spi.xfer2([0] * (60 if n % 2 else 4000), 1_000_000)\n"
        "        if n % 100 == 0: spi.mode = n // 100 % 4\n"
        "threads = [threading.Thread(target=work, args=(turn,)) for turn in range(4)]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n"
        "print('done')\n"
    )
    ran = script(text, timeout_s=60)
    assert ran.stdout == "done\n", ran.stderr


def test_a_list_that_another_thread_makes_shorter_is_an_error(spi: spidev.SpiDev) -> None:
    barewire.map("/dev/spidev2.0", "sim:imx8mp", chip_select=0)
    slow = spidev.SpiDev(2, 0)
    values = [0] * 4096
    stop = threading.Event()

    def shorten() -> None:
        while not stop.is_set():
            values.clear()

    thread = threading.Thread(target=shorten)
    thread.start()
    ended = set()
    try:
        for _ in range(20):
            values[:] = [0] * 4096
            try:
                slow.xfer2(values)
            except (IndexError, TypeError) as error:
                ended.add(type(error))
    finally:
        stop.set()
        thread.join()
    assert IndexError in ended, "it was shortened while the message ran"


def test_closing_in_use_ends_the_others_in_order(spi: spidev.SpiDev) -> None:
    ended: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                spi.xfer2([0] * 100)
        except OSError as error:
            ended.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    spi.close()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert [error.errno for error in ended] == [9, 9, 9]  # type: ignore[attr-defined]


def test_maps_of_the_environment() -> None:
    asks = "from barewire import spidev; print(spidev.SpiDev(0, 0).xfer2([0x9f, 0, 0, 0]))"
    ran = script(asks, {"BAREWIRE_MAP": "/dev/spidev0.0=sim:rpi3,cs=1; /dev/spidev0.1=sim:rpi3,cs=0;"})
    assert (ran.stdout, ran.returncode) == (f"{ID}\n", 0), ran.stderr
    for wrong, said in [
        ("/dev/spidev0.0", "a map is NODE=BUS"),
        ("/dev/null=sim:rpi3", "is no spidev node"),
        ("/dev/spidev0.0=sim:rpi4", "did you mean"),
        ("/dev/spidev0.0=sim:rpi3,cs=1;/dev/spidev0.1=sim:rpi3", "chip select 1 of sim:rpi3"),
        ("/dev/spidev0.0=sim:rpi3,cs=300", "300"),
    ]:
        ran = script("import barewire", {"BAREWIRE_MAP": wrong})
        assert ran.returncode == 1 and said in ran.stderr, ran.stderr
        assert "BusNameError" in ran.stderr


def test_a_mapped_node_is_not_opened_around_its_map(tmp_path: Path) -> None:
    node = "/dev/spidev31990.1"
    (tmp_path / "flash").symlink_to(node)
    opens = [
        "os.open(node, os.O_RDWR)",
        "os.open(node.encode(), os.O_RDWR)",
        "open(node, 'r+b')",
        "pathlib.Path(node).open('rb')",
        "os.open('/dev/../' + node, os.O_RDWR)",
        "os.open(sys.argv[1], os.O_RDWR)",
    ]
    for text in opens:
        program = f"""
import os, pathlib, sys
import barewire, barewire.spidev
node = {node!r}
def opened():
    try:
        {text}
    except OSError as error:
        return type(error).__name__, error.errno
    return "opened"
print(opened())
barewire.map(node, "sim:rpi3")
print(opened())
print(barewire.spidev.SpiDev(31990, 1).xfer2([0x9f, 0, 0, 0]))
barewire.unmap(node)
print(opened())
"""
        ran = python("-c", program, str(tmp_path / "flash"))
        assert ran.returncode == 0, ran.stderr
        missing = "('FileNotFoundError', 2)"
        assert ran.stdout.splitlines() == [missing, "('BusAccessError', 13)", str(ID), missing], text


def test_wrong_maps_are_refused() -> None:
    for node in ("/dev/spidev0", "spidev0.0", "/dev/spidev00.0", ""):
        with pytest.raises(ValueError, match="is no spidev node"):
            barewire.map(node, "sim:rpi3")
    with pytest.raises(barewire.BusNameError, match="did you mean"):
        barewire.map("/dev/spidev0.0", "sim:rpi4")
    with pytest.raises(TypeError):
        barewire.map("/dev/spidev0.0", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        barewire.map("/dev/spidev0.0", "sim:rpi3", speed_hz=0)
    barewire.map("/dev/spidev0.0", "sim:rpi3", chip_select=1)
    with pytest.raises(ValueError, match="is /dev/spidev0.0 already"):
        barewire.map("/dev/spidev0.1", "sim:rpi3", chip_select=1)
    assert barewire.maps() == {"/dev/spidev0.0": ("sim:rpi3", 1)}
    barewire.map("/dev/spidev0.0", "sim:rpi3", cs=1)
    assert barewire.maps() == {"/dev/spidev0.0": ("sim:rpi3", 1)}, "the older name"
    with pytest.raises(ValueError, match="older name"):
        barewire.map("/dev/spidev0.0", "sim:rpi3", chip_select=1, cs=1)
    barewire.map("/dev/spidev0.3", "sim:rpi3", chip_select=77)
    with pytest.raises(barewire.SettingsError, match="77"):
        spidev.SpiDev(0, 3)
    barewire.unmap("/dev/spidev0.0")
    with pytest.raises(FileNotFoundError):
        spidev.SpiDev(0, 0)


def test_a_file_that_is_no_node_is_told() -> None:
    with pytest.raises(OSError) as caught:
        spidev.SpiDev().open_path("/dev/null")
    assert caught.value.errno == 25, "ENOTTY"


def test_the_shim_comes_first() -> None:
    ran = script("import barewire.shim, spidev; print(spidev.SpiDev.__module__)")
    assert ran.stdout == "barewire.spidev\n", ran.stderr
    ran = script("import spidev, barewire.shim")
    assert "import barewire.shim first" in ran.stderr
