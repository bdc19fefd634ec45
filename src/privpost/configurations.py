"""Where the configurations are: in the checkout, or in the package when it was installed from a wheel."""

from pathlib import Path

# Relative to the root of a checkout.
CHECKOUT = Path("conf")
PACKAGED = Path(__file__).parent / "conf"


def folder() -> Path:
    """Return the folder of config.yaml: in the working directory, else in the package."""
    return PACKAGED if not (CHECKOUT / "config.yaml").is_file() and PACKAGED.is_dir() else CHECKOUT
