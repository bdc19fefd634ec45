"""The model `linear_regression` of private releases."""

from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from privpost.evaluation import diagnostics
from privpost.lab.schema import Choice, Real, Schema, SettingError
from privpost.mechanisms.noise.moments_lattice import SHIFT, LatticeMoments
from privpost.models.regression.normal import NormalRegression
from privpost.release.models.base import Inferred, Posterior, by_name
from privpost.release.models.numeric import parsed
from privpost.samplers.noise_aware import draws as noise_aware_draws

# Largest number of columns. The noise and the number of moments grow with the square of this number.
LARGEST_COLUMNS = 8
# Up to this many records, sums of products are whole numbers that floats hold exactly.
MOST_RECORDS = 2**31
# Beyond these limits, squares of a prior's settings overflow in the posterior. Columns are scaled to [-1, 1].
_SETTING = Real(at_least=1e-9, at_most=1e9)
# Approximate seconds of a sweep of all chains, per column.
_SECONDS = 5e-4


class Linear(Inferred):
    """Linear regression of a label on features with public bounds. The second moments are released."""

    name = "linear_regression"
    column = Schema(low=Real(), high=Real(), role=Choice("label", "feature"))
    required = ("low", "high")
    prior = Schema(precision=_SETTING, shape=_SETTING, rate=_SETTING)
    # Units are half a column's range. The prior sd of the weights is ten times the sd of the label's residual.
    prior_defaults: ClassVar[dict[str, Any]] = {"precision": 0.01, "shape": 1.0, "rate": 0.01}
    mechanisms = ("laplace", "gaussian")
    columns = None

    def check(self, spec):
        self.check_role(spec, "label", f"1 to {LARGEST_COLUMNS - 1} others", LARGEST_COLUMNS - 1)
        super().check(spec)
        if not len(spec.columns) + 1 <= spec.n <= MOST_RECORDS:
            raise SettingError(f"n is {spec.n}; with these columns it must be in [{len(spec.columns) + 1}, 2^31].")

    def order(self, spec):
        """Return the names of the columns with the label last."""
        return sorted(spec.columns, key=lambda name: spec.columns[name].get("role") == "label")

    def mechanism(self, spec, setting):
        return LatticeMoments(spec.n, len(spec.columns), setting, spec.mechanism)

    def counted(self, spec, mechanism):
        return mechanism

    def encode(self, spec, column, text):
        settings, value = spec.columns[column], parsed(text)
        low, high = (Decimal(repr(settings[key])) for key in ("low", "high"))
        if value is None or not low <= value <= high:
            return None
        return int(((2 * (value - low) / (high - low) - 1) * 2**SHIFT).to_integral_value())

    def allowed(self, spec, column):
        settings = spec.columns[column]
        return f"a number in [{settings['low']:g}, {settings['high']:g}]"

    def unit(self, spec):
        return 4.0**-SHIFT

    def statistics(self, spec, release):
        names = ["1", *self.order(spec)]
        sums = (release * self.unit(spec)).tolist()
        places = zip(*self.mechanism(spec, 1.0).places, sums, strict=True)
        return {
            "second_moments": {f"{names[i]} * {names[j]}": value for i, j, value in places},
            "values": "each between -1 at its low and 1 at its high bound",
        }

    def parameters(self, spec):
        return ["intercept", *self.order(spec)[:-1], "variance"]

    def seconds(self, spec):
        return _SECONDS * len(spec.columns) * noise_aware_draws.regression_sweeps(spec.draws)

    def posterior(self, spec, mechanism, release, rng):
        d = len(spec.columns)
        prior = {"prior_precision": spec.prior["precision"], "shape": spec.prior["shape"], "rate": spec.prior["rate"]}
        # Our choice is a wide prior of the second moments of the features, including the constant feature.
        model = NormalRegression(d, **prior, degrees=d + 1.0, feature_scale=0.1, feature_bound=d**0.5, label_bound=1.0)
        moments, law = mechanism.moments(release)
        chains = noise_aware_draws.regression(model, moments, spec.n, law, spec.draws, rng, constant=True)
        assessed = diagnostics.assess(chains)
        draws = self._in_units(spec, noise_aware_draws.pooled(chains, spec.draws))
        return Posterior(
            by_name(self.parameters(spec), draws),
            True,
            f"ensembles of walkers on the true second moments with the noise's law, {chains.shape[1]} of them",
            (
                "Markov chain Monte Carlo",
                "continuous law of the noise",
                "features as if normal, of unknown mean and covariance (Bernstein and Sheldon 2019)",
                f"values rounded to {2**SHIFT} steps of half their range",
            ),
            assessed.rhat_max,
            assessed.ess_min,
            chains.shape[1],
            assessed.reason,
        )

    def _in_units(self, spec, theta) -> np.ndarray:
        """Return draws (draws, d + 1) of intercept, weights and variance in the columns' units."""
        # In `theta`, the unit of each column is half its range.
        ends = np.array([[spec.columns[name][key] for key in ("low", "high")] for name in self.order(spec)], float)
        middle, half = ends.mean(axis=1), np.diff(ends, axis=1)[:, 0] / 2
        weights = theta[:, 1:-1] * half[-1] / half[:-1]
        intercept = middle[-1] + half[-1] * theta[:, 0] - weights @ middle[:-1]
        return np.column_stack([intercept, weights, theta[:, -1] * half[-1] ** 2])
