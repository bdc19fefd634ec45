"""Compilation of loops, kept on disk by the state of all samplers' code; imported where chains are run only.

numba looks at a function's own file to see whether what it kept is out of date; what the function calls may stand in
another one. So each state of the code has a folder of its own.
"""

import functools
import hashlib
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import InTreeCacheLocator

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
def _state() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:10]


class Locator(InTreeCacheLocator):
    """A folder beside the sources, named by their state."""

    def __init__(self, function, file):
        super().__init__(function, file)
        self._cache_path = str(Path(self._cache_path) / f"compiled_{_state()}")


def outer(*signature):
    """Compile a loop that Python calls, for one signature or, without it, for each that occurs."""

    def decorate(function):
        before = numba.config.CACHE_LOCATOR_CLASSES
        numba.config.CACHE_LOCATOR_CLASSES = _LOCATORS
        try:
            return numba.njit(*signature, cache=True, error_model="numpy")(function)
        finally:
            numba.config.CACHE_LOCATOR_CLASSES = before

    return decorate
