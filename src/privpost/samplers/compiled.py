"""Decorators that compile loops with numba and cache the machine code on disk.

numba looks for changes only in the file of a loop, but a loop may call functions in other files. So each version of the
samplers' code has a separate cache folder.
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

# Functions that loops call are compiled into the loops and not cached: a cached function cannot be inlined. Python does
# not call these functions, so they get no wrappers. This saves a quarter of the compilation time.
_within: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = numba.njit(**_within)
# Atomic updates of reference counts take as long as a short loop. Functions that create no arrays do not need them.
bare = numba.njit(**_within | {"_nrt": False})
# numba passes an array as many arguments, so a call may take longer than the function. Innermost loops are inlined.
inlined = numba.njit(**_within | {"_nrt": False}, forceinline=True)
# If the source folder is read-only, numba uses its per-user cache folder.
_LOCATORS = f"{__name__}.Locator,UserWideCacheLocator"


@functools.cache
def folder() -> str:
    """Return the name of the cache folder for this version of the samplers' code."""
    here = Path(__file__).parent
    sources = [(path.relative_to(here).as_posix(), path.read_bytes()) for path in sorted(here.rglob("*.py"))]
    return f"compiled_{hashlib.sha256(repr(sources).encode()).hexdigest()[:10]}"


def _cache() -> Path:
    return Path(__file__).parent / "__pycache__" / folder()


class Locator(InTreeCacheLocator):
    """Makes numba cache the samplers' loops beside this file, and other loops beside their own files."""

    def __init__(self, function, file):
        super().__init__(function, file)
        source, here = Path(file).resolve().parent, Path(__file__).resolve().parent
        inside = source.is_relative_to(here)
        self._cache_path = str(_cache() / source.relative_to(here) if inside else Path(self._cache_path) / folder())


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Let other processes wait while this process compiles a loop."""
    with contextlib.ExitStack() as stack:
        # Without a lock, as in a read-only folder, every process compiles.
        with contextlib.suppress(OSError):
            _cache().mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((_cache() / f"{name}.lock").open("a")), fcntl.LOCK_EX)
        yield


class _Announcement(Listener):
    """Prints one line when numba compiles a loop."""

    def __init__(self, name: str, seconds: int):
        self._line = f"privpost: compiling {name.removeprefix('privpost.samplers.')} once, about {seconds} s"

    def on_start(self, event):
        if self._line:
            print(self._line, file=sys.stderr, flush=True)
        # Compilations of the loop's callees are not announced.
        self._line = ""

    def on_end(self, event):
        pass


@contextlib.contextmanager
def _announced(name: str, seconds: int) -> Iterator[None]:
    """Announce the compilation of a loop unless `seconds` is 0."""
    with install_listener("numba:compile", _Announcement(name, seconds)) if seconds else contextlib.nullcontext():
        yield


def outer(*signature, seconds: int = 0) -> Callable[[Callable], Any]:
    """Return a decorator that compiles and caches a loop that Python calls.

    Args:
        signature: types of arguments for which to compile at once. Without types, the loop is compiled when it is
            called.
        seconds: approximate time of compilation, which is announced; 0 for no announcement.
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
