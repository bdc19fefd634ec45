"""Settings that many studies have, with the ranges within which what they compute stays within floating point."""

from privpost.lab.schema import Real
from privpost.privacy.checks import LARGEST, SMALLEST
from privpost.privacy.count_tables import LARGEST_TRUNCATION, SMALLEST_TRUNCATION

EPSILON = Real(at_least=SMALLEST, at_most=LARGEST)
# exp(±230) lies within the range of ε.
LOG_EPSILON, OPTIONAL_LOG_EPSILON = (Real(at_least=-230, at_most=230, optional=optional) for optional in (False, True))
# Of beta and Dirichlet priors; draws at less are 0 or 1 to the last digit. Without a pole, where they are truncated.
CONCENTRATION, WITHOUT_POLE = Real(at_least=0.01, at_most=1e4), Real(at_least=1, at_most=1e4)
# Of a likelihood's or a prior's weight.
COEFFICIENT = Real(at_least=1e-12, at_most=1)
# Of bits.
PROBABILITY = Real(at_least=1e-12, below=1)
# Of a Gaussian prior.
PRECISION = Real(at_least=1e-100, at_most=1e100)
# Of a Rényi divergence.
ORDER, ABOVE_ONE = Real(at_least=1, at_most=1e100), Real(above=1, at_most=1e100)
# Of truncation: the smallest probability, and what multiplies the number of levels.
SMALLEST_PROBABILITY = Real(at_least=1e-12, at_most=0.499)
TRUNCATION = Real(at_least=SMALLEST_TRUNCATION, at_most=LARGEST_TRUNCATION)
