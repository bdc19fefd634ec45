"""1980 US census: mothers of two or more children, and their husbands' incomes (Angrist and Evans 1998)."""

import lzma
from pathlib import Path

import numpy as np

from privpost.datasets import census, files
from privpost.datasets.catalogue import Dataset

# In rows with a known income, all other columns of the file are constant or follow from these columns.
COLUMNS = {
    "twoa.agefstm": "mother_age_at_first_birth",
    "twoa.agem": "mother_age",
    "twoa.educm": "mother_education",
    "twoa.hispm": "mother_hispanic",
    "twoa.kidcount": "children",
    "twoa.samesex": "first_two_same_sex",
    "twoa.workedm": "mother_works",
    "twoa.incomed": "income",
}


def parse(paths: dict[str, Path], dataset: Dataset) -> dict[str, np.ndarray]:
    """Read the rows with a known income from the packed CSV, into float64 arrays (334535,).

    Raises ValueError naming the file, and the line or the columns at fault.
    """
    (path,) = paths.values()
    try:
        text = lzma.decompress(path.read_bytes()).decode("ascii")
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: damaged ({error})") from error
    arrays = census.rows(text.splitlines(), COLUMNS, str(path))
    files.check_rows(path, len(arrays["income"]), dataset.settings["rows"], "rows with an income")
    return arrays
