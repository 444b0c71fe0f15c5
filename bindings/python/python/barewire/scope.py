"""Captures of logic analyzers as columns: the messages of `barewire scope`, for NumPy and Arrow.

    from barewire import scope

    with scope.open("id.vcd", chip="nor") as capture:
        messages = capture.messages()
    print(capture.wires, messages.lead_ns.max(), messages.gap_ns_max.max())
    messages.arrow()          # a pyarrow.Table

A capture that does not fit in memory is read by `Capture.batches`. docs/scope.md has the schema.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict

from barewire._barewire import _Scope
from barewire._errors import ArgumentError, CaptureError, StateError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["COLUMNS", "Capture", "CaptureError", "Messages", "Select", "Wires", "open", "schema"]

COLUMNS: Mapping[str, tuple[str, bool, str]] = {
    "message": ("int64", False, "its number in the capture, from 0"),
    "select": ("dictionary", True, "the chip select's channel; null on a bus without"),
    "start_ns": ("int64", False, "chip select becomes active; without one, SCK's first edge"),
    "end_ns": ("int64", False, "chip select becomes inactive; without one, SCK's last edge"),
    "cs_inactive_ns": ("int64", True, "chip select was inactive before; null for its first message"),
    "lead_ns": ("int64", True, "chip select active to SCK's first edge"),
    "clocked_ns": ("int64", True, "SCK's first edge to its last"),
    "gap_ns_median": ("int64", True, "between words, the lower median; null below two words"),
    "gap_ns_max": ("int64", True, "between words, the longest"),
    "lag_ns": ("int64", True, "SCK's last edge to chip select inactive"),
    "sck_hz": ("int64", True, "SCK's frequency within words; null without a whole word"),
    "words": ("uint32", False, "whole words"),
    "bits_over": ("uint8", False, "bits behind the last whole word"),
    "cut": ("bool", False, "the capture's beginning or end cuts it"),
    "kind": ("dictionary", True, "a chip's name for such messages; null without a chip"),
    "detail": ("string", True, "what the chip tells of this one"),
    "mosi": ("binary", True, "words of 1, 2 or 4 bytes each, little endian; null without the wire"),
    "miso": ("binary", True, "the same of MISO"),
}
"""The columns: type, whether a value may be missing, and what it is. Times are nanoseconds from the capture's
beginning, rounded to whole ones."""

_SMALL = ("words", "bits_over")
"""Integers that come with eight bytes, and are smaller."""


class Select(TypedDict):
    """A chip select."""

    channel: str
    active: str
    """`low` or `high`."""


class Wires(TypedDict):
    """Which channel is which wire."""

    sck: str
    mosi: str | None
    miso: str | None
    selects: list[Select]


def _lacks(package: str, extra: str) -> StateError:
    text = f"this needs {package}: pip install {package.lower()}, or barewire with its extra {extra}"
    return StateError(errno.ENOSYS, text)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise _lacks("NumPy", "numpy") from None
    return numpy


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise _lacks("pyarrow", "arrow") from None
    return pyarrow


def schema() -> pa.Schema:
    """The schema of `Messages.arrow`; each field's metadata has what it is."""
    pyarrow = _pyarrow()
    types = {
        "int64": pyarrow.int64(),
        "uint32": pyarrow.uint32(),
        "uint8": pyarrow.uint8(),
        "bool": pyarrow.bool_(),
        "dictionary": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
        "string": pyarrow.string(),
        "binary": pyarrow.large_binary(),
    }
    return pyarrow.schema(
        [
            pyarrow.field(name, types[kind], nullable, {"about": about})
            for name, (kind, nullable, about) in COLUMNS.items()
        ]
    )


