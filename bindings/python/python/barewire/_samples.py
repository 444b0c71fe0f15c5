"""Samples of a converter: arrays, and how well the rate was kept."""

from __future__ import annotations

import errno
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barewire import _barewire
from barewire._errors import StateError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Mcp3008", "Samples"]


def _numpy() -> Any:
    """NumPy, or None where it is not installed."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


@dataclass(frozen=True, eq=False)
class Samples:
    """What `Mcp3008.sample` took.

    `codes` and `times_s` are NumPy arrays. Without NumPy they are arrays of the standard library, one value behind the
    other, and `volts` raises; their types are declared as NumPy's, which nearly every program has.
    """

    codes: NDArray[np.uint16]
    """The codes: one a sample, or for several channels a row a sample."""
    times_s: NDArray[np.float64]
    """When each was taken, in seconds from the first turn: the moment before its message."""
    missed: int
    """Turns that were skipped, because the one before took longer than a period."""
    elapsed_s: float
    """How long all took."""
    channels: tuple[int, ...]
    """The channels, in the order of conversion."""
    vref_mv: int
    """What one more than the highest code stands for."""
    code_max: int
    """The highest code."""

    @property
    def volts(self) -> NDArray[np.float64]:
        """The codes in volts."""
        numpy = _numpy()
        if numpy is None:
            raise StateError(
                errno.ENOSYS, "volts needs NumPy: pip install numpy, or compute them from codes"
            )
        factor = self.vref_mv / 1000 / (self.code_max + 1)
        volts: NDArray[np.float64] = numpy.asarray(self.codes) * factor
        return volts

    @property
    def rate_hz(self) -> float:
        """Samples a second, of each channel, from the first one to the last."""
        step = len(self.channels)
        # Without NumPy, one value behind the other.
        times: Any = self.times_s
        flat = times if isinstance(times, array) else times.ravel()
        turns = len(flat) // step
        first, last = float(flat[0]), float(flat[(turns - 1) * step])
        return (turns - 1) / (last - first) if last > first else float("nan")


class Mcp3008(_barewire.Mcp3008):
    """A converter of the MCP3008 family: MCP3002, MCP3004, MCP3008, MCP3204, MCP3208."""

    def volts(self, channel: int = 0, *, minus: int | None = None) -> float:
        """Converts a channel once, in volts."""
        return self.read(channel, minus=minus) * self.vref_mv / 1000 / (self.code_max + 1)

    def sample(
        self, samples: int, rate_hz: int | None = None, *, channel: int | Sequence[int] = 0
    ) -> Samples:
        """Takes `samples` samples of a channel, or of several in turn: at a rate, or as fast as it goes.

        A rate that the wire cannot carry raises; turns that were late are counted in `Samples.missed`. Ctrl-C ends it.
        """
        channels = (channel,) if isinstance(channel, int) else tuple(channel)
        codes, times, missed, elapsed_s = self._sample(samples, rate_hz, list(channels))
        numpy = _numpy()
        all_codes: Any
        all_times: Any
        if numpy is None:
            all_codes, all_times = array("H", bytes(codes)), array("d", bytes(times))
        else:
            all_codes = numpy.frombuffer(codes, numpy.uint16)
            all_times = numpy.frombuffer(times, numpy.float64)
            if len(channels) > 1:
                all_codes = all_codes.reshape(samples, len(channels))
                all_times = all_times.reshape(samples, len(channels))
        return Samples(
            all_codes, all_times, missed, elapsed_s, channels, self.vref_mv, self.code_max
        )
