"""Shows the progress of a run: on one line of a terminal, or as occasional lines if there is no terminal."""

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from typing import TextIO

# Seconds between two lines where there is no terminal.
PAUSE = 15


def minutes(seconds: float) -> str:
    """Return a time as text: in seconds below a minute and a half, and in minutes above."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number followed by a noun, which is in the plural unless the number is 1."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def some(words: Sequence[str], most: int = 3) -> str:
    """Return a text of the first `most` words and the number of further words."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


class Progress:
    """Shows on a stream how many items (called `noun`) are done, and the time left."""

    def __init__(self, stream: TextIO, noun: str = "jobs"):
        self._stream, self._noun = stream, noun
        self._start = time.perf_counter()
        self._shown = 0.0
        self.terminal = stream.isatty()

    def update(self, done: int, total: int, left: float | None = None) -> None:
        """Show how many items are done, and the seconds left. By default, all items take equally long."""
        elapsed = time.perf_counter() - self._start
        left = elapsed * (total / done - 1) if left is None and done else left
        text = f"{done} of {total} {self._noun} done, {minutes(elapsed)} so far"
        text += "" if left is None else f", about {minutes(left)} left"
        self._tell(text, elapsed, last=done == total and elapsed > 1)

    def _tell(self, text: str, elapsed: float, last: bool = False) -> None:
        if self.terminal:
            print(f"\r{text:<78}", end="", file=self._stream, flush=True)
        elif elapsed - self._shown > PAUSE or last:
            self._shown = elapsed
            print(text, file=self._stream, flush=True)

    def clear(self) -> None:
        if self.terminal:
            print(f"\r{'':<78}\r", end="", file=self._stream, flush=True)


def say(line: object) -> None:
    """Print a line about a long run, or print nothing if the reader of the output (head, a pager) has ended."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