class Messages:
    """Messages of a capture, a NumPy array for each column.

    A column that can lack values is a masked array: what was not seen is masked, never 0. `mosi`, `miso` and the texts
    are arrays of objects.
    """

    message: NDArray[np.int64]
    """Its number in the capture, from 0."""
    select: np.ma.MaskedArray[Any, np.dtype[np.object_]]
    """The chip select's channel."""
    start_ns: NDArray[np.int64]
    """Chip select becomes active; without one, SCK's first edge."""
    end_ns: NDArray[np.int64]
    """Chip select becomes inactive; without one, SCK's last edge."""
    cs_inactive_ns: np.ma.MaskedArray[Any, np.dtype[np.int64]]
    """Chip select was inactive before."""
    lead_ns: np.ma.MaskedArray[Any, np.dtype[np.int64]]
    """Chip select active to SCK's first edge."""
    clocked_ns: np.ma.MaskedArray[Any, np.dtype[np.int64]]
    """SCK's first edge to its last."""
    gap_ns_median: np.ma.MaskedArray[Any, np.dtype[np.int64]]
    """Between words, the lower median."""
    gap_ns_max: np.ma.MaskedArray[Any, np.dtype[np.int64]]
    """Between words, the longest."""
    lag_ns: np.ma.MaskedArray[Any, np.dtype[np.int64]]
    """SCK's last edge to chip select inactive."""
    sck_hz: np.ma.MaskedArray[Any, np.dtype[np.int64]]
    """SCK's frequency within words."""
    words: NDArray[np.uint32]
    """Whole words."""
    bits_over: NDArray[np.uint8]
    """Bits behind the last whole word."""
    cut: NDArray[np.bool_]
    """The capture's beginning or end cuts it."""
    kind: np.ma.MaskedArray[Any, np.dtype[np.object_]]
    """A chip's name for such messages."""
    detail: np.ma.MaskedArray[Any, np.dtype[np.object_]]
    """What the chip tells of this one."""
    mosi: np.ma.MaskedArray[Any, np.dtype[np.object_]]
    """Words of `word_bytes` bytes each, little endian."""
    miso: np.ma.MaskedArray[Any, np.dtype[np.object_]]
    """The same of MISO."""

    def __init__(
        self, raw: Mapping[str, tuple[bytes, ...]], rows: range, first: int, word_bytes: int
    ) -> None:
        self._raw = raw
        self._rows = rows
        self._first = first
        self.word_bytes = word_bytes
        """The bytes of a word in `mosi` and `miso`: 1, 2 or 4."""

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} messages from number {self._first + self._rows.start}>"

    def __getitem__(self, name: str) -> Any:
        """The column of that name."""
        if name not in COLUMNS:
            raise KeyError(f"{name}: the columns are {', '.join(COLUMNS)}")
        return getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        # Called for a column that was not made yet: it stays as an attribute.
        if name not in COLUMNS:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        column = self.__dict__[name] = self._column(name)
        return column

    def slice(self, begin: int, end: int) -> Messages:
        """Messages `begin` to `end` - 1 of these, without copying."""
        return Messages(self._raw, self._rows[begin:end], self._first, self.word_bytes)

    def _valid(self, name: str) -> Any:
        valid = _numpy().frombuffer(self._raw[name][1], "bool")
        return valid[self._rows.start : self._rows.stop]

    def _offsets(self, name: str) -> Any:
        return _numpy().frombuffer(self._raw[name][2], "<i8")[self._rows.start : self._rows.stop + 1]

    def _column(self, name: str) -> Any:
        numpy = _numpy()
        begin, end = self._rows.start, self._rows.stop
        if name == "message":
            return numpy.arange(self._first + begin, self._first + end)
        if name == "cut":
            return numpy.frombuffer(self._raw[name][0], "bool")[begin:end]
        kind, nullable, _ = COLUMNS[name]
        if len(self._raw[name]) == 2:
            values = numpy.frombuffer(self._raw[name][0], "<i8")[begin:end]
        else:
            data, offsets = self._raw[name][0], self._offsets(name).tolist()
            values = numpy.empty(end - begin, object)
            for row, (at, until) in enumerate(zip(offsets, offsets[1:], strict=False)):
                piece = data[at:until]
                values[row] = piece if kind == "binary" else piece.decode()
        if name in _SMALL:
            return values.astype(kind)
        return numpy.ma.array(values, mask=~self._valid(name)) if nullable else values

    def arrow(self) -> pa.Table:
        """The messages as a table of Arrow, with `schema()`. What was not seen is null."""
        pyarrow, fields = _pyarrow(), schema()
        return pyarrow.table([self._array(pyarrow, field) for field in fields], schema=fields)

    def _array(self, pyarrow: Any, field: Any) -> Any:
        kind, nullable, _ = COLUMNS[field.name]
        if kind not in ("dictionary", "string", "binary"):
            values = self[field.name]
            mask = ~self._valid(field.name) if nullable else None
            return pyarrow.array(getattr(values, "data", values) if nullable else values, field.type, mask=mask)
        bits = pyarrow.array(self._valid(field.name)).buffers()[1]
        offsets = pyarrow.py_buffer(self._offsets(field.name))
        plain = pyarrow.large_binary() if kind == "binary" else pyarrow.large_string()
        buffers = [bits, offsets, pyarrow.py_buffer(self._raw[field.name][0])]
        array = pyarrow.Array.from_buffers(plain, len(self), buffers)
        if kind == "binary":
            return array
        array = array.cast(pyarrow.string())
        return array.dictionary_encode() if kind == "dictionary" else array


