"""Keeps a program from opening a mapped node itself, which would reach the machine's own node, past the map.

Adafruit's PureIO and python-periphery open nodes and make their ioctls without a module of py-spidev's kind. An audit hook
sees each `open` of Python's. It is installed with the first map, and asks for the maps of that moment.
"""

from __future__ import annotations

import errno
import os
import sys

from barewire import _barewire
from barewire._errors import BusAccessError

_installed = False


def install() -> None:
    """Installs the hook, once: Python cannot take it away."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_look)


def _look(event: str, args: tuple[object, ...]) -> None:
    if event != "open" or not args or not isinstance(args[0], (str, bytes, os.PathLike)):
        return
    try:
        path = os.fsdecode(args[0])
        # A link to a node, as udev makes them, is the node.
        path = os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)
    except (OSError, ValueError, TypeError):
        return
    if not path.startswith("/dev/spidev"):
        return
    mapped = _barewire.maps().get(path)
    if mapped is not None:
        sentence = (
            f"{path} is mapped to {mapped[0]}, and this program opens the node itself, around barewire.spidev: "
            f"run it by `barewire run --map {path}=…`, or unmap the node"
        )
        raise BusAccessError(errno.EACCES, sentence, path)
