"""Makes `import spidev` find barewire's module: `import barewire.shim`, before the program that imports it.

    python3 -c 'import barewire.shim, runpy; runpy.run_path("program.py", run_name="__main__")'
"""

import sys

from barewire import spidev

_before = sys.modules.get("spidev")
if _before is not None and _before is not spidev:
    raise ImportError(
        f"spidev was imported before barewire.shim, from {getattr(_before, '__file__', 'elsewhere')}: "
        "import barewire.shim first"
    )
sys.modules["spidev"] = spidev
