# The public names, for type checkers and editors: at run time a class is imported when it is first asked for.
from privpost.models.bayesian_network import BayesianNetwork as BayesianNetwork
from privpost.models.beta_bernoulli import BetaBernoulli as BetaBernoulli
from privpost.models.beta_bits import BetaBits as BetaBits
from privpost.models.beta_geometric import BetaGeometric as BetaGeometric
from privpost.models.binary_regression import BinaryRegression as BinaryRegression
from privpost.models.clamped_moments import ClampedMoments as ClampedMoments
from privpost.models.dirichlet_categorical import DirichletCategorical as DirichletCategorical
from privpost.models.event_counts import EventCounts as EventCounts
from privpost.models.gamma_exponential import GammaExponential as GammaExponential
from privpost.models.gamma_pareto import GammaPareto as GammaPareto
from privpost.models.gamma_poisson import GammaPoisson as GammaPoisson
from privpost.models.linear_regression import LinearRegression as LinearRegression
from privpost.models.link_regression import LinkRegression as LinkRegression
from privpost.models.normal_known_variance import NormalKnownVariance as NormalKnownVariance
from privpost.models.normal_regression import NormalRegression as NormalRegression
from privpost.models.normal_unknown_variance import NormalUnknownVariance as NormalUnknownVariance
