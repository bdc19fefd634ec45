"""One draw from the posterior of a probit, complementary log-log or logistic regression on a ball, weighted."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from privpost.mechanisms.logistic_sampling import LogisticDraw
from privpost.models.link_regression import LinkRegression


@dataclass(frozen=True)
class LinkDraw(LogisticDraw):
    """Theorems 16 and 17 of Geumlek et al. (2017) with the Lipschitz constants that a loss has on the ball.

    The proof needs two things: neighbours' log-densities whose difference is 2ρcB-Lipschitz, and an nβ-strongly
    log-concave law. The paper takes B = 1, the range of y − E y, for all three links; that bounds the gradient for the
    logistic link only. On ‖w‖ ≤ R the gradients of two records differ by at most 2cB (`largest_change`), and the law
    stays strongly log-concave, as the losses and the ball are convex. Its curvature has no bound that allows draws in
    public time: `public_time` must be False, and the data public.

    >>> draw = LinkDraw(LinkRegression(2, 0.1), 100, 2.0, 0.5, weighting="diffused", public_time=False)
    >>> print(draw.cost())
    rdp(epsilon=0.563215, order=2)
    """

    named: ClassVar[str] = "Link{}"
    models: ClassVar[tuple[type, ...]] = (LinkRegression,)
    weightings: ClassVar[tuple[str, ...]] = ("concentrated", "diffused")

    def __post_init__(self):
        super().__post_init__()
        if self.public_time:
            raise ValueError("public_time is True; draws on the ball of another link have none, so it must be False")

    @property
    def radius(self) -> float:
        """R of the model."""
        return self.model.radius

    def release_law(self, statistics):
        """The law of a release about one data set's statistics (n (d + 1),)."""
        return self.model.posterior(statistics, self.n * self.precision, self.power)

    def query(self, data) -> np.ndarray:
        """Gradient of the tempered log-likelihood at w = 0, shape (d,)."""
        law = self.release_law(self.model.sufficient_statistics(data))
        return self.power * law.features.T @ law.slopes(np.zeros(len(law.features)))

    @classmethod
    def examples(cls) -> list[Self]:
        """One weight and two, either link, and a small ball, on which records of one label differ most."""
        diffused, concentrated = (
            partial(cls, weighting=weighting, public_time=False) for weighting in ("diffused", "concentrated")
        )
        return [
            diffused(LinkRegression(1, 0.1, link="probit"), 4, 2.0, 0.3),
            diffused(LinkRegression(2, 1.0, link="cloglog", radius=1.0), 3, 2.0, 0.3),
            diffused(LinkRegression(1, 2500.0, link="cloglog", radius=0.1), 4, 2.0, 0.3),
            concentrated(LinkRegression(1, link="cloglog", radius=1.0), 4, 2.0, 1.0),
            concentrated(LinkRegression(2, link="probit"), 3, 2.0, 2.0),
        ]
