"""Programs that import spidev, through the shim, on a simulated board."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import HERE, python, script

ROOT = HERE.parents[2]
FOREIGN = ROOT / "bench/barewire-foreign/clients"

RUN = """
import runpy, sys, barewire.shim
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(program: Path, *args: str, maps: str) -> str:
    """A program's output, run through the shim."""
    ran = python("-c", RUN, str(program), *args, env={"BAREWIRE_MAP": maps})
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_py_spidevs_users() -> None:
    """What `cargo xtask clients` asks of py-spidev under `barewire run`."""
    assert run(FOREIGN / "py_spidev.py", maps="/dev/spidev0.0=sim:rpi3,cs=1") == ""


def test_gpiozero() -> None:
    pytest.importorskip("gpiozero")
    said = run(FOREIGN / "gpiozero_mcp3008.py", maps="/dev/spidev0.0=sim:rpi3,input=2:constant:1234")
    assert said == "1.234 V read twenty times\n"


def test_luma_oled(tmp_path: Path) -> None:
    pytest.importorskip("luma.oled")
    sent = tmp_path / "sent.bin"
    program = tmp_path / "drawn.py"
    program.write_text(
        f"import runpy, sys, barewire\n"
        f"bus = barewire.Bus('sim:imx8mp')\n"
        f"barewire.map('/dev/spidev0.3', bus)\n"
        f"sys.argv = [sys.argv[0], {str(sent)!r}]\n"
        f"runpy.run_path({str(FOREIGN / 'luma_oled.py')!r}, run_name='__main__')\n"
        f"print(bus.simulated()['bits'])\n"
    )
    said = run(program, maps="").splitlines()
    length = len(sent.read_bytes())
    assert length > 3_000 and said == [f"{length} bytes", str(8 * length)], "as many bits as luma sent"


def test_luma_led_matrix() -> None:
    pytest.importorskip("luma.led_matrix")
    said = run(HERE / "clients/luma_led_matrix.py", maps="")
    assert said == "sent as luma says\n"


def test_adafruit_mcp3008() -> None:
    pytest.importorskip("Adafruit_MCP3008")
    said = run(HERE / "clients/adafruit_mcp3008.py", maps="/dev/spidev0.0=sim:rpi3,input=3:constant:2000")
    assert abs(int(said) - 2000 * 1024 // 5000) <= 1


def test_the_package_mcp3008() -> None:
    """A subclass of SpiDev that does not call its constructor."""
    pytest.importorskip("mcp3008")
    text = (
        "import barewire.shim, mcp3008\n"
        "with mcp3008.MCP3008(0, 0) as adc:\n"
        "    print(adc.read([mcp3008.CH5], 5.0))\n"
    )
    ran = script(text, {"BAREWIRE_MAP": "/dev/spidev0.0=sim:rpi3,input=5:constant:3300"})
    assert ran.returncode == 0, ran.stderr
    [volts] = eval(ran.stdout)  # noqa: S307
    assert abs(volts - 3.3) < 0.01


def test_unicorn_hat_hd() -> None:
    """Pimoroni's display: rows of 769 bytes from a NumPy array."""
    pytest.importorskip("unicornhathd")
    text = (
        "import barewire, barewire.shim\n"
        "bus = barewire.Bus('sim:rpi3')\n"
        "barewire.map('/dev/spidev0.0', bus, chip_select=0)\n"
        "import unicornhathd\n"
        "unicornhathd.setup()\n"
        "unicornhathd.set_pixel(3, 4, 255, 0, 0)\n"
        "unicornhathd.show()\n"
        "print(bus.simulated()['bits'])\n"
    )
    ran = script(text)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[0]) == 8 * 769
