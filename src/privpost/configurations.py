"""Where the configurations are: in the checkout, or in the package when it was installed from a wheel."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

# Relative to the root of a checkout.
CHECKOUT = Path("conf")
PACKAGED = Path(__file__).parent / "conf"
# Hydra's primary file, without its ending, and further folders that it searches after conf.
PRIMARY = "config"
MORE: tuple[str, ...] = ()


@contextlib.contextmanager
def found_by(primary: str | None, *folders: str | None) -> Iterator[None]:
    """Use another primary file of conf, or further folders, as Hydra's --config-name and --config-dir do."""
    global PRIMARY, MORE
    before = PRIMARY, MORE
    PRIMARY, MORE = primary or PRIMARY, tuple(str(Path(folder).resolve()) for folder in folders if folder)
    try:
        yield
    finally:
        PRIMARY, MORE = before


def folder() -> Path:
    """Return the folder of config.yaml: in the working directory, else in the package."""
    return PACKAGED if not (CHECKOUT / "config.yaml").is_file() and PACKAGED.is_dir() else CHECKOUT
