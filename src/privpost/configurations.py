"""Where the configurations are: in the checkout, or in the package when it was installed from a wheel."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

# Relative to the root of a checkout.
CHECKOUT = Path("conf")
PACKAGED = Path(__file__).parent / "conf"
# The file from which Hydra composes, without its ending, and the folders in which it looks before conf.
PRIMARY = "config"
FIRST: tuple[str, ...] = ()


@contextlib.contextmanager
def found_by(primary: str | None, *folders: str | None) -> Iterator[None]:
    """Compose from another file of conf, or look in other folders first: Hydra's --config-name and --config-dir."""
    global PRIMARY, FIRST
    before = PRIMARY, FIRST
    PRIMARY, FIRST = primary or PRIMARY, tuple(str(Path(folder).resolve()) for folder in folders if folder)
    try:
        yield
    finally:
        PRIMARY, FIRST = before


def folder() -> Path:
    """Return the folder of config.yaml: in the working directory, else in the package."""
    return PACKAGED if not (CHECKOUT / "config.yaml").is_file() and PACKAGED.is_dir() else CHECKOUT
