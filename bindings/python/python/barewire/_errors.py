"""Exceptions. Each is an `OSError`, with an error number and a sentence that names the remedy, and also the built-in
exception that fits: code that knows nothing of barewire catches it."""


class Error(OSError):
    """What barewire raises."""


class ArgumentError(Error, ValueError):
    """An argument has a value that the call does not take. Nothing was done."""


class ArgumentTypeError(Error, TypeError):
    """An argument has a type that the call does not take. Nothing was done."""


class StateError(Error, RuntimeError):
    """The object is not in a state for this call."""


class RegisterNameError(Error, KeyError):
    """The chip has no register or field of that name."""


class BusNameError(Error, ValueError):
    """The name of a bus, or a map, is wrong: nothing was opened."""


class OpenError(Error):
    """A bus could not be opened, or not closed in order."""


class BusNotFoundError(OpenError, FileNotFoundError):
    """The bus's node or file does not exist."""


class BusAccessError(OpenError, PermissionError):
    """This user may not open the bus."""


class SettingsError(Error, ValueError):
    """The controller cannot make these settings, or this message."""


class MessageError(Error):
    """A message failed. The chip is deselected."""


class MessageTimeout(MessageError, TimeoutError):
    """The controller did not finish in time."""


class ClosedError(MessageError, BrokenPipeError):
    """The bus was closed."""


class DeadlockError(Error, RuntimeError):
    """The call would wait for itself."""


class ForkedError(Error, PermissionError):
    """The bus is the parent process's."""


class ChipError(Error):
    """A chip does not answer, or is not what it should be, or cannot do what was asked."""


class ChipArgumentError(ChipError, ArgumentError):
    """The chip does not have this range, block, channel or bit rate. Nothing was done."""


class ChipTimeout(ChipError, TimeoutError):
    """The chip was not ready in time."""


class VerifyError(ChipError):
    """A chip's content is not what it should be."""


class CaptureError(Error, ValueError):
    """A capture cannot be read, or its wires are not found. The sentence begins with the file."""
