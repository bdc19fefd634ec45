"""Settings that several studies share: their meanings, and ranges that floating point can handle."""

from privpost.lab.schema import Choice, DatasetName, Integer, Real
from privpost.privacy.checks import LARGEST, SMALLEST
from privpost.privacy.count_tables import LARGEST_TRUNCATION, SMALLEST_TRUNCATION

# Ranges

# At a smaller concentration, draws of a beta or Dirichlet law round to 0 or 1.
CONCENTRATION = Real(at_least=0.01, at_most=1e4)
# Range for truncated laws. If a parameter is below 1, the density has a pole.
WITHOUT_POLE = Real(at_least=1, at_most=1e4)
# The weight of a likelihood or a prior.
COEFFICIENT = Real(at_least=1e-12, at_most=1)
SHARE = Real(above=0, below=1)

# Privacy

EPSILON = Real(
    at_least=SMALLEST, at_most=LARGEST, says="ε of one release, in the study's notion of privacy", unit="nats"
)
# exp(±230) lies within the range of ε.
LOG_EPSILON, OPTIONAL_LOG_EPSILON = (
    Real(at_least=-230, at_most=230, optional=optional, says="natural logarithm of ε", unit="log nats")
    for optional in (False, True)
)
DELTA = Real(above=0, below=1, says="δ of (ε, δ)-differential privacy", unit="probability")
ORDER = Real(at_least=1, at_most=1e100, says="order λ of Rényi differential privacy")
ABOVE_ONE = Real(above=1, at_most=1e100, says=ORDER.says)
A0 = Real(at_least=1e-12, at_most=0.499, says="smallest distance of OPS's parameters from 0 and 1", unit="probability")
TRUNCATION = Real(
    at_least=SMALLEST_TRUNCATION,
    at_most=LARGEST_TRUNCATION,
    says="M of OPS's truncation, a0 = 1/(M K_d) with K_d levels of field d",
)
WEIGHT = COEFFICIENT.means(
    "r, the likelihood's weight in a diffused posterior, or m, the prior's in a concentrated one"
)
SUPREMUM = Choice(
    "paper", "exact", says="pairs of neighbours that the bound covers: the `paper`'s four, or `exact` for all"
)

# Methods. Each study has its own list of methods.

METHOD = "method, with the same name in all tables and figures"
VARIANT = "`paper`, as published, or a correction that docs/ describes"

# Data and models

DATASET = "data set, by its name in conf/dataset"
DESIGN = DatasetName(task="classification", says=DATASET)
DROPPED_LEVEL = Choice("first", "last", "none", says="level of a category that has no column of its own")
N = Integer(at_least=1, says="number of records, which is public", unit="records")
P = Real(at_least=1e-12, below=1, says="probability of a one under which bits are drawn", unit="probability")
MODEL = "model of the records"
ALPHA = CONCENTRATION.means("first parameter of the beta prior", "records")
BETA = CONCENTRATION.means("second parameter of the beta prior", "records")
MODEL_ALPHA = CONCENTRATION.means("first parameter of the beta law from which true networks are drawn", "records")
MODEL_BETA = CONCENTRATION.means("second parameter of the beta law from which true networks are drawn", "records")
PRECISION = Real(at_least=1e-100, at_most=1e100)
BETA0 = PRECISION.means("prior precision of the weights, per record")
FEATURE_BOUND = Real(above=0, says="largest norm of a record's features")
RADIUS = Real(at_least=1e-3, at_most=100, says="radius of the ball to which weights are restricted; empty for none")
ATTRIBUTES = Integer(at_least=1, at_most=999, says="attributes of the classifier")
T = Real(above=0, says="t of the Fourier mechanism, which sets how far its coefficients are raised")
UTILITY = "what the MAP mechanism maximises"
TRANSITION = CONCENTRATION.means("Dirichlet concentration of transitions and of the first state", "records")
EMISSION = WITHOUT_POLE.means("Dirichlet concentration of emissions", "records")

# Chains and Monte Carlo

BURN_IN = Integer(at_least=0, says="first sweeps of a chain, which are left out")
DRAWS = Integer(at_least=1, says="posterior draws per release")
THIN = Integer(at_least=1, says="sweeps between two draws that are kept")
