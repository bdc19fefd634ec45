"""MNIST: the images of two digits, out of the training file's 60,000 images of 28 by 28 pixels."""

import gzip
import zlib
from pathlib import Path

import numpy as np

from privpost.datasets import files
from privpost.datasets.catalogue import Dataset
from privpost.datasets.encoding import Task


def parse(paths: dict[str, Path], dataset: Dataset) -> dict[str, np.ndarray]:
    """Read the training archives and keep the images of the two digits of the settings, in the file's order.

    ``pixels`` is (11982, 784) uint8, row by row from the top. ``digit`` is (11982,) uint8. Raises ValueError.
    """
    digits = dataset.settings["digits"]
    valid = len(digits) == 2 and all(type(digit) is int and 0 <= digit <= 9 for digit in digits)
    if not valid or digits[0] == digits[1]:
        raise ValueError(f"dataset {dataset.name}: digits = {digits!r}: must be two different digits 0 to 9")
    count = dataset.settings["images"]
    images = _idx(paths["train-images-idx3-ubyte.gz"], (count, 28, 28))
    labels = _idx(paths["train-labels-idx1-ubyte.gz"], (count,))
    if labels.max() > 9:
        raise ValueError(f"{paths['train-labels-idx1-ubyte.gz']}: label {labels.max()}: must be 0 to 9")
    of_digits = np.isin(labels, digits)
    expected = dataset.settings["train_rows"] + dataset.settings["test_rows"]
    files.check_rows(paths["train-labels-idx1-ubyte.gz"], of_digits.sum(), expected, f"images of the digits {digits}")
    return {"pixels": images[of_digits].reshape(-1, 28 * 28), "digit": labels[of_digits]}


def _idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    try:
        content = gzip.decompress(path.read_bytes())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: not a whole gzip archive ({error})") from error
    # The idx format: two zero bytes, 8 for unsigned bytes, the number of axes; each length, big-endian; the data.
    header = bytes([0, 0, 8, len(shape)]) + np.array(shape, dtype=">u4").tobytes()
    if content[: len(header)] != header:
        raise ValueError(
            f"{path}: header {content[: len(header)].hex()}, expected {header.hex()} (bytes, shape {shape})"
        )
    if len(content) != len(header) + np.prod(shape):
        raise ValueError(f"{path}: {len(content)} bytes unpacked, expected {len(header) + np.prod(shape)}")
    return np.frombuffer(content, np.uint8, offset=len(header)).reshape(shape)


def task(arrays: dict[str, np.ndarray], dataset: Dataset) -> Task:
    """Return the 784 pixels and the labels: 1 for the first digit (Geumlek et al. 2017, section 5)."""
    return Task({"pixel": arrays["pixels"]}, {}, arrays["digit"] == dataset.settings["digits"][0])
