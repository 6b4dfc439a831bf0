"""Progress: a callback, or a bar on a terminal."""

import sys
import time


def callback_of(progress, verb):
    """What the extension calls with (done, total, item): None or False: nothing; True: a bar; else the callable itself."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return Bar(verb) if sys.stderr is not None and sys.stderr.isatty() else None
    if not callable(progress):
        raise TypeError("progress is a callable (done, total, item), True or None")
    return progress


class Bar:
    """One line on standard error, wiped at the end: "convert  42 % of 1.2 GB, 2.1 GB/s"."""

    def __init__(self, verb, stream=None):
        self._verb, self._stream = verb, stream or sys.stderr
        self._start, self._drawn = time.monotonic(), 0.0

    def __call__(self, done, total, item):
        now = time.monotonic()
        if now - self._drawn < 0.1 and done < total:
            return
        self._drawn = now
        rate = done / max(now - self._start, 1e-9)
        share = 100 * done // total if total else 100
        line = "" if done >= total else f"{self._verb} {share:3d} % of {human_bytes(total)}, {human_bytes(rate)}/s"
        self._stream.write(f"\r{line}\x1b[K")
        self._stream.flush()


def human_bytes(count):
    """ "1.2 GB": decimal units, as the command has them."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{int(count)} bytes"
