"""Where the configurations are: in the checkout, or in the package, which an installed wheel brings them with."""

from pathlib import Path

# Relative to the root of a checkout.
CHECKOUT = Path("conf")
PACKAGED = Path(__file__).parent / "conf"


def folder() -> Path:
    """Return the folder of config.yaml: that of the working directory, or else the package's own."""
    return PACKAGED if not (CHECKOUT / "config.yaml").is_file() and PACKAGED.is_dir() else CHECKOUT
