"""Shows progress on standard error, or calls a function."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
import typing

from ._types import Callback, Progress

_WORDS = ("auto", "plain", "none")
_BAR = 24  # characters
_BETWEEN_BARS = 0.1  # seconds
_BETWEEN_LINES = 5.0
_QUICK = 0.3  # seconds; a shorter call needs no bar
_NAME = 60  # the largest number of characters of a tensor's name


@contextlib.contextmanager
def show_progress(progress: Progress, verb: str) -> typing.Iterator[Callback | None]:
    """Passes a callback for the extension, a function of (done, total, item), to the block. Removes the bar at the end.

    progress: None, False, "none": no progress. True, "auto": a bar on a terminal and in a notebook, elsewhere a line
    every few seconds. "plain": such lines everywhere. A function is used as it is.
    """
    shown = _make_display(progress, verb)
    try:
        yield shown
    finally:
        if isinstance(shown, (Bar, Lines)):
            shown.end()


def _make_display(progress: Progress, verb: str) -> Callback | None:
    if progress is None or progress is False or progress == "none":
        return None
    if progress is True or progress == "auto" or progress == "plain":
        stream = sys.stderr
        if stream is None:
            return None
        return Bar(verb, stream) if progress != "plain" and _can_rewrite(stream) else Lines(verb, stream)
    if isinstance(progress, str) or not callable(progress):
        words = ", ".join(f'"{word}"' for word in _WORDS)
        raise TypeError(f"progress is {progress!r}, expected True, None, a function of (done, total, item), or {words}")
    return progress


def _can_rewrite(stream: typing.TextIO) -> bool:
    """Returns True if a carriage return restarts the line, as in terminals and notebooks."""
    return stream.isatty() or type(stream).__module__.partition(".")[0] == "ipykernel"


class _Display:
    """Has the code that Bar and Lines share."""

    def __init__(self, verb: str, stream: typing.TextIO):
        self._verb, self._stream = verb, stream
        self._start = time.monotonic()

    def _format_facts(self, done: int, total: int, item: str, now: float) -> str:
        seconds = max(now - self._start, 1e-9)
        left = f"  {seconds / done * (total - done):.0f} s left" if done else ""
        return f"{format_bytes(done / seconds)}/s{left}  {_make_printable(item[:_NAME])}"

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the stream is closed: the work continues silently
            pass


class Bar(_Display):
    """Shows one line, overwrites it, and erases it at the end."""

    def __init__(self, verb: str, stream: typing.TextIO):
        super().__init__(verb, stream)
        self._last: float | None = None
        self._width = 0  # characters of the drawn line

    def __call__(self, done: int, total: int, item: str) -> None:
        now = time.monotonic()
        if now - self._start < _QUICK if self._last is None else now - self._last < _BETWEEN_BARS:
            return
        self._last = now
        share = done / total if total else 1.0
        bar = ("=" * int(share * _BAR)).ljust(_BAR)
        self._draw(f"{self._verb} [{bar}] {100 * share:3.0f}%  {self._format_facts(done, total, item, now)}")

    def _draw(self, line: str) -> None:
        line = line[: shutil.get_terminal_size().columns - 1]
        self._write("\r" + line.ljust(self._width))
        self._width = len(line)

    def end(self) -> None:
        if self._width:
            self._draw("")
            self._write("\r")


class Lines(_Display):
    """Writes a line every few seconds, and one at the end, as the command does."""

    def __init__(self, verb: str, stream: typing.TextIO):
        super().__init__(verb, stream)
        self._last = self._start
        self._done = False

    def __call__(self, done: int, total: int, item: str) -> None:
        now = time.monotonic()
        if done >= total and not self._done:
            self._done = True
            seconds = max(now - self._start, 1e-9)
            self._write(f"{self._verb} 100% of {format_bytes(total)}  {format_bytes(total / seconds)}/s\n")
        if self._done or now - self._last < _BETWEEN_LINES:
            return
        self._last = now
        share = 100 * done // total
        self._write(
            f"{self._verb} {share:3d}% of {format_bytes(total)}  {self._format_facts(done, total, item, now)}\n"
        )

    def end(self) -> None:
        pass


def _make_printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def format_bytes(count: float) -> str:
    """Returns "1.2 GB": decimal units, as in the command."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{int(count)} byte{'' if int(count) == 1 else 's'}"
