"""The base class of mechanisms that add noise to sufficient statistics."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from privpost.distributions import noise
from privpost.mechanisms.base import COUNTED, Mechanism
from privpost.models.conjugate.clamped_moments import ClampedMoments
from privpost.privacy.checks import check_choice, check_given
from privpost.samplers.noise_aware import exact_counts
from privpost.samplers.noise_aware.draws import Draws, named

Coordinates = Literal["all", "free"]


@dataclass(frozen=True)
class AdditiveNoiseMechanism(Mechanism):
    """Adds independent noise to every released coordinate of the sufficient statistics.

    Attributes:
        coordinates: "all" releases all d statistics. "free" releases the first d − 1, for counts that sum to the public
            n. The default is "free" for two counts, which halves the noise, otherwise "all".

    Raises:
        ValueError: "free" is used with statistics that do not sum to n, or no bound of the statistics is known.
    """

    coordinates: Coordinates | None = field(default=None, kw_only=True)

    releases: ClassVar[str] = "statistics"

    def __post_init__(self):
        super().__post_init__()
        if self.coordinates is None:
            bits = type(self.model) in COUNTED and len(self.model.prior) == 2
            object.__setattr__(self, "coordinates", "free" if bits else "all")
        if not self.model.bounded:
            raise ValueError(
                f"model is {self.model!r}; no bound is known here on how far a record moves its statistics"
            )
        check_choice("coordinates", self.coordinates, get_args(Coordinates))
        if self.coordinates == "free" and not np.allclose(self._record_statistics().sum(axis=-1), 1):
            raise ValueError("coordinates is 'free'; that needs statistics of each record that sum to 1")

    @abstractmethod
    def noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw independent noise of the given shape."""

    @property
    def sensitivity(self) -> float:
        """Largest change, in `norm`, of the released coordinates when one record is substituted."""
        statistics = self.select(self._record_statistics())
        change = np.abs(statistics[:, None] - statistics[None])
        return float(np.max(change.sum(-1) if self.norm == "l1" else np.sqrt((change**2).sum(-1))))

    def _record_statistics(self):
        records = getattr(self.model, "extreme_records", self.model.records)
        return np.stack([self.model.sufficient_statistics(record[None]) for record in records])

    def neighbouring_statistics(self) -> np.ndarray | None:
        """Statistics (pairs, 2, d) of all pairs of single records. Other records do not change the noise."""
        statistics = np.unique(self._record_statistics(), axis=0)
        return np.stack([statistics[places] for places in np.triu_indices(len(statistics), 1)], axis=1)

    def noise_cdf(self, value) -> np.ndarray | None:
        """Distribution function of the noise if a release is one number with a known `log_density`. None otherwise."""
        return self._divergences.cdf(self, value)

    def select(self, statistics) -> np.ndarray:
        """Return the released coordinates (..., q) of statistics (..., d)."""
        statistics = np.asarray(statistics, float)
        return statistics if self.coordinates == "all" else statistics[..., :-1]

    def query(self, data) -> np.ndarray:
        """The released coordinates of the data's sufficient statistics, before noise."""
        return self.select(self.model.sufficient_statistics(data))

    def _perturb(self, statistics, rng):
        """Return the noisy coordinates (..., q)."""
        exact = self.select(statistics)
        return noise.add(exact, self.noise(exact.shape, rng), rng)

    def project(self, release) -> np.ndarray:
        """Return valid sufficient statistics (..., d) near a release (..., q).

        With "all", coordinates below 0 become 0 (Foulds et al. 2016). With "free", counts are clipped to [0, n], and
        the last count is n minus the sum of these counts, but at least 0 (Geumlek et al. 2017, for binary data).
        Clamped moments use `ClampedMoments.project`.
        """
        release = np.asarray(release, float)
        if isinstance(self.model, ClampedMoments):
            return self.model.project(release, self.n)
        if self.coordinates == "all":
            return np.maximum(release, 0.0)
        counts = np.clip(release, 0.0, self.n)
        rest = np.maximum(self.n - counts.sum(axis=-1, keepdims=True), 0.0)
        return np.concatenate([counts, rest], axis=-1)

    def naive_posterior(self, release) -> np.ndarray:
        """Parameters (..., k) of the conjugate posterior that treats the projected release as exact statistics."""
        projected = self.project(release)
        if isinstance(self.model, ClampedMoments):
            return self.model.family.posterior(self.model.sums(projected, self.n))
        return self.model.posterior(projected)

    def posterior(self, release: ArrayLike, draws: int, rng: np.random.Generator) -> Draws:
        """Return independent draws (draws, *theta_shape) from the posterior of θ given a release (q,).

        True counts are drawn first, and then θ given these counts (Bernstein and Sheldon 2018). The draws are exact.
        Each record must be one category or bit, and the noise must have a known density.
        """
        if type(self.model) not in COUNTED:
            return super().posterior(release, draws, rng)
        check_given(release, self.select(self.model.prior).shape, draws, rng)
        if self.support == "integers" and np.any(np.asarray(release) != np.rint(release)):
            raise ValueError(f"release is {release!r}; {self.method} releases whole numbers")
        counts, factors = np.arange(self.n + 1.0), []
        # As the noise is independent, setting all other counts to 0 gives one count's density, up to a constant.
        for unit, alpha in zip(np.eye(len(self.model.prior)), self.model.prior, strict=True):
            log_density = self.log_density(release, counts[:, None] * unit)
            if log_density is None:
                return super().posterior(release, draws, rng)
            factors.append(gammaln(alpha + counts) - gammaln(counts + 1) + log_density)
        latent = exact_counts.latent_counts(factors, draws, rng)
        return named(self.model.sample(self.model.posterior(latent), rng), self.model)
