"""The extension module. Use what `barewire` and `barewire.spidev` export."""

from asyncio import Future
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypedDict, TypeVar, final, overload, type_check_only

from typing_extensions import disjoint_base

__version__: Final[str]
__all__ = [
    "AioDevice",
    "Bus",
    "CanFrame",
    "Device",
    "Flash",
    "Lock",
    "Mcp251xFd",
    "Mcp3008",
    "Prepared",
    "Registers",
    "SpiDev",
    "Transfer",
    "_EmptyCall",
    "_Scope",
    "__version__",
    "_settle",
    "map",
    "maps",
    "unmap",
]

@type_check_only
class _Buffer(Protocol):
    """An object with a buffer: bytes, bytearray, memoryview, array, a NumPy array."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

_B = TypeVar("_B")

_Bytes = bytes | bytearray | memoryview | _Buffer | Iterable[int]
_Message = _Bytes | Transfer | Sequence[Transfer]
_Progress = Callable[[int, int], object]

@type_check_only
class _Effective(TypedDict):
    speed_hz: int
    cs_setup_ns: int
    cs_hold_ns: int
    cs_inactive_ns: int
    word_delay_ns: int
    quantum_ns: int

@type_check_only
class _Statistics(TypedDict):
    messages: int
    transfers: int
    errors: int
    timedout: int
    spi_sync: int
    spi_sync_immediate: int
    spi_async: int
    bytes: int
    bytes_rx: int
    bytes_tx: int
    transfers_split_maxsize: int
    transfer_bytes_histo: dict[str, int]

@type_check_only
class _Figures(TypedDict):
    virtual_ns: int
    bits: int
    register_reads: int
    register_writes: int
    violations: int
    violation_texts: list[str]

@type_check_only
class _Written(TypedDict):
    unchanged_bytes: int
    programmed_bytes: int
    erased_bytes: int
    erases: int
    programs: int

@type_check_only
class _CanErrors(TypedDict):
    transmit: int
    receive: int
    state: str

@final
class Transfer:
    @staticmethod
    def write(
        tx: _Bytes,
        /,
        *,
        speed_hz: int = 0,
        bits_per_word: int = 0,
        delay_ns: int = 0,
        word_delay_ns: int = 0,
        cs_change: bool = False,
        cs_change_delay_ns: int = 0,
    ) -> Transfer: ...
    @staticmethod
    def read(
        length: int,
        /,
        *,
        speed_hz: int = 0,
        bits_per_word: int = 0,
        delay_ns: int = 0,
        word_delay_ns: int = 0,
        cs_change: bool = False,
        cs_change_delay_ns: int = 0,
    ) -> Transfer: ...
    @staticmethod
    def exchange(
        tx: _Bytes,
        /,
        *,
        speed_hz: int = 0,
        bits_per_word: int = 0,
        delay_ns: int = 0,
        word_delay_ns: int = 0,
        cs_change: bool = False,
        cs_change_delay_ns: int = 0,
    ) -> Transfer: ...

@final
class Lock:
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool: ...
    @property
    def held(self) -> bool: ...

@final
class Prepared:
    def __call__(self) -> bytearray: ...
    def run(self) -> bytearray: ...
    def _empty(self) -> None: ...
    @property
    def tx(self) -> bytearray: ...
    @property
    def rx(self) -> bytearray: ...

@final
class _EmptyCall:
    def __new__(cls) -> Self: ...
    def __call__(self) -> None: ...

@final
class AioDevice:
    @overload
    def transfer(self, message: _Bytes, /) -> Future[bytes]: ...
    @overload
    def transfer(self, message: Transfer | Sequence[Transfer], /) -> Future[list[bytes | None]]: ...
    def write(self, tx: _Bytes, /) -> Future[None]: ...
    def read(self, length: int, /) -> Future[bytes]: ...

@final
class Device:
    @overload
    def transfer(self, message: _Message, /, *, into: _B) -> _B: ...
    @overload
    def transfer(self, message: _Bytes, /, *, into: None = None) -> bytes: ...
    @overload
    def transfer(
        self, message: Transfer | Sequence[Transfer], /, *, into: None = None
    ) -> list[bytes | None]: ...
    def write(self, tx: _Bytes, /) -> None: ...
    def read(self, length: int, /) -> bytes: ...
    def prepare(self, tx: _Bytes, /) -> Prepared: ...
    @overload
    def transfer_async(self, message: _Bytes, /) -> Future[bytes]: ...
    @overload
    def transfer_async(
        self, message: Transfer | Sequence[Transfer], /
    ) -> Future[list[bytes | None]]: ...
    @property
    def aio(self) -> AioDevice: ...
    @property
    def chip_select(self) -> int: ...
    @property
    def speed_hz(self) -> int: ...
    @property
    def mode(self) -> int: ...
    @property
    def bits_per_word(self) -> int: ...
    @property
    def effective_speed_hz(self) -> int: ...
    @property
    def effective(self) -> _Effective: ...

@final
class Bus:
    def __new__(cls, name: str, /, *, statistics: bool = False) -> Self: ...
    def device(
        self,
        chip_select: int = 0,
        *,
        speed_hz: int,
        mode: int = 0,
        bits_per_word: int = 8,
        cs_setup_ns: int = 0,
        cs_hold_ns: int = 0,
        cs_inactive_ns: int = 0,
        word_delay_ns: int = 0,
        priority: int = 0,
        poll_limit_ns: int | None = None,
    ) -> Device: ...
    def lock(self) -> Lock: ...
    def registers(
        self, chip: str, chip_select: int | None = None, *, speed_hz: int | None = None
    ) -> Registers: ...
    def statistics(self) -> _Statistics | None: ...
    def simulated(self) -> _Figures | None: ...
    @property
    def counting(self) -> bool: ...
    @counting.setter
    def counting(self, value: bool, /) -> None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def name(self) -> str: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool: ...

@final
class Registers:
    def read(self, name: str, /) -> int: ...
    def write(self, name: str, value: int, /) -> None: ...
    def fields(self, name: str, /) -> dict[str, int]: ...
    def dump(self) -> dict[str, int]: ...
    @property
    def names(self) -> list[str]: ...
    def __getitem__(self, name: str, /) -> int: ...
    def __setitem__(self, name: str, value: int, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...
    def __contains__(self, name: str, /) -> bool: ...

@final
class Flash:
    def __new__(
        cls,
        bus: Bus,
        chip_select: int | None = None,
        *,
        speed_hz: int = 20_000_000,
        size: int | None = None,
        erase_size: int | None = None,
        protection: str | None = None,
        four_byte_mode: str | None = None,
    ) -> Self: ...
    @property
    def id(self) -> bytes: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def size(self) -> int: ...
    @property
    def erase_size(self) -> int: ...
    @property
    def page_size(self) -> int: ...
    @overload
    def read(
        self,
        offset: int = 0,
        length: int | None = None,
        *,
        into: _B,
        progress: _Progress | None = None,
    ) -> _B: ...
    @overload
    def read(
        self,
        offset: int = 0,
        length: int | None = None,
        *,
        into: None = None,
        progress: _Progress | None = None,
    ) -> bytes: ...
    def write(
        self, offset: int, data: _Bytes, *, progress: _Progress | None = None
    ) -> _Written: ...
    def erase(
        self, offset: int, length: int, *, progress: _Progress | None = None
    ) -> None: ...
    def erase_chip(self, *, progress: _Progress | None = None) -> None: ...
    def verify(self, offset: int, data: _Bytes, *, progress: _Progress | None = None) -> None: ...
    def status(self) -> int: ...

@disjoint_base
class Mcp3008:
    def __new__(
        cls,
        bus: Bus,
        chip_select: int | None = None,
        *,
        part: str = "mcp3008",
        supply_mv: int = 5_000,
        vref_mv: int | None = None,
        speed_hz: int | None = None,
    ) -> Self: ...
    def read(self, channel: int = 0, *, minus: int | None = None) -> int: ...
    def _sample(
        self, samples: int, rate_hz: int | None, channels: Sequence[int]
    ) -> tuple[bytearray, bytearray, int, float]: ...
    @property
    def code_max(self) -> int: ...
    @property
    def channels(self) -> int: ...
    @property
    def vref_mv(self) -> int: ...
    @property
    def part(self) -> str: ...
    @property
    def max_rate_hz(self) -> int: ...

@final
class CanFrame:
    def __new__(
        cls,
        id: int,
        data: _Bytes | None = None,
        *,
        extended: bool = False,
        fd: bool = False,
        bit_rate_switch: bool = False,
        remote: bool = False,
        dlc: int = 0,
    ) -> Self: ...
    @property
    def id(self) -> int: ...
    @property
    def extended(self) -> bool: ...
    @property
    def data(self) -> bytes: ...
    @property
    def dlc(self) -> int: ...
    @property
    def fd(self) -> bool: ...
    @property
    def bit_rate_switch(self) -> bool: ...
    @property
    def remote(self) -> bool: ...
    @property
    def timestamp(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Mcp251xFd:
    def __new__(
        cls,
        bus: Bus,
        chip_select: int | None = None,
        *,
        bitrate_hz: int,
        data_bitrate_hz: int | None = None,
        oscillator_hz: int | None = None,
        mode: str | None = None,
        speed_hz: int | None = None,
        crc: bool = False,
    ) -> Self: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def send(self, frame: CanFrame, /, *, timeout_s: float = 1.0) -> None: ...
    def receive(self, *, timeout_s: float = 0.0) -> CanFrame | None: ...
    def errors(self) -> _CanErrors: ...
    @property
    def registers(self) -> Registers: ...
    @property
    def part(self) -> str: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool: ...

@disjoint_base
class SpiDev:
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    def __init__(
        self, bus: int | str | bytes | PathLike[str] | None = None, client: int | None = None
    ) -> None: ...
    def open(self, bus: int, device: int) -> None: ...
    def open_path(self, path: str | bytes | PathLike[str]) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...
    def readbytes(self, len: int, /) -> list[int]: ...
    def writebytes(self, values: _Bytes, /) -> None: ...
    def writebytes2(self, values: _Bytes, /) -> None: ...
    @overload
    def xfer(  # type: ignore[overload-overlap]
        self, values: tuple[int, ...], speed_hz: int = 0, delay_usecs: int = 0, bits_per_word: int = 0, /
    ) -> tuple[int, ...]: ...
    @overload
    def xfer(
        self, values: _Bytes, speed_hz: int = 0, delay_usecs: int = 0, bits_per_word: int = 0, /
    ) -> list[int]: ...
    @overload
    def xfer2(  # type: ignore[overload-overlap]
        self, values: tuple[int, ...], speed_hz: int = 0, delay_usecs: int = 0, bits_per_word: int = 0, /
    ) -> tuple[int, ...]: ...
    @overload
    def xfer2(
        self, values: _Bytes, speed_hz: int = 0, delay_usecs: int = 0, bits_per_word: int = 0, /
    ) -> list[int]: ...
    def xfer3(
        self, values: _Bytes, speed_hz: int = 0, delay_usecs: int = 0, bits_per_word: int = 0, /
    ) -> tuple[int, ...]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool: ...
    @property
    def mode(self) -> int: ...
    @mode.setter
    def mode(self, value: int, /) -> None: ...
    @property
    def bits_per_word(self) -> int: ...
    @bits_per_word.setter
    def bits_per_word(self, value: int, /) -> None: ...
    @property
    def max_speed_hz(self) -> int: ...
    @max_speed_hz.setter
    def max_speed_hz(self, value: int, /) -> None: ...
    @property
    def read0(self) -> bool: ...
    @read0.setter
    def read0(self, value: bool, /) -> None: ...
    @property
    def cshigh(self) -> bool: ...
    @cshigh.setter
    def cshigh(self, value: bool, /) -> None: ...
    @property
    def threewire(self) -> bool: ...
    @threewire.setter
    def threewire(self, value: bool, /) -> None: ...
    @property
    def lsbfirst(self) -> bool: ...
    @lsbfirst.setter
    def lsbfirst(self, value: bool, /) -> None: ...
    @property
    def loop(self) -> bool: ...
    @loop.setter
    def loop(self, value: bool, /) -> None: ...
    @property
    def no_cs(self) -> bool: ...
    @no_cs.setter
    def no_cs(self, value: bool, /) -> None: ...

@final
class _Scope:
    def __new__(cls, path: str, options: Mapping[str, Any]) -> Self: ...
    def read(self, rows: int) -> tuple[int, dict[str, tuple[bytes, ...]]] | None: ...
    @property
    def wires(self) -> dict[str, Any]: ...
    @property
    def channels(self) -> list[str]: ...
    @property
    def why(self) -> list[str]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def glitches(self) -> list[tuple[str, int]]: ...

def map(
    node: str,
    bus: str | Bus,
    *,
    chip_select: int | None = None,
    speed_hz: int = 1_000_000,
    bufsiz: int = 4096,
    cs: int | None = None,
) -> None: ...
def unmap(node: str | None = None) -> None: ...
def maps() -> dict[str, tuple[str, int]]: ...
def _settle(future: Future[Any], success: bool, value: object) -> None: ...
