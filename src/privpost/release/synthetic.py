"""Draws synthetic data from a release's posterior predictive law, at no further privacy cost.

Each set is drawn at one draw of θ from the noise-aware posterior. An analyst computes the posterior given each set and
mixes these posteriors. The mixture is close to the posterior given the release if the sets are much larger than the
data (Räisä, Jälkö and Honkela 2025, JMLR 26). With sets of the data's size, the mixture has about twice the variance.
"""

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

from privpost.atomic import replacing
from privpost.lab.schema import SettingError
from privpost.release.models.base import Posterior, Predictive
from privpost.release.specification import Specification

# Size of a set relative to the data. The mixture's variance exceeds the posterior's by a share of 1/20.
TIMES = 20
# Largest number of records in all sets together.
MOST = 5_000_000
# Name of the column that numbers the sets.
COLUMN = "synthetic_set"
RULE = (
    "analyse each synthetic_set alone, with a Bayesian posterior, and mix the posteriors in equal parts (Räisä, Jälkö "
    "and Honkela 2025); do not use Rubin's rules, and do not analyse all sets as one"
)


def place(output: Path) -> Path:
    """Return the path of the synthetic data, which lie beside the statement."""
    return output.with_name(f"{output.stem}.synthetic.csv")


def check(spec: Specification, kind: Any) -> None:
    """Raise SettingError if a specification asks for synthetic data that the model or the settings do not allow."""
    if not spec.synthetic:
        return
    if not isinstance(kind, Predictive):
        raise SettingError(f"synthetic is {spec.synthetic}, but {kind.name} has no law of whole records; leave it out.")
    if spec.draws < spec.synthetic:
        raise SettingError(
            f"synthetic is {spec.synthetic}, but each set needs a draw of its own: posterior: {{draws: 4000}} has them."
        )
    if (records := spec.synthetic * TIMES * spec.n) > MOST:
        raise SettingError(
            f"synthetic is {spec.synthetic}: sets of {TIMES} n records would have {records:,} in all, but at most "
            f"{MOST:,} are written."
        )
    if COLUMN in spec.columns:
        raise SettingError(f"columns: {COLUMN} is the number of a synthetic set; rename the column.")


def check_output(spec: Specification, output: Path | None) -> None:
    """Raise SettingError unless the synthetic data can be written to a new file."""
    if not spec.synthetic:
        return
    if output is None:
        raise SettingError(f"synthetic is {spec.synthetic}, which needs --output: its file lies beside that.")
    if os.path.lexists(place(output)):
        raise SettingError(f"--output: {place(output)}, for the synthetic data, exists; name another output.")


def write(spec: Specification, kind: Any, drawn: Posterior, output: Path, rng: np.random.Generator) -> dict[str, Any]:
    """Write synthetic data to a new file, and return the statement's part on them. Raise OSError if this fails."""
    path, size = place(output), TIMES * spec.n
    theta = np.stack([*drawn.draws.values()], axis=-1)
    # Use draws that are far apart in a chain.
    chosen = theta[np.linspace(0, len(theta) - 1, spec.synthetic).round().astype(int)]
    with replacing(path, new=True) as temporary, temporary.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n", delimiter=spec.delimiter)
        writer.writerow([COLUMN, *kind.order(spec)])
        for number, one in enumerate(chosen, start=1):
            columns = kind.predicted(spec, one, size, rng)
            writer.writerows(zip([number] * size, *columns, strict=True))
    return {"file": path.name, "sets": spec.synthetic, "records_of_a_set": size, "needed_records": size, "rule": RULE}
