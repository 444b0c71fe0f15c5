"""Exceptions. Each is an `OSError`, with an error number and a sentence that names the remedy."""


class Error(OSError):
    """What barewire raises."""


class BusNameError(Error, ValueError):
    """The name of a bus, or a map, is wrong: nothing was opened."""


class OpenError(Error):
    """A bus could not be opened, or not closed in order."""


class SettingsError(Error, ValueError):
    """The controller cannot make these settings, or this message."""


class MessageError(Error):
    """A message failed. The chip is deselected."""


class MessageTimeout(MessageError, TimeoutError):
    """The controller did not finish in time."""


class ClosedError(MessageError):
    """The bus was closed."""


class DeadlockError(Error):
    """The call would wait for itself."""


class ForkedError(Error):
    """The bus is the parent process's."""


class ChipError(Error):
    """A chip does not answer, or is not what it should be, or cannot do what was asked."""


class VerifyError(ChipError):
    """A chip's content is not what it should be."""
