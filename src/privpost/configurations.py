"""Finds the configurations: in the checkout, or, if the package was installed from a wheel, in the package."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

# The folder of configurations, relative to the root of a checkout.
CHECKOUT = Path("conf")
PACKAGED = Path(__file__).parent / "conf"
# Hydra's primary file, without its ending, and further folders that Hydra searches after conf.
PRIMARY = "config"
MORE: tuple[str, ...] = ()


@contextlib.contextmanager
def found_by(primary: str | None, *folders: str | None) -> Iterator[None]:
    """Within the block, use another primary file or further folders, as with Hydra's --config-name and --config-dir."""
    global PRIMARY, MORE
    before = PRIMARY, MORE
    PRIMARY, MORE = primary or PRIMARY, tuple(str(Path(folder).resolve()) for folder in folders if folder)
    try:
        yield
    finally:
        PRIMARY, MORE = before


def folder() -> Path:
    """Return the folder of config.yaml, which is in the working directory or else in the package."""
    return PACKAGED if not (CHECKOUT / "config.yaml").is_file() and PACKAGED.is_dir() else CHECKOUT
