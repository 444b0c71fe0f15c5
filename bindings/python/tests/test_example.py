"""The example, as a user runs it: with and without NumPy and matplotlib."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from conftest import HERE

EXAMPLE = HERE.parents[2] / "examples/sine.py"


def run(folder: Path, *hidden: str) -> str:
    """Its output, with modules hidden from it."""
    hide = "".join(f"sys.modules[{name!r}] = None; " for name in hidden)
    text = f"import runpy, sys; {hide}runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    ran = subprocess.run(
        [sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def found(said: str) -> tuple[float, float]:
    """Frequency and amplitude, as printed."""
    numbers = re.search(r"a sine of ([\d.]+) Hz, ([\d.]+) V", said)
    assert numbers, said
    return float(numbers[1]), float(numbers[2])


def test_the_example_finds_the_sine(tmp_path: Path) -> None:
    """What the simulated board has on channel 0: 100 Hz, 2 V."""
    for hidden in ((), ("matplotlib",), ("matplotlib", "numpy")):
        folder = tmp_path / "-".join(("run", *hidden))
        folder.mkdir()
        said = run(folder, *hidden)
        frequency_hz, amplitude_v = found(said)
        assert abs(frequency_hz - 100) < 0.2 and abs(amplitude_v - 2.0) < 0.01, said
        assert "100,000 samples" in said and "0 missed" in said
        [plot] = folder.iterdir()
        assert plot.name in said and plot.stat().st_size > 2_000


def test_it_is_a_notebook_by_cells() -> None:
    text = EXAMPLE.read_text()
    assert text.count("\n# %%") >= 3
