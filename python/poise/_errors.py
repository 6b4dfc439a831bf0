"""Defines poise.Error, and a class for each kind of failure."""

from __future__ import annotations

import errno
import os
import typing

Remedies = typing.Iterable[typing.Tuple[str, str, str]]


class Error(Exception):
    """Reports a failure in one sentence, which names the field, the expected value and the value that was found.

    kind: "invalid_file", "unsupported", "not_found", "bad_argument", "io", "cancelled" or "internal" (a bug in Poise).
    message: the sentence. path: the file, or None. offset: the byte in the file, or None.
    remedies: (kind, value, tensor) as in <poise/error.hpp>, the best first.
    """

    kind = "internal"

    def __init__(self, message: str, path: str | None = None, offset: int | None = None, remedies: Remedies = ()):
        remedies = list(remedies)
        where = "" if offset is None else f" (at {offset:#x})"
        advice = _make_advice(remedies)
        super().__init__(f"{path + ': ' if path else ''}{message}{where}{'; ' + advice if advice else ''}")
        self.message, self.path, self.offset, self.remedies = message, path, offset, remedies

    def __reduce__(self) -> typing.Any:  # keeps all attributes when an error is pickled
        return type(self), (self.message, self.path, self.offset, self.remedies)


class InvalidFileError(Error, ValueError):
    """The bytes of a file break a rule of its format."""

    kind = "invalid_file"


class UnsupportedError(Error):
    """The file is valid, but Poise cannot do this with it."""

    kind = "unsupported"


class _SystemError(Error):
    """An error that is an OSError, too: errno and strerror are the system's reason, or None."""

    _usual_errno: int | None = None  # the errno if the message has no reason of the system

    def __init__(self, message: str, path: str | None = None, offset: int | None = None, remedies: Remedies = ()):
        super().__init__(message, path, offset, remedies)
        code = _find_errno(message) or self._usual_errno
        system: typing.Any = self
        system.errno, system.strerror, system.filename = code, None if code is None else os.strerror(code), path

    def __str__(self) -> str:
        return str(self.args[0])


class NotFoundError(_SystemError, FileNotFoundError):
    """A path, tensor or part does not exist."""

    kind = "not_found"
    _usual_errno = errno.ENOENT


class MissingTensorError(Error, KeyError):
    """A file has no tensor of a name."""

    kind = "not_found"

    def __str__(self) -> str:  # that of KeyError adds quotes
        return str(self.args[0])


class BadArgumentError(Error, ValueError):
    """An argument is invalid."""

    kind = "bad_argument"


class OutputExistsError(_SystemError, BadArgumentError, FileExistsError):
    """The output exists and may not be replaced."""

    kind = "bad_argument"
    _usual_errno = errno.EEXIST


class InputOutputError(_SystemError, OSError):
    """The operating system refused or failed. errno and strerror are its reason, or None."""

    kind = "io"


class PermissionDeniedError(InputOutputError, PermissionError):
    """The operating system does not permit the operation."""


class CancelledError(Error):
    """A progress callback returned False."""

    kind = "cancelled"


class InternalError(Error):
    """Poise has a bug."""

    kind = "internal"


_CODES = {os.strerror(code): code for code in errno.errorcode}


def _find_errno(message: str) -> int | None:
    """Returns the errno of the system's text at the end of a message ("cannot open: Permission denied"), or None."""
    return _CODES.get(message.rpartition(": ")[2])


_KINDS: tuple[type[Error], ...] = (
    InvalidFileError,
    UnsupportedError,
    NotFoundError,
    BadArgumentError,
    InputOutputError,
    CancelledError,
    InternalError,
)
_CLASSES = {made.kind: made for made in _KINDS}


def make_error(kind: str, message: str, path: str | None, offset: int | None, remedies: Remedies) -> Error:
    """Returns the exception for a failure of the library. The extension calls it."""
    made = _CLASSES.get(kind, Error)
    remedies = list(remedies)
    if made is BadArgumentError and any(kind == "overwrite" for kind, _, _ in remedies):
        made = OutputExistsError
    if made is InputOutputError and _find_errno(message) in (errno.EACCES, errno.EPERM):
        made = PermissionDeniedError
    return made(message, path, offset, remedies)


_HELPS = {
    "overwrite": "overwrite=True replaces it",
    "format": 'format="{value}" can',
    "dtype": 'dtype="{value}" converts it',
    "keep": 'keep={{"{tensor}": "{value}"}} stores it as that',
    "skip": 'skip=["{tensor}"] leaves it out',
    "only": 'only=["{tensor}"] writes that one alone',
    "model_type": 'card={{"model_type": "{value}"}} sets it',
    "convert": "poise.convert() makes it a {value} file",
    "force": "force=True changes it anyway",
    "lora": 'poise.convert() of the base model with lora="{value}" does',
}


def _make_advice(remedies: Remedies) -> str:
    texts: list[str] = []
    for kind, value, tensor in remedies:
        helps = _HELPS.get(kind, "").format(value=value, tensor=tensor)
        if kind == "format" and not value:
            helps = "format=... names one"
        if helps and helps not in texts:
            texts.append(helps)
    return ", ".join(texts[:3]) + (", ..." if len(texts) > 3 else "")
