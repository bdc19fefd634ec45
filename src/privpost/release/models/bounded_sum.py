"""`model: bounded_sum` of a specification."""

from privpost.lab.schema import Schema
from privpost.release.models.numeric import Numeric


class _Nothing:
    """Records of no family, which are summed as they are."""

    lattice = False

    @staticmethod
    def statistic(x):
        return x


class Sum(Numeric):
    """A sum without a model."""

    name = "bounded_sum"
    prior = Schema()

    def family(self, spec):
        """Of no law: records are summed as they are."""
        return _Nothing()
