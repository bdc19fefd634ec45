"""Compilation of loops, kept on disk by the state of all samplers' code; imported where chains are run only.

numba looks at a function's own file to see whether what it kept is out of date; what the function calls may stand in
another one. So each state of the code has a folder of its own.
"""

import contextlib
import fcntl
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import InTreeCacheLocator
from numba.core.event import Listener, install_listener

# What compiled loops call is compiled into them, and not kept: a function that comes from the disk could not be.
# Nor are they called from Python: without the wrappers for that a quarter of the compilation is saved.
_within: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = numba.njit(**_within)
# Arrays' references are not counted in what makes no arrays: atomic counts at every call take as long as short loops.
bare = numba.njit(**_within | {"_nrt": False})
# Arrays are many arguments: a call may take longer than what is called, and is avoided in the innermost loops.
inlined = numba.njit(**_within, forceinline=True)
# Where the sources' folder cannot be written, numba's own folder of the user serves.
_LOCATORS = f"{__name__}.Locator,UserWideCacheLocator"


@functools.cache
def folder() -> str:
    """Return the name of the folder that keeps what this state of the samplers' code is compiled to."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    return f"compiled_{digest[:10]}"


class Locator(InTreeCacheLocator):
    """A folder beside the sources, named by their state."""

    def __init__(self, function, file):
        super().__init__(function, file)
        self._cache_path = str(Path(self._cache_path) / folder())


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Let other processes wait for a loop that this one compiles, and read it then, instead of compiling it too."""
    with contextlib.ExitStack() as stack:
        # Without a lock all compile: the folder may be read-only.
        with contextlib.suppress(OSError):
            place = Path(__file__).parent / "__pycache__" / folder()
            place.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((place / f"{name}.lock").open("a")), fcntl.LOCK_EX)
        yield


class _Announcement(Listener):
    """One line when a loop is compiled, and none when it is read."""

    def __init__(self, name: str, seconds: int):
        self._line = f"privpost: compiling {name.removeprefix('privpost.samplers.')} once, about {seconds} s"

    def on_start(self, event):
        if self._line:
            print(self._line, file=sys.stderr, flush=True)
        # What the loop calls is compiled within it.
        self._line = ""

    def on_end(self, event):
        pass


@contextlib.contextmanager
def _announced(name: str, seconds: int) -> Iterator[None]:
    """Say so when a loop is compiled that takes some seconds."""
    with install_listener("numba:compile", _Announcement(name, seconds)) if seconds else contextlib.nullcontext():
        yield


def outer(*signature, seconds: int = 0) -> Callable[[Callable], Any]:
    """Compile a loop that Python calls, for one signature or, without it, for each that occurs.

    Args:
        seconds: what its compilation takes, which is announced; 0 for less than two.
    """

    def decorate(function):
        before = numba.config.CACHE_LOCATOR_CLASSES
        numba.config.CACHE_LOCATOR_CLASSES = _LOCATORS
        try:
            loop = numba.njit(cache=True, error_model="numpy")(function)
        finally:
            numba.config.CACHE_LOCATOR_CLASSES = before
        name = f"{function.__module__}.{function.__qualname__}"
        compile_it = loop.compile

        def compiled(*arguments):
            with _alone(name), _announced(name, seconds):
                return compile_it(*arguments)

        loop.compile = compiled
        for types in signature:
            loop.compile(types)
        if signature:
            loop.disable_compile()
        return loop

    return decorate
