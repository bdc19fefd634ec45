"""The model `logistic_regression` of private releases."""

from decimal import Decimal

import numpy as np

from privpost.lab.schema import Choice, Real, Schema, SettingError
from privpost.mechanisms.draws.logistic_ball import BallDraw
from privpost.mechanisms.noise.logistic_lattice import SHIFT, OutputNoise
from privpost.release.columns import Levels
from privpost.release.models.base import Sampled
from privpost.release.models.numeric import parsed

# Largest number of columns. The optimiser's work grows with the square of this number.
LARGEST_COLUMNS = 200


class Logistic(Sampled):
    """Logistic regression of a label of two levels on features with public bounds. The weights are released."""

    name = "logistic_regression"
    column = Schema(low=Real(), high=Real(), levels=Levels(), role=Choice("label", "feature"))
    required = ()
    prior = Schema(precision=Real(above=0))
    mechanisms = ("gaussian", "ops")
    on_lattice = True
    columns = None
    binary = True

    def check(self, spec):
        self.check_role(spec, "label", f"1 to {LARGEST_COLUMNS - 1} others", LARGEST_COLUMNS - 1)
        super().check(spec)
        if spec.n * len(spec.columns) > 2**28:
            raise SettingError(f"n is {spec.n}; n times the columns must be at most 2^28.")
        least, most = 1e-9 * spec.n, 1e9 * spec.n
        if not least < (precision := spec.prior["precision"]) < most:
            raise SettingError(
                f"prior: precision is {precision:g}, but must be in ({least:g}, {most:g}), n times 1e-9 to 1e9."
            )

    def check_column(self, spec, settings):
        role = settings.get("role", "feature")
        wanted = ("levels",) if role == "label" else ("low", "high")
        for key in ("low", "high", "levels"):
            if key in wanted and key not in settings:
                raise SettingError(f"{key} is missing. Required: {', '.join(wanted)}.")
            if key in settings and key not in wanted:
                raise SettingError(f"{key} is not for a {role}; leave it out.")
        super().check_column(spec, settings)

    def order(self, spec):
        """Return the names of the columns with the label last."""
        return sorted(spec.columns, key=lambda name: spec.columns[name].get("role") == "label")

    def mechanism(self, spec, setting):
        return OutputNoise(spec.n, len(spec.columns), spec.prior["precision"], setting)

    def sampler(self, spec, setting):
        return BallDraw(spec.n, len(spec.columns), spec.prior["precision"], setting)

    def counted(self, spec, mechanism):
        return mechanism

    def summed(self, chunks, mechanism):
        """Return the optimal weights given all records, or the records themselves if a draw is released."""
        records = np.concatenate(list(chunks))
        if isinstance(mechanism, BallDraw):
            return records
        try:
            return mechanism.fit(records)
        except (RuntimeError, np.linalg.LinAlgError):
            raise SettingError("no minimum could be certified, and nothing was released") from None

    def encode(self, spec, column, text):
        settings = spec.columns[column]
        if "levels" in settings:
            return super().encode(spec, column, text)
        value = parsed(text)
        low, high = (Decimal(repr(settings[key])) for key in ("low", "high"))
        if value is None or not low <= value <= high:
            return None
        return int(((2 * (value - low) / (high - low) - 1) * 2**SHIFT).to_integral_value())

    def allowed(self, spec, column):
        settings = spec.columns[column]
        if "levels" in settings:
            return super().allowed(spec, column)
        return f"a number in [{settings['low']:g}, {settings['high']:g}]"

    def unit(self, spec):
        return self.mechanism(spec, 1.0).step

    def exact_statistics(self, spec, statistics):
        return statistics

    def parameters(self, spec):
        return ["intercept", *self.order(spec)[:-1]]

    def statistics(self, spec, release):
        weights = zip(self.parameters(spec), (release * self.unit(spec)).tolist(), strict=True)
        return {"weights": dict(weights), **self.reading(spec)}

    def reading(self, spec) -> dict[str, str]:
        """Return what a reader needs to use the weights: the features' scale and the predicted level."""
        return {
            "features": "each between -1 at its low and 1 at its high bound",
            "predicts": spec.columns[self.order(spec)[-1]]["levels"][1],
        }