class Capture:
    """An open capture, whose wires are found. `open` makes it."""

    def __init__(self, path: str, options: Mapping[str, Any]) -> None:
        self.path = path
        self._options = options
        self._scope = _Scope(path, options)
        self._is_fresh = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing is left open: a capture is closed when it was read, or when the object goes."""

    def __repr__(self) -> str:
        return f"<capture {self.path}: mode {self.mode}, {self.wires}>"

    @property
    def wires(self) -> Wires:
        """Which channel is which wire."""
        found = self._scope.wires
        selects = [Select(channel=channel, active=active) for channel, active in found["selects"]]
        return Wires(sck=found["sck"], mosi=found["mosi"], miso=found["miso"], selects=selects)

    @property
    def channels(self) -> list[str]:
        """The names of all channels."""
        return self._scope.channels

    @property
    def mode(self) -> int:
        """The SPI mode, 0 to 3."""
        return int(self._scope.wires["mode"])

    @property
    def word_bits(self) -> int:
        """The bits of a word, 1 to 32."""
        return int(self._scope.wires["word_bits"])

    @property
    def why(self) -> list[str]:
        """What speaks for the wires and the mode, a sentence each."""
        return self._scope.why

    @property
    def notes(self) -> list[str]:
        """What else is to be known. Some of it is known only when the capture was read to its end."""
        return self._scope.notes

    @property
    def glitches(self) -> dict[str, int]:
        """How many pulses `glitch_ns` left out, by channel, when the capture was read to its end."""
        return dict(self._scope.glitches)

    def messages(self) -> Messages:
        """All messages. A capture of which they do not fit in memory is for `batches`.

        Raises `CaptureError` if the capture is not as its format demands.
        """
        for messages in self._pieces(sys.maxsize):
            return messages
        return self._none()

    def batches(self, rows: int = 65_536) -> Iterator[Messages]:
        """The messages, at most `rows` at a time. Each call reads the capture from its beginning.

        Raises `CaptureError` behind the messages before it if the capture is not as its format demands.
        """
        if rows < 1:
            raise ArgumentError(errno.EINVAL, f"rows is {rows}: 1 or more")
        for piece in self._pieces(rows):
            for begin in range(0, len(piece), rows):
                yield piece.slice(begin, begin + rows)

    def _pieces(self, rows: int) -> Iterator[Messages]:
        if not self._is_fresh:
            self._scope = _Scope(self.path, self._options)
        self._is_fresh = False
        reading, first = self._scope, 0
        word_bytes = reading.wires["word_bytes"]
        while (read := reading.read(rows)) is not None:
            yield Messages(read[1], range(read[0]), first, word_bytes)
            first += read[0]

    def _none(self) -> Messages:
        """No message at all."""
        raw = {
            name: (b"", b"", bytes(8)) if kind in ("dictionary", "string", "binary") else (b"", b"")
            for name, (kind, _, _) in COLUMNS.items()
        }
        return Messages(raw, range(0), 0, self._scope.wires["word_bytes"])


def open(
    path: str | os.PathLike[str],
    *,
    chip: str | Mapping[str, str] | None = None,
    samplerate: int | None = None,
    glitch_ns: float = 0,
    clk: str | None = None,
    mosi: str | None = None,
    miso: str | None = None,
    cs: str | Sequence[str] | None = None,
    cs_active: str | None = None,
    mode: int | None = None,
    bits: int | None = None,
    lsb_first: bool = False,
    late_edges: bool = False,
    gap_ns: float | None = None,
) -> Capture:
    """Opens a capture of sigrok, a VCD, or Saleae's digital exports, and finds its wires.

    The arguments are the command's options (docs/scope.md). `chip` is the chip behind all chip selects, or a mapping
    from channels to chips. `samplerate` is in hertz, for sigrok's files only. `cs` is a channel, several, or `none`.
    `cs_active` is `low` or `high`. Without chip selects, a pause of SCK longer than `gap_ns` ends a message.

    Raises `CaptureError`, which names the file, if it is none of these or no wire clocks; `ArgumentError` for an
    argument's value.
    """
    if cs_active not in (None, "low", "high"):
        raise ArgumentError(errno.EINVAL, f"cs_active is {cs_active!r}: low or high")
    selects = [cs] if isinstance(cs, str) else cs
    chips = {"": chip} if isinstance(chip, str) else chip or {}
    options = {
        "samplerate": samplerate,
        "glitch_ns": glitch_ns,
        "gap_ns": gap_ns,
        "clk": clk,
        "mosi": mosi,
        "miso": miso,
        "cs": None if selects is None else [] if list(selects) == ["none"] else list(selects),
        "cs_active_high": None if cs_active is None else cs_active == "high",
        "mode": mode,
        "bits": bits,
        "lsb_first": lsb_first,
        "late_edges": late_edges,
        "chips": list(chips.items()),
    }
    return Capture(os.fspath(path), options)
